"""A claim that plainly negates the evidence is flagged; any other opposite isn't confirmed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from masis.offline.checks.opposites import find_opposite
from masis.offline.matching.evidence_index import ClaimAssessment, EvidenceIndex
from tests.rules import for_each

PAIRS: dict[str, list[tuple[str, str]]] = json.loads(
    (Path(__file__).parent / "opposites.json").read_text("utf-8")
)


def assess(claim: str, *evidence: str) -> ClaimAssessment:
    index = EvidenceIndex((f"c{number}", text) for number, text in enumerate(evidence, 1))
    return index.assess(claim)


@for_each(PAIRS["opposite"])
def test_a_plain_negation_is_flagged(pair: tuple[str, str]) -> None:
    evidence, claim = pair
    assert assess(claim, evidence).verdict == "contradicted"
    assert assess(evidence, claim).verdict == "contradicted"


@for_each(PAIRS["open"])
def test_opposite_words_are_left_open_if_they_arent_a_plain_negation(
    pair: tuple[str, str],
) -> None:
    evidence, claim = pair
    assert assess(claim, evidence).verdict == "unverifiable"
    assert assess(evidence, claim).verdict == "unverifiable"


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("High blood pressure can damage the kidneys.", ("high", "Low")),
        ("Low blood pressure can protect the kidneys.", ("protect", "damage")),
        ("Low blood pressure cannot damage the kidneys.", None),
    ],
)
def test_an_opposite_that_is_left_open_shows_the_words_that_differ(
    claim: str, change: tuple[str, str] | None
) -> None:
    assert assess(claim, "Low blood pressure can damage the kidneys.").change == change


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("No, aspirin is not safe for children.", "unverifiable"),
        ("No, aspirin is safe for children.", "contradicted"),
        ("Yes, aspirin is safe for children.", "contradicted"),
    ],
)
def test_a_no_that_answers_a_question_negates_nothing(claim: str, verdict: str) -> None:
    assert assess(claim, "Aspirin is not safe for children.").verdict == verdict


@for_each(PAIRS["same"])
def test_other_words_for_the_same_thing_are_not_flagged(pair: tuple[str, str]) -> None:
    evidence, claim = pair
    assert assess(claim, evidence).verdict != "contradicted"
    assert assess(evidence, claim).verdict != "contradicted"


def test_a_sentence_with_two_changes_is_left_open() -> None:
    evidence = "The drug increased weight and decreased blood pressure."
    claim = "The drug decreased weight and increased blood pressure."
    assert assess(claim, evidence).verdict == "unverifiable"


def test_the_opposite_words_are_shown_on_both_sides() -> None:
    evidence, claim = "Note. The pill isn't safe with warfarin.", "The pill is safe with warfarin."
    [signal] = assess(claim, evidence).signals
    assert signal.kind == "opposite"
    assert claim[signal.claim_start : signal.claim_end] == signal.claim_text == "is safe"
    assert evidence[signal.evidence_start : signal.evidence_end] == signal.evidence_text
    assert signal.evidence_text == "isn't safe"
    assert signal.reason == "the evidence has “isn't safe” where the claim has “is safe”"


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


NEGATIONS = ("not", "never", "no", "no longer", "does", "did", "is", "be", "cannot", "unsafe")


@given(
    words=st.lists(
        st.sampled_from(("the", "firm", "towns", "pays", "safe", "is", "may", "3", "have")),
        max_size=8,
    ),
    inserted=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(NEGATIONS)), max_size=3),
)
@example(words=["the", "firm", "of", "towns"], inserted=[(4, "not"), (4, "does")])
def test_sentences_that_differ_by_negations_anywhere_are_compared_without_an_error(
    words: list[str], inserted: list[tuple[int, str]]
) -> None:
    changed = list(words)
    for place, word in inserted:
        changed.insert(place, word)
    claim, evidence = (f"{' '.join(one)}." for one in (words, changed))
    for ours, theirs in ((claim, evidence), (evidence, claim)):
        found = find_opposite(ours, [theirs])
        assert found is None or found[1].claim_end <= len(ours)


def test_a_negation_without_a_verb_of_its_own_is_left_open() -> None:
    assert (
        assess("The firm in our town.", "The firm in our town does not.").verdict == "unverifiable"
    )
