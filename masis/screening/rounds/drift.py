"""Detects drift: a grader or a reviewer about whose grades people disagree more, or less, often
than before.

A judgement is 1 where a person changed a grade and 0 where they agreed with it, in the order in
which they were made. The first ``BASELINE`` are the baseline: their mean and standard deviation,
which counts as ``LEAST_DEVIATION`` at least. After them each judgement's distance from that mean,
in standard deviations, less an allowance, is added up in both directions; a sum that passes the
limit is drift (Page 1954, Biometrika 41:100). After an alarm the sums restart, so that a lasting
change is reported again and again.

The four constants were chosen by simulation (``benchmarks/screening_drift.py``): of stable graders
with 3% to 40% disagreement, which varies with the topic, at most 4% raise an alarm within 15 topics
of 20 judgements; a change from 15% to 45% is found after 43 judgements (median), in nine of ten
series within 128. Textbook values (baseline 30, limit 5, deviation as it is) raised an alarm in
most stable series: thirty judgements tell too little about a rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from masis.schema.wording import count_noun

BASELINE = 60
"""Judgements that form the baseline (benchmarks/screening_drift.py)."""
ALLOWANCE = 0.5
"""Half the change worth finding, in standard deviations."""
LIMIT = 14.0
"""The sum, in standard deviations, from which on it counts as drift
(benchmarks/screening_drift.py).
"""
LEAST_DEVIATION = 0.4
"""What the standard deviation counts as at least, that of a rate of 20%
(benchmarks/screening_drift.py).

Where nobody disagreed in the baseline the first one who does must be no drift.
"""


class DriftPoint(NamedTuple):
    """One judgement in the chart: its value and the two sums after it, in standard deviations."""

    number: int
    value: float
    up: float = 0.0
    down: float = 0.0
    alarm: bool = False


class Drift(NamedTuple):
    """What the sums say, in ``why`` in a sentence; a point for each judgement.

    ``usual`` is the rate of the baseline, None where there are too few judgements to have one.
    """

    usual: float | None
    points: tuple[DriftPoint, ...]
    why: str

    @property
    def alarms(self) -> tuple[int, ...]:
        """The numbers of the judgements at which drift was noticed."""
        return tuple(point.number for point in self.points if point.alarm)

    @property
    def direction(self) -> Literal["up", "down"] | None:
        """The direction of the last alarm; None where there is none."""
        last = next((point for point in reversed(self.points) if point.alarm), None)
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

    ``values`` are 1 for a grade that a person changed and 0 for one they agreed with, in the order
    of their judgements. The other arguments are the constants above, for
    ``benchmarks/screening_drift.py``.
    """
    points = [DriftPoint(number, value) for number, value in enumerate(values[:baseline])]
    if len(values) <= baseline:
        return Drift(
            None,
            tuple(points),
            f"{count_noun(len(values), 'judgement')}; more than {baseline} are needed.",
        )
    usual = fmean(values[:baseline])
    deviation = max(least_deviation, pstdev(values[:baseline]))
    up = down = 0.0
    for number, value in enumerate(values[baseline:], baseline):
        away = (value - usual) / deviation
        up, down = max(0.0, up + away - allowance), max(0.0, down - away - allowance)
        points.append(DriftPoint(number, value, up, down, max(up, down) > limit))
        if points[-1].alarm:
            up = down = 0.0
    found = Drift(usual, tuple(points), f"No drift from the usual {usual:.0%} disagreement.")
    if not (alarms := found.alarms):
        return found
    times, way = (
        "once" if len(alarms) == 1 else f"{len(alarms)} times",
        ("more" if found.direction == "up" else "less"),
    )
    noticed = f"Drift, noticed {times}, first at judgement {alarms[0] + 1}"
    return found._replace(why=f"{noticed}: {way} disagreement than the usual {usual:.0%}.")
