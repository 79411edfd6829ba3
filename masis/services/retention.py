"""Retention: the rule that settings and people give, what it would remove, removing it, removing it once a day."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from masis.errors import MasisError
from masis.schema.actor import Actor
from masis.schema.retention import Purge, PurgePlan, Removal, RetentionRule, Shrunk, Trigger
from masis.services.access import OPEN, Access
from masis.settings import Settings
from masis.store import Store

log = logging.getLogger("masis.retention")

EVERY = timedelta(days=1)
"""How often automatic retention looks for what is past its time."""

AUTOMATIC = Actor(name="retention")
"""Who removes what automatic retention removes."""

QUIETLY_SHRUNK = 200_000_000
"""Bytes up to which automatic retention rewrites the file: others wait meanwhile (some 3 s for so many), and nobody
chose the moment. In a larger file the room is used again; `masis purge` gives it back."""


class Purged(NamedTuple):
    """The result of a purge: its record (None where nothing was to go), and whether the file gave the room back.

    ``lingers``: another program still reads the database as it was, and the disk holds that until it ends.
    """

    purge: Purge | None
    shrunk: Shrunk | None
    lingers: bool = False


def rule_of(days: int, *, decided: bool = False, waiting: bool = True, now: str | None = None) -> RetentionRule:
    """Return the rule for what is older than ``days``, counted from a fixed time, so that what is shown is removed.

    ``waiting=False`` keeps what needs a person's review; ``decided=True`` removes what decisions rest on, too.
    """
    at = datetime.fromisoformat(now) if now else datetime.now(UTC)
    cutoff = (at - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return RetentionRule(cutoff=cutoff, days=days, decided=decided, waiting=waiting)


class RetentionService:
    """The use cases of retention on one database."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self._access = store, access

    def plan(self, rule: RetentionRule) -> PurgePlan:
        """Return what a purge by this rule would do; changes nothing."""
        return self._store.retention.plan(rule)

    def file_bytes(self) -> int:
        """Return the size of the database file."""
        return self._store.path.stat().st_size

    def history(self) -> tuple[Purge, ...]:
        """Return the purges so far, newest first."""
        return self._store.purges.history()

    def removals(self, purge: int) -> Iterator[Removal]:
        """Yield what one purge removed."""
        return self._store.purges.removals(purge)

    def purge(
        self,
        actor: Actor,
        rule: RetentionRule,
        *,
        how: Trigger,
        on_batch: Callable[[int], None] | None = None,
        stopped: Callable[[], bool] | None = None,
        shrink: bool = True,
    ) -> Purged:
        """Remove what the rule says, record it under the actor's name, and give the room back to the disk.

        Where ``stopped`` says so it ends early; what is removed by then is recorded. Raises NotAllowed, and
        StoreError where another program holds the database for too long.
        """
        self._access.require(actor, "purge")
        done = self._store.retention.remove(rule, by=actor.name, how=how, on_batch=on_batch, stopped=stopped)
        if done is None:
            return Purged(None, None)
        log.info("purge %d: %d runs and %d screenings removed", done.seq, done.runs, done.screenings)
        wanted = shrink and not (stopped is not None and stopped())
        shrunk = self._store.shrink(stopped, freed=done.bytes) if wanted else None
        return Purged(done, shrunk, lingers=not self._store.settle())


class AutomaticRetention:
    """A thread that does what the settings say, at once and then once a day, while the workbench is served."""

    def __init__(self, retention: RetentionService, settings: Settings, every: timedelta = EVERY) -> None:
        self._retention, self._settings, self._every = retention, settings, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="retention")

    @classmethod
    def start(cls, retention: RetentionService, settings: Settings) -> AutomaticRetention | None:
        """Start it, if the settings ask for automatic retention."""
        if not automatic(settings):
            return None
        started = cls(retention, settings)
        started._thread.start()
        return started

    def end(self) -> None:
        """Stop after the current batch."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while True:
            try:
                rule = rule_of(self._settings.retention_days)
                small = self._retention.file_bytes() <= QUIETLY_SHRUNK
                self._retention.purge(AUTOMATIC, rule, how="automatic", stopped=self._over.is_set, shrink=small)
            except MasisError as error:
                log.warning("retention could not do its work now: %s", error)
            if self._over.wait(self._every.total_seconds()):
                return


def automatic(settings: Settings) -> bool:
    """Return whether the settings ask for automatic retention."""
    return settings.retention_auto and settings.retention_days > 0
