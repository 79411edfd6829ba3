"""Four scores from measured quantities."""

from __future__ import annotations

import pytest

from masis.schema.audit import Evaluation
from tests.offline.bridge import audited

WHOLE = (
    "The Halden suspension bridge is 410 metres long and was opened to traffic in 1931 [chunk_1]. "
    "It was designed by the engineer Marta Lindqvist [chunk_1]."
)


def evaluated(answer: str) -> Evaluation:
    evaluation = audited(answer, iterations=1).iterations[0].evaluation
    assert evaluation is not None
    return evaluation


def test_a_whole_and_faithful_answer_scores_high_on_every_dimension() -> None:
    found = evaluated(WHOLE)
    for score in (found.faithfulness, found.relevance, found.completeness, found.reasoning_quality):
        assert score is not None
        assert score > 0.7


@pytest.mark.spec("MASIS-EVAL-P2")
def test_an_answer_about_something_else_is_not_relevant() -> None:
    found = evaluated("Bananas are rich in potassium and grow in warm countries.")
    assert found.relevance is not None
    assert found.relevance < 0.3


def test_half_an_answer_is_less_complete_than_the_whole() -> None:
    half = evaluated("The bridge was opened in 1931 [chunk_1].").completeness
    whole = evaluated(WHOLE).completeness
    assert half is not None
    assert whole is not None
    assert half < whole


def test_saying_the_same_twice_costs_reasoning_quality() -> None:
    once, twice = evaluated(WHOLE), evaluated(f"{WHOLE} {WHOLE}")
    assert (twice.reasoning_quality or 0) < (once.reasoning_quality or 0)


@pytest.mark.spec("MASIS-EVAL-P5")
def test_the_clamps_hold_for_the_offline_judge_too() -> None:
    assert (evaluated(f"{WHOLE} The toll is 3 euros for a car [chunk_9].").faithfulness or 0) <= 0.4


@pytest.mark.spec("MASIS-EVAL-P1")
def test_each_score_is_kept_with_its_measurements() -> None:
    scores = {score.name: score for score in evaluated(WHOLE).scores}
    for name in ("faithfulness", "relevance", "completeness", "reasoning_quality"):
        assert scores[name].measurements[-1].value == pytest.approx(scores[name].raw)
