"""Cases, runs, the decision log, drafts: the first part of the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

APPLICATION_ID = 0x4D415349
"""``MASI`` in the file's header: how a database of the workbench is told from any other."""


def m001_cases_runs_and_decisions(db: Database) -> None:
    """Cases, runs with their iterations and events, and the decision log with its hash chain."""
    for statement in (
        f"PRAGMA application_id = {APPLICATION_ID}",
        "CREATE TABLE store_info (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
        """
        CREATE TABLE cases (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            digest TEXT NOT NULL,
            imported_at TEXT NOT NULL,
            query_start TEXT NOT NULL,
            field TEXT,
            dataset TEXT,
            -- all below is derived from runs and decision_log (states.py) and may be recomputed at any time
            state TEXT NOT NULL DEFAULT 'new',
            updated_at TEXT NOT NULL,
            version INTEGER NOT NULL DEFAULT 1,
            run_seq INTEGER REFERENCES runs (seq),
            decision_seq INTEGER REFERENCES decision_log (seq),
            reviewer TEXT,
            quality REAL,
            confidence REAL,
            overall REAL,
            invalid INTEGER,
            uncited INTEGER,
            iterations INTEGER,
            models TEXT NOT NULL DEFAULT '[]',
            flags TEXT NOT NULL DEFAULT '[]',
            reasons TEXT NOT NULL DEFAULT '[]',
            telling REAL NOT NULL DEFAULT -1,
            doubt REAL NOT NULL DEFAULT -1
        ) STRICT
        """,
        # apart from the narrow rows that lists are made of
        """
        CREATE TABLE case_payloads (
            case_seq INTEGER PRIMARY KEY REFERENCES cases (seq),
            payload TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE runs (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            case_digest TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('running', 'finished', 'interrupted')),
            owner TEXT NOT NULL,
            starts INTEGER NOT NULL DEFAULT 1,
            started_at TEXT NOT NULL,
            seen_at TEXT NOT NULL,
            ended_at TEXT,
            why TEXT NOT NULL DEFAULT '',
            cancel_requested INTEGER NOT NULL DEFAULT 0,
            models TEXT NOT NULL,
            settings TEXT NOT NULL,
            settings_digest TEXT NOT NULL,
            draft TEXT,
            payload BLOB,
            quality REAL,
            confidence REAL,
            overall REAL,
            invalid INTEGER,
            uncited INTEGER,
            iterations INTEGER,
            improvement REAL,
            termination TEXT,
            needs_review INTEGER,
            spot_check INTEGER,
            flags TEXT NOT NULL DEFAULT '[]',
            reasons TEXT NOT NULL DEFAULT '[]',
            telling REAL NOT NULL DEFAULT -1,
            doubt REAL NOT NULL DEFAULT -1
        ) STRICT
        """,
        "CREATE INDEX runs_of_case ON runs (case_seq, settings_digest, state)",
        "CREATE INDEX runs_unfinished ON runs (state) WHERE state != 'finished'",
        """
        CREATE TABLE run_iterations (
            run_seq INTEGER NOT NULL REFERENCES runs (seq),
            number INTEGER NOT NULL,
            payload BLOB NOT NULL,
            PRIMARY KEY (run_seq, number)
        ) STRICT
        """,
        """
        CREATE TABLE run_events (
            run_seq INTEGER NOT NULL REFERENCES runs (seq),
            seq INTEGER NOT NULL,
            payload TEXT NOT NULL,
            PRIMARY KEY (run_seq, seq)
        ) STRICT, WITHOUT ROWID
        """,
        # only grows: guarded by the triggers in guards.py. What people wrote lies in decision_payloads, so that it
        # can be redacted without a gap in the chain.
        """
        CREATE TABLE decision_log (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            at TEXT NOT NULL,
            payload_digest TEXT NOT NULL,
            previous TEXT NOT NULL,
            digest TEXT NOT NULL,
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            run_seq INTEGER REFERENCES runs (seq),
            kind TEXT NOT NULL,
            source TEXT NOT NULL,
            verdict TEXT,
            token TEXT UNIQUE,
            undoes INTEGER REFERENCES decision_log (seq),
            redacts INTEGER UNIQUE REFERENCES decision_log (seq)
        ) STRICT
        """,
        "CREATE INDEX decisions_of_case ON decision_log (case_seq)",
        """
        CREATE TABLE decision_payloads (
            entry_seq INTEGER PRIMARY KEY REFERENCES decision_log (seq),
            reviewer TEXT NOT NULL,
            payload TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX decisions_by_reviewer ON decision_payloads (reviewer)",
    ):
        db.execute(statement)


def m002_full_text_search(db: Database) -> None:
    """Words of id, question, answer and evidence, found by FTS5. The texts themselves stay in case_payloads."""
    db.execute(
        """
        CREATE VIRTUAL TABLE case_words USING fts5 (
            id, query, answer, evidence, content='', tokenize='unicode61 remove_diacritics 2'
        )
        """
    )
    db.execute(
        """
        INSERT INTO case_words (rowid, id, query, answer, evidence)
        SELECT cases.seq, cases.id, payload ->> '$.query', coalesce(payload ->> '$.answer', ''),
            (SELECT group_concat(coalesce(value ->> '$.text', ''), char(10)) FROM json_each(payload, '$.evidence'))
        FROM cases JOIN case_payloads ON case_seq = cases.seq ORDER BY cases.seq
        """
    )


def m003_queue_indexes(db: Database) -> None:
    """Orders of the queue, counts of each value, and all that is filtered by in one index that answers alone."""
    for statement in (
        "CREATE INDEX cases_telling ON cases (telling DESC)",
        "CREATE INDEX cases_doubt ON cases (doubt DESC)",
        "CREATE INDEX cases_state_telling ON cases (state, telling DESC)",
        "CREATE INDEX cases_field ON cases (field)",
        "CREATE INDEX cases_dataset ON cases (dataset)",
        "CREATE INDEX cases_reviewer ON cases (reviewer)",
        "CREATE INDEX cases_flags ON cases (flags)",
        "CREATE INDEX cases_reasons ON cases (reasons)",
        "CREATE INDEX cases_models ON cases (models)",
        """
        CREATE INDEX cases_filtered ON cases (
            state, field, dataset, reviewer, quality, confidence, telling, doubt, flags, reasons, models
        )
        """,
    ):
        db.execute(statement)


def m004_drafts(db: Database) -> None:
    """What people have typed and not yet submitted."""
    db.execute(
        """
        CREATE TABLE drafts (
            reviewer TEXT NOT NULL,
            subject TEXT NOT NULL,
            field TEXT NOT NULL,
            value TEXT NOT NULL,
            saved_at TEXT NOT NULL,
            PRIMARY KEY (reviewer, subject, field)
        ) STRICT, WITHOUT ROWID
        """
    )


def m005_case_counts(db: Database) -> None:
    """How many cases have which value, kept up by triggers: counting them anew takes 40 ms at 100,000 cases.

    ``flags``, ``reasons`` and ``models`` are counted by whole list, of which there are few.
    """
    names = ("state", "field", "dataset", "reviewer", "models", "flags", "reasons")
    add = "ON CONFLICT (name, value) DO UPDATE SET cases = cases + 1"

    def each(row: str) -> str:
        return " UNION ALL ".join(f"SELECT '{name}' AS name, {row}.{name} AS value" for name in names)

    changed = " UNION ALL ".join(
        f"SELECT '{name}' AS name, OLD.{name} AS was, NEW.{name} AS value WHERE OLD.{name} IS NOT NEW.{name}"
        for name in names
    )
    for statement in (
        """
        CREATE TABLE case_counts (
            name TEXT NOT NULL, value TEXT NOT NULL, cases INTEGER NOT NULL, PRIMARY KEY (name, value)
        ) STRICT, WITHOUT ROWID
        """,
        *(
            f"INSERT INTO case_counts SELECT '{name}', {name}, count(*) FROM cases WHERE {name} IS NOT NULL GROUP BY 2"  # noqa: S608
            for name in names
        ),
        f"""
        CREATE TRIGGER case_counts_insert AFTER INSERT ON cases BEGIN
            INSERT INTO case_counts SELECT name, value, 1 FROM ({each("NEW")}) WHERE value IS NOT NULL {add};
        END
        """,  # noqa: S608 (every name is ours)
        f"""
        CREATE TRIGGER case_counts_update AFTER UPDATE OF {", ".join(names)} ON cases BEGIN
            UPDATE case_counts SET cases = cases - 1 WHERE (name, value) IN (SELECT name, was FROM ({changed}));
            INSERT INTO case_counts SELECT name, value, 1 FROM ({changed}) WHERE value IS NOT NULL {add};
        END
        """,  # noqa: S608
        f"""
        CREATE TRIGGER case_counts_delete AFTER DELETE ON cases BEGIN
            UPDATE case_counts SET cases = cases - 1 WHERE (name, value) IN ({each("OLD")});
        END
        """,  # noqa: S608
    ):
        db.execute(statement)


def m006_beginnings_of_words(db: Database) -> None:
    """Beginnings of three and four letters get an index: merging the lists of all words they begin took 500 ms."""
    db.execute("DROP TABLE case_words")
    db.execute(
        """
        CREATE VIRTUAL TABLE case_words USING fts5 (
            id, query, answer, evidence, content='', tokenize='unicode61 remove_diacritics 2', prefix='3 4'
        )
        """
    )
    db.execute(
        """
        INSERT INTO case_words (rowid, id, query, answer, evidence)
        SELECT cases.seq, cases.id, payload ->> '$.query', coalesce(payload ->> '$.answer', ''),
            (SELECT group_concat(coalesce(value ->> '$.text', ''), char(10)) FROM json_each(payload, '$.evidence'))
        FROM cases JOIN case_payloads ON case_seq = cases.seq ORDER BY cases.seq
        """
    )


def m010_steps_of_an_iteration(db: Database) -> None:
    """What the iteration under way has finished, so that a run cut short goes on after its last finished step."""
    db.execute(
        """
        CREATE TABLE run_steps (
            seq INTEGER PRIMARY KEY,
            run_seq INTEGER NOT NULL REFERENCES runs (seq),
            number INTEGER NOT NULL,
            payload BLOB NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX run_steps_of_a_run ON run_steps (run_seq)")


def m013_disagreement(db: Database) -> None:
    """The order ``telling`` is called ``disagreement``, and the flag ``needless`` is called ``redundant``.

    Only what is derived is renamed: nothing inside a case, a run, an entry of a log or an archive.
    """
    for index in ("cases_telling", "cases_state_telling"):
        db.execute(f"DROP INDEX {index}")
    for table in ("cases", "runs"):
        db.execute(f"ALTER TABLE {table} RENAME COLUMN telling TO disagreement")
        db.execute(
            f"""UPDATE {table} SET flags = replace(flags, '"needless"', '"redundant"')
                WHERE instr(flags, '"needless"')"""  # noqa: S608
        )
    db.execute("CREATE INDEX cases_disagreement ON cases (disagreement DESC)")
    db.execute("CREATE INDEX cases_state_disagreement ON cases (state, disagreement DESC)")


def m014_redacted_cases(db: Database) -> None:
    """A redacted case names the entry of the decision log that says who redacted it, when and why."""
    db.execute("ALTER TABLE cases ADD COLUMN redaction_seq INTEGER REFERENCES decision_log (seq)")
