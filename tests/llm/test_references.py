"""What can be said of a sentence's references from a model's word on each chunk."""

from __future__ import annotations

import pytest

from masis.llm.roles.quotes import Chunks
from masis.llm.roles.replies import Stance
from masis.llm.roles.verdicts import Judged, with_references
from masis.schema.audit import Claim, ClaimCheck, ReferenceCheck
from masis.schema.case import ClaimVerdict, Evidence

CHUNKS = Chunks([Evidence(id=name, text="words") for name in "abc"] + [Evidence(id="empty", text=" ")])


def judged(cited: str, verdict: ClaimVerdict = "supported", sentence: int | None = 0, **stances: Stance) -> Judged:
    claim = Claim(text="It is long.", sentence=sentence, cited=tuple(cited.split()))
    return Judged(ClaimCheck(claim=claim, verdict=verdict, support=0.9, confidence=0.9), stances)


def references(*group: Judged) -> list[list[tuple[str, str, str | None]]]:
    return [[told(each) for each in check.references] for check in with_references(group, CHUNKS)]


def told(reference: ReferenceCheck) -> tuple[str, str, str | None]:
    return reference.evidence_id, reference.finding, reference.better


@pytest.mark.parametrize(
    ("one", "findings"),
    [
        (judged("a", a="supports"), [("a", "supports", None)]),
        (judged("a", "partial", a="partly"), [("a", "partly_supports", None)]),
        (judged("a b", a="supports", b="silent"), [("a", "supports", None), ("b", "redundant", None)]),
        (judged("a b", a="supports", b="partly"), [("a", "supports", None), ("b", "redundant", None)]),
        (
            judged("a b", "partial", a="partly", b="partly"),
            [("a", "partly_supports", None), ("b", "partly_supports", None)],
        ),
        (judged("a", a="silent", c="supports"), [("a", "misattributed", "c")]),
        (judged("a", "partial", a="partly", c="partly"), [("a", "partly_supports", None)]),
        (judged("a", "unsupported", a="silent"), [("a", "unsupported", None)]),
        (judged("a", "unsupported", a="silent", c="supports"), [("a", "unsupported", None)]),
        (judged("a", "contradicted", a="contradicts"), [("a", "contradicts", None)]),
        (
            judged("a b", "contradicted", a="supports", b="contradicts"),
            [("a", "supports", None), ("b", "contradicts", None)],
        ),
        (judged("a", c="supports"), [("a", "unchecked", None)]),
        (judged("empty", c="supports"), [("empty", "unchecked", None)]),
        (judged("a", "unscored"), [("a", "unchecked", None)]),
        (judged("", c="supports"), []),
    ],
)
def test_one_claim(one: Judged, findings: list[tuple[str, str, str | None]]) -> None:
    assert references(one) == [findings]


def test_chunks_that_bear_different_claims_of_a_sentence_are_both_needed() -> None:
    first = judged("a b", a="supports", b="silent")
    second = judged("a b", a="silent", b="supports")
    assert references(first, second) == [[("a", "supports", None)], [("b", "supports", None)]]


def test_a_chunk_that_no_claim_of_the_sentence_needs_is_redundant() -> None:
    first = judged("a b c", a="supports", b="silent", c="silent")
    second = judged("a b c", a="silent", b="supports", c="silent")
    assert references(first, second)[0] == [("a", "supports", None), ("c", "redundant", None)]


def test_another_chunk_is_better_only_where_nothing_cited_supports_the_claim() -> None:
    first = judged("a b", a="silent", b="supports", c="supports")
    second = judged("a b", "unsupported", a="silent", b="silent")
    assert references(first, second) == [[("a", "unsupported", None), ("b", "supports", None)], []]


def test_sentences_and_claims_given_alone_are_judged_each_for_itself() -> None:
    for sentences in ((0, 1), (None, None)):
        first = judged("a", sentence=sentences[0], a="supports")
        second = judged("a", "unsupported", sentence=sentences[1], a="silent")
        assert references(first, second) == [[("a", "supports", None)], [("a", "unsupported", None)]]


def test_a_claim_without_a_verdict_leaves_the_reference_open() -> None:
    first = judged("a", "unscored")
    second = judged("a", "unsupported", a="silent")
    assert references(first, second) == [[], [("a", "unchecked", None)]]
