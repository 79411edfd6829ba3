"""Audit 56 answers that weren't used for tuning with the recorded replies of a strong model.

python benchmarks/strong_model.py       # prints a JSON object

The model filled every role. The answers, labels and replies are in ``tests/bench/unseen``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import masis
from masis.settings import ROLES

UNSEEN = ROOT / "tests" / "bench" / "unseen"


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a JSON Lines file in the folder."""
    return [
        json.loads(line)
        for line in (UNSEEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def main() -> None:
    """Audit each answer; count faults found, answers accepted and true claims flagged."""
    labels = {row["id"]: row for row in rows("labels")}
    replay: dict[str, Any] = dict.fromkeys(ROLES, f"replay:{UNSEEN / 'replies.jsonl'}")
    settings = masis.Settings().model_copy(update={**replay, "max_iterations": 1})
    counts = dict.fromkeys(
        ("answers", "faulty", "found", "faulty_accepted", "accepted", "true_claims", "accused"), 0
    )
    for row in rows("cases"):
        run, label = masis.run_audit(row, settings), labels[row["id"]]
        first = run.iterations[0]
        start = first.answer.find(label["wrong_sentence"]) if label["faulty"] else len(first.answer)
        end = start + len(label["wrong_sentence"] or "") if label["faulty"] else start

        def in_fault(span: Any, start: int = start, end: int = end) -> bool:
            return span.start is not None and span.start < end and start < span.end

        counts["answers"] += 1
        counts["faulty"] += label["faulty"]
        counts["found"] += any(in_fault(issue) for issue in first.issues)
        counts["faulty_accepted"] += label["faulty"] and not run.needs_review
        counts["accepted"] += not label["faulty"] and not run.needs_review
        true = [check for check in first.claims if not in_fault(check.claim)]
        counts["true_claims"] += len(true)
        counts["accused"] += sum(
            check.verdict in ("contradicted", "unsupported", "partial") for check in true
        )
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
