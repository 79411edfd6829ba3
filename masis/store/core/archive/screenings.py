"""Corpora, screenings, the screening log and the acceptance memory as records out and in: a part of ``transfer``.

Remembered grades are left out: they are asked anew where they are missed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal

from masis.errors import InputError
from masis.schema.base import OpenRecord, Record
from masis.schema.screening import Abstract, Acceptance, Grade, Round, ScreeningDecision, ScreeningEvent, Thresholds
from masis.schema.screening import Screening as Result
from masis.store.audits.run_rows import pack, unpack
from masis.store.core import chain
from masis.store.core.archive.log_entries import ALTERED, LogRecord, PuttingLog, fields_of, number
from masis.store.core.process_owner import Owner
from masis.store.screening import corpora, corpus_search
from masis.store.screening.log import CHAINED, ENTRIES, facts, insert_entry
from masis.store.screening.rows import insert, keep_abstracts, keep_grade, keep_round

_UNDER_WAY = "It was under way when the archive was written."
_NOBODY = Owner("", 0, "")


class CorpusRecord(Record):
    """A corpus and what its imports brought; its abstracts follow."""

    record: Literal["corpus"] = "corpus"
    name: str
    made_at: str
    note: str
    imports: list[dict[str, Any]]


class AbstractRecord(Record):
    """An abstract of a corpus."""

    record: Literal["abstract"] = "abstract"
    corpus: str
    abstract: dict[str, Any]


class ScreeningRecord(Record):
    """A screening, finished (then ``screening`` is its result, without rounds and grades, which are here) or not.

    ``abstracts`` holds for each its round, the abstract and its grade; ``order`` the ids of the result's grades.
    """

    record: Literal["screening"] = "screening"
    id: str
    question: str
    sources: list[str]
    state: Literal["finished", "interrupted"]
    starts: int
    started_at: str
    ended_at: str
    why: str
    settings: dict[str, Any]
    thresholds: dict[str, Any] | None
    rounds: list[dict[str, Any]]
    abstracts: list[dict[str, Any]]
    order: list[str]
    screening: dict[str, Any] | None
    events: list[dict[str, Any]]
    removed_by: int | None = None
    figures: dict[str, Any] | None = None


class ScreeningEntryRecord(LogRecord):
    """An entry of the screening log."""

    record: Literal["screening_entry"] = "screening_entry"


class Kept(OpenRecord):
    """What the screening log's own columns say of a redacted entry."""

    screening_id: str | None
    kind: Literal["override", "handed_over", "memory_reset"]
    abstract_id: str | None
    field: str | None
    token: str | None


class AcceptanceRecord(Record):
    """An entry of the acceptance memory, and the id of the log entry that made it forgotten."""

    record: Literal["acceptance"] = "acceptance"
    screening_id: str
    at: str
    acceptance: dict[str, Any]
    forgotten_by: str | None


OfScreening = CorpusRecord | AbstractRecord | ScreeningRecord | ScreeningEntryRecord | AcceptanceRecord


def read_out(connection: sqlite3.Connection) -> Iterator[OfScreening]:
    """Every record, each after those it refers to."""
    for row in connection.execute("SELECT * FROM corpora ORDER BY seq").fetchall():
        yield from _corpus(connection, row)
    for row in connection.execute("SELECT * FROM screenings ORDER BY seq"):
        yield _screening(connection, row)
    for row in connection.execute(f"{ENTRIES} ORDER BY log.seq"):
        yield ScreeningEntryRecord(**fields_of(row, CHAINED))
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


_IMPORT = ("at", "source", "identified", "added", "duplicates", "faulty")


def _corpus(connection: sqlite3.Connection, row: sqlite3.Row) -> Iterator[OfScreening]:
    imports = connection.execute("SELECT * FROM corpus_imports WHERE corpus_seq = ? ORDER BY seq", [row["seq"]])
    yield CorpusRecord(
        name=row["name"],
        made_at=row["made_at"],
        note=row["note"],
        imports=[{name: each[name] for name in _IMPORT} for each in imports],
    )
    for each in connection.execute(
        "SELECT payload FROM corpus_abstracts WHERE corpus_seq = ? ORDER BY seq", [row["seq"]]
    ):
        yield AbstractRecord(corpus=row["name"], abstract=json.loads(each[0]))


def _screening(connection: sqlite3.Connection, row: sqlite3.Row) -> ScreeningRecord:
    seq, running = row["seq"], row["state"] == "running"
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
        state="interrupted" if running else row["state"],
        starts=row["starts"],
        started_at=row["started_at"],
        ended_at=row["seen_at"] if running else row["ended_at"],
        why=_UNDER_WAY if running else row["why"],
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


