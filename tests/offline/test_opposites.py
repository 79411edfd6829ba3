"""A claim that says the opposite of the evidence in nearly the same words is never confirmed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.offline.matching.evidence_index import ClaimAssessment, EvidenceIndex
from tests.rules import each

PAIRS: dict[str, list[tuple[str, str]]] = json.loads(
    (Path(__file__).parent / "opposites.json").read_text("utf-8")
)
LEFT_OPEN = {"Children under five are included in the offer."}
"""Opposites in other words, which aren't flagged."""


def assess(claim: str, *evidence: str) -> ClaimAssessment:
    index = EvidenceIndex((f"c{number}", text) for number, text in enumerate(evidence, 1))
    return index.assess(claim)


@each(PAIRS["opposite"])
def test_an_opposite_in_nearly_the_same_words_is_flagged(pair: tuple[str, str]) -> None:
    evidence, claim = pair
    expected = "unverifiable" if claim in LEFT_OPEN else "contradicted"
    assert assess(claim, evidence).verdict == expected
    assert assess(evidence, claim).verdict == expected


@each(PAIRS["same"])
def test_other_words_for_the_same_thing_are_not_flagged(pair: tuple[str, str]) -> None:
    evidence, claim = pair
    assert assess(claim, evidence).verdict != "contradicted"
    assert assess(evidence, claim).verdict != "contradicted"


def test_a_sentence_with_two_changes_is_left_open() -> None:
    evidence = "The drug increased weight and decreased blood pressure."
    claim = "The drug decreased weight and increased blood pressure."
    assert assess(claim, evidence).verdict == "unverifiable"


def test_the_opposite_words_are_shown_on_both_sides() -> None:
    evidence, claim = "Note. Don't take it with warfarin.", "It is safe with warfarin."
    [signal] = assess(claim, evidence).signals
    assert signal.kind == "opposite"
    assert claim[signal.claim_start : signal.claim_end] == signal.claim_text == "safe"
    assert evidence[signal.evidence_start : signal.evidence_end] == signal.evidence_text
    assert signal.evidence_text == "Don't take"
    assert signal.reason == "the evidence has “Don't take” where the claim has “safe”"


@pytest.mark.parametrize(
    "evidence",
    [
        "The dam is not safe for lorries. The dam is surely safe for lorries.",
        "A common myth: The dam is not safe for lorries.",
        "The dam is not safe for lorries. This is false.",
        "The mayor wrote: “Listen. The dam is not safe for lorries. Stay away.”",
        "Is the dam not safe for lorries?",
    ],
)
def test_a_sentence_that_the_evidence_may_not_assert_contradicts_nothing(evidence: str) -> None:
    claim = (
        "The dam is surely safe for lorries."
        if "surely" in evidence
        else "The dam is safe for lorries."
    )
    assert assess(claim, evidence).verdict != "contradicted"


def test_a_claim_that_another_chunk_confirms_is_disputed_instead() -> None:
    claim = "The dam is safe for lorries."
    both = assess(claim, "The dam is not safe for lorries.", claim)
    assert (both.verdict, both.vetoes) == ("unverifiable", ("disputed",))
