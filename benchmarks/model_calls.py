"""What models are asked to audit one ordinary answer: calls, tokens, and how much of it a cache of
prompts has seen.

python benchmarks/model_calls.py                 # demo answers of 4 to 6 sentences with 4 to 6 chunks, by depth
python benchmarks/model_calls.py --cases FILE    # those of a file (JSON Lines), of any size

Tokens are characters / 4 of frame, instructions, texts, schema and reply; the schema comes first,
as in OpenAI's cache. The replies are those of a scripted server on loopback, shorter than a
model's. No answer is revised.
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

ORDINARY = range(4, 7)
"""Chunks, and sentences that assert something, of an ordinary answer."""
PREFIX_LEAST = 4_000
"""Characters of a beginning that count as seen before: some 1,000 tokens, from which vendors'
caches serve it.
"""


class Figures(NamedTuple):
    """The means over the answers: calls, tokens sent and received, and the share sent that was seen
    before.
    """

    calls: float
    sent: float
    received: float
    seen: float


ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("calls an answer", lambda each: f"{each.calls:.1f}"),
    ("tokens an answer", lambda each: f"{each.sent + each.received:,.0f}"),
    ("  sent", lambda each: f"{each.sent:,.0f}"),
    ("  received (scripted replies)", lambda each: f"{each.received:,.0f}"),
    (f"share of input seen before ({PREFIX_LEAST:,}+)", lambda each: f"{each.seen:.0%}"),
)


def ordinary(case: Case) -> bool:
    """Whether the case is of the size that the target is stated for."""
    sentences = sum(map(is_assertion, audit_citations(case.answer or "", case.evidence).sentences))
    return len(case.evidence) in ORDINARY and sentences in ORDINARY


def alike(one: str, other: str) -> int:
    """How many characters two texts have in common from their beginning on."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def measure(cases: Sequence[Case], depth: str | None) -> Figures:
    """Audit the cases, one after the other, and count what was asked."""
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
    sent = seen = received = 0
    for request in requests:
        text = json.dumps(request.schema, separators=(",", ":")) + request.text
        known = max((alike(text, other) for other in before), default=0)
        sent, seen = sent + len(text), seen + (known if known >= PREFIX_LEAST else 0)
        received += len(json.dumps(sensible(request, "none"), ensure_ascii=False))
        before.append(text)
    number = len(cases)
    return Figures(len(requests) / number, sent / 4 / number, received / 4 / number, seen / sent)


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=Path, metavar="FILE")
    given = options.parse_args()
    logging.disable(logging.INFO)
    if given.cases:
        cases = [row.case for row in read_any(given.cases) if row.case is not None]
    else:
        cases = [case for case in demo_cases() if ordinary(case)]
    cases = [case for case in cases if case.answer]
    depths = ("quick", "standard", "thorough") if "depth" in Settings.model_fields else (None,)
    found = [measure(cases, depth) for depth in depths]
    print(
        f"{len(cases)} answers{'':24}" + "".join(f"{depth or 'all roles':>12}" for depth in depths)
    )
    for name, value in ROWS:
        print(f"{name:35}" + "".join(f"{value(each):>12}" for each in found))


if __name__ == "__main__":
    main()