class PuttingScreenings:
    """Puts these records into an empty database, inside the transaction of ``transfer.Putting``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._log = PuttingLog(connection, CHAINED)

    def put(self, record: OfScreening) -> None:
        """Put one record. Raises InputError where it does not fit those before."""
        match record:
            case CorpusRecord():
                self._put_corpus(record)
            case AbstractRecord():
                corpus = number(self._connection, "corpora", record.corpus, "corpus", column="name")
                prepared = corpora.prepared(Abstract.model_validate(record.abstract))
                if isinstance(prepared, InputError):
                    raise prepared
                corpora.insert_new(self._connection, corpus, prepared)
            case ScreeningRecord():
                self._put_screening(record)
            case ScreeningEntryRecord():
                self._put_entry(record)
            case AcceptanceRecord():
                self._put_acceptance(record)

    def finish(self) -> None:
        """Raises InputError where an entry without words was never redacted."""
        self._log.finish()

    def _put_corpus(self, record: CorpusRecord) -> None:
        made = self._connection.execute(
            "INSERT INTO corpora (name, made_at, note) VALUES (?, ?, ?)", [record.name, record.made_at, record.note]
        )
        seq = int(made.lastrowid or 0)
        corpus_search.create(self._connection, seq)
        for each in record.imports:
            self._connection.execute(
                """INSERT INTO corpus_imports (corpus_seq, at, source, identified, added, duplicates, faulty)
                   VALUES (?, ?, ?, ?, ?, ?, ?)""",
                [seq, *(each.get(name) for name in _IMPORT)],
            )

    def _put_screening(self, record: ScreeningRecord) -> None:
        thresholds = Thresholds.model_validate(record.thresholds) if record.thresholds else None
        seq = insert(
            self._connection,
            record.id,
            record.question,
            record.sources,
            record.settings,
            thresholds,
            record.started_at,
            _NOBODY,
        )
        for each in record.rounds:
            keep_round(self._connection, seq, Round.model_validate(each))
        for each in record.abstracts:
            abstract = Abstract.model_validate(each.get("abstract"))
            keep_abstracts(self._connection, seq, int(each.get("round") or 0), [abstract])
            if each.get("grade") is not None:
                keep_grade(self._connection, seq, Grade.model_validate(each["grade"]))
        for event in map(ScreeningEvent.model_validate, record.events):
            self._connection.execute(
                "INSERT INTO screening_events VALUES (?, ?, ?)", [seq, event.seq, event.model_dump_json()]
            )
        result = self._result(record)
        self._connection.execute(
            """UPDATE screenings SET state = ?, starts = ?, seen_at = ?, ended_at = ?, why = ?, payload = ?,
               outcome = ?, kept = ? WHERE seq = ?""",
            [
                record.state,
                record.starts,
                record.ended_at,
                record.ended_at,
                record.why,
                pack(f"{json.dumps(record.order, ensure_ascii=False)}\n{result.model_dump_json()}") if result else None,
                result.outcome if result else None,
                len(result.kept) if result else None,
                seq,
            ],
        )
        if record.removed_by is not None:
            figures = record.figures or {}
            self._connection.execute(
                "UPDATE screenings SET removed_by = ?, outcome = ?, kept = ? WHERE seq = ?",
                [record.removed_by, figures.get("outcome"), figures.get("kept"), seq],
            )

    @staticmethod
    def _result(record: ScreeningRecord) -> Result | None:
        result = Result.model_validate(record.screening) if record.screening is not None else None
        finished = record.state == "finished" and record.removed_by is None
        if (result is not None) != finished or (result is not None and result.id != record.id):
            raise InputError(
                f"screening {record.id!r} has not the result its state says", cure=ALTERED, field="screening"
            )
        graded = {(each.get("grade") or {}).get("abstract_id") for each in record.abstracts}
        if not set(record.order) <= graded:
            raise InputError(f"screening {record.id!r} lacks grades of its result", cure=ALTERED, field="order")
        return result

    def _put_entry(self, record: ScreeningEntryRecord) -> None:
        payload, place = self._log.checked(record), chain.place_of(record)
        if payload is None:
            kept = Kept.model_validate(record.kept or {})
            insert_entry(self._connection, place, kept.model_dump(), self._screening_of(kept.screening_id), None)
            return
        decision = ScreeningDecision.model_validate(record.decision)
        about, redacted = self._screening_of(decision.screening_id), self._log.redacted_by(decision)
        insert_entry(self._connection, place, facts(decision), about, redacted)
        self._connection.execute(
            "INSERT INTO screening_log_payloads VALUES (?, ?, ?)", [record.seq, decision.reviewer, payload]
        )

    def _put_acceptance(self, record: AcceptanceRecord) -> None:
        forgotten = record.forgotten_by
        self._connection.execute(
            "INSERT INTO acceptances (screening_seq, at, payload, forgotten_by) VALUES (?, ?, ?, ?)",
            [
                number(self._connection, "screenings", record.screening_id, "screening_id"),
                record.at,
                Acceptance.model_validate(record.acceptance).model_dump_json(),
                None if forgotten is None else number(self._connection, "screening_log", forgotten, "forgotten_by"),
            ],
        )

    def _screening_of(self, screening_id: str | None) -> int | None:
        return (
            None
            if screening_id is None
            else number(self._connection, "screenings", screening_id, "decision.screening_id")
        )
