"""Results of the offline checks on 120 longer answers by a writer who hadn't seen the code."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import masis
from masis.settings import Settings

FILE = Path(__file__).parent / "unseen_answers" / "answers.jsonl"
FLAGGED = ("contradicted", "unsupported")


@cache
def judged() -> Counter[str]:
    """Count answers and claims by the audit's verdict and by their label."""
    counts = Counter[str]()
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        gold = row.pop("gold")
        run = masis.run_audit(row, settings=Settings(spot_check_share=0.0))
        if not run.needs_review:
            counts["faulty accepted" if gold["faulty"] else "sound accepted"] += 1
        first = run.iterations[0]
        faults = [claim for claim in gold["claims"] if claim["verdict"] != "supported"]
        wrong = [claim["text"] for claim in faults if claim["kind"] != "fabricated_citation"]
        fabricated = len(faults) - len(wrong)
        found = len(first.citation_audit.invalid_citations)
        counts["fabricated found"] += min(found, fabricated)
        counts["sound citations called fabricated"] += 0 if fabricated else found
        places = [(at, at + len(text)) for text in wrong if (at := first.answer.find(text)) >= 0]
        for check in first.claims:
            start, end = check.claim.start or 0, check.claim.end or 0
            is_wrong = any(a < end and start < b for a, b in places)
            outcome = (
                "confirmed"
                if check.verdict == "supported"
                else "flagged"
                if check.verdict in FLAGGED
                else "open"
            )
            counts[f"{'faulty' if is_wrong else 'true'} {outcome}"] += 1
    return counts


def test_no_faulty_answer_is_accepted_and_no_faulty_claim_confirmed() -> None:
    assert judged()["faulty accepted"] == 0
    assert judged()["faulty confirmed"] == 0
    assert judged()["true confirmed"] >= 120


def test_flags_are_right_and_valid_citations_arent_flagged() -> None:
    assert judged()["faulty flagged"] >= 15
    assert judged()["true flagged"] <= judged()["faulty flagged"] // 10
    assert judged()["sound citations called fabricated"] == 0
    assert judged()["fabricated found"] >= 8
