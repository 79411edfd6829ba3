"""Stores searchable corpora of abstracts, and the counts of every import.

The counts are those of the PRISMA flow: identified = added + duplicates + faulty. The first record
of a study is kept. Later records of the same study (``screening/sources/records.py``) and notices
about it count as duplicates, but a retraction is applied to the stored study.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from pydantic_core import PydanticSerializationError

from masis.errors import InputError, RetrievalFailed, StoreError, UnknownRecord
from masis.schema.base import Record
from masis.schema.screening import Abstract, PublicationStatus
from masis.screening.sources.publication import (
    PublicationNotice,
    apply_notice,
    merge_notices,
    notice_of,
)
from masis.screening.sources.records import RecordKeys, record_keys, same_record
from masis.screening.sources.retrievers import search_terms
from masis.screening.store import corpus_search
from masis.store.audits.cases import BATCH, in_batches
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert, record_of


class _PreparedAbstract(NamedTuple):
    """An abstract ready to store, as JSON, with the keys that identify it."""

    abstract: Abstract
    payload: str
    marks: RecordKeys


def _prepare_abstract(abstract: Abstract) -> _PreparedAbstract | InputError:
    """Serialize an abstract before the transaction, so that the write lock is held briefly."""
    try:
        payload = _payload_of(abstract)
    except (PydanticSerializationError, ValueError) as error:
        return InputError(
            f"abstract {abstract.id!r} has a value that JSON can't represent ({error})",
            hint="Use text, numbers, lists and objects.",
        )
    return _PreparedAbstract(abstract, payload, record_keys(abstract))


def _payload_of(abstract: Abstract) -> str:
    return json.dumps(abstract.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


def _insert_abstract(
    connection: sqlite3.Connection, corpus: int, new: _PreparedAbstract
) -> Literal["added", "duplicate"] | InputError:
    """Add an abstract to a corpus, unless its study is already there.

    Returns an InputError if another abstract has its id.
    """
    if (same := _find_same_study(connection, corpus, new.marks)) is not None:
        _rewrite(connection, same, lambda stored: merge_notices(stored, new.abstract))
        return "duplicate"
    notice = notice_of(new.abstract)
    if notice is not None and (study := _study_of(connection, corpus, notice)) is not None:
        _rewrite(connection, study, lambda stored: apply_notice(stored, notice.status))
        return "duplicate"
    taken = connection.execute(
        "SELECT payload FROM corpus_abstracts WHERE corpus_seq = ? AND id = ?",
        [corpus, new.abstract.id],
    ).fetchone()
    if taken is not None:
        if taken[0] == new.payload:
            return "duplicate"
        return InputError(
            f"the id {new.abstract.id!r} of {new.abstract.title[:60]!r} is already used by another"
            " abstract in the corpus",
            hint=(
                "Give each abstract an id of its own, or import the file into a corpus of its own."
            ),
            field="id",
        )
    known = new.marks
    if notice is not None:
        # If the study is imported later, it is matched with this notice by its title.
        known = known._replace(title=notice.title)
    elif earlier := _notice_about(connection, corpus, known):
        payload = _payload_of(apply_notice(new.abstract, earlier))
        new = new._replace(payload=payload)
    marks = {"doi": known.doi, "pmid": known.pmid, "title_key": known.title, "year": known.year}
    row = {"corpus_seq": corpus, "id": new.abstract.id, **marks, "payload": new.payload}
    corpus_search.index(
        connection, corpus, insert(connection, "corpus_abstracts", row), new.abstract
    )
    return "added"


def _known_by(
    connection: sqlite3.Connection, corpus: int, marks: Iterable[tuple[str, str | None]]
) -> Iterator[sqlite3.Row]:
    """Yield the records of a corpus that have one of these keys, one column after the other."""
    for column, value in marks:
        if value is not None:
            sql = (
                f"SELECT * FROM corpus_abstracts WHERE corpus_seq = ? "  # noqa: S608
                f"AND {column} = ? LIMIT 100"
            )
            yield from connection.execute(sql, [corpus, value])


def _find_same_study(connection: sqlite3.Connection, corpus: int, new: RecordKeys) -> int | None:
    """Return the row of the stored record of the same study, or None."""
    for row in _known_by(
        connection, corpus, (("doi", new.doi), ("pmid", new.pmid), ("title_key", new.title))
    ):
        if same_record(new, RecordKeys(row["doi"], row["pmid"], row["title_key"], row["year"])):
            return int(row["seq"])
    return None


def _study_of(connection: sqlite3.Connection, corpus: int, notice: PublicationNotice) -> int | None:
    """Return the row of the study that a notice is about, or None."""
    named = [
        *(("doi", identifier) for identifier in notice.dois),
        *(("pmid", identifier) for identifier in notice.pmids),
    ]
    matches = _known_by(connection, corpus, (*named, ("title_key", notice.title or None)))
    return next(
        (
            row["seq"]
            for row in matches
            if notice_of(Abstract.model_validate_json(row["payload"])) is None
        ),
        None,
    )


def _notice_about(
    connection: sqlite3.Connection, corpus: int, study: RecordKeys
) -> PublicationStatus | None:
    """Return the status that an earlier notice gives a study, or None."""
    matches = _known_by(connection, corpus, [("title_key", study.title)])
    notices = (notice_of(Abstract.model_validate_json(row["payload"])) for row in matches)
    return next((notice.status for notice in notices if notice is not None), None)


def _rewrite(
    connection: sqlite3.Connection, seq: int, change: Callable[[Abstract], Abstract]
) -> None:
    """Update a stored study that a later record or a notice has marked."""
    stored = Abstract.model_validate_json(_payload(connection, seq))
    if (changed := change(stored)) != stored:
        connection.execute(
            "UPDATE corpus_abstracts SET payload = ? WHERE seq = ?", [_payload_of(changed), seq]
        )


_LONGEST_NAME = 100


class CorpusSummary(Record):
    """A corpus in a list. The counts are of all its imports together."""

    name: str
    made_at: str
    abstracts: int
    identified: int
    duplicates: int
    faulty: int
    sources: tuple[str, ...]


class CorpusImport(Record):
    """Counts of one import, where ``identified`` = ``added`` + ``duplicates`` + ``faulty``."""

    corpus: str
    source: str
    at: str
    identified: int
    added: int
    duplicates: int
    faulty: int


class Corpora(StorePart):
    """The corpora of a store."""

    def add_many(
        self,
        corpus: str,
        records: Iterable[Abstract | InputError],
        *,
        source: str,
        batch: int = BATCH,
        on_batch: Callable[[int], None] | None = None,
        on_error: Callable[[InputError], None] | None = None,
    ) -> CorpusImport:
        """Add records to a corpus, loading one batch at a time. A missing corpus is created.

        If the iterable raises or is interrupted, the records before that are stored and counted.

        Args:
            corpus: The name of the corpus.
            records: The abstracts, and the errors of records that couldn't be read.
            source: Where the records are from.
            batch: The number of records per transaction.
            on_batch: Called with the number of processed records after each batch.
            on_error: Called with each error: an unreadable record, or an id that another record
                has.

        Raises:
            InputError: The name of the corpus isn't allowed.

        """
        seq = self._begin(_checked_name(corpus), source)

        def keep(batch_of: list[Abstract | InputError]) -> None:
            for fault in self._keep(seq, batch_of):
                if on_error is not None:
                    on_error(fault)
            if on_batch is not None:
                on_batch(len(batch_of))

        in_batches(records, batch, keep)
        return self._import(seq)

    def list_all(self) -> tuple[CorpusSummary, ...]:
        """Return every corpus, sorted by name."""
        with self._database.reading() as connection:
            return _corpus_summaries(connection)

    def summary(self, corpus: str) -> CorpusSummary:
        """Return one corpus. Raises UnknownRecord."""
        matches = [summary for summary in self.list_all() if summary.name == corpus]
        if not matches:
            raise _unknown_corpus(corpus)
        return matches[0]

    def imports(self, corpus: str) -> tuple[CorpusImport, ...]:
        """Return the imports of a corpus, oldest first.

        Raises:
            UnknownRecord: There is no such corpus.

        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT seq FROM corpus_imports WHERE corpus_seq = ? ORDER BY seq",
                [_seq(connection, corpus)],
            ).fetchall()
            return tuple(self._import(row[0]) for row in rows)

    def iterate(self, corpus: str) -> Iterator[Abstract]:
        """Yield all abstracts in the order of import, loading 100 at a time.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            corpus_seq = _seq(connection, corpus)
        sql = (
            "SELECT seq, payload FROM corpus_abstracts WHERE corpus_seq = ? AND seq > ? ORDER"
            " BY seq"
        )
        for row in self._database.walk(sql, corpus_seq):
            yield Abstract.model_validate_json(row["payload"])

    def search(self, corpus: str, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return the abstracts that contain any search term of the query, best match first.

        Raises UnknownRecord.
        """
        if limit < 1:
            return ()
        with self._database.reading() as connection:
            terms, seq = search_terms(query), _seq(connection, corpus)
            numbers = corpus_search.search(
                connection, seq, terms, limit=limit, offset=max(offset, 0)
            )
            return tuple(
                Abstract.model_validate_json(_payload(connection, number)) for number in numbers
            )

    def retriever(self, corpus: str) -> CorpusRetriever:
        """Return a retriever that searches this corpus. Raises UnknownRecord."""
        with self._database.reading() as connection:
            _seq(connection, corpus)
        return CorpusRetriever(self, corpus)

    def remove(self, corpus: str) -> None:
        """Remove a corpus with its abstracts. Screenings keep copies of the abstracts they graded.

        Raises UnknownRecord.
        """
        with self._database.transaction(durable=False) as connection:
            # FAST frees the pages without overwriting them. Overwriting those of 100,000 published
            # abstracts blocked all other writers for 13 s.
            connection.execute("PRAGMA secure_delete = FAST")
            try:
                seq = _seq(connection, corpus)
                for table in ("corpus_abstracts", "corpus_imports"):
                    sql = f"DELETE FROM {table} WHERE corpus_seq = ?"  # noqa: S608
                    connection.execute(sql, [seq])
                connection.execute("DELETE FROM corpora WHERE seq = ?", [seq])
                corpus_search.drop(connection, seq)
            finally:
                connection.execute("PRAGMA secure_delete = ON")

    def _begin(self, corpus: str, source: str) -> int:
        with self._database.transaction(durable=False) as connection:
            at = self._database.now()
            row = connection.execute("SELECT seq FROM corpora WHERE name = ?", [corpus]).fetchone()
            if row is None:
                corpus_seq = insert(connection, "corpora", {"name": corpus, "made_at": at})
                corpus_search.create(connection, corpus_seq)
            else:
                corpus_seq = row[0]
            return insert(
                connection, "corpus_imports", {"corpus_seq": corpus_seq, "at": at, "source": source}
            )

    def _keep(self, import_seq: int, records: Iterable[Abstract | InputError]) -> list[InputError]:
        """Store and count a batch in one transaction, and return the errors."""
        ready = [
            record if isinstance(record, InputError) else _prepare_abstract(record)
            for record in records
        ]
        faults: list[InputError] = []
        added = 0
        with self._database.transaction(durable=False) as connection:
            row = connection.execute(
                "SELECT corpus_seq FROM corpus_imports WHERE seq = ?", [import_seq]
            ).fetchone()
            if row is None:
                raise StoreError(
                    "the corpus was removed while abstracts were imported into it. Import them"
                    " again."
                )
            for prepared in ready:
                outcome = (
                    prepared
                    if isinstance(prepared, InputError)
                    else _insert_abstract(connection, row[0], prepared)
                )
                if isinstance(outcome, InputError):
                    faults.append(outcome)
                added += outcome == "added"
            connection.execute(
                """UPDATE corpus_imports SET identified = identified + ?, added = added + ?,
                   duplicates = duplicates + ?, faulty = faulty + ? WHERE seq = ?""",
                [len(ready), added, len(ready) - added - len(faults), len(faults), import_seq],
            )
        return faults

    def _import(self, import_seq: int) -> CorpusImport:
        [row] = self._database.execute(
            """SELECT name AS corpus, source, at, identified, added, duplicates, faulty
               FROM corpus_imports JOIN corpora ON corpora.seq = corpus_seq
                   WHERE corpus_imports.seq = ?""",
            [import_seq],
        )
        return record_of(CorpusImport, row)


