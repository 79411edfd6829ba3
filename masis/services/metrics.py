"""What the audits of a store came to: rates by period and by model, and how times, scores and costs are spread."""

from __future__ import annotations

from typing import NamedTuple

from masis.schema.base import Record
from masis.services.records import Distribution, Measure, MeasuredRuns, MeasureFilter, Period, Pick, Rates
from masis.settings import Settings
from masis.store import Store


class Spread(NamedTuple):
    """A metric whose distribution is shown: what it is, its unit, and what is counted in each bin.

    ``limit`` is what 95% should stay under, by the spec's rule ``rule``.
    """

    title: str
    unit: str
    counted: str = "audits"
    limit: float | None = None
    rule: str = ""


SPREADS: dict[Measure, Spread] = {
    "critic_ms": Spread("Critic time per answer", "ms", "answers", 15_000, "REQ-CRITIC-NFR-001"),
    "reviser_ms": Spread("Reviser time per revision", "ms", "revisions", 15_000, "REQ-CRITIC-NFR-002"),
    "iteration_ms": Spread("Time per iteration", "ms", "iterations", 35_000, "REQ-CRITIC-NFR-003"),
    "loop_ms": Spread("Time per audit", "ms", "audits", 90_000, "REQ-CRITIC-NFR-004"),
    "iterations": Spread("Iterations per audit", ""),
    "improvement_delta": Spread("Change in quality per revision", "", "revisions"),
    "improvement_percentage": Spread("Improvement per audit", "%"),
    "issues": Spread("Issues per answer", "", "answers"),
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
    spread_over: int | None = None
    """Of how many of the newest runs the distributions are, where these are not all that match."""


class MetricsService:
    """The use cases of the metrics of finished runs."""

    def __init__(self, store: Store) -> None:
        self._store, self._metrics = store, store.measures

    def report(self, wanted: MeasureFilter, period: Period, *, newest: int | None = None) -> MetricsReport:
        """Return everything that the metrics page shows and ``masis metrics`` prints, of one moment.

        Rates are always of all runs that match; with ``newest`` the distributions are of so many of the newest.
        """
        with self._store.database.reading():
            added = self._metrics.added_up(wanted, period)
            spread = self._metrics.distributions(wanted, tuple(SPREADS), newest)
        return MetricsReport(
            wanted=wanted,
            period=period,
            total=added.total,
            periods=added.periods,
            models=added.models,
            distributions=spread,
            spread_over=newest if newest is not None and added.total.runs > newest else None,
        )

    def runs(self, wanted: MeasureFilter, pick: Pick, *, page: int = 1, size: int = 20) -> MeasuredRuns:
        """Return one page of the runs behind one metric."""
        return self._metrics.runs(wanted, pick, page=page, size=size)

    def span(self) -> tuple[str, str] | None:
        """Return when the first and the last run finished; None where none did."""
        return self._metrics.span()

    def pace(self, settings: Settings) -> tuple[float, int] | None:
        """Return the mean milliseconds of the newest audits by these models, and of how many; None without any."""
        return self._metrics.pace(settings.models())

    def newest(self) -> int:
        """Return a number that rises with every finished run."""
        return self._metrics.newest()

    def names(self, column: str) -> dict[str, int]:
        """Count the runs by data set or by the model of a role."""
        return self._metrics.names(column)
