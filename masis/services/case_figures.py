"""Counts of cases for the pictures of the metrics page."""

from __future__ import annotations

from typing import NamedTuple

from masis.audit.measures.case_figures import (
    Changes,
    IssueCount,
    Origin,
    OriginCount,
    RevisionOutcome,
    StoppedCount,
    WeekOfWork,
)
from masis.audit.measures.metrics import MeasureFilter
from masis.schema.actor import Actor
from masis.services.access import Service, requires
from masis.services.cases import CaseService


class CaseCounts(NamedTuple):
    """What the pictures show. ``origins`` are by ``origin``."""

    issues: tuple[IssueCount, ...]
    stopped: tuple[StoppedCount, ...]
    revisions: dict[RevisionOutcome, int]
    weeks: tuple[WeekOfWork, ...]
    origin: Origin
    origins: tuple[OriginCount, ...]


class CaseFigureService(Service):
    """Counts cases for people who may see figures over all of them."""

    @requires("read")
    def count(
        self, actor: Actor, measure_filter: MeasureFilter, origin: Origin | None = None
    ) -> CaseCounts:
        """Count the cases that match a filter.

        Nothing is counted for a reviewer from whom the policy hides such figures, since they tell
        the machine's verdicts and other people's.

        Args:
            actor: Who asks.
            measure_filter: The time of audits and decisions, the data sets, and the models.
            origin: What audited answers are grouped by; by default their systems if there are
                several, and otherwise their fields.

        """
        if CaseService(self._store, self.access).hides_figures_from(actor):
            return CaseCounts((), (), {}, (), origin or "field", ())
        self._store.modes.catch_up()
        figures = self._store.case_figures
        if origin is None:
            several = len(figures.count_origins("system", MeasureFilter())) > 1
            origin = "system" if several else "field"
        return CaseCounts(
            issues=figures.count_issues(measure_filter),
            stopped=figures.count_stopped(measure_filter),
            revisions=figures.count_revisions(measure_filter),
            weeks=figures.list_weeks(measure_filter),
            origin=origin,
            origins=figures.count_origins(origin, measure_filter),
        )

    @requires("read")
    def changes(self, actor: Actor, since: str) -> Changes:
        """Count what happened since a time (ISO 8601, UTC).

        A reviewer from whom the policy hides figures only learns how many cases arrived.
        """
        changes = self._store.case_figures.count_changes(since)
        if CaseService(self._store, self.access).hides_figures_from(actor):
            return changes._replace(audited=0, failed=0, settled={})
        return changes
