"""Backups: a copy of a database while it is in use, verified before it counts; and putting one
back.

A copy is of one moment: it is read in one transaction, while others read and write. It is a single
file, without the write-ahead log that a database in use has beside it. It gets its name only when
it has been verified and is on the disk, so that a file of that name is always a whole backup,
whatever cut the making short.
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
from masis.store.core import guards, migrations
from masis.store.core.connections import Database, assert_readable, connect, explained_errors
from masis.store.core.health import check
from masis.store.core.migrations import MIGRATIONS, Migration
from masis.store.reviews import subjects
from masis.store.screening import subjects as screening_subjects

PART = ".part"
"""What the name of an unfinished copy ends in."""

BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database."""


class BackupCheck(Record):
    """What verifying a backup found: what it holds, and every problem."""

    path: str
    bytes: int
    cases: int
    runs: int
    length: int
    head: str
    problems: tuple[str, ...]


def back_up(database: Database, target: Path) -> BackupCheck:
    """Copy a database that may be in use, as it is when the copying begins, verify the copy, and
    give it its name.

    Raises InputError where the target exists, StoreError where its folder can't be written or the
    copy does not verify, since the database is not in order (nothing is left of it), and the other
    errors of ``explained_errors``.
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
    """Read a whole backup: file, references, guards, both logs, what entries are about, derived
    states.

    Raises NotADatabase where it is none of ours, and StoreError where it can't be read or is of
    another version.
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
                    *subjects.check(connection).broken,
                    *screening_subjects.check(connection).broken,
                    *([f"logs have lost their guards: {', '.join(gone)}"] if gone else []),
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
            f"{path}: is no backup of the workbench, or a damaged one ({error})."
        ) from error


def restore(
    backup: Path, database: Path, *, replace: bool = False, stamp: str = ""
) -> tuple[BackupCheck, Path | None]:
    """Verify a backup and put it where the database belongs; the database that was there is kept
    beside it.

    Returns what the backup holds, and where the replaced database lies now, which ``stamp`` tells
    from others; None where there was none. Raises InputError where there is no such backup, or a
    database is there and ``replace`` is not said; NotADatabase and StoreError where the backup does
    not verify and DatabaseBusy where the database that is there is in use: then nothing was
    changed.
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
        for suffix in BESIDE:  # of a database that is gone: SQLite would read them as this one's
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
    """Copy a database as it is at one moment, into a single file."""
    with (
        explained_errors(source_file),
        contextlib.closing(connect(source_file, create=False)) as source,
    ):
        # in a transaction of its own the copy never starts again for what others write
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
    """Remove a file of SQLite with what lies beside it."""
    for suffix in ("", *BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _make_durable(part: Path, target: Path) -> None:
    """Have the content on the disk before it gets its name, and the name before it is reported."""
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
    """The backup itself or, where an earlier version made it, a migrated copy: opening it would
    migrate it as well.
    """
    with contextlib.closing(connect(path, create=False)) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != migrations.APPLICATION_ID:
            raise NotADatabase(f"{path}: is no database of the workbench.")
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
    """Move a database that nobody uses out of the way, as a single file where it can be read."""
    aside = database.with_name(f"{database.name}.replaced{f'-{stamp}' if stamp else ''}")
    if aside.exists():
        raise StoreError(f"{aside}: is there already. Move it away first.")
    try:
        with contextlib.closing(connect(database, create=False)) as connection:
            connection.execute("PRAGMA busy_timeout = 2000")
            # leaving the write-ahead log behind needs the file for itself: it fails while anybody
            # has it open
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        with contextlib.suppress(OSError):  # a file system without second names: it is moved
            # the database keeps its own name until the backup takes it, whenever this process may
            # be killed
            os.link(database, aside)
            return aside
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise DatabaseBusy(
                f"{database}: is in use, nothing was restored. End `masis serve` and whatever else"
                " has it open first."
            ) from error
        # else it is damaged, which may be why a backup is restored
    for suffix in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError):
            os.replace(
                database.with_name(database.name + suffix), aside.with_name(aside.name + suffix)
            )
    return aside
