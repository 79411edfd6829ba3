"""The most recent health report of the served database, shared by pages, frame and HTTP clients.

A check reads the whole database, so a report is reused for five seconds or for twenty times the
duration of the check, whichever is longer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from masis.errors import DatabaseMissing, SettingsError, StoreError
from masis.schema.base import utc_now
from masis.services import HealthItem, HealthReport, Workbench
from masis.services.background import RepeatedTask
from masis.services.maintenance.health import report_without_database
from masis.settings import load
from masis.ui.shell.served_database import has_disappeared, served_database

REUSED_AT_LEAST_S = 5.0
REUSE_FACTOR = 20
"""Multiple of a check's duration, so that polling uses at most a twentieth of the time."""

CHECK_EVERY_S = 3600.0


class TimedReport(NamedTuple):
    """A report and the time it was made."""

    report: HealthReport
    at: str

    def without_counts(self) -> TimedReport:
        """Return the report without sizes, which reveal whether others have decided."""
        items = tuple(
            item._replace(message=item.uncounted) if item.ok and item.uncounted else item
            for item in self.report.items
        )
        return self._replace(report=HealthReport(items))

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {**self.report.to_json(), "checked_at": self.at}


class HealthReports:
    """The reports of this process. Making one calls no model."""

    def __init__(
        self,
        check: Callable[[Path], HealthReport],
        database: Callable[[], Path],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check, self._database, self._clock = check, database, clock
        self._checking = threading.Lock()
        self._last: tuple[Path, TimedReport] | None = None
        self._until = 0.0

    def latest(self) -> TimedReport | None:
        """Return the last report on the served database, however old, or None if there is none."""
        last = self._last
        return last[1] if last is not None and last[0] == self._database() else None

    def current(self, *, renew: bool = False) -> TimedReport:
        """Return a recent report or make a new one; concurrent callers wait for the same one."""
        # Callers that waited for the lock find the report that was made in the meantime.
        with self._checking:
            last = self.latest()
            if last is None or renew or self._clock() >= self._until:
                started, database = self._clock(), self._database()
                last = TimedReport(self._check(database), utc_now())
                self._last, ended = (database, last), self._clock()
                self._until = ended + max(REUSED_AT_LEAST_S, REUSE_FACTOR * (ended - started))
            return last

    def watch(self, every_s: float = CHECK_EVERY_S) -> None:
        """Check now and every hour on a daemon thread, so that the frame can show failures."""
        RepeatedTask(lambda _: self.current(), timedelta(seconds=every_s), "health check").start()


def check_database(database: Path) -> HealthReport:
    """Check the database at this path. If it can't be opened, that counts as a failed check."""
    try:
        settings = load().settings
    except SettingsError as error:
        return HealthReport(
            (HealthItem("settings", False, str(error), "Fix the setting and restart the server."),)
        )
    if has_disappeared(database):
        moved = DatabaseMissing(
            f"{database}: was moved or removed while it was being served. Restore it and"
            " restart the server."
        )
        return report_without_database(database, settings, moved)
    if not database.exists():
        return report_without_database(database, settings)
    try:
        # opened even if a log has lost its triggers, because the check should report that
        with closing(Workbench.open(database, settings, unguarded="open")) as workbench:
            return workbench.health()
    except StoreError as error:
        return report_without_database(database, settings, error)


REPORTS = HealthReports(check_database, served_database)
"""The reports on the database that this process serves."""
