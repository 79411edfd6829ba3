"""Everything a database holds, read as the records of an archive: of one moment, one record in memory at a time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from masis.schema.retention import Execution
from masis.schema.run import Iteration, Run
from masis.store.audits import executions
from masis.store.audits.cases import damaged_case
from masis.store.audits.runs import (
    DAMAGE,
    DERIVED_ANEW,
    RunFigures,
    damaged_run,
    read_iterations,
    readable,
    unpack,
)
from masis.store.core import connections
from masis.store.core.archive.records import (
    AS_ARCHIVED,
    IMPORT_COLUMNS,
    LISTS,
    UNDER_WAY,
    AbstractRecord,
    AcceptanceRecord,
    ArchivedJudgement,
    CaseRecord,
    CorpusRecord,
    DatasetMemberRecord,
    DatasetRecord,
    EntryRecord,
    ExecutionRecord,
    PurgeRecord,
    RedactedCaseRecord,
    RunRecord,
    ScreeningEntryRecord,
    ScreeningRecord,
    StoreRecord,
    TeamRecord,
)
from masis.store.core.chained_log import PLACE, ChainedLog
from masis.store.core.connections import Database
from masis.store.retention.removal import purge_numbered, removals_of
from masis.store.reviews import dataset_versions, decisions
from masis.store.screening import log as screening_log

RUNS = "SELECT runs.*, cases.id AS case_id FROM runs JOIN cases ON cases.seq = case_seq"


def read_out(database: Database) -> Iterator[StoreRecord]:
    """Yield every record, each after those it refers to and in the order they came.

    It reads through a connection of its own, so that the caller may do other things with the store meanwhile.
    """
    connection = connections.connect(database.path)
    try:
        connection.execute("BEGIN")
        for row in connection.execute("SELECT * FROM team_records ORDER BY seq"):
            yield TeamRecord(
                at=row["at"], by=row["by"], kind=row["kind"], name=row["name"], content=json.loads(row["payload"])
            )
        yield from _cases(connection)
        yield from _purges(connection)
        for row in connection.execute(f"{RUNS} ORDER BY runs.seq"):
            yield _run(connection, row)
        for row in connection.execute(f"{decisions.LOG.select} ORDER BY log.seq"):
            yield EntryRecord(**_entry(row, decisions.LOG))
        for row in connection.execute("SELECT * FROM corpora ORDER BY seq").fetchall():
            yield from _corpus(connection, row)
        for row in connection.execute("SELECT * FROM screenings ORDER BY seq"):
            yield _screening(connection, row)
        for row in connection.execute(f"{screening_log.LOG.select} ORDER BY log.seq"):
            yield ScreeningEntryRecord(**_entry(row, screening_log.LOG))
        yield from _acceptances(connection)
        yield from _executions(connection)
        yield from _datasets(connection)
    finally:
        connection.close()


def _cases(connection: sqlite3.Connection) -> Iterator[StoreRecord]:
    for row in connection.execute(
        """SELECT cases.seq, imported_at, payload, cases.digest, redaction.id AS redaction
           FROM cases JOIN case_payloads ON case_payloads.case_seq = cases.seq
           LEFT JOIN decision_log AS redaction ON redaction.seq = redaction_seq ORDER BY cases.seq"""
    ):
        try:
            content = {"imported_at": row["imported_at"], "case": json.loads(row["payload"])}
        except ValueError as error:
            raise damaged_case(connection, row["seq"]) from error
        if row["redaction"] is None:
            yield CaseRecord(**content)
        else:
            yield RedactedCaseRecord(**content, digest=row["digest"], redaction=row["redaction"])


def _purges(connection: sqlite3.Connection) -> Iterator[StoreRecord]:
    for row in connection.execute("SELECT seq FROM purges ORDER BY seq").fetchall():
        purge = purge_numbered(connection, row["seq"])
        yield PurgeRecord(
            purge=purge.model_dump(include={"seq", "at", "by", "how", "rule", "app"}),
            removed=[each.model_dump() for each in removals_of(connection, row["seq"])],
        )


_CURE = (
    "An archive holds every audit, so that a newer one doesn't replace it: restore a backup (`masis restore`), or "
    "remove the texts of the case (`masis redact case`)."
)


def _run(connection: sqlite3.Connection, row: sqlite3.Row) -> RunRecord:
    try:
        return _readable_run(connection, row)
    except DAMAGE as error:
        raise damaged_run(connection, row["seq"], error, _CURE) from error


def _readable_run(connection: sqlite3.Connection, row: sqlite3.Row) -> RunRecord:
    iterations = connection.execute(
        "SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [row["seq"]]
    ).fetchall()
    events = connection.execute("SELECT payload FROM run_events WHERE run_seq = ? ORDER BY seq", [row["seq"]])
    for each in iterations:  # an archive that could not be read again would be found out when it is needed
        Iteration.model_validate_json(unpack(each[0]))
    if row["payload"]:
        Run.model_validate_json(unpack(row["payload"]))
        if len(iterations) != row["iterations"]:
            raise ValueError(f"it had {row['iterations']} iterations and has {len(iterations)}")
    return RunRecord(
        id=row["id"],
        case_id=row["case_id"],
        case_digest=row["case_digest"],
        **_course(row),
        models=json.loads(row["models"]),
        settings=json.loads(row["settings"]),
        draft=json.loads(row["draft"]) if row["draft"] else None,
        iterations=[json.loads(unpack(each[0])) for each in iterations],
        run=json.loads(unpack(row["payload"])) if row["payload"] else None,
        events=[json.loads(each[0]) for each in events],
        removed_by=row["removed_by"],
        figures=_figures(row) if row["removed_by"] is not None else None,
        measures=_measures(connection, row["id"]) if row["removed_by"] is not None else None,
    )


def _course(row: sqlite3.Row) -> dict[str, Any]:
    """When a run or a screening began and ended, and how; one under way comes back as interrupted."""
    running = row["state"] == "running"
    return {
        "state": "interrupted" if running else row["state"],
        "starts": row["starts"],
        "started_at": row["started_at"],
        "ended_at": row["seen_at"] if running else row["ended_at"],
        "why": UNDER_WAY if running else row["why"],
    }


def _figures(row: sqlite3.Row) -> dict[str, Any]:
    """The figures of a run whose content is gone."""
    names = [name for name in RunFigures._fields if name not in DERIVED_ANEW]
    figures = {name: json.loads(row[name]) if name in LISTS else row[name] for name in names}
    figures["flags"] = [AS_ARCHIVED.get(flag, flag) for flag in figures["flags"]]
    return {AS_ARCHIVED.get(name, name): value for name, value in figures.items()}


def _measures(connection: sqlite3.Connection, run_id: str) -> dict[str, Any] | None:
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


def _datasets(connection: sqlite3.Connection) -> Iterator[StoreRecord]:
    for row in connection.execute("SELECT * FROM dataset_versions ORDER BY seq").fetchall():
        yield DatasetRecord(version=dataset_versions.read_version(row))
        for member in dataset_versions.members_of(connection, row["seq"]):
            yield DatasetMemberRecord(
                dataset=row["name"],
                case_id=_id(connection, "cases", member.case_seq) or "",
                **{name: getattr(member, name) for name in ("state", "redacted", "side", "rows")},
                judgements=[
                    ArchivedJudgement(
                        entry=_id(connection, "decision_log", each.entry),
                        run=_id(connection, "runs", each.run),
                        **{name: getattr(each, name) for name in ("in_force", "number", "redacted", "label")},
                    )
                    for each in member.judgements
                ],
            )


def _id(connection: sqlite3.Connection, table: str, seq: int | None) -> str | None:
    if seq is None:
        return None
    return str(connection.execute(f"SELECT id FROM {table} WHERE seq = ?", [seq]).fetchone()[0])  # noqa: S608


def _entry(row: sqlite3.Row, log: ChainedLog[Any, Any]) -> dict[str, Any]:
    """Return the fields of the record of an entry."""
    redacted = row["payload"] is None
    return {
        **{name: row[name] for name in PLACE},
        "decision": None if redacted else json.loads(row["payload"]),
        "kept": log.facts(row) if redacted else None,
    }


def _corpus(connection: sqlite3.Connection, row: sqlite3.Row) -> Iterator[StoreRecord]:
    imports = connection.execute("SELECT * FROM corpus_imports WHERE corpus_seq = ? ORDER BY seq", [row["seq"]])
    yield CorpusRecord(
        name=row["name"],
        made_at=row["made_at"],
        note=row["note"],
        imports=[{name: each[name] for name in IMPORT_COLUMNS} for each in imports],
    )
    for each in connection.execute(
        "SELECT payload FROM corpus_abstracts WHERE corpus_seq = ? ORDER BY seq", [row["seq"]]
    ):
        yield AbstractRecord(corpus=row["name"], abstract=json.loads(each[0]))


def _screening(connection: sqlite3.Connection, row: sqlite3.Row) -> ScreeningRecord:
    with readable(connection, "screening", row["seq"]):
        return _readable_screening(connection, row)


def _readable_screening(connection: sqlite3.Connection, row: sqlite3.Row) -> ScreeningRecord:
    seq = row["seq"]
    rounds = connection.execute(
        "SELECT payload FROM screening_rounds WHERE screening_seq = ? ORDER BY number", [seq]
    ).fetchall()
    abstracts = connection.execute("SELECT * FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq", [seq])
    events = connection.execute("SELECT payload FROM screening_events WHERE screening_seq = ? ORDER BY seq", [seq])
    order, _, bare = unpack(row["payload"]).partition("\n") if row["payload"] else ("[]", "", "null")
    return ScreeningRecord(
        id=row["id"],
        question=row["question"],
        sources=json.loads(row["sources"]),
        **_course(row),
        settings=json.loads(row["settings"]),
        thresholds=json.loads(row["thresholds"]) if row["thresholds"] else None,
        rounds=[json.loads(unpack(each[0])) for each in rounds],
        abstracts=[
            {
                "round": each["round"],
                "abstract": json.loads(unpack(each["abstract"])),
                "grade": json.loads(unpack(each["grade"])) if each["grade"] else None,
            }
            for each in abstracts
        ],
        order=json.loads(order),
        screening=json.loads(bare),
        events=[json.loads(each[0]) for each in events],
        removed_by=row["removed_by"],
        figures={"outcome": row["outcome"], "kept": row["kept"]} if row["removed_by"] is not None else None,
    )


def _acceptances(connection: sqlite3.Connection) -> Iterator[StoreRecord]:
    for row in connection.execute(
        """SELECT acceptances.at, acceptances.payload, screenings.id AS screening_id, log.id AS forgotten_by
           FROM acceptances JOIN screenings ON screenings.seq = acceptances.screening_seq
           LEFT JOIN screening_log AS log ON log.seq = forgotten_by ORDER BY acceptances.seq"""
    ):
        yield AcceptanceRecord(
            screening_id=row["screening_id"],
            at=row["at"],
            acceptance=json.loads(row["payload"]),
            forgotten_by=row["forgotten_by"],
        )


def _executions(connection: sqlite3.Connection) -> Iterator[StoreRecord]:
    """The log; a run under way, which comes back as interrupted, counts as abandoned."""
    for row in connection.execute("SELECT * FROM executions ORDER BY seq"):
        yield ExecutionRecord(execution=executions.execution_of(row).model_dump())
    for row in _running(connection):
        yield ExecutionRecord(execution=abandoned(connection, row, row["seen_at"]).model_dump())


def _running(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(
        f"{RUNS} WHERE runs.state != 'finished' AND runs.state = 'running' ORDER BY runs.seq"
    ).fetchall()


def abandoned(connection: sqlite3.Connection, row: sqlite3.Row, at: str) -> Execution:
    """Return the execution of a run (a row of ``RUNS``) that ended without a result."""
    return executions.cut_short(row, row["case_id"], read_iterations(connection, row["seq"]), at)
