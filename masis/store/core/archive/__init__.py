"""Everything a database holds, as records out and in: what an archive is made of.

The records are JSON-ready and complete: put into an empty database in the same order, they make one that gives the same
records again. What is derived (states, figures, words to search) is left out and derived anew. A run under way when it
is read out comes back as interrupted, since nobody will finish it there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from masis.errors import InputError, StoreError
from masis.schema.audit import Draft
from masis.schema.base import OpenRecord, Record
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Event, Iteration, Run
from masis.store.audits.cases import canonical_json, insert_case, sha256
from masis.store.audits.run_rows import save_iteration, unpack, write_result
from masis.store.core import chain, connections
from masis.store.core.archive import retention, screenings
from masis.store.core.archive.log_entries import ALTERED, LogRecord, PuttingLog, fields_of, number
from masis.store.core.archive.retention import ExecutionRecord, OfKeeping, PurgeRecord, PuttingKept
from masis.store.core.archive.screenings import OfScreening, PuttingScreenings
from masis.store.core.connections import Database
from masis.store.core.process_owner import Owner
from masis.store.reviews.decisions import CHAINED, ENTRIES, Links, insert_entry, insert_payload
from masis.store.reviews.states import refresh

UNDER_WAY = "It was under way when the archive was written."
_NOBODY = Owner("", 0, "").to_text()


class CaseRecord(Record):
    """A case and when it came in."""

    record: Literal["case"] = "case"
    imported_at: str
    case: dict[str, Any]


class RedactedCaseRecord(Record):
    """What is left of a redacted case, the digest of what it was, and the log entry that redacted it."""

    record: Literal["redacted_case"] = "redacted_case"
    imported_at: str
    case: dict[str, Any]
    digest: str
    redaction: str


class RunRecord(Record):
    """A run, finished (then ``run`` is its result, without the iterations, which are here) or interrupted.

    Of one that retention has removed there are only its ``figures`` and ``measures``, which are otherwise derived anew,
    and the number of the purge that removed it.
    """

    record: Literal["run"] = "run"
    id: str
    case_id: str
    case_digest: str
    state: Literal["finished", "interrupted"]
    starts: int
    started_at: str
    ended_at: str
    why: str
    models: dict[str, str]
    settings: dict[str, Any]
    draft: dict[str, Any] | None
    iterations: list[dict[str, Any]]
    run: dict[str, Any] | None
    events: list[dict[str, Any]]
    removed_by: int | None = None
    figures: dict[str, Any] | None = None
    measures: dict[str, Any] | None = None


class EntryRecord(LogRecord):
    """An entry of the decision log."""

    record: Literal["entry"] = "entry"


class Kept(OpenRecord):
    """What the log's own columns say of a redacted entry."""

    case_id: str
    run_id: str | None
    kind: Literal["decision", "undo", "policy_accept"]
    source: Literal["HUMAN", "LLM_JUDGE", "CODE"]
    verdict: str | None
    token: str | None
    undoes: str | None


StoreRecord = CaseRecord | RedactedCaseRecord | RunRecord | EntryRecord | OfScreening | OfKeeping


def read_out(database: Database) -> Iterator[StoreRecord]:
    """Every record: cases, runs, the log, then what belongs to screening, each in the order they came; of one moment.

    It reads through a connection of its own, so that the caller may do other things with the store meanwhile.
    """
    connection = connections.connect(database.path)
    try:
        connection.execute("BEGIN")
        for row in connection.execute(
            """SELECT imported_at, payload, cases.digest, redaction.id AS redaction
               FROM cases JOIN case_payloads ON case_payloads.case_seq = cases.seq
               LEFT JOIN decision_log AS redaction ON redaction.seq = redaction_seq ORDER BY cases.seq"""
        ):
            content = {"imported_at": row["imported_at"], "case": json.loads(row["payload"])}
            if row["redaction"] is None:
                yield CaseRecord(**content)
            else:
                yield RedactedCaseRecord(**content, digest=row["digest"], redaction=row["redaction"])
        yield from retention.read_purges(connection)
        for row in connection.execute(
            "SELECT runs.*, cases.id AS case_id FROM runs JOIN cases ON cases.seq = case_seq ORDER BY runs.seq"
        ):
            yield _run_record(connection, row)
        for row in connection.execute(f"{ENTRIES} ORDER BY log.seq"):
            yield EntryRecord(**fields_of(row, CHAINED))
        yield from screenings.read_out(connection)
        yield from retention.read_executions(connection)
    finally:
        connection.close()


