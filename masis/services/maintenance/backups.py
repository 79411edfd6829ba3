"""Backups of a database: making one, keeping the newest few, making them by itself while the
workbench is served.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from masis.errors import InputError, StoreError
from masis.schema.actor import Actor
from masis.schema.wording import count_noun
from masis.services.access import Service
from masis.services.background import RepeatedTask
from masis.settings import Settings
from masis.store.core import backup
from masis.store.core.backup import BackupCheck
from masis.views.numbers import file_size

log = logging.getLogger("masis.backups")

AUTOMATIC = Actor(name="backup")
"""Who makes the backups that are made by themselves."""

CHECK_INTERVAL = timedelta(minutes=5)
"""How often automatic backup looks whether one is due: after a failure it is tried
again so soon.
"""

_STAMP = "%Y%m%dT%H%M%SZ"


class BackupMade(NamedTuple):
    """A backup that was made, and the older ones that were removed for it."""

    check: BackupCheck
    removed: tuple[Path, ...]


class BackupService(Service):
    """The use cases of backing up one database."""

    def make(
        self, actor: Actor, target: Path, *, keep: int = 0, now: datetime | None = None
    ) -> BackupMade:
        """Copy the database while it is in use, and verify the copy.

        ``target`` is the file to make, or a folder that exists: in it the copy gets a name with the
        time (``now``), and of the backups of this database ``keep`` stay (0: all).

        Raises InputError where the file exists, NotAllowed, and StoreError where there is no room
        or the database is not in order; nothing is left of the copy then.
        """
        self._access.require(actor, "export")
        if not target.is_dir():
            return BackupMade(backup.back_up(self._store.database, target), ())
        made = (now or datetime.now(UTC)).strftime(_STAMP)
        check = backup.back_up(self._store.database, target / f"{self._store.path.stem}-{made}.db")
        old = self.existing(target)[keep:] if keep else []
        for path in old:
            backup.remove(path)
        return BackupMade(check, tuple(old))

    def existing(self, folder: Path) -> list[Path]:
        """Return the backups of this database in a folder that have names with times,
        newest first.
        """
        stem = self._store.path.stem
        found = [path for path in folder.glob(f"{stem}-*.db") if _time_of(path, stem) is not None]
        return sorted(found, key=lambda path: path.name, reverse=True)

    def newest(self, folder: Path) -> datetime | None:
        """Return when the newest backup in a folder was made; None where there is none."""
        found = self.existing(folder) if folder.is_dir() else []
        return _time_of(found[0], self._store.path.stem) if found else None


def restore(
    actor: Actor, copy: Path, database: Path, *, replace: bool = False
) -> tuple[BackupCheck, Path | None]:
    """Verify a backup and put it where the database belongs; returns what it holds and where the
    replaced one lies.

    Raises InputError, NotADatabase, DatabaseBusy and StoreError
    (``masis.store.core.backup.restore``).
    """
    if not actor.name.strip():
        raise InputError("the name of who restores is missing", hint="Name who asks for it.")
    log.info("%s restores %s", actor.name, database)
    return backup.restore(copy, database, replace=replace, stamp=datetime.now(UTC).strftime(_STAMP))


def verify(copy: Path) -> BackupCheck:
    """Return what a backup holds. Raises InputError where there is none, and StoreError where it is
    not in order.
    """
    if not copy.is_file():
        raise InputError(
            f"{copy}: there is no such file", hint="Name a file that `masis db backup` made."
        )
    found = backup.verify(copy)
    if found.problems:
        raise StoreError(f"{copy}: is not in order: {'; '.join(found.problems[:5])}.")
    return found


def backup_line(check: BackupCheck) -> str:
    """Return what a backup holds in one line."""
    return (
        f"{check.path} ({file_size(check.bytes)}): {count_noun(check.cases, 'case')},"
        f" {count_noun(check.runs, 'run')},"
        f" {count_noun(check.length, 'entry of the decision log', 'entries of the decision log')},"
        f" head {check.head}"
    )


def _time_of(path: Path, stem: str) -> datetime | None:
    try:
        return datetime.strptime(path.stem.removeprefix(f"{stem}-"), _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def start_automatic(
    backups: BackupService, settings: Settings, every: timedelta = CHECK_INTERVAL
) -> RepeatedTask | None:
    """Make a backup whenever the newest is older than the settings say, on a thread, if they name a
    folder for them.
    """
    if not settings.backup_folder:
        return None
    return RepeatedTask(lambda _: make_if_due(backups, settings), every, "backup").start()


def make_if_due(
    backups: BackupService, settings: Settings, now: datetime | None = None
) -> BackupMade | None:
    """Make a backup in the folder of the settings where the newest is older than they say; None
    where it is not.

    Raises StoreError and OSError where it can't be made.
    """
    folder, now = Path(settings.backup_folder).expanduser(), now or datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    newest = backups.newest(folder)
    if newest is not None and now - newest < timedelta(hours=settings.backup_hours):
        return None
    made = backups.make(AUTOMATIC, folder, keep=settings.backup_keep, now=now)
    log.info("backup made: %s", backup_line(made.check))
    return made
