"""Corpora of abstracts and what screening them leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database


def m007_corpora(db: Database) -> None:
    """Corpora, their abstracts and what each import brought.

    The words of a corpus lie in an FTS5 table of its own (``corpus_words_<seq>``, made with the corpus): how rare a
    word is, on which the order rests, is then a matter of that corpus alone, and removing it takes no time.
    """
    for statement in (
        """
        CREATE TABLE corpora (
            seq INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            made_at TEXT NOT NULL,
            note TEXT NOT NULL DEFAULT ''
        ) STRICT
        """,
        """
        CREATE TABLE corpus_abstracts (
            seq INTEGER PRIMARY KEY,
            corpus_seq INTEGER NOT NULL REFERENCES corpora (seq),
            id TEXT NOT NULL,
            doi TEXT,
            pmid TEXT,
            title_key TEXT,
            year INTEGER,
            payload TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX abstracts_of_corpus ON corpus_abstracts (corpus_seq)",
        "CREATE UNIQUE INDEX abstracts_by_id ON corpus_abstracts (corpus_seq, id)",
        "CREATE INDEX abstracts_by_doi ON corpus_abstracts (corpus_seq, doi) WHERE doi IS NOT NULL",
        "CREATE INDEX abstracts_by_pmid ON corpus_abstracts (corpus_seq, pmid) WHERE pmid IS NOT NULL",
        "CREATE INDEX abstracts_by_title ON corpus_abstracts (corpus_seq, title_key) WHERE title_key IS NOT NULL",
        # counts are written with the abstracts they count: an import that is cut short counts what it brought
        """
        CREATE TABLE corpus_imports (
            seq INTEGER PRIMARY KEY,
            corpus_seq INTEGER NOT NULL REFERENCES corpora (seq),
            at TEXT NOT NULL,
            source TEXT NOT NULL,
            identified INTEGER NOT NULL DEFAULT 0,
            added INTEGER NOT NULL DEFAULT 0,
            duplicates INTEGER NOT NULL DEFAULT 0,
            faulty INTEGER NOT NULL DEFAULT 0
        ) STRICT
        """,
        "CREATE INDEX imports_of_corpus ON corpus_imports (corpus_seq)",
    ):
        db.execute(statement)
