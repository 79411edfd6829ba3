"""The rules in code around the critic and the judge."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit import critique, evaluation
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.scores import capped, multiplied, normalised
from masis.schema.audit import CitationAudit, Evaluation
from masis.schema.base import Unscored
from masis.settings import Settings
from tests.audit.factories import JUDGED_BY, citations, issue, judgement, verdict

GENEROUS = EvaluationJudgement(0.95, 0.95, 0.95, 0.95, 0.95)


def evaluated(audit: CitationAudit, judged: Any = GENEROUS, **critique: Any) -> Evaluation:
    return evaluation.ruled(judged, audit, verdict(audit, **critique), Settings(), JUDGED_BY)


@pytest.mark.spec("MASIS-EVAL-P5")
def test_one_fabricated_citation_clamps_a_generous_judge() -> None:
    found = evaluated(citations(invalid=1))
    assert found.faithfulness == 0.4
    assert found.overall_score == pytest.approx(0.757)  # .35 x .4 + .65 x .95, as rounded by the spec's own formula


@pytest.mark.spec("MASIS-EVAL-P5")
@pytest.mark.parametrize(("uncited", "bound"), [(4, 0.95), (5, 0.5), (9, 0.5), (10, 0.3), (25, 0.3)])
@pytest.mark.parametrize("cites", [True, False])
def test_uncited_sentences_bound_faithfulness_whether_or_not_the_answer_cites(
    uncited: int, bound: float, cites: bool
) -> None:
    assert evaluated(citations(uncited=uncited, cites=cites)).faithfulness == bound


@pytest.mark.spec("MASIS-EVAL-P5", "MASIS-EVAL-LOWEST")
def test_the_lowest_bound_wins() -> None:
    assert evaluated(citations(invalid=1, uncited=10)).faithfulness == 0.3
    assert evaluated(citations(invalid=1, uncited=5)).faithfulness == 0.4


@pytest.mark.spec("MASIS-EVAL-P5")
def test_a_critic_that_says_hallucination_clamps_too() -> None:
    assert evaluated(citations(), hallucination_detected=True).faithfulness == 0.4


@pytest.mark.spec("MASIS-EVAL-P6")
def test_scales_are_read_before_clamps() -> None:
    found = evaluated(citations(uncited=5), EvaluationJudgement(95, 88, 72, 60, 80))
    assert found.faithfulness == 0.5
    assert found.relevance == pytest.approx(0.88)
    assert found.overall_score == pytest.approx(round(0.5 * 0.35 + 0.88 * 0.25 + 0.72 * 0.25 + 0.6 * 0.15, 3))


@pytest.mark.spec("MASIS-EVAL-WEIGHTS")
def test_the_overall_score_is_recomputed_whatever_the_judge_says() -> None:
    assert evaluated(citations(), EvaluationJudgement(1, 0, 0, 0, 0.99)).overall_score == 0.35
    assert evaluated(citations(), EvaluationJudgement(0, 1, 0, 0, 0.99)).overall_score == 0.25
    assert evaluated(citations(), EvaluationJudgement(0, 0, 1, 0, 0.99)).overall_score == 0.25
    assert evaluated(citations(), EvaluationJudgement(0, 0, 0, 1, 0.99)).overall_score == 0.15


def test_a_dimension_without_a_number_leaves_the_overall_score_unscored() -> None:
    found = evaluated(citations(), EvaluationJudgement(0.9, "high", 0.9, 0.9))
    assert found.relevance is None
    assert found.overall_score is None
    assert found.unscored is not None
    assert "relevance" in found.unscored.reason
    assert found.faithfulness == 0.9


def test_a_failed_judge_gives_no_score_at_all() -> None:
    found = evaluated(citations(), Unscored(reason="refused"))
    assert (found.faithfulness, found.overall_score) == (None, None)


def test_a_clamp_that_fired_is_on_the_record() -> None:
    scores = {score.name: score for score in evaluated(citations(invalid=1)).scores}
    assert scores["faithfulness"].raw == 0.95
    assert [rule.rule for rule in scores["faithfulness"].rules] == ["hallucination_cap"]
    assert [rule.rule for rule in scores["overall_score"].rules] == ["weighted_mean"]


@pytest.mark.spec("MASIS-CRITIC-P5", "MASIS-EVAL-P6")
@pytest.mark.parametrize(("given_value", "kept"), [(0.85, 0.85), (85, 0.85), (1, 1.0), (0, 0.0), (100, 1.0)])
def test_both_scales_mean_the_same(given_value: float, kept: float) -> None:
    assert normalised("confidence", given_value).value == pytest.approx(kept)


@pytest.mark.spec("MASIS-CRITIC-P5", "REQ-CRITIC-022")
@pytest.mark.parametrize(("given_value", "kept"), [(-1, 0.0), (250, 1.0), (7.26e9, 1.0), (1.5, 0.015)])
def test_what_is_out_of_range_is_clamped_after_percentages_are_read(given_value: float, kept: float) -> None:
    assert normalised("confidence", given_value).value == pytest.approx(kept)


@pytest.mark.parametrize("nonsense", [None, "high", math.nan, math.inf, -math.inf, 10**400, True, [], {}])
def test_what_is_no_finite_number_is_unscored_and_never_zero(nonsense: object) -> None:
    score = normalised("confidence", nonsense)
    assert score.value is None
    assert score.raw is None


def test_every_rule_that_changed_a_score_is_recorded() -> None:
    score = capped(normalised("faithfulness", 95), 0.4, rule="hallucination_cap", why="fabricated reference")
    assert [(rule.rule, rule.before, rule.after) for rule in score.rules] == [
        ("percentage", 95, 0.95),
        ("hallucination_cap", 0.95, 0.4),
    ]
    assert score.raw == 95


def test_a_cap_above_the_score_leaves_no_trace() -> None:
    assert capped(normalised("faithfulness", 0.2), 0.4, rule="cap", why="").rules == ()


def test_an_unscored_score_stays_unscored_whatever_follows() -> None:
    score = normalised("confidence", "high")
    assert capped(multiplied(score, 0.5, rule="penalty", why=""), 0.4, rule="cap", why="").value is None


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers())
def test_a_score_is_within_0_and_1_or_absent(number: float) -> None:
    value = normalised("x", number).value
    assert value is None or 0.0 <= value <= 1.0


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
