"""Retention as a use case: the rule that settings and people give, what it would do, doing it, doing it by itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from masis.errors import MasisError
from masis.schema.retention import Purge, PurgePlan, RetentionRule, Shrunk, Trigger
from masis.services.workbench import Workbench
from masis.settings import Settings

log = logging.getLogger("masis.retention")

EVERY = timedelta(days=1)
"""How often retention looks by itself, where it is told to."""

BY_ITSELF = "retention"
"""Who removed what went by itself."""

QUIETLY_SHRUNK = 200_000_000
"""Bytes up to which retention that works by itself writes the file anew: others wait meanwhile (some 3 s for so many),
and nobody chose the moment. In a larger one the room is used again; `masis purge` gives it back."""


class Purged(NamedTuple):
    """What a purge came to: its record (None where nothing was to go), and whether the file gave the room back.

    ``lingers``: another program still reads the database as it was, and the disk holds that until it ends.
    """

    purge: Purge | None
    shrunk: Shrunk | None
    lingers: bool = False


def rule_of(days: int, *, decided: bool = False, waiting: bool = True, now: str | None = None) -> RetentionRule:
    """The rule for what is older than ``days``: the time it is reckoned from is fixed, so that what is shown goes.

    ``waiting=False`` keeps what waits for a person; ``decided=True`` takes what decisions rest on.
    """
    at = datetime.fromisoformat(now) if now else datetime.now(UTC)
    cutoff = (at - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return RetentionRule(cutoff=cutoff, days=days, decided=decided, waiting=waiting)


def planned(bench: Workbench, rule: RetentionRule) -> PurgePlan:
    """What a purge by this rule would do; changes nothing."""
    return bench.store.retention.plan(rule)


def purge(
    bench: Workbench,
    rule: RetentionRule,
    *,
    by: str,
    how: Trigger,
    on_batch: Callable[[int], None] | None = None,
    stopped: Callable[[], bool] | None = None,
    shrink: bool = True,
) -> Purged:
    """Remove what the rule says, record it, and give the room back to the disk.

    Where ``stopped`` says so it ends early; what is removed by then is recorded. Raises StoreError where another
    program holds the database for too long.
    """
    done = bench.store.retention.remove(rule, by=by, how=how, on_batch=on_batch, stopped=stopped)
    if done is not None:
        log.info("purge %d: %d runs and %d screenings removed", done.seq, done.runs, done.screenings)
    if done is None:
        return Purged(None, None)
    wanted = shrink and not (stopped is not None and stopped())
    shrunk = bench.store.shrink(stopped, freed=done.bytes) if wanted else None
    return Purged(done, shrunk, lingers=not bench.store.settle())


class ByItself:
    """A thread that does what the settings say, at once and then once a day, while the workbench is served."""

    def __init__(self, bench: Workbench, every: timedelta = EVERY) -> None:
        self._bench, self._every = bench, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="retention")

    @classmethod
    def begun(cls, bench: Workbench) -> ByItself | None:
        """Begin, if the settings say that retention works by itself."""
        if not wanted(bench.settings):
            return None
        made = cls(bench)
        made._thread.start()
        return made

    def end(self) -> None:
        """Stop after the batch under way."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while True:
            try:
                rule = rule_of(self._bench.settings.retention_days)
                small = self._bench.database.stat().st_size <= QUIETLY_SHRUNK
                purge(self._bench, rule, by=BY_ITSELF, how="automatic", stopped=self._over.is_set, shrink=small)
            except MasisError as error:
                log.warning("retention could not do its work now: %s", error)
            if self._over.wait(self._every.total_seconds()):
                return


def wanted(settings: Settings) -> bool:
    """Whether retention works by itself."""
    return settings.retention_auto and settings.retention_days > 0
