"""Cases: stored as the JSON they came in, never changed once they are in."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from pydantic_core import PydanticSerializationError

from masis.errors import CaseConflict, InputError, RecordDamaged, UnknownRecord
from masis.schema.case import Case
from masis.schema.team import QueuePolicy
from masis.store.audits.queue import QUERY_SHOWN, Queue, match
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert
from masis.store.records import AddResult, FoundCases
from masis.store.reviews.team import in_force

BATCH = 500
"""Cases a transaction: large enough to be fast, small enough (some 50 ms) not to keep other writers
waiting.
"""


_CONFLICTS_NAMED = 1000

T = TypeVar("T")


def in_batches(items: Iterable[T], size: int, store: Callable[[list[T]], None]) -> None:
    """Store items in batches as they come; what came before the iterable raised (or was
    interrupted) is stored too.
    """
    waiting: list[T] = []
    try:
        for item in items:
            waiting.append(item)
            if len(waiting) >= size:
                full, waiting = waiting, []
                store(full)
    finally:
        if waiting:
            store(waiting)


class _PreparedCase(NamedTuple):
    case: Case
    payload: str
    digest: str


def _prepare_case(case: Case) -> _PreparedCase:
    try:
        payload = json.dumps(case.to_json_dict(), ensure_ascii=False)
        return _PreparedCase(case, payload, case.digest())
    except PydanticSerializationError as error:
        raise InputError(
            f"case {case.id!r} holds what JSON can't ({error})",
            hint="Use text, numbers, lists and objects.",
        ) from error


class Cases(Queue):
    """The cases of a store."""

    def add(self, case: Case) -> Literal["added", "unchanged"]:
        """Store a case. Raises CaseConflict where the id belongs to a case with other content."""
        prepared = _prepare_case(case)
        with self._database.transaction(durable=False) as connection:
            return _insert_case(connection, prepared, self._database.now())

    def add_many(
        self,
        cases: Iterable[Case],
        *,
        batch: int = BATCH,
        on_batch: Callable[[int], None] | None = None,
    ) -> AddResult:
        """Store many cases, in memory one batch at a time; a conflict leaves the others in.

        ``on_batch`` hears how many cases have been dealt with. What was read before the iterable
        raised (or was interrupted) is stored. Of the conflicts, the first 1,000 are named.
        """
        added = unchanged = 0
        conflicts: list[CaseConflict] = []

        def keep(prepared: list[_PreparedCase]) -> None:
            nonlocal added, unchanged
            with self._database.transaction(durable=False) as connection:
                at = self._database.now()
                for case in prepared:
                    try:
                        if _insert_case(connection, case, at) == "added":
                            added += 1
                        else:
                            unchanged += 1
                    except CaseConflict as conflict:
                        if len(conflicts) < _CONFLICTS_NAMED:
                            conflicts.append(conflict)
            if on_batch is not None:
                on_batch(len(prepared))

        in_batches(map(_prepare_case, cases), batch, keep)
        return AddResult(added, unchanged, tuple(conflicts))

    def get(self, case_id: str) -> Case:
        """The case, equal to what came in. Raises UnknownRecord."""
        row = self._database.row(
            "SELECT payload FROM cases JOIN case_payloads ON case_seq = seq WHERE id = ?", [case_id]
        )
        if row is None:
            raise UnknownRecord(f"there is no case {case_id!r}. `masis import` brings cases in.")
        return Case.from_stored(row[0])

    def count(self) -> int:
        """How many cases there are, without copies with a planted fault that people
        have decided.
        """
        return int(self._database.value("SELECT count(*) FROM cases WHERE standing <> 'planted'"))

    def iterate(self) -> Iterator[Case]:
        """All cases in the order they came in, 50 in memory at a time; cases added meanwhile come
        too.
        """
        sql = (
            "SELECT case_seq AS seq, payload FROM case_payloads WHERE case_seq > ? ORDER BY"
            " case_seq"
        )
        for seq, payload in self._database.walk(sql, at_once=50):
            try:
                case = Case.from_stored(payload)
            except ValueError as error:
                with self._database.reading() as connection:
                    raise damaged_case(connection, seq) from error
            yield case


def damaged_case(connection: sqlite3.Connection, seq: int) -> RecordDamaged:
    """Return the error that names a case whose content can't be read, with what to do."""
    [case] = connection.execute("SELECT id FROM cases WHERE seq = ?", [seq]).fetchone() or [
        f"number {seq}"
    ]
    return RecordDamaged(
        f"case {case!r} can't be read: what is stored of it is damaged or was altered. Restore a"
        " backup (`masis db restore`)."
    )


def _insert_case(
    connection: sqlite3.Connection, prepared: _PreparedCase, at: str
) -> Literal["added", "unchanged"]:
    case = prepared.case
    found = connection.execute("SELECT digest FROM cases WHERE id = ?", [case.id]).fetchone()
    if found is not None:
        if found[0] == prepared.digest:
            return "unchanged"
        raise CaseConflict(
            f"case {case.id!r} is already here with other content. Runs and decisions refer to it,"
            " so it is not overwritten: give the new one another id, or read the file with --map"
            " id= (in Python map={'id': None}), which makes ids of the content. 'masis db redact"
            " case' then takes the content of the old one away."
        )
    row = {
        "id": case.id,
        "digest": prepared.digest,
        "imported_at": at,
        "updated_at": at,
        "query_start": case.query[: QUERY_SHOWN + 1],
        "field": _metadata_word(case.metadata.get("field")),
        "dataset": _metadata_word(case.metadata.get("dataset")),
        "wanted": in_force(connection, QueuePolicy).decisions_needed(case.id),
    }
    seq = insert(connection, "cases", row)
    connection.execute("INSERT INTO case_payloads VALUES (?, ?)", [seq, prepared.payload])
    index_words(connection, seq, case)
    return "added"


