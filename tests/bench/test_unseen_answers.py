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
def outcome_counts() -> Counter[str]:
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
        wrong_sentences = [
            claim["text"] for claim in faults if claim["kind"] != "fabricated_citation"
        ]
        fabricated_count = len(faults) - len(wrong_sentences)
        found_count = len(first.citation_audit.invalid_citations)
        counts["fabricated found"] += min(found_count, fabricated_count)
        counts["sound citations called fabricated"] += 0 if fabricated_count else found_count
        faulty_spans = [
            (at, at + len(text)) for text in wrong_sentences if (at := first.answer.find(text)) >= 0
        ]
        for check in first.claims:
            start, end = check.claim.start or 0, check.claim.end or 0
            is_wrong = any(
                span_start < end and start < span_end for span_start, span_end in faulty_spans
            )
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
    assert outcome_counts()["faulty accepted"] == 0
    assert outcome_counts()["faulty confirmed"] == 0
    assert outcome_counts()["true confirmed"] >= 120


def test_flags_are_right_and_valid_citations_arent_flagged() -> None:
    assert outcome_counts()["faulty flagged"] >= 15
    assert outcome_counts()["true flagged"] <= outcome_counts()["faulty flagged"] // 10
    assert outcome_counts()["sound citations called fabricated"] == 0
    assert outcome_counts()["fabricated found"] >= 8
