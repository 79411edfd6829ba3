"""Searching a corpus by FTS5: best first by BM25, where a word in the title weighs three times one
in the text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from masis.schema.screening import Abstract
from masis.store.core.sql import insert

TITLE_WEIGHT, TEXT_WEIGHT, KEYWORDS_WEIGHT = 3.0, 1.0, 2.0

COLUMNS = ("title", "text", "keywords")


def table_of(corpus_seq: int) -> str:
    """The name of the FTS5 table of a corpus."""
    return f"corpus_words_{int(corpus_seq)}"


def create(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Make the index of a new corpus. The texts themselves stay in corpus_abstracts."""
    connection.execute(f"""CREATE VIRTUAL TABLE {table_of(corpus_seq)} USING fts5 (
            {", ".join(COLUMNS)}, content='', tokenize='porter unicode61 remove_diacritics 2'
        )""")


def drop(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Remove the index of a corpus."""
    connection.execute(f"DROP TABLE {table_of(corpus_seq)}")


def index(connection: sqlite3.Connection, corpus_seq: int, seq: int, abstract: Abstract) -> None:
    """Index one abstract under its number."""
    words = {
        "title": abstract.title,
        "text": abstract.text,
        "keywords": "\n".join(abstract.keywords),
    }
    insert(connection, table_of(corpus_seq), {"rowid": seq, **words})


def problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield a message for each corpus whose abstracts, index and import counts disagree."""
    for row in connection.execute("SELECT * FROM corpora ORDER BY seq").fetchall():
        table, of = table_of(row["seq"]), [row["seq"]]
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone():
            yield f"the words of corpus {row['name']!r} are gone"
            continue
        sql = f"SELECT count(*) FROM {table}_docsize"  # noqa: S608
        indexed = connection.execute(sql).fetchone()[0]
        stored = connection.execute(
            "SELECT count(*) FROM corpus_abstracts WHERE corpus_seq = ?", of
        ).fetchone()[0]
        counted = connection.execute(
            "SELECT sum(added) FROM corpus_imports WHERE corpus_seq = ?", of
        ).fetchone()[0]
        if not stored == indexed == (counted or 0):
            yield (
                f"corpus {row['name']!r} holds {stored} abstracts, the words of {indexed}, and"
                f" counts {counted or 0} as imported"
            )


def search(
    connection: sqlite3.Connection,
    corpus_seq: int,
    terms: Sequence[str],
    *,
    limit: int,
    offset: int = 0,
) -> list[int]:
    """The numbers of the abstracts that hold any of the terms, best first; what is equally good in
    order of import.

    Ranking every abstract that holds a common word takes 50 ms of 100,000
    (``benchmarks/corpus.py``).
    """
    if not terms:
        return []
    table = table_of(corpus_seq)
    # quoted, so that nothing in a term is read as FTS5's syntax
    phrases = ['"' + term.replace('"', '""') + '"' for term in terms]
    rows = connection.execute(
        f"""SELECT rowid FROM {table} WHERE {table} MATCH ?
            ORDER BY bm25({table}, {TITLE_WEIGHT}, {TEXT_WEIGHT}, {KEYWORDS_WEIGHT}), rowid
                LIMIT ? OFFSET ?""",  # noqa: S608
        [" OR ".join(phrases), limit, offset],
    )
    return [row[0] for row in rows]
