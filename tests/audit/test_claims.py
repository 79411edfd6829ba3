"""Sentences and stretches of them as claims, and what follows in code from the verdicts on them."""

from __future__ import annotations

import pytest

from masis.api.audits import audit_citations
from masis.audit import claims
from masis.audit.assertions import asserts, citations_by_sentence, claim_within, sentence_claim
from masis.audit.claims import one_check_each
from masis.schema.audit import Claim, ClaimCheck
from tests.audit.factories import EVIDENCE, check


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIDENCE")
def test_confidence_is_the_mean_of_mean_support_and_share_verified() -> None:
    found = claims.report((check(support=0.9), check("unsupported", 0.3), check("unsupported", 0.0)))
    assert found.confidence == pytest.approx((0.4 + 1 / 3) / 2)
    assert (found.facts_checked, found.facts_verified) == (3, 1)


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIDENCE")
def test_an_answer_without_claims_is_neither_confirmed_nor_denied() -> None:
    assert claims.report(()).confidence == 0.5


@pytest.mark.spec("DRAFT-CRITIQUE-SEVERITY")
@pytest.mark.parametrize(
    ("support", "severity"), [(0.0, "high"), (0.29, "high"), (0.3, "medium"), (0.59, "medium"), (0.6, "low")]
)
def test_severity_follows_support(support: float, severity: str) -> None:
    assert claims.severity(check("unsupported", support)) == severity


def test_a_contradicted_claim_is_at_least_high() -> None:
    assert claims.severity(check("contradicted", 0.9)) == "high"


def test_a_verified_claim_is_no_issue() -> None:
    assert claims.severity(check()) is None


@pytest.mark.spec("DRAFT-CRITIQUE-STRICTNESS")
def test_strictness_filters_by_severity() -> None:
    grades = ("critical", "high", "medium", "low")
    assert [g for g in grades if claims.passes(g, "lenient")] == ["critical", "high"]  # type: ignore[arg-type]
    assert [g for g in grades if claims.passes(g, "moderate")] == ["critical", "high", "medium"]  # type: ignore[arg-type]
    assert [g for g in grades if claims.passes(g, "strict")] == list(grades)  # type: ignore[arg-type]


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_a_claim_without_a_verdict_is_unscored_never_supported() -> None:
    first, second = Claim(text="One.", start=0, end=4), Claim(text="Two.", start=5, end=9)
    matched = claims.one_check_each((first, second), (check(claim=second),))
    assert [found.verdict for found in matched] == ["unscored", "supported"]
    assert matched[0].support is None


def test_a_verdict_too_many_counts_for_nothing() -> None:
    only = Claim(text="One.", start=0, end=4)
    matched = claims.one_check_each(
        (only,), (check(claim=Claim(text="Invented.")), check("unsupported", 0.1, claim=only))
    )
    assert [found.verdict for found in matched] == ["unsupported"]


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
