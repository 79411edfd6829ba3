"""What follows in code from the verdicts on claims."""

from __future__ import annotations

import pytest

from masis.audit import claims
from masis.schema.audit import Claim
from tests.audit.factories import check


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
