"""Retention: the rule that settings and people give, what it would remove, removing it, removing it
once a day.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from masis.schema.actor import Actor
from masis.schema.retention import Purge, RetentionRule, Shrunk, Trigger
from masis.services.access import Service
from masis.services.background import RepeatedTask
from masis.settings import Settings

log = logging.getLogger("masis.retention")

PURGE_INTERVAL = timedelta(days=1)
"""How often automatic retention looks for what is past its time."""

AUTOMATIC = Actor(name="retention")
"""Who removes what automatic retention removes."""

MAX_AUTO_SHRINK_BYTES = 200_000_000
"""Bytes up to which automatic retention rewrites the file: others wait meanwhile (some 3 s for so
many), and nobody chose the moment. In a larger file the room is used again; `masis purge` gives it
back."""


class PurgeResult(NamedTuple):
    """The result of a purge: its record (None where nothing was to go), and whether the file gave
    the room back.

    ``lingers``: another program still reads the database as it was, and the disk holds that until
        it ends.
    """

    purge: Purge | None
    shrunk: Shrunk | None
    lingers: bool = False


def rule_of(
    days: int, *, decided: bool = False, waiting: bool = True, now: str | None = None
) -> RetentionRule:
    """Return the rule for what is older than ``days``, counted from a fixed time, so that what is
    shown is removed.

    ``waiting=False`` keeps what needs a person's review; ``decided=True`` removes what decisions
    rest on, too.
    """
    at = datetime.fromisoformat(now) if now else datetime.now(UTC)
    cutoff = (at - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return RetentionRule(cutoff=cutoff, days=days, decided=decided, waiting=waiting)


class RetentionService(Service):
    """The use cases of retention on one database."""

    def file_bytes(self) -> int:
        """Return the size of the database file."""
        return self._store.path.stat().st_size

    def purge(
        self,
        actor: Actor,
        rule: RetentionRule,
        *,
        how: Trigger,
        on_batch: Callable[[int], None] | None = None,
        stopped: Callable[[], bool] | None = None,
        shrink: bool = True,
    ) -> PurgeResult:
        """Remove what the rule says, record it under the actor's name, and give the room back to
        the disk.

        Where ``stopped`` says so it ends early; what is removed by then is recorded. Raises
        NotAllowed, and StoreError where another program holds the database for too long.
        """
        self._access.require(actor, "purge")
        done = self._store.retention.remove(
            rule, by=actor.name, how=how, on_batch=on_batch, stopped=stopped
        )
        if done is None:
            return PurgeResult(None, None)
        log.info(
            "purge %d: %d runs and %d screenings removed", done.seq, done.runs, done.screenings
        )
        wanted = shrink and not (stopped is not None and stopped())
        shrunk = self._store.shrink(stopped, freed=done.bytes) if wanted else None
        return PurgeResult(done, shrunk, lingers=not self._store.settle())


def start_automatic(
    retention: RetentionService, settings: Settings, every: timedelta = PURGE_INTERVAL
) -> RepeatedTask | None:
    """Remove what is past its time at once and then once a day, on a thread, if the settings ask
    for it.
    """
    if not is_automatic(settings):
        return None

    def purge(stopped: Callable[[], bool]) -> None:
        small = retention.file_bytes() <= MAX_AUTO_SHRINK_BYTES
        rule = rule_of(settings.retention_days)
        retention.purge(AUTOMATIC, rule, how="automatic", stopped=stopped, shrink=small)

    return RepeatedTask(purge, every, "retention").start()


def is_automatic(settings: Settings) -> bool:
    """Return whether the settings ask for automatic retention."""
    return settings.retention_auto and settings.retention_days > 0
