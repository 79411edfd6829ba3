"""Figures of many runs: rates in total, by period and by model, and the distribution of a figure.

The sums by day and model come from SQL or Parquet. Unmeasured runs are not counted. Times are UTC,
and a week begins on Monday.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.audit.measures.statistics import percentile
from masis.schema.base import Record

Period = Literal["day", "week", "month"]
Rate = Literal["hallucination", "revision", "converged", "convergence_ending", "needs_review"]
Measure = Literal[
    "critic_ms",
    "reviser_ms",
    "iteration_ms",
    "loop_ms",
    "iterations",
    "improvement_delta",
    "improvement_percentage",
    "issues",
    "claims",
    "confidence",
    "tokens",
    "cost_usd",
]


class Rates(Record):
    """Rates of a group of runs. Shares are 0 to 1, latency is a mean in milliseconds.

    Calls, tokens and cost are sums; the other figures are means. None means that nothing was
    measured.

    Attributes:
        name: The period's first day, or the model.
        converged_rate: The share of runs that ended well (by ``no_issues`` or ``convergence``).
        convergence_rate: The share that ended by ``convergence`` alone.
        hallucination_known: The base of the hallucination rate.
        revision_known: The base of the revision rate; that of all other rates is ``runs``.

    """

    name: str | None
    runs: int
    critique_hallucination_rate: float | None
    critique_revision_rate: float | None
    hallucination_known: int
    revision_known: int
    critique_latency_ms: float | None
    critique_confidence_avg: float | None
    claims_per_draft: float | None
    converged_rate: float | None
    convergence_rate: float | None
    no_issues_rate: float | None
    error_rate: float | None
    needs_review_rate: float | None
    iterations: float | None
    improvement_percentage: float | None
    quality: float | None
    confidence: float | None
    overall: float | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Bin(Record):
    """The number of values above ``low`` and up to ``high``; None leaves a side open."""

    low: float | None
    high: float | None
    count: int


class Distribution(Record):
    """The distribution of one figure over runs or iterations.

    The percentiles are values that occurred.
    """

    measure: Measure
    count: int
    mean: float | None
    least: float | None
    most: float | None
    p50: float | None
    p95: float | None
    bins: tuple[Bin, ...]


MEANS = {
    "critique_hallucination_rate": "hallucination",
    "critique_revision_rate": "revision",
    "critique_latency_ms": "loop_ms",
    "critique_confidence_avg": "claim_confidence",
    "claims_per_draft": "claims",
    "converged_rate": "converged",
    "convergence_rate": "convergence",
    "no_issues_rate": "no_issues",
    "error_rate": "failed",
    "needs_review_rate": "needs_review",
    **{
        name: name
        for name in ("iterations", "improvement_percentage", "quality", "confidence", "overall")
    },
}
"""Rates and means, each with its column. The mean is over the runs that have a value for it."""
TOTALS = ("calls", "input_tokens", "output_tokens", "cost_usd")
SUMMED = (*MEANS.values(), *TOTALS)
"""The summed columns, each of which has a count of the runs where it is known (``_known``)."""
Sums = Counter[str]


class AddedUp(NamedTuple):
    """The rates of the same runs in total, by period and by model."""

    total: Rates
    periods: tuple[Rates, ...]
    models: tuple[Rates, ...]


def add_up(sums: Mapping[tuple[str, str | None], Sums], period: Period) -> AddedUp:
    """Return the rates of all runs, by period and by model, from sums by day and model.

    The models with the most runs are first.
    """
    total, periods, models = Sums(), dict[str, Sums](), dict[str | None, Sums]()
    for (day, model), day_sums in sums.items():
        of_period = periods.setdefault(first_day(day, period), Sums())
        of_model = models.setdefault(model, Sums())
        for group in (total, of_period, of_model):
            group.update(day_sums)
    return AddedUp(
        total=_rates("", total),
        periods=tuple(_rates(first, periods[first]) for first in sorted(periods)),
        models=tuple(
            _rates(model, of_model)
            for model, of_model in sorted(
                models.items(), key=lambda group: (-group[1]["runs"], group[0] or "")
            )
        ),
    )


def _rates(name: str | None, sums: Sums) -> Rates:
    means = {
        rate: sums[column] / sums[f"{column}_known"] if sums[f"{column}_known"] else None
        for rate, column in MEANS.items()
    }
    return Rates(
        name=name,
        runs=sums["runs"],
        **means,
        **{f"{column}_known": sums[f"{column}_known"] for column in ("hallucination", "revision")},
        **{total: int(sums[total]) for total in ("calls", "input_tokens", "output_tokens")},
        cost_usd=float(sums["cost_usd"]) if sums["cost_usd_known"] else None,
    )


def first_day(day: str, period: Period) -> str:
    """Return the first day of the period that a day is in."""
    if period == "day":
        return day
    if period == "month":
        return f"{day[:7]}-01"
    date_of_day = date.fromisoformat(day)
    return (date_of_day - timedelta(days=date_of_day.weekday())).isoformat()


MAX_BINS = 10
"""The most bins of a chart: a bar can be clicked, so it needs some width."""


def equal_bounds(values: NDArray[np.float64]) -> list[float]:
    """Return the inner bounds of equally wide bins for ascending values.

    The width is 1, 2 or 5 times a power of ten. If the largest value is more than twice as far out
    as the 99th percentile, the values above that share the last, open bin, because a long tail
    would squeeze everything else into one bin.
    """
    if not len(values) or values[0] == values[-1]:
        return []
    are_integers = bool(np.all(values == np.floor(values)))
    lowest, highest, percentile_99 = float(values[0]), float(values[-1]), percentile(values, 99)
    if highest - lowest > 2 * (percentile_99 - lowest) > 0:
        highest = percentile_99
    step = (
        1.0
        if are_integers
        else 10.0 ** (math.floor(math.log10(max(highest - lowest, abs(highest) * 1e-9, 1e-12))) - 2)
    )
    # The factors 2, 2.5 and 2 make steps of 1, 2, 5 and 10.
    for factor in itertools.cycle((2, 2.5, 2)):
        first = math.floor(lowest / step) * step
        bins = (
            math.floor((highest - first) / step) + 1
            if are_integers
            else max(1, math.ceil(round((highest - first) / step, 9)))
        )
        if bins + (float(values[-1]) > highest) <= MAX_BINS:
            break
        step *= factor
    # A bin includes its upper bound; for whole numbers that is the last one before the next step.
    last = bins + (float(values[-1]) > highest)
    return [round(first + step * number - are_integers, 12) for number in range(1, last)]


def spread_of(measure: Measure, values: NDArray[np.float64]) -> Distribution:
    """Return the distribution of ascending values."""
    count = len(values)
    bounds = equal_bounds(values)
    # On the right side, since a bin includes its upper bound.
    ends = [0, *np.searchsorted(values, bounds, side="right").tolist(), count]
    edges = (None, *bounds, None)

    return Distribution(
        measure=measure,
        count=count,
        mean=float(values.mean()) if count else None,
        least=float(values[0]) if count else None,
        most=float(values[-1]) if count else None,
        p50=percentile(values, 50) if count else None,
        p95=percentile(values, 95) if count else None,
        bins=tuple(
            Bin(low=edges[number], high=edges[number + 1], count=ends[number + 1] - ends[number])
            for number in range(len(bounds) + 1)
        ),
    )
