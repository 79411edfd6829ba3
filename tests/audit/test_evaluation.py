"""The rules in code around the judge."""

from __future__ import annotations

from typing import Any

import pytest

from masis.audit import evaluation
from masis.audit.evaluation import EvaluationJudgement
from masis.schema.audit import CitationAudit, Evaluation
from masis.schema.base import Unscored
from masis.settings import Settings
from tests.audit.factories import JUDGED_BY, citations, verdict

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


@pytest.mark.spec("MASIS-EVAL-P5")
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