def _run_record(connection: sqlite3.Connection, row: sqlite3.Row) -> RunRecord:
    iterations = connection.execute(
        "SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [row["seq"]]
    ).fetchall()
    events = connection.execute("SELECT payload FROM run_events WHERE run_seq = ? ORDER BY seq", [row["seq"]])
    running = row["state"] == "running"
    return RunRecord(
        id=row["id"],
        case_id=row["case_id"],
        case_digest=row["case_digest"],
        state="interrupted" if running else row["state"],
        starts=row["starts"],
        started_at=row["started_at"],
        ended_at=row["seen_at"] if running else row["ended_at"],
        why=UNDER_WAY if running else row["why"],
        models=json.loads(row["models"]),
        settings=json.loads(row["settings"]),
        draft=json.loads(row["draft"]) if row["draft"] else None,
        iterations=[json.loads(unpack(each[0])) for each in iterations],
        run=json.loads(unpack(row["payload"])) if row["payload"] else None,
        events=[json.loads(each[0]) for each in events],
        removed_by=row["removed_by"],
        figures=retention.figures_of(row) if row["removed_by"] is not None else None,
        measures=retention.measures_of(connection, row["id"]) if row["removed_by"] is not None else None,
    )


class Counts(NamedTuple):
    """How many records of each kind, in the order of ``KINDS``."""

    cases: int = 0
    runs: int = 0
    entries: int = 0
    corpora: int = 0
    abstracts: int = 0
    screenings: int = 0
    screening_entries: int = 0
    acceptances: int = 0
    purges: int = 0
    executions: int = 0
    redacted_cases: int = 0


KINDS = (
    "case",
    "run",
    "entry",
    "corpus",
    "abstract",
    "screening",
    "screening_entry",
    "acceptance",
    "purge",
    "execution",
    "redacted_case",
)
"""The names of the records, as they name themselves."""


