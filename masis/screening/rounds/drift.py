"""Detects drift: people disagree with a grader's or reviewer's grades more or less than before.

A judgement is 1 if a person changed a grade and 0 if they agreed with it. The first ``BASELINE``
judgements give a mean and a standard deviation, which is raised to ``MIN_DEVIATION`` if it is
smaller. From then on, two running sums (CUSUM; Page 1954, Biometrika 41:100) add up how far each
judgement is above and below that mean, in standard deviations, minus an allowance. A sum above the
limit is drift. The sums restart after an alarm, so that a lasting change raises further alarms.

The four constants were chosen by simulation (``benchmarks/screening_drift.py``). Of stable graders
with 3% to 40% disagreement, which varies with the topic, at most 4% raise an alarm within 15 topics
of 20 judgements. A change from 15% to 45% is found after 43 judgements (median), and in nine of ten
series within 128. Textbook values (baseline 30, limit 5, deviation not raised) gave an alarm in
most stable series, because thirty judgements don't determine a rate well enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Literal, NamedTuple

from masis.schema.wording import count_noun

BASELINE = 60
"""Judgements that form the baseline (benchmarks/screening_drift.py)."""
ALLOWANCE = 0.5
"""Half of the smallest change that should be found, in standard deviations."""
LIMIT = 14.0
"""A sum above this, in standard deviations, is drift (benchmarks/screening_drift.py)."""
MIN_DEVIATION = 0.4
"""The least standard deviation, that of a rate of 20% (benchmarks/screening_drift.py).

Without it, the first disagreement after a baseline without any would be drift.
"""


class DriftPoint(NamedTuple):
    """One judgement in the chart: its value and the two sums after it, in standard deviations."""

    number: int
    value: float
    up: float = 0.0
    down: float = 0.0
    alarm: bool = False


class Drift(NamedTuple):
    """The result: a sentence (``why``) and one point for each judgement.

    ``usual`` is the rate of disagreement in the baseline, None with too few judgements.
    """

    usual: float | None
    points: tuple[DriftPoint, ...]
    why: str

    @property
    def alarms(self) -> tuple[int, ...]:
        """The numbers of the judgements at which a sum passed the limit."""
        return tuple(point.number for point in self.points if point.alarm)

    @property
    def direction(self) -> Literal["up", "down"] | None:
        """The direction of the last alarm; None without an alarm."""
        last = next((point for point in reversed(self.points) if point.alarm), None)
        return None if last is None else "up" if last.up >= last.down else "down"


def drift(
    values: Sequence[float],
    *,
    baseline: int = BASELINE,
    allowance: float = ALLOWANCE,
    limit: float = LIMIT,
    least_deviation: float = MIN_DEVIATION,
) -> Drift:
    """Return whether the rate of disagreement has drifted, and at which judgements.

    ``values`` are 1 for a grade that a person changed and 0 for one they agreed with, in the order
    of their judgements. The other arguments are the constants above, which
    ``benchmarks/screening_drift.py`` varies.
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
        distance = (value - usual) / deviation
        # Sums don't fall below 0, so that a long stable stretch can't hide a later change.
        up, down = max(0.0, up + distance - allowance), max(0.0, down - distance - allowance)
        points.append(DriftPoint(number, value, up, down, max(up, down) > limit))
        if points[-1].alarm:
            up = down = 0.0
    result = Drift(usual, tuple(points), f"No drift from the usual {usual:.0%} disagreement.")
    if not (alarms := result.alarms):
        return result
    count_text = "once" if len(alarms) == 1 else f"{len(alarms)} times"
    change = "more" if result.direction == "up" else "less"
    notice = f"Drift, noticed {count_text}, first at judgement {alarms[0] + 1}"
    return result._replace(why=f"{notice}: {change} disagreement than the usual {usual:.0%}.")