class CorpusRetriever:
    """A retriever that searches a stored corpus."""

    def __init__(self, corpora: Corpora, corpus: str) -> None:
        self._corpora, self._corpus = corpora, corpus

    @property
    def name(self) -> str:
        """``corpus:`` and the name of the corpus."""
        return f"corpus:{self._corpus}"

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` matching abstracts from ``offset`` on, best match first.

        Raises:
            RetrievalFailed: The corpus was removed meanwhile.

        """
        try:
            return self._corpora.search(self._corpus, query, limit, offset)
        except UnknownRecord as error:
            raise RetrievalFailed(str(error)) from error


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{name[:40]!r} can't name a corpus",
            hint=f"Use 1 to {_LONGEST_NAME} printable characters.",
            field="corpus",
        )
    return name


def _seq(connection: sqlite3.Connection, corpus: str) -> int:
    row = connection.execute("SELECT seq FROM corpora WHERE name = ?", [corpus]).fetchone()
    if row is None:
        raise _unknown_corpus(corpus)
    return int(row[0])


def _unknown_corpus(corpus: str) -> UnknownRecord:
    return UnknownRecord(f"there is no corpus {corpus!r}. Import abstracts into it first.")


def _payload(connection: sqlite3.Connection, seq: int) -> str:
    return str(
        connection.execute("SELECT payload FROM corpus_abstracts WHERE seq = ?", [seq]).fetchone()[
            0
        ]
    )


def _corpus_summaries(connection: sqlite3.Connection) -> tuple[CorpusSummary, ...]:
    rows = connection.execute(
        """SELECT name, made_at, coalesce(sum(added), 0) AS abstracts,
            coalesce(sum(identified), 0) AS identified,
               coalesce(sum(duplicates), 0) AS duplicates, coalesce(sum(faulty), 0) AS faulty,
               (SELECT json_group_array(source) FROM (
                    SELECT source FROM corpus_imports WHERE corpus_seq = corpora.seq
                        GROUP BY source ORDER BY min(seq)
                )) AS sources
           FROM corpora LEFT JOIN corpus_imports ON corpus_seq = corpora.seq GROUP BY corpora.seq
               ORDER BY name"""
    )
    return tuple(record_of(CorpusSummary, row, parsed=("sources",)) for row in rows)
