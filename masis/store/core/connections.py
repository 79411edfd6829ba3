"""Opens databases and lends connections to them, after checking the application id, schema version
and triggers.

Many threads and processes share one file: WAL, a busy timeout, and the write lock taken before
reading whatever a write depends on (``BEGIN IMMEDIATE``), so that nobody writes on the strength of
something that has changed.

A ``Database`` holds at most ``POOL_SIZE`` connections, lent for one read or one transaction. It
doesn't keep one connection per thread, because Streamlit starts a thread for every rerun of a page.
Such a thread would open its own connection first: a thread with one small query took 0.7 to 1.3 ms
instead of 0.07 ms (2,000 cases, two cores). It would also start without the page cache and the rows
of ``cached_rows``, which belong to a connection.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis import version
from masis.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseFull,
    DatabaseMissing,
    DatabaseReadOnly,
    DiskFailed,
    NewerDatabase,
    NotADatabase,
    OtherSchema,
    StoreError,
)
from masis.schema.base import utc_now
from masis.store.core import guards, migrations
from masis.store.core.migrations import MIGRATIONS, Migration

BUSY_TIMEOUT_S = 15.0
"""How many seconds a writer waits for another one. A batch of an import holds the lock for about 50
ms.
"""

POOL_SIZE = 8
"""The maximum number of connections per process to one file. More concurrent readers aren't faster
on one disk.
"""

MOST_CACHED = 200
"""How many statements a connection caches rows for until something is written, such as counts by
filter.
"""

Unguarded = Literal["refuse", "open", "rearm"]
Values = Sequence[Any] | Mapping[str, Any]


class Connection(sqlite3.Connection):
    """A connection, lent to one thread at a time, with the state that the pool and its transaction
    need.
    """

    file: tuple[int, int] | None = None  # device and inode of the open file
    log_key: bytes | None = None  # the key that signs log entries, if any
    generation = 0  # how often the database had been closed when the connection was opened
    durable = False  # whether a commit waits for the disk (synchronous = FULL)
    writes = False  # whether the transaction holds the write lock
    lost = False  # whether SQLite has rolled back the transaction itself
    on_commit: list[Callable[[], object]]  # actions to call after the commit

    # the change number and the rows cached by Database.cached_rows
    cached: tuple[tuple[int, int], dict[tuple[Any, ...], list[Any]]] = ((-1, -1), {})


_DATABASES: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[set[Connection]] = []
"""Connections of the process this one was forked from, referenced so that Python doesn't close
them.
"""


def _after_fork() -> None:
    """Give the child pools of its own.

    SQLite forbids using a connection across a fork (sqlite.org/howtocorrupt.html, section 2.6), and
    closing one in the child would release the locks of the parent.
    """
    for database in list(_DATABASES):
        _INHERITED.append(database._opened)
        database._reset_pool()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    for database in list(_DATABASES):
        database.close()


class Database:
    """A database file and its pool of connections. One object can be shared between threads and
    across a fork.
    """

    def __init__(
        self,
        path: Path,
        now: Callable[[], str] = utc_now,
        *,
        log_key: bytes | None = None,
    ) -> None:
        self.path, self.now, self._log_key = path, now, log_key
        self._local = threading.local()
        self._generation = 0
        self._reset_pool()
        _DATABASES.add(self)

    def _reset_pool(self) -> None:
        self._opened: set[Connection] = set()
        self._idle: list[Connection] = []
        self._free = threading.Semaphore(POOL_SIZE)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._opened)

    def execute(self, sql: str, values: Values = ()) -> list[sqlite3.Row]:
        """Run one statement, inside the caller's transaction if there is one, and
        return its rows.
        """
        if (connection := self._own_connection) is not None:
            return connection.execute(sql, values).fetchall()
        with self._lend_connection() as connection:
            return connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> sqlite3.Row | None:
        """Run one statement and return its first row, or None if there is none."""
        rows = self.execute(sql, values)
        return rows[0] if rows else None

    def value(self, sql: str, values: Values = ()) -> Any:
        """Run one statement that returns a row, and return the first column of that row."""
        return self.execute(sql, values)[0][0]

    def walk(self, sql: str, *values: Any, at_once: int = 100) -> Iterator[sqlite3.Row]:
        """Yield the rows of a statement in order of ``seq``, loading ``at_once`` rows at a time.

        The statement must end with a lower bound on ``seq``, to which ``ORDER BY`` and ``LIMIT``
        are added: ``seq > ? ORDER BY seq``. No lock is held between batches, so rows that others
        append in the meantime are included.
        """
        # A bound on seq instead of OFFSET, which would read and skip all earlier rows each time.
        seq = 0
        while rows := self.execute(f"{sql} LIMIT {at_once}", [*values, seq]):
            yield from rows
            seq = rows[-1]["seq"]

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """Hold the write lock from the start, and store either all writes or none.

        Inside another transaction this is a savepoint, so that only its own part is undone if it
        fails and the caller continues.

        Args:
            durable: Whether a commit survives a power cut (``synchronous = FULL``). Logs need this.
                Without it a power cut can undo the last transactions, but never part of one.

        Raises:
            RuntimeError: Called inside ``reading()``, whose snapshot may be outdated (SQLite would
                answer SQLITE_BUSY_SNAPSHOT), or ``durable`` inside a transaction that isn't.

        """
        connection = self._own_connection
        if connection is None:
            with self._lend_transaction(writes=True, durable=durable) as connection:
                yield connection
            return
        if not connection.writes:
            raise RuntimeError(
                "a transaction that writes can't begin while reading(): begin it first, then read."
            )
        if durable and not connection.durable:
            raise RuntimeError(
                "what must be durable can't be written inside a transaction that is not."
            )
        with _savepoint(connection):
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Run several reads on the same snapshot, regardless of concurrent writes."""
        if (connection := self._own_connection) is not None:
            yield connection
            return
        with self._lend_transaction(writes=False) as connection:
            yield connection

    def cached_rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement, cached until anyone writes to the database.

        SQLite counts the commits of other connections (``data_version``), and a connection counts
        the rows it changed itself (``total_changes``). A write transaction bypasses the cache,
        because its uncommitted rows must not be shared.
        """
        with self.reading() as connection:
            if connection.writes:
                return connection.execute(sql, values).fetchall()
            change = (
                connection.execute("PRAGMA data_version").fetchone()[0],
                connection.total_changes,
            )
            # Emptied as a whole when full, which is simpler than tracking the oldest rows.
            if connection.cached[0] != change or len(connection.cached[1]) >= MOST_CACHED:
                connection.cached = (change, {})
            rows_by_query, query = connection.cached[1], (sql, *values)
            if query not in rows_by_query:
                rows_by_query[query] = connection.execute(sql, values).fetchall()
            return rows_by_query[query]

    def on_commit(self, action: Callable[[], object]) -> None:
        """Call ``action`` when this thread's transaction commits, or now if there is none."""
        if (connection := self._own_connection) is None:
            action()
        else:
            connection.on_commit.append(action)

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they are released.

        Later use opens new ones.
        """
        self._generation += 1
        self._discard_idle()

    def _discard_idle(self) -> None:
        # pop() is atomic and other threads use the list too, so don't test its length first
        with contextlib.suppress(IndexError):
            while True:
                self._discard(self._idle.pop())

    def _discard(self, connection: Connection) -> None:
        self._opened.discard(connection)
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def _borrow(self) -> Connection:
        """Return the idle connection that was used last, or a new one; wait while all are lent."""
        if not self._free.acquire(timeout=BUSY_TIMEOUT_S):
            raise DatabaseBusy(
                f"{self.path}: all {POOL_SIZE} connections have been in use for"
                f" {BUSY_TIMEOUT_S:.0f} s. Try again."
            )
        try:
            # Read before connecting: if close() runs in the meantime, the connection counts as old
            # and is closed when it's released.
            generation = self._generation
            file = _file_identity(self.path)
            with contextlib.suppress(IndexError):
                if (idle := self._idle.pop()).file == file:
                    return idle
                # The file was moved or replaced, so the idle connections read the old one.
                self._discard(idle)
                self._discard_idle()
            connection = connect(self.path, create=False)
        except BaseException:
            self._free.release()
            raise
        connection.log_key, connection.generation = self._log_key, generation
        self._opened.add(connection)
        return connection

    def _release(self, connection: Connection) -> None:
        """Return a connection to the pool, or close it if the database has been closed."""
        if connection not in self._opened:
            return  # this process was forked while the connection was lent: it's the parent's
        self._idle.append(connection)
        self._free.release()
        if connection.generation != self._generation:
            self._discard_idle()

    @property
    def _own_connection(self) -> Connection | None:
        """The connection of the transaction that this thread is in."""
        connection: Connection | None = getattr(self._local, "connection", None)
        return connection

    @contextlib.contextmanager
    def _lend_connection(self) -> Iterator[Connection]:
        with explained_errors(self.path):
            connection = self._borrow()
            try:
                yield connection
            finally:
                self._release(connection)

    @contextlib.contextmanager
    def _lend_transaction(self, *, writes: bool, durable: bool = False) -> Iterator[Connection]:
        """Lend a connection to this thread for one transaction, which is committed or rolled back
        at the end.
        """
        actions: list[Callable[[], object]] = []
        with self._lend_connection() as connection:
            # SQLite can't change it inside a transaction
            if writes and connection.durable != durable:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.durable = durable
            connection.writes, connection.lost, connection.on_commit = writes, False, actions
            # A deferred transaction that turns to writing fails at once with SQLITE_BUSY if another
            # one has written in the meantime; an immediate one waits for the lock.
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            self._local.connection = connection
            try:
                with connection:
                    yield connection
                    if connection.lost:
                        raise StoreError(
                            f"{self.path}: the transaction was aborted; nothing of it was stored."
                        )
            finally:
                self._local.connection = None
        # After the connection is released, so that an action may use the database.
        for action in actions:
            action()


class StorePart:
    """A part of a store: the reads and writes of one subject."""

    def __init__(self, database: Database) -> None:
        self._database = database


@contextlib.contextmanager
def _savepoint(connection: Connection) -> Iterator[None]:
    """Run a part of a transaction that can be rolled back alone. SQLite applies a repeated name to
    the innermost savepoint.
    """
    pending = len(connection.on_commit)
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:  # also KeyboardInterrupt, or the savepoint would stay open
        del connection.on_commit[pending:]
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        else:
            # On a full or failing disk SQLite rolls back the whole transaction and returns to
            # autocommit. A caller that continued would then commit each statement on its own, so
            # start a new transaction, which is rolled back at the end.
            connection.lost = True
            connection.execute("BEGIN")
        raise
    connection.execute("RELEASE part")


def connect(path: Path, *, create: bool = True) -> Connection:
    """Open a connection with the settings that the store expects. Rows are accessible by column
    name.
    """
    address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        address,
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,  # Python begins no transactions by itself, so ours are explicit
        check_same_thread=False,  # the pool lends it to one thread at a time
        factory=Connection,
    )
    connection.row_factory = sqlite3.Row
    for pragma in (
        "foreign_keys = ON",
        # Without it, REPLACE deletes rows without firing the triggers that guard the logs.
        "recursive_triggers = ON",
        "synchronous = NORMAL",
        "cache_size = -16000",  # in KiB, since it is negative
        "secure_delete = ON",  # overwrite redacted content instead of only unlinking its pages
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.file = _file_identity(path)
    return connection


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_database(
    path: Path,
    *,
    now: Callable[[], str] = utc_now,
    unguarded: Unguarded = "refuse",
    known: Sequence[Migration] = MIGRATIONS,
    log_key: bytes | None = None,
) -> Database:
    """Open a database: create folders and file, migrate an older one, and check the triggers of the
    logs.

    Args:
        path: The database file.
        now: Returns the current time.
        unguarded: What to do if a trigger is missing: refuse, open (to inspect the damage) or
            rearm.
        known: The migrations of this version.
        log_key: The key that signs new log entries.

    Raises:
        NotADatabase: The file is something else.
        NewerDatabase: A later version wrote it.
        OtherSchema: A development version with another schema made it.
        UnguardedLog: A trigger is missing.
        StoreError: The path can't be used.

    """
    _check_place(path)
    try:
        with contextlib.closing(connect(path)) as connection:
            assert_readable(connection, path, known)
            _use_write_ahead_log(connection)
            migrations.migrate(connection, known)
            if unguarded == "rearm":
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    guards.arm(connection)
            if unguarded != "open":
                guards.assert_armed(connection)
    except sqlite3.DatabaseError as error:
        raise _not_opened(path, error) from error
    return Database(path, now, log_key=log_key)


class _FailureKind(NamedTuple):
    """The meaning of an SQLite error for users: the exception to raise, what happened, and what to
    do.
    """

    raises: type[StoreError]
    what: str
    hint: str

    def error(self, path: Path, error: sqlite3.Error) -> StoreError:
        return self.raises(f"{path}: {self.what} ({error}). {self.hint}")


RESTORE = (
    "Keep a copy of the file; `masis db restore BACKUP --replace` puts a backup in its place."
    " Without one, `masis export --format cases` writes the cases that can be read, for a new"
    " database."
)
_ELSEWHERE = "Name another file with --db or MASIS_DB."
_BUSY = _FailureKind(
    DatabaseBusy,
    "is held by another program",
    "If one holds it open, close that, or try again later.",
)
_DAMAGED = _FailureKind(DatabaseDamaged, "is damaged", RESTORE)
_READONLY = _FailureKind(
    DatabaseReadOnly,
    "can't be written",
    "Make file and folder writable, or name another file with --db or MASIS_DB.",
)
_GONE = _FailureKind(
    DatabaseMissing,
    "can't be opened: it was moved, removed or replaced",
    "Put it back, and start again.",
)
_FAILURES = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
    "SQLITE_FULL": _FailureKind(
        DatabaseFull,
        "its disk has no room left",
        "Free some space there and do it again; what was stored before is kept.",
    ),
    "SQLITE_READONLY": _READONLY,
    "SQLITE_PERM": _READONLY,
    "SQLITE_CANTOPEN": _GONE,
    "SQLITE_IOERR": _FailureKind(DiskFailed, "its disk fails", RESTORE),
}
"""The failures by SQLite's primary error name; extended names such as ``SQLITE_IOERR_WRITE`` share
a primary name.
"""
_LIMITED = _FailureKind(
    DatabaseFull,
    "can't grow: this process may write no larger file",
    "Raise the limit on the size of files (ulimit -f, LimitFSIZE) and start again; what was stored"
    " before is kept.",
)


def _size_is_limited() -> bool:
    try:
        import resource
    except ImportError:  # not on Windows
        return False
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def _failure_kind(error: sqlite3.Error) -> _FailureKind | None:
    """Return what is wrong with the file, or None if the error is about the statement."""
    name = getattr(error, "sqlite_errorname", None) or ""
    # another file without our tables has replaced it
    if name == "SQLITE_ERROR" and "no such table" in str(error):
        return _GONE
    if name == "SQLITE_IOERR_WRITE" and _size_is_limited():
        return _LIMITED
    return _FAILURES.get("_".join(name.split("_")[:2]))


@contextlib.contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors about the file into exceptions with a hint; errors about a
    statement pass through.

    These are DatabaseBusy, DatabaseDamaged, DatabaseFull, DatabaseReadOnly, DatabaseMissing and
    DiskFailed.
    """
    try:
        yield
    except sqlite3.Error as error:
        if (failure := _failure_kind(error)) is None:
            raise
        raise failure.error(path, error) from error


