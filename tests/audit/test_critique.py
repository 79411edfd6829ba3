"""The rules in code around the critic."""

from __future__ import annotations

import pytest

from masis.audit import critique
from masis.schema.base import Unscored
from tests.audit.factories import JUDGED_BY, citations, issue, judgement, verdict


@pytest.mark.spec("MASIS-CRITIC-P3", "MASIS-CRITIC-P6")
def test_a_fabricated_reference_forces_hallucination_and_retry_and_halves_confidence() -> None:
    found = verdict(citations(invalid=1), confidence=0.8)
    assert found.hallucination_detected
    assert found.needs_retry
    assert found.confidence == pytest.approx(0.4)


@pytest.mark.spec("MASIS-CRITIC-P4", "MASIS-CRITIC-P6")
def test_uncited_sentences_take_a_tenth_and_force_nothing() -> None:
    found = verdict(citations(uncited=3), confidence=0.8)
    assert not found.hallucination_detected
    assert not found.needs_retry
    assert found.confidence == pytest.approx(0.72)


@pytest.mark.spec("MASIS-CRITIC-P4")
def test_uncited_sentences_cost_nothing_where_the_answer_cites_nothing_at_all() -> None:
    assert verdict(citations(uncited=3, cites=False), confidence=0.8).confidence == pytest.approx(0.8)


@pytest.mark.spec("MASIS-CRITIC-P6")
def test_both_penalties_multiply() -> None:
    assert verdict(citations(invalid=2, uncited=3), confidence=1.0).confidence == pytest.approx(0.45)


@pytest.mark.spec("MASIS-CRITIC-P5")
def test_confidence_on_the_percent_scale_is_read_before_the_penalty() -> None:
    assert verdict(citations(invalid=1), confidence=85).confidence == pytest.approx(0.425)


def test_the_critics_own_alarm_stands_where_the_citations_are_clean() -> None:
    found = verdict(citations(), hallucination_detected=True, needs_retry=True)
    assert found.hallucination_detected
    assert found.needs_retry


@pytest.mark.spec("MASIS-CRITIC-P2")
def test_a_failed_critic_leaves_what_the_citations_prove_and_no_number() -> None:
    found = critique.ruled(Unscored(reason="cut off", code="CRITIC-ERR-005"), citations(invalid=1), (), JUDGED_BY)
    assert found.unscored is not None
    assert found.hallucination_detected
    assert (found.confidence, found.overall_quality_score, found.critique_confidence) == (None, None, None)


@pytest.mark.spec("REQ-CRITIC-004")
@pytest.mark.parametrize(("severity", "major"), [("critical", True), ("high", True), ("medium", False), ("low", False)])
def test_major_issues_are_critical_or_high(severity: str, major: bool) -> None:
    found = critique.ruled(judgement(), citations(), (issue(severity),), JUDGED_BY)  # type: ignore[arg-type]
    assert found.has_major_issues is major


@pytest.mark.spec("REQ-CRITIC-021")
def test_citations_lower_the_quality_score_so_that_style_cannot_outweigh_fabricated_ones() -> None:
    audit = citations(invalid=1)
    assert critique.quality_score(verdict(audit, overall_quality_score=0.9), audit) == pytest.approx(0.45)


def test_an_unscored_quality_stays_unscored() -> None:
    audit = citations()
    assert critique.quality_score(verdict(audit, overall_quality_score="good"), audit) is None


def test_each_score_says_which_rule_fired_on_it() -> None:
    scores = {score.name: score for score in verdict(citations(invalid=1), confidence=85).scores}
    assert [rule.rule for rule in scores["confidence"].rules] == ["percentage", "citation_penalty"]
    assert scores["confidence"].raw == 85
