"""Drift: noticed when people change grades more or less often than before, silent while they don't."""

from __future__ import annotations

import random
from statistics import quantiles

import pytest

from benchmarks.screening_drift import false_alarms, waits
from masis.screening.rounds.drift import BASELINE, LEAST_DEVIATION, LIMIT, drift


def judgements(seed: int, before: float, after: float, count: int = 150) -> list[float]:
    """Judgements of which a share disagrees, another one after the baseline."""
    draw = random.Random(seed)
    return [float(draw.random() < (before if i < BASELINE else after)) for i in range(BASELINE + count)]


@pytest.mark.slow
@pytest.mark.spec("AESOP-DRIFT")
@pytest.mark.parametrize("rate", [0.03, 0.08, 0.15, 0.25, 0.40])
def test_of_stable_graders_under_one_in_twenty_raises_an_alarm_within_15_topics(rate: float) -> None:
    assert false_alarms(rate, BASELINE, LEAST_DEVIATION, LIMIT, series=300) < 0.05


@pytest.mark.slow
@pytest.mark.spec("AESOP-DRIFT")
def test_a_change_from_15_to_45_percent_is_found_as_soon_as_the_docs_say() -> None:
    tenths = quantiles(waits(BASELINE, LEAST_DEVIATION, LIMIT, series=300), n=10)
    assert tenths[4] <= 50
    assert tenths[8] <= 140


@pytest.mark.spec("AESOP-DRIFT")
def test_more_and_less_disagreement_than_before_are_both_noticed() -> None:
    more, less = drift(judgements(1, 0.1, 0.7)), drift(judgements(2, 0.8, 0.1))
    assert (more.direction, less.direction) == ("up", "down")
    assert "more disagreement than the usual" in more.why
    assert "less disagreement than the usual" in less.why
    assert min(more.alarms) >= BASELINE


def test_the_first_disagreement_after_a_baseline_of_agreements_is_no_drift() -> None:
    found = drift([0.0] * BASELINE + [1.0] + [0.0] * 30)
    assert (found.alarms, found.deviation) == ((), LEAST_DEVIATION)
    assert found.why == "No drift from the usual 0% disagreement."


def test_it_says_when_there_is_too_little_to_say() -> None:
    found = drift([0.0] * BASELINE)
    assert (found.enough, found.alarms, found.usual) == (False, (), None)
    assert f"more than {BASELINE} are needed" in found.why
    assert len(found.points) == BASELINE


def test_every_judgement_has_its_point_in_the_chart() -> None:
    values = judgements(1, 0.1, 0.9)
    found = drift(values)
    assert [point.value for point in found.points] == values
    assert [point.number for point in found.points if point.alarm] == list(found.alarms)
    assert all((point.up, point.down) == (0.0, 0.0) for point in found.points[:BASELINE])


def test_the_first_judgement_after_the_baseline_is_added_up() -> None:
    found = drift([0.0, 1.0] * 2 + [1.0] * 6, baseline=4, least_deviation=0.1, limit=2.0)
    assert (found.usual, found.deviation) == (pytest.approx(0.5), pytest.approx(0.5))
    assert [round(point.up, 6) for point in found.points[4:]] == [0.5, 1.0, 1.5, 2.0, 2.5, 0.5]
    assert found.alarms == (8,)
