"""Searching the words of a corpus: best first by BM25, a word in the title weighing three times one in the text.

Any of the words may match. Ranking every abstract that holds a common word ("children", "risk") is most of the work and
finds nothing, so the rare words choose and the common ones only weigh: abstracts without any rare word are left out
where they can't come that far up. That is proven for each search, not assumed: the most that the common words could
give an abstract is compared with the score of the last one found, and where it could be more, as many common words
choose too as it takes. So the order is that of the plain ranking, only sooner.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

CHOSEN_FROM = 10_000
"""Rows that the rare words may match together: ranking so many takes some 20 ms."""

TITLE_WEIGHT, TEXT_WEIGHT, KEYWORDS_WEIGHT = 3.0, 1.0, 2.0

COLUMNS = ("title", "text", "keywords")

EVERY = "e"
"""The one word of the column ``every`` of each row: what makes a word optional in FTS5, which has no other way."""

_K1, _LEAST_IDF = 1.2, 1e-6
"""Constants of FTS5's bm25(): no word gives an abstract more than its idf times (k1 + 1)."""

_FIELDS = f"{{{' '.join(COLUMNS)}}}"


class Index(NamedTuple):
    """The FTS5 table of a corpus, and how many abstracts it holds."""

    table: str
    documents: int


class _Term(NamedTuple):
    phrase: str
    documents: int


class _Hit(NamedTuple):
    seq: int
    score: float


def table_of(corpus_seq: int) -> str:
    """The name of the FTS5 table of a corpus."""
    return f"corpus_words_{int(corpus_seq)}"


def create(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Make the index of a new corpus. The texts themselves stay in corpus_abstracts."""
    connection.execute(
        f"""CREATE VIRTUAL TABLE {table_of(corpus_seq)} USING fts5 (
            {", ".join(COLUMNS)}, every, content='', tokenize='porter unicode61 remove_diacritics 2'
        )"""
    )


def drop(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Remove the index of a corpus."""
    connection.execute(f"DROP TABLE {table_of(corpus_seq)}")


def insert(
    connection: sqlite3.Connection, corpus_seq: int, seq: int, *, title: str, text: str, keywords: Sequence[str]
) -> None:
    """Index one abstract under its number."""
    connection.execute(
        f"INSERT INTO {table_of(corpus_seq)} (rowid, title, text, keywords, every) VALUES (?, ?, ?, ?, ?)",  # noqa: S608
        [seq, title, text, "\n".join(keywords), EVERY],
    )


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Corpora whose abstracts, index and counted imports don't fit each other."""
    for row in connection.execute("SELECT * FROM corpora ORDER BY seq").fetchall():
        table, of = table_of(row["seq"]), [row["seq"]]
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone():
            yield f"the words of corpus {row['name']!r} are gone"
            continue
        indexed = connection.execute(f"SELECT count(*) FROM {table}_docsize").fetchone()[0]  # noqa: S608
        held = connection.execute("SELECT count(*) FROM corpus_abstracts WHERE corpus_seq = ?", of).fetchone()[0]
        counted = connection.execute("SELECT sum(added) FROM corpus_imports WHERE corpus_seq = ?", of).fetchone()[0]
        if not held == indexed == (counted or 0):
            yield (
                f"corpus {row['name']!r} holds {held} abstracts, the words of {indexed}, and counts {counted or 0} "
                "as imported"
            )


def search(
    connection: sqlite3.Connection,
    index: Index,
    terms: Sequence[str],
    *,
    limit: int,
    offset: int = 0,
    chosen_from: int = CHOSEN_FROM,
) -> list[int]:
    """The numbers of the abstracts that hold any of the terms, best first; what is equally good in order of import."""
    rare, common = _parted(_counted(connection, index, terms), chosen_from)
    if not rare:
        return []
    last = offset + limit
    hits = _ranked(connection, index, rare, common, last)
    if needed := _needed(hits, last, common, index.documents):
        hits = _ranked(connection, index, [*rare, *common[:needed]], common[needed:], last)
    return [hit.seq for hit in hits[offset:]]


def _counted(connection: sqlite3.Connection, index: Index, terms: Sequence[str]) -> list[_Term]:
    """The terms that occur, rarest first, as FTS5 phrases: quoted, so that nothing in them is read as syntax."""
    found = []
    for term in terms:
        quoted = term.replace('"', '""')
        phrase = f'"{quoted}"'
        count = f"SELECT count(*) FROM {index.table} WHERE {index.table} MATCH ?"  # noqa: S608 (a name of ours)
        found.append(_Term(phrase, connection.execute(count, [f"{_FIELDS} : {phrase}"]).fetchone()[0]))
    return sorted((term for term in found if term.documents), key=lambda term: (term.documents, term.phrase))


def _parted(terms: Sequence[_Term], chosen_from: int) -> tuple[list[_Term], list[_Term]]:
    """The rare terms that choose (at least one) and the common ones that only weigh."""
    rows = 0
    for number, term in enumerate(terms):
        rows += term.documents
        if number and rows > chosen_from:
            return list(terms[:number]), list(terms[number:])
    return list(terms), []


def _ranked(
    connection: sqlite3.Connection, index: Index, choosing: Sequence[_Term], weighing: Sequence[_Term], last: int
) -> list[_Hit]:
    query = _any_of(choosing)
    if weighing:
        query += f" AND ({_any_of(weighing)} OR every : {EVERY})"
    # the sum runs over the terms in their order, rare before common, whether or not the common ones choose: the same
    # abstract has the same score to the last bit either way, and nothing needs rounding, which takes SQLite longer
    score = f"bm25({index.table}, {TITLE_WEIGHT}, {TEXT_WEIGHT}, {KEYWORDS_WEIGHT}, 0.0)"
    rows = connection.execute(
        f"SELECT rowid, {score} AS score FROM {index.table} WHERE {index.table} MATCH ? ORDER BY score, rowid LIMIT ?",  # noqa: S608
        [query, last],
    )
    return [_Hit(seq, -score) for seq, score in rows]


def _any_of(terms: Sequence[_Term]) -> str:
    return f"({_FIELDS} : ({' OR '.join(term.phrase for term in terms)}))"


def _needed(hits: Sequence[_Hit], last: int, common: Sequence[_Term], documents: int) -> int:
    """How many of the common terms must choose too, so that no abstract left out can stand among the first ``last``.

    The score of the last one only rises as more abstracts are ranked, so one further pass is enough.
    """
    least = hits[-1].score if len(hits) >= last else 0.0
    most = [_idf(term, documents) * (_K1 + 1) for term in common]
    return next((number for number in range(len(most)) if sum(most[number:]) < least), len(most))


def _idf(term: _Term, documents: int) -> float:
    return max(math.log((documents - term.documents + 0.5) / (term.documents + 0.5)), _LEAST_IDF)
