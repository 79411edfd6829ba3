"""Back up a database, on request or automatically while it is served, and remove old backups."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from typing import NamedTuple

from masis.errors import InputError, StoreError
from masis.schema.actor import Actor
from masis.schema.wording import count_noun
from masis.services.access import Service, requires
from masis.services.background import RepeatedTask
from masis.settings import Settings
from masis.store.core import backup
from masis.store.core.backup import BackupCheck
from masis.views.numbers import file_size

log = logging.getLogger("masis.backups")

AUTOMATIC = Actor(name="backup")
"""The actor of automatic backups."""

CHECK_INTERVAL = timedelta(minutes=5)
"""How often to check whether a backup is due; also the retry interval after a failure."""

_STAMP = "%Y%m%dT%H%M%SZ"


class BackupMade(NamedTuple):
    """A new backup, and the older ones that were removed for it."""

    check: BackupCheck
    removed: tuple[Path, ...]


UNFINISHED_AFTER = timedelta(days=1)
"""The age from which a partial copy counts as interrupted. Copying takes minutes."""


class BackupService(Service):
    """The use cases of backing up one database."""

    @requires("export", "make backups")
    def make(
        self, actor: Actor, target: Path, *, keep: int = 0, now: datetime | None = None
    ) -> BackupMade:
        """Copy the database while it is in use, and verify the copy. A failed copy is deleted.

        Args:
            actor: Who asks for it.
            target: The file to create, or an existing folder. In a folder the copy's name contains
                the time.
            keep: In a folder, the number of this database's backups to keep; 0 keeps all.
            now: The time for the name.

        Raises:
            InputError: The file exists.
            NotAllowed: The actor's role doesn't allow exports.
            StoreError: There isn't enough space, or the database is damaged.

        """
        if not target.is_dir():
            return BackupMade(backup.back_up(self._store.database, target), ())
        moment = now or datetime.now(UTC)
        self._remove_unfinished(target, moment)
        stamp = moment.strftime(_STAMP)
        check = backup.back_up(self._store.database, target / f"{self._store.path.stem}-{stamp}.db")
        # newest first, so the slice holds the oldest
        old = self.existing(target, moment)[keep:] if keep else []
        for path in old:
            backup.remove(path)
        return BackupMade(check, tuple(old))

    def _remove_unfinished(self, folder: Path, now: datetime) -> None:
        """Remove copies of this database that were interrupted, such as by a power failure.

        A younger one may be in progress in another process.
        """
        stem = self._store.path.stem
        for path in folder.glob(f"{escape(stem)}-*.db{backup.PART}"):
            started = _time_of(path.with_suffix(""), stem)
            if started is not None and now - started > UNFINISHED_AFTER:
                backup.remove(path)

    def existing(self, folder: Path, now: datetime) -> list[Path]:
        """Return this database's backups in a folder, by the time in their names, newest first.

        Those from the future come last: they were made before the clock was set back.
        """
        stem = self._store.path.stem
        # The pattern also matches databases whose names start the same, such as review-2.db for
        # review.db, so the rest must be a time.
        # By the time in the name, because copying a file changes its own time.
        times = {path: _time_of(path, stem) for path in folder.glob(f"{escape(stem)}-*.db")}
        made = {path: time for path, time in times.items() if time is not None}
        return sorted(made, key=lambda path: (made[path] <= now, made[path]), reverse=True)

    def newest(self, folder: Path, now: datetime) -> datetime | None:
        """Return when the newest backup in a folder was made, or None if there is none."""
        backups = self.existing(folder, now) if folder.is_dir() else []
        made = _time_of(backups[0], self._store.path.stem) if backups else None
        return made if made is not None and made <= now else None


def restore(
    actor: Actor, copy: Path, database: Path, *, replace: bool = False
) -> tuple[BackupCheck, Path | None]:
    """Verify a backup and replace the database with it.

    Returns:
        The contents of the backup, and the path of the replaced database, if there was one.

    Raises:
        InputError, NotADatabase, DatabaseBusy, StoreError: See ``masis.store.core.backup.restore``.

    """
    if not actor.name.strip():
        raise InputError("the name of the person is missing", hint="Enter your name.")
    log.info("%s restores %s", actor.name, database)
    return backup.restore(copy, database, replace=replace, stamp=datetime.now(UTC).strftime(_STAMP))


def verify(copy: Path) -> BackupCheck:
    """Return the contents of a backup.

    Raises:
        InputError: There is no such file.
        StoreError: The backup is damaged.

    """
    if not copy.is_file():
        raise InputError(
            f"{copy}: there is no such file", hint="Name a file that `masis db backup` made."
        )
    check = backup.verify(copy)
    if check.problems:
        raise StoreError(f"{copy} is damaged: {'; '.join(check.problems[:5])}.")
    return check


def backup_line(check: BackupCheck) -> str:
    """Return the contents of a backup in one line."""
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
    """Back up on a thread whenever the newest backup is too old, if the settings name a folder."""
    if not settings.backup_folder:
        return None
    return RepeatedTask(lambda _: make_if_due(backups, settings), every, "backup").start()


def make_if_due(
    backups: BackupService, settings: Settings, now: datetime | None = None
) -> BackupMade | None:
    """Make a backup in the settings' folder if the newest one is too old, or return None.

    Raises:
        StoreError: The backup can't be made.
        OSError: The folder can't be written.

    """
    folder, now = Path(settings.backup_folder).expanduser(), now or datetime.now(UTC)
    folder.mkdir(parents=True, exist_ok=True)
    newest = backups.newest(folder, now)
    if newest is not None and now - newest < timedelta(hours=settings.backup_hours):
        return None
    made = backups.make(AUTOMATIC, folder, keep=settings.backup_keep, now=now)
    log.info("backup made: %s", backup_line(made.check))
    return made
