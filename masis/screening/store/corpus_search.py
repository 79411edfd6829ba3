"""Searches a corpus with FTS5, best match first by BM25.

A word in the title weighs three times as much as one in the text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from masis.schema.screening import Abstract
from masis.store.core.sql import insert

TITLE_WEIGHT, TEXT_WEIGHT, KEYWORDS_WEIGHT = 3.0, 1.0, 2.0

COLUMNS = ("title", "text", "keywords")


def table_of(corpus_seq: int) -> str:
    """Return the name of a corpus's FTS5 table."""
    return f"corpus_words_{int(corpus_seq)}"


def create(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Create the index of a new corpus."""
    # content='' makes the index contentless: the texts are only stored in corpus_abstracts
    # (sqlite.org/fts5.html#contentless_tables).
    connection.execute(f"""CREATE VIRTUAL TABLE {table_of(corpus_seq)} USING fts5 (
            {", ".join(COLUMNS)}, content='', tokenize='porter unicode61 remove_diacritics 2'
        )""")


def drop(connection: sqlite3.Connection, corpus_seq: int) -> None:
    """Remove the index of a corpus."""
    connection.execute(f"DROP TABLE {table_of(corpus_seq)}")


def index(connection: sqlite3.Connection, corpus_seq: int, seq: int, abstract: Abstract) -> None:
    """Add an abstract to the index under its number."""
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
            yield f"the search index of corpus {row['name']!r} is missing"
            continue
        # FTS5's shadow table with one row per indexed document (sqlite.org/fts5.html, section 9).
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
                f"corpus {row['name']!r} has {stored} abstracts, but {indexed} are indexed and"
                f" {counted or 0} were counted on import"
            )


def search(
    connection: sqlite3.Connection,
    corpus_seq: int,
    terms: Sequence[str],
    *,
    limit: int,
    offset: int = 0,
) -> list[int]:
    """Return the numbers of abstracts that contain any of the terms, best match first.

    Equal matches are in the order of import. Ranking 100,000 abstracts that contain a common word
    takes 50 ms (``benchmarks/corpus.py``).
    """
    if not terms:
        return []
    table = table_of(corpus_seq)
    # In quotes, so that no part of a term is parsed as FTS5 syntax.
    phrases = ['"' + term.replace('"', '""') + '"' for term in terms]
    # bm25() is more negative for better matches, so ascending order is best first
    # (sqlite.org/fts5.html#the_bm25_function).
    rows = connection.execute(
        f"""SELECT rowid FROM {table} WHERE {table} MATCH ?
            ORDER BY bm25({table}, {TITLE_WEIGHT}, {TEXT_WEIGHT}, {KEYWORDS_WEIGHT}), rowid
                LIMIT ? OFFSET ?""",  # noqa: S608
        [" OR ".join(phrases), limit, offset],
    )
    return [row[0] for row in rows]
