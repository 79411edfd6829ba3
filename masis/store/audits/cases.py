"""Stores cases as the JSON that was imported. A stored case never changes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from pydantic_core import PydanticSerializationError

from masis.errors import CaseConflict, InputError, RecordDamaged, UnknownRecord
from masis.schema.case import Case
from masis.schema.team import QueuePolicy
from masis.store.audits.conditions import match
from masis.store.audits.queue import QUERY_SHOWN, Queue
from masis.store.audits.systems import question_of
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert
from masis.store.records import AddResult, FoundCases
from masis.store.reviews.team import in_force

BATCH = 500
"""The number of cases per transaction. A batch holds the write lock for about 50 ms, so other
writers don't wait long.
"""


_CONFLICTS_NAMED = 1000

T = TypeVar("T")


def in_batches(items: Iterable[T], size: int, store: Callable[[list[T]], None]) -> None:
    """Store items in batches as they arrive.

    If the iterable raises or is interrupted, the items before that are stored too.
    """
    waiting: list[T] = []
    try:
        for item in items:
            waiting.append(item)
            if len(waiting) >= size:
                # Emptied before storing: if store() raises, the `finally` must not store the same
                # batch again.
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
        """Store a case.

        Raises:
            CaseConflict: A case with this id but other content exists.

        """
        prepared = _prepare_case(case)
        with self._database.transaction(durable=False) as connection:
            return _insert_case(connection, prepared, self._database.now())

    def add_many(
        self,
        cases: Iterable[Case],
        *,
        batch: int = BATCH,
        on_batch: Callable[[int], None] | None = None,
        import_id: str | None = None,
    ) -> AddResult:
        """Store many cases, loading one batch at a time. A conflict doesn't stop the others.

        If the iterable raises or is interrupted, the cases before that are stored.

        Args:
            cases: The cases.
            batch: The number of cases per transaction.
            on_batch: Called with the number of processed cases after each batch.
            import_id: The import of a file that the added cases belong to.

        Returns:
            The number of added and unchanged cases, and the first 1,000 conflicts.

        """
        added = unchanged = 0
        conflicts: list[CaseConflict] = []

        def keep(prepared: list[_PreparedCase]) -> None:
            nonlocal added, unchanged
            with self._database.transaction(durable=False) as connection:
                at = self._database.now()
                for case in prepared:
                    try:
                        if _insert_case(connection, case, at, import_id) == "added":
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
        """Return a case, equal to the imported one. Raises UnknownRecord."""
        row = self._database.row(
            "SELECT payload FROM cases JOIN case_payloads ON case_seq = seq WHERE id = ?", [case_id]
        )
        if row is None:
            raise UnknownRecord(f"there is no case {case_id!r}. Import cases with `masis import`.")
        return Case.from_stored(row[0])

    def count(self) -> int:
        """Return the number of cases, without decided copies with a planted fault."""
        return int(self._database.value("SELECT count(*) FROM cases WHERE standing <> 'planted'"))

    def iterate(self) -> Iterator[Case]:
        """Yield all cases in the order of import, loading 50 at a time.

        Cases that are added in the meantime are included.
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
    """Return the error for a case whose content can't be read."""
    [case] = connection.execute("SELECT id FROM cases WHERE seq = ?", [seq]).fetchone() or [
        f"number {seq}"
    ]
    return RecordDamaged(
        f"case {case!r} can't be read: its stored content is damaged or was altered. Restore a"
        " backup (`masis db restore`)."
    )


