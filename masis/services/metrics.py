"""What the audits of a store came to: rates by period and by model, and how times, scores and costs are spread."""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.base import Record
from masis.store import Distribution, Measure, MeasureFilter, Period, Rates, Store


class Spread(NamedTuple):
    """A metric whose distribution is shown: what it is and its unit.

    ``limit`` is what 95% should stay under, by the spec's rule ``rule``.
    """

    title: str
    unit: str
    limit: float | None = None
    rule: str = ""


SPREADS: dict[Measure, Spread] = {
    "critic_ms": Spread("Critic time per answer", "ms", 15_000, "REQ-CRITIC-NFR-001"),
    "reviser_ms": Spread("Reviser time per revision", "ms", 15_000, "REQ-CRITIC-NFR-002"),
    "iteration_ms": Spread("Time per iteration", "ms", 35_000, "REQ-CRITIC-NFR-003"),
    "loop_ms": Spread("Time per audit", "ms", 90_000, "REQ-CRITIC-NFR-004"),
    "iterations": Spread("Iterations per audit", ""),
    "improvement_delta": Spread("Change in quality per revision", ""),
    "improvement_percentage": Spread("Improvement per audit", "%"),
    "issues": Spread("Issues per answer", ""),
    "claims": Spread("Claims per draft", ""),
    "confidence": Spread("Confidence in the chosen answer", ""),
    "tokens": Spread("Tokens per audit", ""),
    "cost_usd": Spread("Cost per audit", "USD"),
}
"""The distributions of REQ-CRITIC-OBS-001, with the limits of REQ-CRITIC-NFR-001 to -004, and a few more."""


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
        spread = store.measures.distributions(wanted, tuple(SPREADS))
    return MetricsReport(
        wanted=wanted,
        period=period,
        total=added.total,
        periods=added.periods,
        models=added.models,
        distributions=spread,
    )
