"""Opening a database, and lending out connections to it: is the file ours, older or newer, are its guards armed.

Many threads and processes share one file: WAL, a busy timeout, and the write lock taken before reading whatever a
write depends on (``BEGIN IMMEDIATE``), so that nobody writes on the strength of something that has changed.

A ``Database`` holds at most ``POOL_SIZE`` connections, lent for one read or one transaction. A connection for every
thread would not do: Streamlit makes a thread for every rerun of a page.
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
    StoreError,
)
from masis.schema.base import utc_now
from masis.store.core import guards, migrations
from masis.store.core.migrations import MIGRATIONS, Listener, Migration

BUSY_TIMEOUT_S = 15.0
"""How long a writer waits for another before it gives up; a batch of an import holds the lock for some 50 ms."""

POOL_SIZE = 8
"""Connections a process holds to one file at most: more readers than that at once gain nothing on one disk."""

Unguarded = Literal["refuse", "open", "rearm"]
Values = Sequence[Any] | Mapping[str, Any]


class Connection(sqlite3.Connection):
    """A connection with what the pool has to know of it."""

    durable = False
    """Whether a commit waits for the disk (``synchronous = FULL``)."""

    file: tuple[int, int] | None = None
    """Device and inode of the file it has open."""

    log_key: bytes | None = None
    """The key that signs entries of the logs; None where nobody gave one."""


class _Lease:
    """The connection a thread has borrowed, and the transaction in which it uses it."""

    def __init__(self, connection: Connection, *, writes: bool, durable: bool) -> None:
        self.connection, self.writes, self.durable = connection, writes, durable
        self.savepoints = 0
        self.lost = False
        self.once_committed: list[Callable[[], object]] = []


class _Pool:
    """At most ``size`` connections, each lent to one thread at a time, the one used last first."""

    def __init__(self, path: Path, size: int, log_key: bytes | None = None) -> None:
        self.path, self.size, self.log_key, self.era = path, size, log_key, 0
        self._free = threading.Condition()
        self._idle: list[Connection] = []
        self._all: dict[Connection, int] = {}
        self._opening = 0
        _POOLS.add(self)

    def __len__(self) -> int:
        return len(self._all)

    def take(self) -> Connection:
        """Borrow a connection, waiting for one where all are lent. Raises DatabaseBusy, and sqlite3's errors."""
        with self._free:
            if not self._free.wait_for(self._can_take, BUSY_TIMEOUT_S):
                raise DatabaseBusy(
                    f"{self.path}: all {self.size} connections have been in use for {BUSY_TIMEOUT_S:.0f} s. Try again."
                )
            while self._idle:
                connection = self._idle.pop()
                if connection.file == _file(self.path):
                    return connection
                self._discard(connection)  # the file was moved or replaced: what it shows is of the old one
            self._opening += 1
            era = self.era
        try:
            connection = connect(self.path, create=False)
            connection.log_key = self.log_key
        except BaseException:
            with self._free:
                self._opening -= 1
                self._free.notify()
            raise
        with self._free:
            self._opening -= 1
            self._all[connection] = era
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take a connection back; it is closed where the pool was closed meanwhile."""
        with self._free:
            if self._all.get(connection) == self.era:
                self._idle.append(connection)
            else:
                self._discard(connection)
            self._free.notify()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back. A later use opens new ones."""
        with self._free:
            self.era += 1
            while self._idle:
                self._discard(self._idle.pop())

    def forget(self) -> None:
        """Forget all connections in a forked child without closing them: closing one there drops the parent's locks."""
        _INHERITED.extend(self._all)
        self.__init__(self.path, self.size, self.log_key)  # type: ignore[misc]

    def _can_take(self) -> bool:
        return bool(self._idle) or len(self._all) + self._opening < self.size

    def _discard(self, connection: Connection) -> None:
        self._all.pop(connection, None)
        with contextlib.suppress(sqlite3.Error):
            connection.close()


_POOLS: weakref.WeakSet[_Pool] = weakref.WeakSet()
_INHERITED: list[Connection] = []
"""Connections of the process this one was forked from: kept, since Python closes what nothing refers to."""


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.forget()


