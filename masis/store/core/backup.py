"""Backs up a database while it is in use, and restores a backup.

SQLite's backup API copies one snapshot while others read and write. The copy is a single file
without a write-ahead log. It is verified and synced to the disk under a temporary name, so a file
with the final name is always a complete backup, even if the process was killed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from masis.errors import DatabaseBusy, InputError, NotADatabase, StoreError
from masis.schema.base import Record
from masis.store import screening_subjects
from masis.store.core import guards, migrations
from masis.store.core.connections import Database, assert_readable, connect, explained_errors
from masis.store.core.health import check
from masis.store.core.migrations import MIGRATIONS, Migration
from masis.store.reviews import subjects

PART = ".part"
"""The suffix of an unfinished copy."""

BESIDE = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite writes next to a database."""


class BackupCheck(Record):
    """The result of verifying a backup: its counts, the end of its log, and every problem."""

    path: str
    bytes: int
    cases: int
    runs: int
    length: int
    head: str
    problems: tuple[str, ...]


def back_up(database: Database, target: Path) -> BackupCheck:
    """Copy a database that may be in use to a new file, and verify the copy.

    The copy has the content of the moment the copying began.

    Raises:
        InputError: The target exists.
        StoreError: The folder can't be written, or the copy isn't in order and was removed. Other
            failures of the file raise the errors of ``explained_errors``.

    """
    if target.exists():
        raise InputError(f"{target}: is there already", hint="Name another file, or a folder.")
    part = _partial_file(target)
    try:
        _copy(database.path, part)
        checked = verify(part)
        if checked.problems:
            raise StoreError(
                f"{database.path}: no backup was made, since the copy is not in order: "
                f"{'; '.join(checked.problems[:5])}. `masis health` says more."
            )
        _make_durable(part, target)
    except OSError as error:
        raise StoreError(
            f"{target}: can't be written ({error.strerror}). Name another place, or make room."
        ) from error
    finally:
        remove(part)
    return checked.model_copy(update={"path": str(target)})


def verify(path: Path, known: Sequence[Migration] = MIGRATIONS) -> BackupCheck:
    """Check a backup: pages, references, triggers, both logs and their subjects, derived states.

    Raises:
        NotADatabase: It isn't a backup of the workbench.
        StoreError: It can't be read, or another version made it.

    """
    try:
        with (
            _migrated_copy(path, known) as file,
            contextlib.closing(Database(file)) as database,
        ):
            report = check(database)
            with database.reading() as connection:
                deep = [
                    row[0]
                    for row in connection.execute("PRAGMA integrity_check(10)")
                    if row[0] != "ok"
                ]
                gone = guards.missing(connection)
                problems = [
                    *report.problems,
                    *(f"the file is damaged: {text}" for text in deep),
                    *report.log.broken,
                    *report.screening_log.broken,
                    *report.preference_log.broken,
                    *subjects.check(connection).broken,
                    *screening_subjects.check(connection).broken,
                    *([f"logs have lost their triggers: {', '.join(gone)}"] if gone else []),
                ]
        return BackupCheck(
            path=str(path),
            bytes=path.stat().st_size,
            cases=report.counts["cases"],
            runs=report.counts["runs"],
            length=report.log.length,
            head=report.log.head,
            problems=tuple(problems),
        )
    except sqlite3.DatabaseError as error:
        raise NotADatabase(
            f"{path}: isn't a backup of the workbench, or is damaged ({error})."
        ) from error


