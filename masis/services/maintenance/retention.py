"""Retention: preview and remove old audits and screenings, on request or once a day."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from masis.schema.actor import Actor
from masis.schema.retention import Purge, PurgePlan, RetentionRule, Shrunk, Trigger
from masis.services.access import Service, may_require, requires
from masis.services.background import RepeatedTask
from masis.settings import Settings

log = logging.getLogger("masis.retention")

PURGE_INTERVAL = timedelta(days=1)
"""How often automatic retention looks for expired data."""

AUTOMATIC = Actor(name="retention")
"""The actor of automatic retention."""

MAX_AUTO_SHRINK_BYTES = 200_000_000
"""The largest file, in bytes, that automatic retention rewrites to free disk space.

Rewriting blocks other writers (about 3 s for a file of this size) at a time that no person chose.
SQLite reuses the freed space of a larger file; `masis purge` returns it to the disk.
"""


class PurgeResult(NamedTuple):
    """The result of a purge: its record (None if nothing expired), and whether the file shrank.

    ``lingers`` means that another program still reads the earlier state of the database, and the
    disk space is freed when it ends.
    """

    purge: Purge | None
    shrunk: Shrunk | None
    lingers: bool = False


def rule_of(
    days: int, *, decided: bool = False, waiting: bool = True, now: str | None = None
) -> RetentionRule:
    """Return the rule for everything older than ``days``.

    The cutoff is fixed when the rule is made, so that a purge removes exactly what the preview
    showed.

    Args:
        days: The age in days.
        decided: Also remove audits that decisions are based on.
        waiting: Also remove audits that need a person's review.
        now: The time to count from, ISO 8601.

    """
    at = datetime.fromisoformat(now) if now else datetime.now(UTC)
    cutoff = (at - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return RetentionRule(cutoff=cutoff, days=days, decided=decided, waiting=waiting)


class RetentionService(Service):
    """The use cases of retention on one database."""

    def file_bytes(self) -> int:
        """Return the size of the database file."""
        return self._store.path.stat().st_size

    @requires("read")
    @may_require("oversee", "see figures over all cases under a blind policy")
    def plan(self, actor: Actor, rule: RetentionRule) -> PurgePlan | None:
        """Return what a purge by this rule would remove now, or None if this person may not see it
        (``hides_plan_from``).
        """
        return None if self.hides_plan_from(actor) else self._store.retention.plan(rule)

    @requires("read")
    def hides_plan_from(self, actor: Actor) -> bool:
        """Return whether what a purge would remove is hidden from this person.

        Whether an audit stays depends on the decisions of others and on the audit's result. While a
        policy hides either from reviewers, only signed-in leads and admins see a plan. The owner of
        the database file sees it with ``masis purge --dry-run``.
        """
        return not actor.may("oversee") and self._store.decisions.hides_counts_from(actor.name)

    @requires("purge", "remove audits after their retention period")
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
        """Remove expired data, record it under the actor's name, and shrink the file.

        If ``stopped`` returns True it ends early; the data removed so far is recorded.

        Raises:
            NotAllowed: The actor's role doesn't allow purges.
            StoreError: Another program has locked the database for too long.

        """
        purge = self._store.retention.remove(
            rule, by=actor.name, how=how, on_batch=on_batch, stopped=stopped
        )
        if purge is None:
            return PurgeResult(None, None)
        log.info(
            "purge %d: %d runs and %d screenings removed", purge.seq, purge.runs, purge.screenings
        )
        should_shrink = shrink and not (stopped is not None and stopped())
        shrunk = self._store.shrink(stopped, freed=purge.bytes) if should_shrink else None
        return PurgeResult(purge, shrunk, lingers=not self._store.settle())


def start_automatic(
    retention: RetentionService, settings: Settings, every: timedelta = PURGE_INTERVAL
) -> RepeatedTask | None:
    """Remove expired data now and then once a day, on a thread, if the settings ask for it."""
    if not is_automatic(settings):
        return None

    def purge(stopped: Callable[[], bool]) -> None:
        # checked before each purge, because the file grows while it is served
        small = retention.file_bytes() <= MAX_AUTO_SHRINK_BYTES
        rule = rule_of(settings.retention_days)
        retention.purge(AUTOMATIC, rule, how="automatic", stopped=stopped, shrink=small)

    return RepeatedTask(purge, every, "retention").start()


def is_automatic(settings: Settings) -> bool:
    """Return whether the settings ask for automatic retention."""
    return settings.retention_auto and settings.retention_days > 0
