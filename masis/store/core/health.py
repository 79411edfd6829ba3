"""The health of a database: what `masis health` shows."""

from __future__ import annotations

import sqlite3
import zlib
from typing import NamedTuple

from masis.store.core import connections, guards, migrations
from masis.store.core.connections import Database
from masis.store.records import StoreCheck
from masis.store.reviews import states
from masis.store.reviews.decisions import Decisions
from masis.store.screening import corpus_search
from masis.store.screening.log import ScreeningLog

WRITE_WITHIN_MS = 2_000
"""How long the trial of a write waits for other writers, who show by being there that it can be written."""


class Tried(NamedTuple):
    """What came of trying to write."""

    ok: bool
    message: str


def try_writing(database: Database) -> Tried:
    """Write the time into the database and commit it: a disk that is full refuses no earlier."""
    connection = connections.connect(database.path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {WRITE_WITHIN_MS}")
        connection.execute("INSERT OR REPLACE INTO store_info VALUES ('tried_at', ?)", [database.now()])
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return Tried(True, "another program writes to it just now")
        return Tried(False, f"can't be written ({error})")
    finally:
        connection.close()
    return Tried(True, "a write was made")


_COUNTED = {
    **{name: name for name in ("cases", "runs", "screenings", "decision_log", "screening_log", "corpora")},
    "iterations": "job_parts WHERE kind = 'iteration'",
    "events": "job_parts WHERE kind = 'event'",
}


def check(database: Database) -> StoreCheck:
    """Read the whole file once and say what is wrong with it; changes nothing."""
    with database.reading() as connection:
        problems = [
            *_file_problems(connection),
            *states.problems(connection),
            *_keeping_problems(connection),
            *corpus_search.problems(connection),
        ]
        version = connection.execute("SELECT value FROM store_info WHERE key = 'app_version'").fetchone()
        return StoreCheck(
            path=str(database.path),
            bytes=database.path.stat().st_size,
            app_version=version[0] if version else "",
            schema_version=migrations.applied(connection)[-1],
            sqlite_version=sqlite3.sqlite_version,
            counts={name: _count(connection, rows) for name, rows in _COUNTED.items()},
            log=Decisions(database).verify(),
            screening_log=ScreeningLog(database).verify(),
            problems=tuple(problems),
        )


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (names of ours)


def _file_problems(connection: sqlite3.Connection) -> list[str]:
    damaged = [row[0] for row in connection.execute("PRAGMA quick_check(10)") if row[0] != "ok"]
    dangling = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
    return [
        *(f"the file is damaged: {text}" for text in damaged),
        *(f"row {row[1]} of {row[0]} refers to a row of {row[2]} that is gone" for row in dangling),
    ]


def _keeping_problems(connection: sqlite3.Connection) -> list[str]:
    """Logs that could be altered, runs that were never logged, and content that a purge says it removed."""
    unlogged = _count(
        connection,
        "jobs NOT INDEXED WHERE kind = 'run' AND state != 'running' "
        "AND (id, starts) NOT IN (SELECT run_id, start FROM executions)",
    )
    left = _count(connection, "job_parts JOIN jobs ON jobs.seq = job_seq WHERE removed_by IS NOT NULL")
    gone = [name for log in ("executions", "purges", "purged") for name in guards.missing(connection, log)]
    damaged = [f"run {name!r}" for name in _damaged(connection)]
    return [
        *([f"{', '.join(damaged[:10])} can't be read ({len(damaged)} in all)"] if damaged else []),
        *([f"{unlogged} runs are not in the log of executions"] if unlogged else []),
        *([f"{left} parts are left of runs and screenings that retention removed"] if left else []),
        *([f"logs have lost their guards: {', '.join(gone)}"] if gone else []),
    ]


def _damaged(connection: sqlite3.Connection) -> list[str]:
    """The ids of runs of which something that is stored can't be unpacked."""
    found: dict[str, None] = {}
    for name, packed in connection.execute(
        """SELECT id, payload FROM runs WHERE payload IS NOT NULL
           UNION ALL SELECT id, job_parts.payload FROM job_parts JOIN runs ON runs.seq = job_seq
           WHERE kind != 'event'"""
    ):
        try:
            zlib.decompress(packed)
        except (zlib.error, TypeError):
            found[name] = None
    return list(found)