def _at_exit() -> None:
    for pool in list(_POOLS):
        pool.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class Database:
    """The file and its pool of connections: share the object freely, between threads and across a fork."""

    def __init__(
        self,
        path: Path,
        now: Callable[[], str] = utc_now,
        *,
        size: int = POOL_SIZE,
        log_key: bytes | None = None,
    ) -> None:
        self.path, self.now = path, now
        self._pool = _Pool(path, size, log_key)
        self._local = threading.local()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._pool)

    def execute(self, sql: str, values: Values = ()) -> list[sqlite3.Row]:
        """Run one statement, inside the caller's transaction if there is one, and return its rows."""
        if (lease := self._lease) is not None:
            return lease.connection.execute(sql, values).fetchall()
        with explained_errors(self.path):
            connection = self._pool.take()
            try:
                return connection.execute(sql, values).fetchall()
            finally:
                self._pool.give_back(connection)

    def row(self, sql: str, values: Values = ()) -> sqlite3.Row | None:
        """Run one statement and return its first row; None where there is none."""
        rows = self.execute(sql, values)
        return rows[0] if rows else None

    def value(self, sql: str, values: Values = ()) -> Any:
        """Run one statement that gives a row, and return that row's first column."""
        return self.execute(sql, values)[0][0]

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """Hold the write lock from the first line on; all that is written is stored, or nothing.

        Inside another transaction it is a savepoint: if it fails, and the caller goes on, only its own part is undone.
        ``durable``: what is committed survives a power cut (``synchronous = FULL``), as every writer of a log needs;
        without it a power cut may undo the last transactions, never a part of one.

        Raises:
            DatabaseBusy, DatabaseFull and the other errors that ``explained_errors`` lists.
            RuntimeError: inside ``reading()``, whose state may be old by now, or durable inside one that is not.

        """
        lease = self._lease
        if lease is None:
            with self._borrowed("BEGIN IMMEDIATE", writes=True, durable=durable) as connection:
                yield connection
            return
        if not lease.writes:
            raise RuntimeError("a transaction that writes can't begin while reading(): begin it first, then read.")
        if durable and not lease.durable:
            raise RuntimeError("what must be durable can't be written inside a transaction that is not.")
        with _savepoint(lease):
            yield lease.connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Several reads of one and the same state, whatever others write meanwhile."""
        if (lease := self._lease) is not None:
            yield lease.connection
            return
        with self._borrowed("BEGIN", writes=False, durable=False) as connection:
            yield connection

    def once_committed(self, action: Callable[[], object]) -> None:
        """Call something when the transaction under way is committed, at once where there is none."""
        if (lease := self._lease) is None:
            action()
        else:
            lease.once_committed.append(action)

    def close(self) -> None:
        """Close every connection. A later use opens new ones."""
        self._pool.close()

    @property
    def _lease(self) -> _Lease | None:
        lease: _Lease | None = getattr(self._local, "lease", None)
        return lease

    @contextlib.contextmanager
    def _borrowed(self, begin: str, *, writes: bool, durable: bool) -> Iterator[Connection]:
        """Lend a connection to this thread for one transaction."""
        with explained_errors(self.path):
            connection = self._pool.take()
            lease = _Lease(connection, writes=writes, durable=durable)
            try:
                if writes and connection.durable != durable:  # SQLite can't change it inside a transaction
                    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                    connection.durable = durable
                connection.execute(begin)
                self._local.lease = lease
                with _ended(connection):
                    yield connection
                    if lease.lost:
                        raise StoreError(f"{self.path}: the transaction was broken off; nothing of it is stored.")
            finally:
                self._local.lease = None
                self._pool.give_back(connection)
        for action in lease.once_committed:
            action()


@contextlib.contextmanager
def _savepoint(lease: _Lease) -> Iterator[None]:
    """A part of a transaction that can be undone alone."""
    connection, pending = lease.connection, len(lease.once_committed)
    lease.savepoints += 1
    name = f"part_{lease.savepoints}"
    connection.execute(f"SAVEPOINT {name}")
    try:
        yield
    except BaseException:
        del lease.once_committed[pending:]
        if connection.in_transaction:
            connection.execute(f"ROLLBACK TO {name}")
            connection.execute(f"RELEASE {name}")
        else:
            # A full or failing disk has SQLite undo the whole transaction. A caller that goes on all the same would
            # from now on commit statement by statement: what it writes goes where it is undone at the end.
            lease.lost = True
            connection.execute("BEGIN")
        raise
    finally:
        lease.savepoints -= 1
    connection.execute(f"RELEASE {name}")


@contextlib.contextmanager
def _ended(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
        if connection.in_transaction:
            connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def connect(path: Path, *, create: bool = True) -> Connection:
    """Open a connection as every part of the store expects it. Rows answer to column names."""
    address = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        address,
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,  # a pool lends it to one thread after another
        factory=Connection,
    )
    connection.row_factory = sqlite3.Row
    for pragma in (
        "foreign_keys = ON",
        "recursive_triggers = ON",
        "synchronous = NORMAL",
        "cache_size = -16000",
        "secure_delete = ON",  # what is redacted is overwritten, not merely unlinked
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.file = _file(path)
    return connection


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_database(
    path: Path,
    *,
    now: Callable[[], str] = utc_now,
    unguarded: Unguarded = "refuse",
    known: Sequence[Migration] = MIGRATIONS,
    on_upgrade: Listener | None = None,
    log_key: bytes | None = None,
) -> Database:
    """Open, creating folders and file, migrating an older one, asserting the guards of the log.

    ``unguarded`` says what to do where a guard is gone: refuse, open all the same (to look what was altered), or rearm.
    ``on_upgrade`` hears how far migrating has come, which takes a minute where there are many runs. With ``log_key``
    entries of the logs are signed as they are appended.
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
            with _ended(connection):
                connection.execute("BEGIN IMMEDIATE")
                guards.arm(connection)
        if unguarded != "open":
            guards.assert_armed(connection)
    except sqlite3.DatabaseError as error:
        raise _not_opened(path, error) from error
    finally:
        if connection is not None:
            connection.close()
    return Database(path, now, log_key=log_key)


