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


def m008_screenings(db: Database) -> None:
    """Screenings with their rounds, the abstracts they graded and their events, kept as they happen."""
    for statement in (
        """
        CREATE TABLE screenings (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            question TEXT NOT NULL,
            sources TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
            owner TEXT NOT NULL,
            starts INTEGER NOT NULL DEFAULT 1,
            started_at TEXT NOT NULL,
            seen_at TEXT NOT NULL,
            ended_at TEXT,
            why TEXT NOT NULL DEFAULT '',
            cancel_requested INTEGER NOT NULL DEFAULT 0,
            settings TEXT NOT NULL,
            thresholds TEXT,
            payload BLOB,
            outcome TEXT,
            kept INTEGER,
            version INTEGER NOT NULL DEFAULT 1
        ) STRICT
        """,
        "CREATE INDEX screenings_unfinished ON screenings (state) WHERE state != 'finished'",
        """
        CREATE TABLE screening_rounds (
            screening_seq INTEGER NOT NULL REFERENCES screenings (seq),
            number INTEGER NOT NULL,
            payload BLOB NOT NULL,
            PRIMARY KEY (screening_seq, number)
        ) STRICT, WITHOUT ROWID
        """,
        # a copy of each abstract as it was graded: corpora may be removed, PubMed corrects its records
        """
        CREATE TABLE screening_abstracts (
            seq INTEGER PRIMARY KEY,
            screening_seq INTEGER NOT NULL REFERENCES screenings (seq),
            abstract_id TEXT NOT NULL,
            round INTEGER NOT NULL,
            abstract BLOB NOT NULL,
            grade BLOB,
            UNIQUE (screening_seq, abstract_id)
        ) STRICT
        """,
        """
        CREATE TABLE screening_events (
            screening_seq INTEGER NOT NULL REFERENCES screenings (seq),
            seq INTEGER NOT NULL,
            payload TEXT NOT NULL,
            PRIMARY KEY (screening_seq, seq)
        ) STRICT, WITHOUT ROWID
        """,
        # what graders said, by what it depends on: may be emptied at any time, and is then asked anew
        """
        CREATE TABLE remembered_grades (
            key TEXT PRIMARY KEY,
            at TEXT NOT NULL,
            grade BLOB NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
    ):
        db.execute(statement)


def m009_screening_log(db: Database) -> None:
    """What people said about grades, as a chain of its own that only grows (guards.py), and the acceptance memory."""
    for statement in (
        """
        CREATE TABLE screening_log (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            at TEXT NOT NULL,
            payload_digest TEXT NOT NULL,
            previous TEXT NOT NULL,
            digest TEXT NOT NULL,
            screening_seq INTEGER REFERENCES screenings (seq),
            kind TEXT NOT NULL,
            abstract_id TEXT,
            field TEXT,
            token TEXT UNIQUE,
            redacts INTEGER UNIQUE REFERENCES screening_log (seq)
        ) STRICT
        """,
        "CREATE INDEX entries_of_screening ON screening_log (screening_seq)",
        """
        CREATE TABLE screening_log_payloads (
            entry_seq INTEGER PRIMARY KEY REFERENCES screening_log (seq),
            reviewer TEXT NOT NULL,
            payload TEXT NOT NULL
        ) STRICT
        """,
        # a reset marks what it forgets and deletes nothing: how far the critic drifts is seen over all of it
        """
        CREATE TABLE acceptances (
            seq INTEGER PRIMARY KEY,
            screening_seq INTEGER NOT NULL REFERENCES screenings (seq),
            at TEXT NOT NULL,
            payload TEXT NOT NULL,
            forgotten_by INTEGER REFERENCES screening_log (seq)
        ) STRICT
        """,
        "CREATE INDEX acceptances_of_screening ON acceptances (screening_seq)",
        "CREATE INDEX acceptances_remembered ON acceptances (seq) WHERE forgotten_by IS NULL",
    ):
        db.execute(statement)
