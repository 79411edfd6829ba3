"""Sentences and stretches of them as claims."""

from __future__ import annotations

from masis.api.audits import audit_citations
from masis.audit.assertions import asserts, citations_by_sentence, claim_within, sentence_claim
from masis.audit.claims import one_check_each
from masis.schema.audit import Claim, ClaimCheck
from tests.audit.factories import EVIDENCE

ANSWER = "How long is it? The bridge is 120 metres long and opened in 1931 [chunk_1][chunk_2]."


def test_a_question_asserts_nothing() -> None:
    assert [asserts(sentence) for sentence in audit_citations(ANSWER, EVIDENCE).sentences] == [False, True]


def test_a_sentence_as_a_claim_knows_its_markers_and_what_they_cite() -> None:
    audit = audit_citations(ANSWER, EVIDENCE)
    claim = sentence_claim(1, audit.sentences[1], citations_by_sentence(audit)[1])
    assert ANSWER[claim.start : claim.end] == claim.text
    assert [claim.text[start:end] for start, end in claim.markers] == ["[chunk_1]", "[chunk_2]"]
    assert claim.cited == ("chunk_1", "chunk_2")


def test_a_stretch_of_a_sentence_is_cited_as_the_sentence_is_and_holds_no_marker_of_the_rest() -> None:
    audit = audit_citations(ANSWER, EVIDENCE)
    start = ANSWER.index("The bridge")
    claim = claim_within(1, "The bridge is 120 metres long", start, citations_by_sentence(audit)[1])
    assert claim.markers == ()
    assert claim.cited == ("chunk_1", "chunk_2")


def test_two_claims_in_the_same_words_keep_a_verdict_each() -> None:
    first, second = (
        Claim(text="A and B rose and fell.", statement=said, start=0, end=22) for said in ("A rose.", "B fell.")
    )
    checks = [
        ClaimCheck(claim=second, verdict="unsupported", support=0.0, confidence=1.0),
        ClaimCheck(claim=first, verdict="supported", support=1.0, confidence=1.0),
    ]
    assert [check.verdict for check in one_check_each([first, second], checks)] == ["supported", "unsupported"]
