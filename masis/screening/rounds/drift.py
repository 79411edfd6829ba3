"""Detects drift in the judgements of a reviewer or the critic by a two-sided cumulative sum over them in order.

The first ``BASELINE`` judgements are the baseline: their mean and standard deviation. After them each judgement's
distance from that mean, in standard deviations, less an allowance, is added up in both directions; a sum that passes
the limit is drift (Page 1954, Biometrika 41:100; allowance 0.5 and limit 5 as in Montgomery, Introduction to
Statistical Quality Control, 7th ed., section 9.1). After an alarm the sums restart, so that a lasting shift is
reported again and again. Measured with a baseline of 30 (``tests/screening/test_drift.py``): a shift of one standard
deviation is found after some 11 judgements, one of two after 4, and without any an alarm comes once in some 330.

What is added up is any number a judgement has: the quality a grader gives, 1 and 0 for kept and not, the distance
between a person's score and the machine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

BASELINE = 30
"""Judgements that form the baseline."""
ALLOWANCE = 0.5
"""Half the shift worth finding, in standard deviations."""
LIMIT = 5.0
"""The sum, in standard deviations, from which on it counts as drift."""
LEAST_DEVIATION = 0.02
"""Judgements that were all alike vary by at least this much: a hundredth or two is no drift."""


class Point(NamedTuple):
    """One judgement in the chart: its value and the two sums after it, in standard deviations."""

    number: int
    value: float
    up: float
    down: float
    alarm: bool


class Drift(NamedTuple):
    """What the sums say: ``usual`` and ``deviation`` of the baseline, a point for each judgement, the alarms.

    ``direction`` is that of the last alarm; None where there is none, or too little to say (``enough`` False).
    """

    enough: bool
    usual: float | None
    deviation: float | None
    points: tuple[Point, ...]
    alarms: tuple[int, ...]
    direction: Literal["up", "down"] | None
    why: str


def drift(
    values: Sequence[float], *, baseline: int = BASELINE, allowance: float = ALLOWANCE, limit: float = LIMIT
) -> Drift:
    """Return whether judgements have drifted, and where. ``values`` are in the order in which they were made."""
    if len(values) <= baseline:
        plain = tuple(Point(number, value, 0.0, 0.0, False) for number, value in enumerate(values))
        return Drift(False, None, None, plain, (), None, f"{len(values)} judgements; more than {baseline} are needed.")
    usual = fmean(values[:baseline])
    deviation = max(LEAST_DEVIATION, pstdev(values[:baseline]))
    points, alarms = [], []
    up = down = 0.0
    direction: Literal["up", "down"] | None = None
    for number, value in enumerate(values):
        if number < baseline:
            points.append(Point(number, value, 0.0, 0.0, False))
            continue
        away = (value - usual) / deviation
        up, down = max(0.0, up + away - allowance), max(0.0, down - away - allowance)
        alarm = max(up, down) > limit
        points.append(Point(number, value, up, down, alarm))
        if alarm:
            alarms.append(number)
            direction = "up" if up >= down else "down"
            up = down = 0.0
    return Drift(True, usual, deviation, tuple(points), tuple(alarms), direction, _why(alarms, direction, usual))


def _why(alarms: Sequence[int], direction: str | None, usual: float) -> str:
    if not alarms:
        return f"No drift from the usual {usual:.2f}."
    way = "higher" if direction == "up" else "lower"
    times = "once" if len(alarms) == 1 else f"{len(alarms)} times"
    return f"Drift, noticed {times}, first at judgement {alarms[0] + 1}: they are {way} than the usual {usual:.2f}."
