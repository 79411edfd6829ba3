"""Count the calls, tokens and repeated input of an audit of an ordinary answer.

python benchmarks/model_calls.py                 # demo answers of 4 to 6 sentences with 4 to 6 chunks, by depth
python benchmarks/model_calls.py --cases FILE    # answers of any size from a file (JSON Lines)

A token is estimated as 4 characters of system prompt, instructions, texts, schema and reply. The
schema comes first, as in OpenAI's cache. The replies are from a scripted server on this machine and
are shorter than a model's. No answer is revised.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["SCRIPTED_KEY"] = "loopback/0123456789"

from masis.api.audits import audit_citations, run_audit
from masis.audit.text.assertions import is_assertion
from masis.datasets.mapping.reader import read_any
from masis.schema.case import Case
from masis.services import demo_cases
from masis.settings import ROLES, Settings
from tests.served_replies import Request, sensible
from tests.serving_models import ModelServer

ORDINARY_SIZE = range(4, 7)
"""How many chunks, and how many sentences that assert something, an ordinary answer has."""
MIN_PREFIX = 4_000
"""Minimum length in characters of a repeated prefix that counts as cached: about 1,000 tokens, the
minimum of vendors' caches.
"""


class Figures(NamedTuple):
    """Means over the answers: calls, tokens sent and received, and the share of the input that
    repeats an earlier prefix.
    """

    calls: float
    sent: float
    received: float
    seen: float


ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("calls per answer", lambda figures: f"{figures.calls:.1f}"),
    ("tokens per answer", lambda figures: f"{figures.sent + figures.received:,.0f}"),
    ("  sent", lambda figures: f"{figures.sent:,.0f}"),
    ("  received (scripted replies)", lambda figures: f"{figures.received:,.0f}"),
    (f"share of repeated input ({MIN_PREFIX:,}+)", lambda figures: f"{figures.seen:.0%}"),
)


def is_ordinary(case: Case) -> bool:
    """Return whether the case has the size for which the target is stated."""
    sentences = sum(map(is_assertion, audit_citations(case.answer or "", case.evidence).sentences))
    return len(case.evidence) in ORDINARY_SIZE and sentences in ORDINARY_SIZE


def common_prefix_length(first: str, second: str) -> int:
    """Return the length of the longest common prefix of two texts."""
    return next(
        (position for position, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )


def measure(cases: Sequence[Case], depth: str | None) -> Figures:
    """Audit the cases one by one and count the calls and tokens."""
    requests: list[Request] = []

    def note(request: Request) -> None:
        requests.append(request)

    with ModelServer(note, issues="none") as server:
        table = {
            "kind": "openai",
            "address": server.address,
            "key_env": "SCRIPTED_KEY",
            "adapts": False,
        }
        model = f"here:{secrets.token_hex(4)}"
        chosen = {"max_iterations": 1} | ({"depth": depth} if depth else {})
        settings = Settings.model_validate(
            {**dict.fromkeys(ROLES, model), "providers": {"here": table}, **chosen}
        )
        for case in cases:
            run_audit(case, settings)
    before: list[str] = []
    sent = cached = received = 0
    for request in requests:
        text = json.dumps(request.schema, separators=(",", ":")) + request.text
        prefix = max((common_prefix_length(text, other) for other in before), default=0)
        sent, cached = sent + len(text), cached + (prefix if prefix >= MIN_PREFIX else 0)
        received += len(json.dumps(sensible(request, "none"), ensure_ascii=False))
        before.append(text)
    number = len(cases)
    return Figures(len(requests) / number, sent / 4 / number, received / 4 / number, cached / sent)


def main() -> None:
    """Run the benchmark."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=Path, metavar="FILE")
    args = options.parse_args()
    logging.disable(logging.INFO)
    if args.cases:
        cases = [row.case for row in read_any(args.cases) if row.case is not None]
    else:
        cases = [case for case in demo_cases() if is_ordinary(case)]
    cases = [case for case in cases if case.answer]
    depths = ("quick", "standard", "thorough") if "depth" in Settings.model_fields else (None,)
    results = [measure(cases, depth) for depth in depths]
    print(
        f"{len(cases)} answers{'':24}" + "".join(f"{depth or 'all roles':>12}" for depth in depths)
    )
    for name, value in ROWS:
        print(f"{name:35}" + "".join(f"{value(figures):>12}" for figures in results))


if __name__ == "__main__":
    main()
