"""The health of a database: what `masis health` shows."""

from __future__ import annotations

import sqlite3

from masis.store import corpus_search, migrations, queue, states
from masis.store.decisions import Decisions
from masis.store.opening import Database
from masis.store.records import StoreCheck
from masis.store.screening_log import ScreeningLog

_COUNTED = ("cases", "runs", "run_iterations", "run_events", "decision_log", "corpora", "screenings", "screening_log")


def check(database: Database) -> StoreCheck:
    """Read the whole file once and say what is wrong with it; changes nothing."""
    with database.reading() as connection:
        problems = [*_file_problems(connection), *_state_problems(connection), *corpus_search.problems(connection)]
        version = connection.execute("SELECT value FROM store_info WHERE key = 'app_version'").fetchone()
        return StoreCheck(
            path=str(database.path),
            bytes=database.path.stat().st_size,
            app_version=version[0] if version else "",
            schema_version=migrations.applied(connection)[-1],
            sqlite_version=sqlite3.sqlite_version,
            counts={name: _count(connection, name) for name in _COUNTED},
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


def _state_problems(connection: sqlite3.Connection) -> list[str]:
    """Cases whose stored state is not the one their runs and entries give, and counts that don't count them."""
    wrong = states.mismatches(connection)
    return [
        *(
            f"case {case_id!r} is marked {kept}, its runs and decisions say {derived}"
            for case_id, kept, derived in wrong
        ),
        *(f"the counts of the cases' {name} are not what the cases say" for name in queue.miscounted(connection)),
    ]
