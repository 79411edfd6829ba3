"""The figures of many runs: rates of all, by period and by model, and how a figure is spread.

Runs come added up by day and model, from SQL or from Parquet. Nothing is counted where nothing was
measured. Times are UTC; a week begins on its Monday.
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
    """Runs added up. Shares are 0..1, latency is the mean in milliseconds, the other figures are
    means but for calls, tokens and cost, which are sums. None: nothing was measured. ``name`` is
    the period's first day, or the model.

    ``converged_rate`` is the share of runs that ended well (by ``no_issues`` or ``convergence``),
    ``convergence_rate`` that of ``convergence`` endings alone; the bases of the first two rates are
    ``hallucination_known`` and ``revision_known``, that of all others is ``runs``.
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
    """How many values lie above ``low`` and at most at ``high``; None leaves a side open."""

    low: float | None
    high: float | None
    count: int


class Distribution(Record):
    """How one figure is spread over runs or iterations; percentiles are values that occurred."""

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
"""Rates and means, and of which column each is the mean, over the runs where it is known."""
TOTALS = ("calls", "input_tokens", "output_tokens", "cost_usd")
SUMMED = (*MEANS.values(), *TOTALS)
"""What is added up: each column beside the number of runs where it is known (``_known``), and the
``runs``.
"""
Sums = Counter[str]


class AddedUp(NamedTuple):
    """The same runs in all, by period and by model."""

    total: Rates
    periods: tuple[Rates, ...]
    models: tuple[Rates, ...]


def add_up(sums: Mapping[tuple[str, str | None], Sums], period: Period) -> AddedUp:
    """Return the rates of all runs, by period and by model (most runs first), from their sums by
    day and model.
    """
    total, periods, models = Sums(), dict[str, Sums](), dict[str | None, Sums]()
    for (day, model), added in sums.items():
        of_period, of_model = (
            periods.setdefault(first_day(day, period), Sums()),
            models.setdefault(model, Sums()),
        )
        for each in (total, of_period, of_model):
            each.update(added)
    return AddedUp(
        total=_rates("", total),
        periods=tuple(_rates(first, periods[first]) for first in sorted(periods)),
        models=tuple(
            _rates(model, of_model)
            for model, of_model in sorted(
                models.items(), key=lambda each: (-each[1]["runs"], each[0] or "")
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
    """The first day of the period that a day lies in."""
    if period == "day":
        return day
    if period == "month":
        return f"{day[:7]}-01"
    there = date.fromisoformat(day)
    return (there - timedelta(days=there.weekday())).isoformat()


MAX_BINS = 10
"""A bar is something to click on, and needs its room."""


def equal_bounds(values: NDArray[np.float64]) -> list[float]:
    """Return the inner bounds of bins that are equally wide, 1, 2 or 5 times a power of ten, for
    ascending values.

    A long tail would squeeze everything else into one bin: where the largest value lies more than
    twice as far out as the 99th percentile, what is above that shares the last bin, which is open.
    """
    if not len(values) or values[0] == values[-1]:
        return []
    whole = bool(np.all(values == np.floor(values)))
    least, most, tail = float(values[0]), float(values[-1]), percentile(values, 99)
    if most - least > 2 * (tail - least) > 0:
        most = tail
    step = (
        1.0
        if whole
        else 10.0 ** (math.floor(math.log10(max(most - least, abs(most) * 1e-9, 1e-12))) - 2)
    )
    for factor in itertools.cycle((2, 2.5, 2)):
        first = math.floor(least / step) * step
        bins = (
            math.floor((most - first) / step) + 1
            if whole
            else max(1, math.ceil(round((most - first) / step, 9)))
        )
        if bins + (float(values[-1]) > most) <= MAX_BINS:
            break
        step *= factor
    # a bin holds its upper bound: of whole numbers the last one before the next step
    last = bins + (float(values[-1]) > most)
    return [round(first + step * number - whole, 12) for number in range(1, last)]


def spread_of(measure: Measure, values: NDArray[np.float64]) -> Distribution:
    """Describe how ascending values are spread."""
    count = len(values)
    bounds = equal_bounds(values)
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
