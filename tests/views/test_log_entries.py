"""Entries of the decision log in words."""

from __future__ import annotations

from typing import Any

import pytest

from masis.schema.review import Decision, LogEntry
from masis.views.log_entries import entry_about, entry_contents, entry_reason, entry_texts, entry_word, undone_text


def entry(seq: int, **decision: Any) -> LogEntry:
    about = {"reviewer": "Ada", "case_id": "c", "run_id": None} | decision
    return LogEntry(
        seq=seq,
        id=f"e{seq}",
        at="2026-01-01T10:00:00.000Z",
        payload_digest="",
        previous="",
        digest="",
        decision=Decision.model_validate(about) if decision else None,
    )


REJECTED = entry(1, verdict="reject", reason="why")
UNDO = entry(2, kind="undo", undoes="e1", reviewer="Bo")


def test_an_undo_and_a_redaction_name_the_entry_they_are_about() -> None:
    redaction = entry(4, kind="redaction", extra={"redacts": "e3"})
    final = entry(5, kind="adjudication", verdict="override", corrected_answer="x", reason="r")
    words = {key: word.text for key, word in entry_texts([final, redaction, entry(3), UNDO, REJECTED]).items()}
    assert words == {
        "e1": "Rejected the original answer",
        "e2": "Undid “Rejected the original answer”",
        "e3": "Redacted",
        "e4": "Redacted entry e3",
        "e5": "Overrode the original answer by adjudication",
    }


def test_an_undo_of_an_entry_that_is_not_there_says_so_much() -> None:
    assert entry_texts([UNDO])["e2"].text == "Undid a decision"


@pytest.mark.parametrize(
    ("given", "word", "about"),
    [
        (REJECTED, "Rejected", "the original answer"),
        (UNDO, "Undone", "“Rejected” by Ada, entry 1"),
        (entry(3), "Redacted", "what was written here was removed"),
        (entry(4, kind="redaction", extra={"redacts": "e1"}), "Redaction", "the text of entry 1"),
        (entry(5, kind="tag", tags=("urgent", "drug")), "Tagged", "urgent, drug"),
        (entry(6, kind="policy_accept"), "Auto-accepted", "“Rejected” by Ada, entry 1"),
    ],
)
def test_an_entry_says_in_a_word_what_it_is_and_beside_it_about_what(given: LogEntry, word: str, about: str) -> None:
    assert entry_word(given).text == word
    assert entry_about(given.decision, REJECTED) == about


def test_an_acceptance_names_its_rule_and_a_decision_its_reason() -> None:
    assert entry_reason(REJECTED.decision) == "why"
    assert entry_reason(entry(1, kind="policy_accept", extra={"rule": "4"}).decision) == "by acceptance rule 4"
    assert entry_reason(entry(1, kind="policy_accept").decision) == "by the acceptance rule"
    assert entry_reason(None) == ""


def test_what_undid_an_entry_and_what_it_holds_are_said() -> None:
    assert [undone_text(by) for by in (None, entry(3), UNDO)] == ["", "undone", "undone by Bo"]
    corrected = entry(1, verdict="override", corrected_answer="x", reason="r").decision
    assert entry_contents(corrected) == ["corrected answer"]
    assert entry_contents(None) == []