class Putting:
    """Puts records into an empty database, inside one transaction: use ``put_into``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log = PuttingLog(connection, CHAINED)
        self._of_screening, self._of_keeping = PuttingScreenings(connection), PuttingKept(connection)
        self._redacted: dict[str, str] = {}
        self.counts = Counts()

    def put(self, record: StoreRecord) -> None:
        """Put one record. Raises InputError (without file and line) where it does not fit those before."""
        try:
            self._put(record)
        except sqlite3.IntegrityError as error:
            raise InputError(f"does not fit those before ({error})", cure=ALTERED) from error

    def _put(self, record: StoreRecord) -> None:
        match record:
            case CaseRecord() | RedactedCaseRecord():
                self._put_case(record)
            case RunRecord():
                self._put_run(record)
            case EntryRecord():
                self._put_entry(record)
            case PurgeRecord() | ExecutionRecord():
                self._of_keeping.put(record)
            case _:
                self._of_screening.put(record)
        counts = list(self.counts)
        counts[KINDS.index(record.record)] += 1
        self.counts = Counts(*counts)

    def finish(self) -> None:
        """Derive the states. Raises InputError where an entry without words was never redacted."""
        self._log.finish()
        self._of_screening.finish()
        self._of_keeping.finish()
        self._mark_redacted()
        for (seq,) in self._connection.execute("SELECT seq FROM cases").fetchall():
            refresh(self._connection, seq)

    def _mark_redacted(self) -> None:
        """Raises InputError where no entry of the log redacts a case that comes as a redacted one."""
        for case_id, entry in self._redacted.items():
            row = self._connection.execute(f"{ENTRIES} WHERE log.id = ?", [entry]).fetchone()
            decision = Decision.model_validate_json(row["payload"]) if row is not None and row["payload"] else None
            if decision is None or decision.extra.get("redacts_case") != case_id:
                raise InputError(f"case {case_id!r} is redacted, and no entry says why", cure=ALTERED)
            self._connection.execute("UPDATE cases SET redaction_seq = ? WHERE id = ?", [row["seq"], case_id])

    def _put_case(self, record: CaseRecord | RedactedCaseRecord) -> None:
        case = Case.model_validate(record.case)
        if self._connection.execute("SELECT 1 FROM cases WHERE id = ?", [case.id]).fetchone():
            raise InputError(f"case {case.id!r} comes a second time", cure=ALTERED, field="case.id")
        payload = json.dumps(record.case, ensure_ascii=False)
        digest = case.digest()
        if isinstance(record, RedactedCaseRecord):
            digest, self._redacted[case.id] = record.digest, record.redaction
        insert_case(self._connection, case, payload, digest, record.imported_at)

    def _put_run(self, record: RunRecord) -> None:
        case = number(self._connection, "cases", record.case_id, "case_id")
        if self._connection.execute("SELECT 1 FROM runs WHERE id = ?", [record.id]).fetchone():
            raise InputError(f"run {record.id!r} comes a second time", cure=ALTERED, field="id")
        digest = self._connection.execute("SELECT digest FROM cases WHERE seq = ?", [case]).fetchone()[0]
        if record.case_digest != digest:
            raise InputError(f"run {record.id!r} audited other content", cure=ALTERED, field="case_digest")
        draft = Draft.model_validate(record.draft) if record.draft else None
        cursor = self._connection.execute(
            """
            INSERT INTO runs (id, case_seq, case_digest, state, owner, starts, started_at, seen_at, ended_at, why,
                models, settings, settings_digest, draft) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                record.id,
                case,
                record.case_digest,
                record.state,
                _NOBODY,
                record.starts,
                record.started_at,
                record.ended_at,
                record.ended_at,
                record.why,
                json.dumps(record.models, ensure_ascii=False),
                json.dumps(record.settings, ensure_ascii=False),
                sha256(canonical_json(record.settings)),
                draft.model_dump_json() if draft else None,
            ],
        )
        seq = int(cursor.lastrowid or 0)
        iterations = tuple(Iteration.model_validate(each) for each in record.iterations)
        for iteration in iterations:
            save_iteration(self._connection, seq, iteration)
        if record.run is not None:
            run = Run.model_validate(record.run).model_copy(update={"iterations": iterations})
            if (run.id, run.case_id) != (record.id, record.case_id):
                raise InputError(f"the result is of run {run.id!r} of case {run.case_id!r}", cure=ALTERED, field="run")
            write_result(self._connection, seq, run)
        if record.removed_by is not None:
            self._of_keeping.mark_removed(seq, record.removed_by, record.figures or {})
            self._of_keeping.put_measures(record.measures)
        for event in (Event.model_validate(each) for each in record.events):
            self._connection.execute(
                "INSERT INTO run_events VALUES (?, ?, ?)", [seq, event.seq, event.model_dump_json()]
            )

    def _put_entry(self, record: EntryRecord) -> None:
        payload, place = self._log.checked(record), chain.place_of(record)._asdict()
        if payload is None:
            kept = Kept.model_validate(record.kept or {})
            insert_entry(self._connection, place, kept.model_dump(), self._links(kept, None))
            return
        decision = Decision.model_validate(record.decision)
        links = self._links(decision, self._log.redacted_by(decision))
        insert_entry(self._connection, place, decision.model_dump(), links)
        insert_payload(self._connection, record.seq, decision.reviewer, payload)

    def _links(self, about: Decision | Kept, redacts: int | None) -> Links:
        return Links(
            case=number(self._connection, "cases", about.case_id, "decision.case_id"),
            run=None if about.run_id is None else number(self._connection, "runs", about.run_id, "decision.run_id"),
            undoes=None
            if about.undoes is None
            else number(self._connection, "decision_log", about.undoes, "decision.undoes"),
            redacts=redacts,
        )


def assert_empty(connection: sqlite3.Connection, database: Database) -> None:
    """Raise StoreError where the database holds anything: two decision logs can't be one chain."""
    held = ("cases", "decision_log", "corpora", "screenings", "screening_log")
    if connection.execute(" UNION ALL ".join(f"SELECT 1 FROM {table}" for table in held) + " LIMIT 1").fetchone():  # noqa: S608
        raise StoreError(
            f"{database.path}: holds cases already. An archive goes into an empty database, since its decision log "
            "can't be merged with another: name a new file with --db. To add only its cases, `masis export --format "
            "cases` them from the database it came from."
        )
