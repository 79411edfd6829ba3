"""The log of executions and the record of what retention removed, as records out and in: a part of ``transfer``.

Purges come before the runs that they removed; executions come last. An archive of version 1 has no executions: they are
then made of its runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal

from masis.errors import InputError
from masis.schema.base import Record
from masis.schema.retention import Execution, Purge, Removal
from masis.schema.run import Iteration, Run
from masis.store.audits import executions
from masis.store.audits.run_rows import RunFigures, unpack
from masis.store.core.archive.log_entries import ALTERED
from masis.store.retention.purges import insert_purge, insert_removal, purge_numbered, removals_of

_LISTS = ("flags", "reasons")
_AS_ARCHIVED = {"disagreement": "telling", "redundant": "needless"}
"""Names of figures and flags that are others in archives, whose words never change."""


class PurgeRecord(Record):
    """A purge and what it removed, without a word of it."""

    record: Literal["purge"] = "purge"
    purge: dict[str, Any]
    removed: list[dict[str, Any]]


class ExecutionRecord(Record):
    """A row of the log of executions."""

    record: Literal["execution"] = "execution"
    execution: dict[str, Any]


OfKeeping = PurgeRecord | ExecutionRecord


def read_purges(connection: sqlite3.Connection) -> Iterator[OfKeeping]:
    """Every purge in order."""
    for row in connection.execute("SELECT seq FROM purges ORDER BY seq").fetchall():
        purge = purge_numbered(connection, row["seq"])
        yield PurgeRecord(
            purge=purge.model_dump(include={"seq", "at", "by", "how", "rule", "app"}),
            removed=[each.model_dump() for each in removals_of(connection, row["seq"])],
        )


def read_executions(connection: sqlite3.Connection) -> Iterator[OfKeeping]:
    """The log; a run under way, which comes back as interrupted, counts as abandoned."""
    for row in connection.execute("SELECT * FROM executions ORDER BY seq"):
        yield ExecutionRecord(execution=executions.execution_of(row).model_dump())
    for row in _running(connection):
        yield ExecutionRecord(execution=_abandoned(connection, row, row["seen_at"]).model_dump())


def _running(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(
        f"{_RUNS} WHERE runs.state != 'finished' AND runs.state = 'running' ORDER BY runs.seq"
    ).fetchall()


_RUNS = "SELECT runs.*, cases.id AS case_id FROM runs JOIN cases ON cases.seq = case_seq"


def _abandoned(connection: sqlite3.Connection, row: sqlite3.Row, at: str) -> Execution:
    return executions.cut_short(row, row["case_id"], _iterations(connection, row["seq"]), at)


def _iterations(connection: sqlite3.Connection, run_seq: int) -> list[Iteration]:
    rows = connection.execute("SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [run_seq])
    return [Iteration.model_validate_json(unpack(row[0])) for row in rows]


def figures_of(row: sqlite3.Row) -> dict[str, Any]:
    """The figures of a run whose content is gone."""
    figures = {name: json.loads(row[name]) if name in _LISTS else row[name] for name in RunFigures._fields}
    figures["flags"] = [_AS_ARCHIVED.get(flag, flag) for flag in figures["flags"]]
    return {_AS_ARCHIVED.get(name, name): value for name, value in figures.items()}


def measures_of(connection: sqlite3.Connection, run_id: str) -> dict[str, Any] | None:
    """The rows of figures of a run whose content is gone; None where there are none."""
    row = connection.execute("SELECT * FROM run_measures WHERE run_id = ?", [run_id]).fetchone()
    if row is None:
        return None
    iterations = connection.execute(
        "SELECT * FROM iteration_measures WHERE measures_seq = ? ORDER BY number", [row["seq"]]
    ).fetchall()
    return {**_without(row, "seq"), "of_iterations": [_without(each, "measures_seq") for each in iterations]}


def _without(row: sqlite3.Row, key: str) -> dict[str, Any]:
    return {name: row[name] for name in row.keys() if name != key}  # noqa: SIM118 (a row iterates over its values)


class PuttingKept:
    """Puts these records into an empty database, inside the transaction of ``transfer.Putting``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._logged = False

    def put(self, record: OfKeeping) -> None:
        """Put one record. Raises InputError where it does not fit those before."""
        match record:
            case PurgeRecord():
                purge = Purge.model_validate(record.purge)
                insert_purge(self._connection, purge)
                for each in record.removed:
                    insert_removal(self._connection, purge.seq, Removal.model_validate(each))
            case ExecutionRecord():
                executions.write(self._connection, Execution.model_validate(record.execution))
                self._logged = True

    def mark_removed(self, run_seq: int, purge: int, figures: dict[str, Any]) -> None:
        """Note that retention has removed a run, and give it the figures that are left of it."""
        own = {archived: name for name, archived in _AS_ARCHIVED.items()}
        figures = {own.get(name, name): value for name, value in figures.items()}
        if set(figures) != set(RunFigures._fields):
            raise InputError("has not the figures of a run that was removed", cure=ALTERED, field="figures")
        figures["flags"] = [own.get(flag, flag) for flag in figures["flags"]]
        kept = figures | {name: json.dumps(figures[name]) for name in _LISTS} | {"removed_by": purge}
        assignments = ", ".join(f"{name} = ?" for name in kept)
        self._connection.execute(f"UPDATE runs SET {assignments} WHERE seq = ?", [*kept.values(), run_seq])  # noqa: S608

    def put_measures(self, measures: dict[str, Any] | None) -> None:
        """Put the rows of figures of a run whose content is gone."""
        if measures is None:
            return
        seq = self._insert("run_measures", {name: measures[name] for name in measures if name != "of_iterations"})
        for each in measures.get("of_iterations", ()):
            self._insert("iteration_measures", {"measures_seq": seq, **each})

    def _insert(self, table: Literal["run_measures", "iteration_measures"], row: dict[str, Any]) -> int:
        known = {each["name"] for each in self._connection.execute(f"PRAGMA table_info({table})")}
        if not set(row) <= known:
            raise InputError("has figures that this workbench does not know", cure=ALTERED, field="measures")
        marks = ", ".join("?" * len(row))
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 (columns that the table has)
        return int(self._connection.execute(sql, list(row.values())).lastrowid or 0)

    def finish(self) -> None:
        """Make the log of executions where the archive is older than it."""
        if self._logged:
            return
        rows = self._connection.execute(f"{_RUNS} ORDER BY coalesce(runs.ended_at, runs.seen_at), runs.seq").fetchall()
        for row in rows:
            if row["payload"] is not None:
                result = Run.model_validate_json(unpack(row["payload"]))
                executions.log_end(self._connection, result, row["starts"])
            else:
                executions.write(self._connection, _abandoned(self._connection, row, row["ended_at"]))