class _Trouble(NamedTuple):
    """What an error of SQLite means for a person: the error to raise, what happened, what to do."""

    raises: type[StoreError]
    what: str
    cure: str


RESTORE = (
    "Keep a copy of the file; `masis restore BACKUP --replace` puts a backup in its place. Without one, `masis export` "
    "what can be read and import it into a new database."
)
_ELSEWHERE = "Name another file with --db or MASIS_DB."
_BUSY = _Trouble(DatabaseBusy, "is held by another program", "If one holds it open, close that, or try again later.")
_DAMAGED = _Trouble(DatabaseDamaged, "is damaged", RESTORE)
_READONLY = _Trouble(
    DatabaseReadOnly, "can't be written", "Make file and folder writable, or name another file with --db or MASIS_DB."
)
_GONE = _Trouble(DatabaseMissing, "can't be opened: it was moved, removed or replaced", "Put it back, and start again.")
_TROUBLE = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
    "SQLITE_FULL": _Trouble(
        DatabaseFull,
        "its disk has no room left",
        "Free some space there and do it again; what was stored before is kept.",
    ),
    "SQLITE_READONLY": _READONLY,
    "SQLITE_PERM": _READONLY,
    "SQLITE_CANTOPEN": _GONE,
    "SQLITE_IOERR": _Trouble(DiskFailed, "its disk fails", RESTORE),
}
"""By the primary name of SQLite's error; ``SQLITE_IOERR_WRITE`` and the like are more exact names of the same."""


def _trouble(error: sqlite3.Error) -> _Trouble | None:
    """What is wrong with the file; None where the statement is, not the file."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if name == "SQLITE_ERROR" and "no such table" in str(error):  # another file, without our tables, is in its place
        return _GONE
    return _TROUBLE.get("_".join(name.split("_")[:2]))


@contextlib.contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Raise what SQLite says about a file as an error that names the cure; let errors of a statement pass.

    Raises:
        DatabaseBusy: another program holds the lock for too long.
        DatabaseDamaged: the file is damaged, or no database any more.
        DatabaseFull: the disk has no room left.
        DatabaseReadOnly: file or folder can't be written.
        DatabaseMissing: the file was moved, removed or replaced.
        DiskFailed: the disk could not be read or written.

    """
    try:
        yield
    except sqlite3.Error as error:
        if (trouble := _trouble(error)) is None:
            raise
        raise trouble.raises(f"{path}: {trouble.what} ({error}). {trouble.cure}") from error


def _not_opened(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    trouble = _trouble(error)
    if trouble is _DAMAGED:
        return NotADatabase(f"{path}: is not a database of the workbench, or a damaged one ({error}). {_ELSEWHERE}")
    if trouble is _BUSY:
        return DatabaseBusy(
            f"{path}: is held by another program, which may be bringing it up to date ({error}). Try again later."
        )
    if trouble is not None and trouble is not _GONE:
        return trouble.raises(f"{path}: {trouble.what} ({error}). {trouble.cure}")
    return StoreError(f"{path}: can't be opened ({error}). Check that the folder can be written to.")


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
