"""Drift: told when judgements shift, silent while they don't."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from masis.screening.rounds.drift import BASELINE, drift


def judgements(seed: int, shifted_by: float, after: int, count: int = 300) -> list[float]:
    """Qualities about 0.6 with a standard deviation of 0.1 that shift by so many of them after so many judgements."""
    draw = random.Random(seed)
    return [draw.gauss(0.6 + (0.1 * shifted_by if i >= after else 0.0), 0.1) for i in range(count)]


@pytest.mark.spec("AESOP-DRIFT")
def test_a_reviewer_who_turns_lenient_is_noticed_soon() -> None:
    waits = []
    for seed in range(40):
        found = drift(judgements(seed, 1.5, after=60, count=120))
        late = [alarm for alarm in found.alarms if alarm >= 60]
        assert late
        waits.append(late[0] - 60)
        assert found.direction == "up"
    assert fmean(waits) < 15


def test_a_reviewer_who_turns_strict_is_noticed_too() -> None:
    found = drift(judgements(3, -2.0, after=60, count=120))
    assert found.direction == "down"
    assert "lower than the usual" in found.why


@pytest.mark.spec("AESOP-DRIFT")
def test_judgements_that_stay_as_they_are_seldom_raise_an_alarm() -> None:
    alarms = sum(len(drift(judgements(seed, 0.0, after=0)).alarms) for seed in range(40))
    assert alarms / (40 * (300 - BASELINE)) < 1 / 150


def test_acceptance_counts_as_ones_and_zeros() -> None:
    draw = random.Random(5)
    usual = [float(draw.random() < 0.3) for _ in range(80)]
    lenient = [float(draw.random() < 0.9) for _ in range(40)]
    found = drift([*usual, *lenient])
    assert found.direction == "up"
    assert min(found.alarms) >= 60


def test_it_says_when_there_is_too_little_to_say() -> None:
    found = drift([0.5] * BASELINE)
    assert (found.enough, found.alarms, found.usual) == (False, (), None)
    assert f"more than {BASELINE} are needed" in found.why
    assert len(found.points) == BASELINE


def test_judgements_that_never_varied_do_not_make_a_hairs_breadth_drift() -> None:
    assert drift([0.6] * 60 + [0.605] * 60).alarms == ()


def test_every_judgement_has_its_point_in_the_chart() -> None:
    values = judgements(1, 2.0, after=100, count=150)
    found = drift(values)
    assert [point.value for point in found.points] == values
    assert [point.number for point in found.points if point.alarm] == list(found.alarms)
    assert all((point.up, point.down) == (0.0, 0.0) for point in found.points[:BASELINE])


def test_the_first_judgement_after_the_baseline_is_added_up() -> None:
    usual = [0.5, 0.7] * (BASELINE // 2)
    found = drift([*usual, 0.85, 0.85, 0.85])
    assert found.usual == pytest.approx(0.6)
    assert found.deviation == pytest.approx(0.1)
    assert [round(point.up, 6) for point in found.points[BASELINE:]] == [2.0, 4.0, 6.0]
    assert found.alarms == (BASELINE + 2,)