def _not_opened(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    failure = _failure_kind(error)
    if failure is _DAMAGED:
        return NotADatabase(
            f"{path}: is not a database of the workbench, or a damaged one ({error}). {_ELSEWHERE}"
        )
    if failure is _BUSY:
        failure = _FailureKind(
            DatabaseBusy,
            "is held by another program, which may be bringing it up to date",
            "Try again later.",
        )
    if failure is not None and failure is not _GONE:
        return failure.error(path, error)
    return StoreError(
        f"{path}: can't be opened ({error}). Check that the folder can be written to."
    )


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL once. SQLite doesn't apply the busy timeout to this switch, so retry
    it here.
    """
    until = time.monotonic() + BUSY_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def _check_place(path: Path) -> None:
    try:
        if path.is_dir():
            raise NotADatabase(
                f"{path}: is a folder, not a database. Name a file in it, such as"
                f" {path / 'masis.db'}."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        # Only SQLite may open the file. With POSIX locks, closing any other handle on it releases
        # all locks of this process (sqlite.org/howtocorrupt.html, section 2.2), and another process
        # could then delete the write-ahead log that is in use.
        if path.exists() and not os.access(path, os.R_OK):
            raise StoreError(f"{path}: can't be used (Permission denied). {_ELSEWHERE}")
    except OSError as error:
        raise StoreError(f"{path}: can't be used ({error.strerror}). {_ELSEWHERE}") from error


def assert_readable(
    connection: sqlite3.Connection, path: Path, known: Sequence[Migration] = MIGRATIONS
) -> None:
    """Check, without changing it, that a file is empty or a workbench database that this version
    can read.

    Raises NotADatabase (another program made it), OtherSchema (a development version made it, with
    another ``schema.sql``) and NewerDatabase (a later version has changed its schema).
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    if application != migrations.APPLICATION_ID:
        raise NotADatabase(f"{path}: is an SQLite database of something else. {_ELSEWHERE}")
    row = connection.execute("SELECT value FROM store_info WHERE key = 'app_version'").fetchone()
    writer = row[0] if row else "unknown"
    if not migrations.made_with_this_schema(connection):
        raise OtherSchema(
            f"{path}: was made by a development version of the workbench ({writer}) whose schema"
            " this version can't read: with that version, run `masis export --format cases` and"
            " import the file here, and keep what was decided with `--format decided` (the"
            " decision log does not carry over), or start a new file with --db or"
            " MASIS_DB."
        )
    unknown = [
        name
        for name in migrations.applied_migrations(connection)
        if name not in migrations.migration_names(known)
    ]
    if unknown:
        raise NewerDatabase(
            f"{path}: was written by a later version of the workbench ({writer}, schema"
            f" {unknown[-1]}); this is {version.APP}, which knows up to {known[-1].__name__}."
            " Update the workbench, or name another file with --db or MASIS_DB."
        )