def _insert_case(
    connection: sqlite3.Connection,
    prepared: _PreparedCase,
    at: str,
    import_id: str | None = None,
) -> Literal["added", "unchanged"]:
    case = prepared.case
    found = connection.execute("SELECT digest FROM cases WHERE id = ?", [case.id]).fetchone()
    if found is not None:
        if found[0] == prepared.digest:
            return "unchanged"
        raise CaseConflict(
            f"case {case.id!r} is already here with other content. Runs and decisions refer to it,"
            " so it isn't overwritten. Give the new case another id, or read the file with --map"
            " id= (in Python map={'id': None}), which derives ids from the content. To erase the"
            " content of the old case, use 'masis db redact case'.",
            case=case.id,
        )
    row = {
        "id": case.id,
        "digest": prepared.digest,
        "imported_at": at,
        "import_id": import_id,
        "updated_at": at,
        "query_start": case.query[: QUERY_SHOWN + 1],
        "field": _metadata_word(case.metadata.get("field")),
        "dataset": _metadata_word(case.metadata.get("dataset")),
        "system": case.system,
        "question_seq": question_of(connection, case, at),
        "answer_length": None if case.answer is None else len(case.answer),
        "answer_cost": case.cost_usd,
        "wanted": in_force(connection, QueuePolicy).decisions_needed(case.id),
    }
    seq = insert(connection, "cases", row)
    connection.execute("INSERT INTO case_payloads VALUES (?, ?)", [seq, prepared.payload])
    index_words(connection, seq, case)
    return "added"


def index_words(connection: sqlite3.Connection, seq: int, case: Case) -> None:
    """Add the words of a case to the search index under its number."""
    connection.execute(
        "INSERT INTO case_words (rowid, id, query, answer, evidence) VALUES (?, ?, ?, ?, ?)",
        [seq, *_indexed_words(case)],
    )


def unindex_words(connection: sqlite3.Connection, seq: int, case: Case) -> None:
    """Remove the words of a case from the search index."""
    connection.execute(
        # The index doesn't store the texts, so FTS5 needs exactly the indexed ones to find the
        # entries to remove (sqlite.org/fts5.html#the_delete_command).
        "INSERT INTO case_words (case_words, rowid, id, query, answer, evidence) VALUES ('delete',"
        " ?, ?, ?, ?, ?)",
        [seq, *_indexed_words(case)],
    )


def _indexed_words(case: Case) -> tuple[str, str, str, str]:
    return case.id, case.query, case.answer or "", "\n".join(chunk.text for chunk in case.evidence)


def _metadata_word(value: object) -> str | None:
    """Return a metadata value to filter by, cut to 100 characters, or None if it isn't text."""
    return value.strip()[:100] or None if isinstance(value, str) else None


_MAX_PREFILTERED_IDS = 3
"""Up to this many ids, payloads are searched as text before they are parsed. With more ids, the
text search takes longer than parsing.
"""


class EvidenceOfCases(StorePart):
    """The evidence of the cases of a store."""

    def cases_with(self, evidence_ids: Collection[str], limit: int = 10) -> dict[str, FoundCases]:
        """Return for each id the cases with a chunk that has exactly this id, oldest first.

        This reads every case once.
        """
        wanted = list(dict.fromkeys(evidence_ids))
        quoted = (
            [json.dumps(name, ensure_ascii=False) for name in wanted]
            if len(wanted) <= _MAX_PREFILTERED_IDS
            else []
        )
        holds = " OR ".join(["instr(payload, ?)"] * len(quoted)) or "1"
        rows = self._database.execute(
            # CROSS JOIN keeps SQLite from swapping the tables, so the payloads are read in the
            # order of the file.
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
        """Return the cases whose evidence contains all words of a text, best match first."""
        with self._database.reading() as connection:
            # If no evidence contains the last word, it is searched again as the beginning of a
            # word.
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
        """Return the newest 2,000 ids, from which a hint about a mistyped id is chosen."""
        sql = f"SELECT id FROM {table} ORDER BY seq DESC LIMIT 2000"  # noqa: S608
        rows = self._database.execute(sql)
        return tuple(row[0] for row in rows)

    def ids_beginning(self, table: Literal["cases", "runs"], text: str, limit: int) -> FoundCases:
        """Return the newest ids of cases or runs that begin with a text, and the number of all such
        ids.
        """
        # LIKE would treat % and _ in the text as wildcards.
        begins = f"FROM {table} WHERE substr(id, 1, length(?1)) = ?1"
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) {begins}", [text]).fetchone()[0]
            rows = connection.execute(
                f"SELECT id {begins} ORDER BY seq DESC LIMIT ?2", [text, limit]
            ).fetchall()
        return FoundCases(tuple(row[0] for row in rows), total)