def index_words(connection: sqlite3.Connection, seq: int, case: Case) -> None:
    """Put the words of a case into the index under its number."""
    connection.execute(
        "INSERT INTO case_words (rowid, id, query, answer, evidence) VALUES (?, ?, ?, ?, ?)",
        [seq, *_indexed_words(case)],
    )


def unindex_words(connection: sqlite3.Connection, seq: int, case: Case) -> None:
    """Remove the words of a case from the index, which holds no text and so has to be given it
    again.
    """
    connection.execute(
        "INSERT INTO case_words (case_words, rowid, id, query, answer, evidence) VALUES ('delete',"
        " ?, ?, ?, ?, ?)",
        [seq, *_indexed_words(case)],
    )


def _indexed_words(case: Case) -> tuple[str, str, str, str]:
    return case.id, case.query, case.answer or "", "\n".join(chunk.text for chunk in case.evidence)


def _metadata_word(value: object) -> str | None:
    """A value of the metadata to filter by; what isn't short text is none."""
    return value.strip()[:100] or None if isinstance(value, str) else None


_LOOKED_FOR_FIRST = 3
"""Ids that are looked for as text before a case is parsed: for more, that costs more
than parsing.
"""


class EvidenceOfCases(StorePart):
    """The evidence of the cases of a store."""

    def cases_with(self, evidence_ids: Collection[str], limit: int = 10) -> dict[str, FoundCases]:
        """For each id the cases that hold a chunk of exactly this id, oldest first. Looks through
        every case, once.
        """
        wanted = list(dict.fromkeys(evidence_ids))
        quoted = (
            [json.dumps(name, ensure_ascii=False) for name in wanted]
            if len(wanted) <= _LOOKED_FOR_FIRST
            else []
        )
        holds = " OR ".join(["instr(payload, ?)"] * len(quoted)) or "1"
        rows = self._database.execute(
            # joined in this order the cases come as they are stored
            f"""
            SELECT chunk, total, cases.id FROM (
                SELECT case_seq, chunk, count(*) OVER (PARTITION BY chunk) AS total,
                    row_number() OVER (PARTITION BY chunk ORDER BY case_seq) AS place
                FROM (
                    SELECT DISTINCT case_seq, value ->> '$.id' AS chunk
                    FROM case_payloads CROSS JOIN json_each(payload, '$.evidence')
                    WHERE ({holds}) AND value ->> '$.id' IN (SELECT value FROM json_each(?))
                )
            ) JOIN cases ON cases.seq = case_seq WHERE place <= ? ORDER BY chunk, place
            """,  # noqa: S608 (only marks for values)
            [*quoted, json.dumps(wanted), limit],
        )
        found_cases = dict.fromkeys(wanted, FoundCases((), 0))
        for chunk, total, case_id in rows:
            found_cases[chunk] = FoundCases((*found_cases[chunk].ids, case_id), total)
        return found_cases

    def with_words(self, text: str, *, limit: int, offset: int = 0) -> FoundCases:
        """The cases whose evidence holds all words of a text, the one that says most about them
        first.
        """
        with self._database.reading() as connection:
            for beginning in (False, True):
                query = f"evidence : ({match(text, beginning=beginning)})"
                total = connection.execute(
                    "SELECT count(*) FROM case_words WHERE case_words MATCH ?", [query]
                ).fetchone()[0]
                if total:
                    break
            rows = connection.execute(
                """
                SELECT cases.id FROM case_words JOIN cases ON cases.seq = case_words.rowid
                WHERE case_words MATCH ? ORDER BY bm25(case_words), cases.seq LIMIT ? OFFSET ?
                """,
                [query, limit, offset],
            ).fetchall()
        return FoundCases(tuple(row[0] for row in rows), total)

    def newest_ids(self, table: Literal["cases", "runs"]) -> tuple[str, ...]:
        """Ids of the 2,000 that came last, to find the one that a wrong id may have meant."""
        sql = f"SELECT id FROM {table} ORDER BY seq DESC LIMIT 2000"  # noqa: S608
        rows = self._database.execute(sql)
        return tuple(row[0] for row in rows)

    def ids_beginning(self, table: Literal["cases", "runs"], text: str, limit: int) -> FoundCases:
        """Ids of cases or runs that begin with a text, the newest first, and how many there are in
        all.
        """
        begins = f"FROM {table} WHERE substr(id, 1, length(?1)) = ?1"
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) {begins}", [text]).fetchone()[0]
            rows = connection.execute(
                f"SELECT id {begins} ORDER BY seq DESC LIMIT ?2", [text, limit]
            ).fetchall()
        return FoundCases(tuple(row[0] for row in rows), total)
