"""What the audits of a store came to: rates by period and by model, and how times, scores and costs are spread."""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.base import Record
from masis.store import Distribution, Measure, MeasureFilter, Period, Rates, Store

MILLISECONDS = (2, 10, 50, 200, 1000, 5000, 15_000, 35_000, 90_000)
COUNTS = (0, 1, 2, 3, 5, 8, 13, 21)
"""Ten bins at most, for here and below: a bar is something to click on, and needs its room."""


class Spread(NamedTuple):
    """A figure whose distribution is shown: what it is, its unit, the bounds of its bins (upper ones, but the last).

    ``limit`` is what 95% should stay under, by the spec's rule ``rule``.
    """

    title: str
    unit: str
    bounds: tuple[float, ...]
    limit: float | None = None
    rule: str = ""


SPREADS: dict[Measure, Spread] = {
    "critic_ms": Spread("Critic, each answer", "ms", MILLISECONDS, 15_000, "REQ-CRITIC-NFR-001"),
    "reviser_ms": Spread("Reviser, each revision", "ms", MILLISECONDS, 15_000, "REQ-CRITIC-NFR-002"),
    "iteration_ms": Spread("Iteration, all its steps", "ms", MILLISECONDS, 35_000, "REQ-CRITIC-NFR-003"),
    "loop_ms": Spread("Whole audit", "ms", MILLISECONDS, 90_000, "REQ-CRITIC-NFR-004"),
    "iterations": Spread("Iterations an audit", "", (1, 2, 3, 4)),
    "improvement_delta": Spread("Change in quality, a revision", "", (-0.5, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5)),
    "improvement_percentage": Spread("Improvement, an audit", "%", (-20, -10, 0, 10, 20, 50, 100, 200)),
    "issues": Spread("Issues an answer", "", COUNTS),
    "claims": Spread("Claims a draft", "", COUNTS),
    "confidence": Spread("Confidence in the chosen answer", "", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    "tokens": Spread("Tokens an audit", "", (0, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)),
    "cost_usd": Spread("Cost an audit", "USD", (0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)),
}
"""The distributions of ``specs/critic-loop.md``, REQ-CRITIC-OBS-001, with the limits of its NFRs, and a few more."""


class MetricsReport(Record):
    """The figures of the runs that match, added up in all, by period and by the model of the filter's role."""

    wanted: MeasureFilter
    period: Period
    total: Rates
    periods: tuple[Rates, ...]
    models: tuple[Rates, ...]
    distributions: tuple[Distribution, ...]


def report(store: Store, wanted: MeasureFilter, period: Period) -> MetricsReport:
    """Everything the metrics page shows and ``masis metrics`` prints, of one moment."""
    with store.database.reading():
        added = store.measures.added_up(wanted, period)
        spread = store.measures.distributions(wanted, {measure: each.bounds for measure, each in SPREADS.items()})
    return MetricsReport(
        wanted=wanted,
        period=period,
        total=added.total,
        periods=added.periods,
        models=added.models,
        distributions=spread,
    )