def restore(
    backup: Path, database: Path, *, replace: bool = False, stamp: str = ""
) -> tuple[BackupCheck, Path | None]:
    """Verify a backup and put it in place of the database, which is kept under another name.

    If this raises, the database wasn't changed.

    Args:
        backup: A file that ``back_up`` made.
        database: Where to put it.
        replace: Whether an existing database may be replaced.
        stamp: Distinguishes the name of the replaced database from others.

    Returns:
        The check of the backup, and the path of the replaced database, if there was one.

    Raises:
        InputError: The backup doesn't exist, or the database does and ``replace`` is false.
        NotADatabase: The backup isn't one of the workbench.
        StoreError: The backup isn't in order, or the folder can't be written.
        DatabaseBusy: The existing database is in use.

    """
    if not backup.is_file():
        raise InputError(
            f"{backup}: there is no such file", hint="Name a file that `masis db backup` made."
        )
    if database.exists() and not replace:
        raise InputError(
            f"{database}: a database is there",
            hint=(
                "Say --replace to put the backup in its place (it is kept under another name), or"
                " name a new file."
            ),
        )
    checked = verify(backup)
    if checked.problems:
        raise StoreError(
            f"{backup}: is not in order, nothing was restored: {'; '.join(checked.problems[:5])}."
        )
    part = _partial_file(database)
    aside: Path | None = None
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        _copy(backup, part)
        if database.exists():
            aside = _set_aside(database, stamp)
        # A write-ahead log or journal left by the old database would be applied to the new one
        # (sqlite.org/howtocorrupt.html, section 1.4).
        for suffix in BESIDE:
            database.with_name(database.name + suffix).unlink(missing_ok=True)
        _make_durable(part, database)
    except OSError as error:
        raise StoreError(
            f"{database}: can't be written ({error.strerror}). Make room, or name another file."
        ) from error
    finally:
        remove(part)
    return checked, aside


def _copy(source_file: Path, part: Path) -> None:
    """Copy one snapshot of a database into a single file."""
    with (
        explained_errors(source_file),
        contextlib.closing(connect(source_file, create=False)) as source,
    ):
        # Without a read transaction the backup restarts whenever another process writes
        # (sqlite.org/c3ref/backup_finish.html). BEGIN alone takes no snapshot, the first read does.
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_master").fetchone()
        try:
            with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            if (error.sqlite_errorname or "").startswith(
                ("SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_READONLY")
            ):
                with explained_errors(part):
                    raise
            raise


def _partial_file(target: Path) -> Path:
    part = target.with_name(target.name + PART)
    remove(part)
    return part


def remove(path: Path) -> None:
    """Remove a database file and the files that SQLite wrote next to it."""
    for suffix in ("", *BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _make_durable(part: Path, target: Path) -> None:
    """Sync the content before renaming the file, and sync the folder so that the name is stored."""
    _sync(part)
    os.replace(part, target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _migrated_copy(path: Path, known: Sequence[Migration]) -> Iterator[Path]:
    """Yield the backup, or a migrated copy if an earlier version made it.

    The backup itself must stay as it is.
    """
    with contextlib.closing(connect(path, create=False)) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != migrations.APPLICATION_ID:
            raise NotADatabase(f"{path}: isn't a database of the workbench.")
        assert_readable(connection, path, known)
        complete = migrations.applied_migrations(connection) == migrations.migration_names(known)
    if complete:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        _copy(path, copy)
        with contextlib.closing(connect(copy)) as connection:
            migrations.migrate(connection, known)
        yield copy


def _set_aside(database: Path, stamp: str) -> Path:
    """Move an unused database out of the way, as a single file if it can be read."""
    aside = database.with_name(f"{database.name}.replaced{f'-{stamp}' if stamp else ''}")
    if aside.exists():
        raise StoreError(f"{aside}: is there already. Move it away first.")
    try:
        with contextlib.closing(connect(database, create=False)) as connection:
            connection.execute("PRAGMA busy_timeout = 2000")
            # Leaving WAL mode needs an exclusive lock, so this fails while another process has the
            # database open.
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        # With a hard link the database keeps its name until the backup replaces it, even if this
        # process is killed. File systems without hard links raise OSError, so the file is moved.
        with contextlib.suppress(OSError):
            os.link(database, aside)
            return aside
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise DatabaseBusy(
                f"{database}: is in use, nothing was restored. Stop `masis serve` and everything"
                " else that has it open first."
            ) from error
        # Otherwise it is damaged, which may be the reason for restoring a backup.
    for suffix in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            os.replace(
                database.with_name(database.name + suffix), aside.with_name(aside.name + suffix)
            )
    return aside
