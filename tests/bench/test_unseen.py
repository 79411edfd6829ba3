"""Answers that nobody had tuned on when they were first judged: what offline checks and a model made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis import Case, Evidence, Run, Settings, run_audit, verify_claims
from masis.settings import ROLES

FOLDER = Path(__file__).parent / "unseen"
ACCUSED = ("contradicted", "unsupported", "partial")


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def audited(name: str, labels: str, settings: Settings | None = None) -> list[tuple[Run, dict[str, Any]]]:
    label_of = {label["id"]: label for label in rows(labels)}
    return [(run_audit(Case(**case), settings), label_of[case["id"]]) for case in rows(name)]


def in_fault(run: Run, label: dict[str, Any], start: int | None, end: int | None) -> bool:
    """Whether a stretch of the answer lies in the sentence that is labelled faulty."""
    if not label["faulty"] or start is None or end is None:
        return False
    at = run.iterations[0].answer.find(label["wrong_sentence"])
    return start < at + len(label["wrong_sentence"]) and at < end


def test_a_turned_word_is_never_confirmed_and_a_copy_is() -> None:
    copies = near_copies = 0
    for row in rows("pairs"):
        evidence = [Evidence(**chunk) for chunk in row["evidence"]]
        copy, near_copy = verify_claims([row["copy"], row["near_copy"]], evidence)
        copies += copy.verdict == "supported"
        near_copies += near_copy.verdict == "supported"
    assert near_copies == 0
    assert copies >= 53  # 44 of the 45 that are word for word


def test_offline_no_faulty_short_answer_passes_and_what_is_decided_is_right() -> None:
    confirmed = accused = 0
    for run, label in audited("short_cases", "short_labels"):
        assert run.needs_review or not label["faulty"], label
        wrong_citation = label["kind"] in ("fabricated_citation", "wrong_chunk")
        for check in run.iterations[0].claims:
            faulty = in_fault(run, label, check.claim.start, check.claim.end) and not wrong_citation
            confirmed += check.verdict == "supported"
            accused += check.verdict in ACCUSED
            assert check.verdict != "supported" or not faulty, check.claim.text
            assert check.verdict not in ACCUSED or faulty, check.claim.text
    assert (confirmed, accused) >= (75, 18)


@pytest.mark.slow
def test_a_model_finds_every_fault_and_accuses_no_true_claim() -> None:
    replay = dict.fromkeys(ROLES, f"replay:{FOLDER / 'replies.jsonl'}")
    settings = Settings().model_copy(update={**replay, "max_iterations": 1})
    for run, label in audited("cases", "labels", settings):
        first = run.iterations[0]
        assert run.needs_review == label["faulty"], label
        found = [issue for issue in first.issues if in_fault(run, label, issue.start, issue.end)]
        assert bool(found) == label["faulty"], label
        for check in first.claims:
            if not in_fault(run, label, check.claim.start, check.claim.end):
                assert check.verdict not in ACCUSED, check.claim.text
