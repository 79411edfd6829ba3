"""Counts of cases that the pictures of the metrics page show."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Literal, NamedTuple

from masis.schema.case import Severity
from masis.schema.review import Verdict

Origin = Literal["system", "field", "dataset", "model"]
"""What audited answers are grouped by: where they come from, or the model of a role."""

RevisionOutcome = Literal["unchanged", "edited", "original", "rejected", "escalated"]
"""What people made of the revision that the audit suggested."""


class IssueCount(NamedTuple):
    """In how many cases the original answer has issues with a flag, of this severity at worst.

    ``flag`` is empty for issues whose rule sets none: those that only the critic reports.
    """

    flag: str
    severity: Severity
    cases: int


class StoppedCount(NamedTuple):
    """How many answers people rejected or corrected, by the worst severity that the audit found.

    ``severity`` is None if the audit found no issue.
    """

    verdict: Verdict
    severity: Severity | None
    cases: int


class WeekOfWork(NamedTuple):
    """One week: cases that arrived, those settled by verdict, and those open at its end.

    ``settled`` counts answers that the policy accepted under ``accepted``. ``seconds`` is the
    median time of the decisions of people that have one.
    """

    week: str
    arrived: int
    settled: dict[str, int]
    open: int
    seconds: float | None

    @property
    def last_day(self) -> str:
        """The Sunday of the week."""
        return (date.fromisoformat(self.week) + timedelta(days=6)).isoformat()


class OriginCount(NamedTuple):
    """How many audited cases come from somewhere, and in how many of them something is wrong.

    ``name`` is empty for cases that don't say where they come from.
    """

    name: str
    cases: int
    wrong: int


class Changes(NamedTuple):
    """What happened since a time: cases that arrived, audits that finished or failed, and cases
    that were settled, by verdict. Answers that the policy accepted are under ``accepted``.
    """

    since: str
    arrived: int
    audited: int
    failed: int
    settled: dict[str, int]
