"""Detects drift: a grader or a reviewer about whose grades people disagree more, or less, often than before.

A judgement is 1 where a person changed a grade and 0 where they agreed with it, in the order in which they were made.
The first ``BASELINE`` are the baseline: their mean and standard deviation, which counts as ``LEAST_DEVIATION`` at
least. After them each judgement's distance from that mean, in standard deviations, less an allowance, is added up in
both directions; a sum that passes the limit is drift (Page 1954, Biometrika 41:100). After an alarm the sums restart,
so that a lasting change is reported again and again.

The four constants were chosen by simulation (``benchmarks/screening_drift.py``): of stable graders with 3% to 40%
disagreement, which varies with the topic, at most 4% raise an alarm within 15 topics of 20 judgements; a change from
15% to 45% is found after 43 judgements (median), in nine of ten series within 128. Textbook values (baseline 30, limit
5, deviation as it is) raised an alarm in most stable series: thirty judgements tell too little about a rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from masis.schema.wording import counted

BASELINE = 60
"""Judgements that form the baseline (benchmarks/screening_drift.py)."""
ALLOWANCE = 0.5
"""Half the change worth finding, in standard deviations."""
LIMIT = 14.0
"""The sum, in standard deviations, from which on it counts as drift (benchmarks/screening_drift.py)."""
LEAST_DEVIATION = 0.4
"""What the standard deviation counts as at least, that of a rate of 20% (benchmarks/screening_drift.py).

Where nobody disagreed in the baseline the first one who does must be no drift.
"""


class Point(NamedTuple):
    """One judgement in the chart: its value and the two sums after it, in standard deviations."""

    number: int
    value: float
    up: float
    down: float
    alarm: bool


class Drift(NamedTuple):
    """What the sums say: ``usual`` is the rate of the baseline; a point for each judgement; the numbers of the alarms.

    ``enough`` is False, and ``usual`` None, where there are too few judgements to say.
    """

    enough: bool
    usual: float | None
    points: tuple[Point, ...]
    alarms: tuple[int, ...]
    why: str

    @property
    def direction(self) -> Literal["up", "down"] | None:
        """Return the direction of the last alarm; None where there is none."""
        last = self.points[self.alarms[-1]] if self.alarms else None
        return None if last is None else "up" if last.up >= last.down else "down"


def drift(
    values: Sequence[float],
    *,
    baseline: int = BASELINE,
    allowance: float = ALLOWANCE,
    limit: float = LIMIT,
    least_deviation: float = LEAST_DEVIATION,
) -> Drift:
    """Return whether disagreement has drifted, and where.

    Args:
        values: 1 for a grade that a person changed, 0 for one they agreed with, in the order of their judgements.
        baseline: How many judgements say what is usual.
        allowance: What is taken off each distance, in standard deviations.
        limit: The sum, in standard deviations, from which on it counts as drift.
        least_deviation: What the standard deviation counts as at least.

    """
    points = [Point(number, value, 0.0, 0.0, False) for number, value in enumerate(values[:baseline])]
    if len(values) <= baseline:
        why = f"{counted(len(values), 'judgement')}; more than {baseline} are needed."
        return Drift(False, None, tuple(points), (), why)
    usual = fmean(values[:baseline])
    deviation = max(least_deviation, pstdev(values[:baseline]))
    up = down = 0.0
    for number, value in enumerate(values[baseline:], baseline):
        away = (value - usual) / deviation
        up, down = max(0.0, up + away - allowance), max(0.0, down - away - allowance)
        points.append(Point(number, value, up, down, max(up, down) > limit))
        if points[-1].alarm:
            up = down = 0.0
    alarms = tuple(point.number for point in points if point.alarm)
    found = Drift(True, usual, tuple(points), alarms, f"No drift from the usual {usual:.0%} disagreement.")
    if not alarms:
        return found
    times = "once" if len(alarms) == 1 else f"{len(alarms)} times"
    way = "more" if found.direction == "up" else "less"
    first = f"first at judgement {alarms[0] + 1}"
    return found._replace(why=f"Drift, noticed {times}, {first}: {way} disagreement than the usual {usual:.0%}.")
