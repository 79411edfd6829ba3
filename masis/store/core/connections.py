"""Opening a database: is it ours, is it older or newer, are its guards armed; and a connection for each thread.

Many threads and processes share one file: WAL, a busy timeout, and the write lock taken before reading whatever a
write depends on (``BEGIN IMMEDIATE``), so that nobody writes on the strength of something that has changed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from masis import version
from masis.errors import NewerDatabase, NotADatabase, StoreError
from masis.schema.base import utc_now
from masis.store.core import guards, migrations
from masis.store.core.migrations import MIGRATIONS, Listener, Migration

BUSY_TIMEOUT_S = 15.0
"""How long a writer waits for another before it gives up; a batch of an import holds the lock for some 50 ms."""


Unguarded = Literal["refuse", "open", "rearm"]


class _Held:
    """One thread's connection, closed when the thread is gone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.pid = connection, os.getpid()

    def close(self) -> None:
        """Close it, unless it was opened before a fork: then it belongs to the parent."""
        if self.pid == os.getpid():
            self.connection.close()

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.close()


class Database:
    """The file, with one connection a thread: share the object freely, between threads and across a fork."""

    def __init__(self, path: Path, now: Callable[[], str] = utc_now) -> None:
        self.path, self.now = path, now
        self._local = threading.local()
        self._held: weakref.WeakSet[_Held] = weakref.WeakSet()

    def connection(self) -> sqlite3.Connection:
        """The calling thread's connection, opened on first use. It is in autocommit; write inside ``writing()``."""
        held: _Held | None = getattr(self._local, "held", None)
        if held is None or held.pid != os.getpid():
            held = self._local.held = _Held(connect(self.path))
            self._held.add(held)
        return held.connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its first line; inside another, a part of that one."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        _begin(connection, "BEGIN IMMEDIATE", self.path)
        with _ended(connection):
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Several reads of one and the same state, whatever others write meanwhile."""
        connection = self.connection()
        if connection.in_transaction:
            yield connection
            return
        _begin(connection, "BEGIN", self.path)
        with _ended(connection):
            yield connection

    def close(self) -> None:
        """Close every thread's connection. A later use opens a new one."""
        for held in list(self._held):
            held.close()
        self._local = threading.local()
        self._held = weakref.WeakSet()


def _begin(connection: sqlite3.Connection, statement: str, path: Path) -> None:
    try:
        connection.execute(statement)
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"{path}: can't be written now ({error}). If another program holds it open, close that and try again."
        ) from error


@contextlib.contextmanager
def _ended(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if connection.in_transaction:
        connection.execute("COMMIT")


def connect(path: Path) -> sqlite3.Connection:
    """A connection as every part of the store expects it. Rows answer to column names."""
    # not tied to its thread, so that Database.close() can close those of all threads; only one thread ever uses it
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    for pragma in (
        "foreign_keys = ON",
        "recursive_triggers = ON",
        "synchronous = NORMAL",
        "cache_size = -16000",
        "secure_delete = ON",  # what is redacted is overwritten, not merely unlinked
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def open_database(
    path: Path,
    *,
    now: Callable[[], str] = utc_now,
    unguarded: Unguarded = "refuse",
    known: Sequence[Migration] = MIGRATIONS,
    on_upgrade: Listener | None = None,
) -> Database:
    """Open, creating folders and file, migrating an older one, asserting the guards of the log.

    ``unguarded`` says what to do where a guard is gone: refuse, open all the same (to look what was altered), or rearm.
    ``on_upgrade`` hears how far migrating has come, which takes a minute where there are many runs.
    Raises NotADatabase (something else is there), NewerDatabase (a later version wrote it), UnguardedLog, StoreError
    (the place can't be used).
    """
    _check_place(path)
    connection: sqlite3.Connection | None = None
    try:
        connection = connect(path)
        _check_ours(connection, path)
        _check_not_newer(connection, path, known)
        _use_write_ahead_log(connection)
        migrations.migrate(connection, known, on_upgrade)
        if unguarded == "rearm":
            connection.execute("BEGIN IMMEDIATE")
            with _ended(connection):
                guards.arm(connection)
        if unguarded != "open":
            guards.assert_armed(connection)
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error) or "malformed" in str(error):
            raise NotADatabase(
                f"{path}: is not a database of the workbench, or a damaged one ({error}). {_ELSEWHERE}"
            ) from error
        if "locked" in str(error):
            raise StoreError(
                f"{path}: is held by another program, which may be bringing it up to date ({error}). Try again later."
            ) from error
        raise StoreError(f"{path}: can't be opened ({error}). Check that the folder can be written to.") from error
    finally:
        if connection is not None:
            connection.close()
    return Database(path, now)


@contextlib.contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """What SQLite says about a file, as a StoreError: damaged, held by another, on a disk that fails or is full."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        for told, what, cure in _TROUBLE:
            if told in str(error):
                raise StoreError(f"{path}: {what} ({error}). {cure}") from error
        raise


RESTORE = "Keep a copy of the file, `masis export` what can be read, and import it into a new database."
_TROUBLE = (
    ("locked", "is held by another program", "Close that, or try again later."),
    ("full", "its disk has no room left", "Make some: removing needs a little, too."),
    ("readonly", "can't be written", "Make file and folder writable, or name another database."),
    ("I/O error", "its disk fails", RESTORE),
    ("no such table", "was moved, removed or replaced while it was in use", "Put it back, and start again."),
    ("malformed", "is damaged", RESTORE),
    ("not a database", "is damaged", RESTORE),
)
"""Words of SQLite's messages, what they mean and what to do."""


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch, once for the file; SQLite does not wait its turn for this when several open a new file at once."""
    until = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


_ELSEWHERE = "Name another file with --db or MASIS_DB."


def _check_place(path: Path) -> None:
    try:
        if path.is_dir():
            raise NotADatabase(f"{path}: is a folder, not a database. Name a file in it, such as {path / 'masis.db'}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file itself is only ever opened by SQLite. Closing any other handle on it would drop every lock that this
        # process holds (POSIX), and another process would then take the log of its writes away from under it.
        if path.exists() and not os.access(path, os.R_OK):
            raise StoreError(f"{path}: can't be used (Permission denied). {_ELSEWHERE}")
    except OSError as error:
        raise StoreError(f"{path}: can't be used ({error.strerror}). {_ELSEWHERE}") from error


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != migrations.APPLICATION_ID:
        raise NotADatabase(f"{path}: is an SQLite database of something else. {_ELSEWHERE}")


def _check_not_newer(connection: sqlite3.Connection, path: Path, known: Sequence[Migration]) -> None:
    done = migrations.applied(connection)
    unknown = [name for name in done if name not in migrations.names(known)]
    if unknown:
        row = connection.execute("SELECT value FROM store_info WHERE key = 'app_version'").fetchone()
        raise NewerDatabase(
            f"{path}: was written by a later version of the workbench ({row[0] if row else 'unknown'}, "
            f"schema {unknown[-1]}); this is {version.APP}, which knows up to {known[-1].__name__}. "
            "Update the workbench, or name another file with --db or MASIS_DB."
        )
