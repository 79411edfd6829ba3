"""The health of a database, as ``masis health`` shows it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator

from masis.extensions import load_all
from masis.store.core import connections, guards, migrations
from masis.store.core.connections import Database
from masis.store.records import StoreCheck
from masis.store.reviews import states
from masis.store.reviews.decisions import Decisions
from masis.store.reviews.preferences import PreferenceLog
from masis.store.screening_log import ScreeningLog

WRITE_WITHIN_MS = 2_000
"""How long the test write waits for other writers. If one holds the lock, the database is evidently
writable.
"""


def try_writing(database: Database) -> tuple[bool, str]:
    """Write the time into the database, and return whether that worked and a message.

    The write is committed, because a full disk reports an error only then.
    """
    connection = connections.connect(database.path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {WRITE_WITHIN_MS}")
        connection.execute(
            "INSERT OR REPLACE INTO store_info VALUES ('tried_at', ?)", [database.now()]
        )
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return True, "another program writes to it just now"
        return False, f"can't be written ({error})"
    finally:
        connection.close()
    return True, "a write was made"


_COUNTED = {
    **{
        name: name
        for name in (
            *("cases", "runs", "screenings", "decision_log", "screening_log", "preference_log"),
            "corpora",
        )
    },
    "iterations": "job_parts WHERE kind = 'iteration'",
    "events": "job_parts WHERE kind = 'event'",
}


def check(database: Database) -> StoreCheck:
    """Read the whole file once and return its problems, without changing anything."""
    with database.reading() as connection:
        version = connection.execute(
            "SELECT value FROM store_info WHERE key = 'app_version'"
        ).fetchone()
        return StoreCheck(
            path=str(database.path),
            bytes=database.path.stat().st_size,
            app_version=version[0] if version else "",
            schema_version=migrations.applied_migrations(connection)[-1],
            sqlite_version=sqlite3.sqlite_version,
            counts={name: _count_table(connection, rows) for name, rows in _COUNTED.items()},
            log=Decisions(database).verify(),
            screening_log=ScreeningLog(database).verify(),
            preference_log=PreferenceLog(database).verify(),
            problems=tuple(_database_problems(connection)),
        )


def _count_table(connection: sqlite3.Connection, table: str) -> int:
    sql = f"SELECT count(*) FROM {table}"  # noqa: S608
    return int(connection.execute(sql).fetchone()[0])


def _database_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the problems of the file, the derived states, the logs, content left over by a purge,
    and what extensions store.
    """
    damaged = (row[0] for row in connection.execute("PRAGMA quick_check(10)"))
    yield from (f"the file is damaged: {text}" for text in damaged if text != "ok")
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check").fetchmany(10):
        yield f"row {row} of {table} refers to a row of {parent} that doesn't exist"
    yield from states.problems(connection)
    if unread := [f"run {name!r}" for name in _damaged_runs(connection)]:
        yield f"{', '.join(unread[:10])} can't be read ({len(unread)} in all)"
    ended_unlogged = """jobs NOT INDEXED WHERE kind = 'run' AND state != 'running'
        AND (id, starts) NOT IN (SELECT run_id, start FROM executions)"""
    if unlogged := _count_table(connection, ended_unlogged):
        yield f"{unlogged} runs are not in the log of executions"
    if left := _count_table(
        connection, "job_parts JOIN jobs ON jobs.seq = job_seq WHERE removed_by IS NOT NULL"
    ):
        yield f"{left} parts are left of runs and screenings that retention removed"
    if gone := [
        name
        for log in ("executions", "purges", "purged")
        for name in guards.missing(connection, log)
    ]:
        yield f"logs have lost their triggers: {', '.join(gone)}"
    for check_more in load_all("database_checks"):
        yield from check_more(connection)


def _damaged_runs(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of runs with content that can't be decompressed."""
    found: dict[str, None] = {}
    for name, packed in connection.execute("""SELECT id, payload FROM runs WHERE payload IS NOT NULL
           UNION ALL SELECT id, job_parts.payload FROM job_parts JOIN runs ON runs.seq = job_seq
           WHERE kind != 'event'"""):
        try:
            zlib.decompress(packed)
        except (zlib.error, TypeError):
            found[name] = None
    return list(found)
