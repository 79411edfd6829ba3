"""The steps of the schema, grouped by subject; their numbers say the order. Appended, never edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database


from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database


import sqlite3
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from masis.store.core.migrations.migration_progress import rows

if TYPE_CHECKING:
    from sqlite_utils import Database


import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database


# Cases, runs, the decision log, drafts: the first part of the schema.


APPLICATION_ID = 0x4D415349
"""``MASI`` in the file's header: what tells a database of the workbench from any other."""


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
    """How many cases have which value, kept up by triggers: counting them each time takes 40 ms at 100,000 cases.

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


def m015_risk(db: Database) -> None:
    """The queue's order by estimated probability of fault, and the tier of a case's reasons for review.

    Runs stored before get an estimate from their figures alone; recomputing their acceptance brings the one from
    their iterations.
    """
    must_look = (
        *("hallucination", "invalid_reference", "contradicted_claim", "unsupported_claim", "partial_claim"),
        *("serious_issue", "safety", "insufficient_evidence"),
    )
    serious = " OR ".join(f"instr(reasons, '\"{code}\"')" for code in must_look)
    for table in ("cases", "runs"):
        for statement in (
            f"ALTER TABLE {table} ADD COLUMN tier TEXT",
            f"ALTER TABLE {table} ADD COLUMN risk REAL NOT NULL DEFAULT -1",
            f"""UPDATE {table} SET tier = CASE WHEN {serious} THEN 'must_look' ELSE 'not_certified' END
                WHERE reasons != '[]'""",  # noqa: S608 (every name is ours)
            f"""UPDATE {table} SET risk = CASE tier WHEN 'must_look' THEN 2 WHEN 'not_certified' THEN 1 ELSE 0 END
                    + min(0.99, 0.7 * max(doubt, 0) + 0.3 * max(disagreement, 0))
                WHERE doubt >= 0""",  # noqa: S608
        ):
            db.execute(statement)
    for statement in (
        "CREATE INDEX cases_risk ON cases (risk DESC)",
        "CREATE INDEX cases_state_risk ON cases (state, risk DESC)",
        "CREATE INDEX cases_tier ON cases (tier)",
        "DROP INDEX cases_filtered",
        """
        CREATE INDEX cases_filtered ON cases (
            state, tier, field, dataset, reviewer, quality, confidence, risk, disagreement, doubt, flags, reasons,
            models
        )
        """,
        "INSERT INTO case_counts SELECT 'tier', tier, count(*) FROM cases WHERE tier IS NOT NULL GROUP BY 2",
    ):
        db.execute(statement)
    _count_by_triggers(db, ("state", "tier", "field", "dataset", "reviewer", "models", "flags", "reasons"))


def m016_rule_of_acceptance(db: Database) -> None:
    """Which acceptance rule a run's reasons follow; of runs stored before it is not known here."""
    db.execute("ALTER TABLE runs ADD COLUMN rule TEXT")


def m019_inbox(db: Database) -> None:
    """What programs have sent in over HTTP, and what became of it."""
    db.execute(
        """
        CREATE TABLE inbox (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            source TEXT NOT NULL,
            key TEXT,
            digest TEXT NOT NULL,
            form TEXT NOT NULL,
            body BLOB NOT NULL,
            received_at TEXT NOT NULL,
            done_at TEXT,
            result TEXT
        ) STRICT
        """
    )
    db.execute("CREATE UNIQUE INDEX inbox_keys ON inbox (source, key) WHERE key IS NOT NULL")
    db.execute("CREATE INDEX inbox_waiting ON inbox (seq) WHERE done_at IS NULL")


def m017_signatures(db: Database) -> None:
    """Signatures of entries of the logs, made with a key that lies outside of the database."""
    db.execute(
        """
        CREATE TABLE log_signatures (
            log TEXT NOT NULL,
            seq INTEGER NOT NULL,
            signature TEXT NOT NULL,
            PRIMARY KEY (log, seq)
        ) STRICT, WITHOUT ROWID
        """
    )


def _count_by_triggers(db: Database, names: tuple[str, ...]) -> None:
    add = "ON CONFLICT (name, value) DO UPDATE SET cases = cases + 1"

    def each(row: str) -> str:
        return " UNION ALL ".join(f"SELECT '{name}' AS name, {row}.{name} AS value" for name in names)

    changed = " UNION ALL ".join(
        f"SELECT '{name}' AS name, OLD.{name} AS was, NEW.{name} AS value WHERE OLD.{name} IS NOT NEW.{name}"
        for name in names
    )
    for statement in (
        *(f"DROP TRIGGER case_counts_{when}" for when in ("insert", "update", "delete")),
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


# Corpora of abstracts and what screening them leaves behind.


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
        # what graders said, by what it depends on: may be emptied at any time, and is then asked again
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


# The figures of runs, apart from the runs, so that they can be added up and outlast the texts.


_RUN = (
    *("run_id", "finished_at", "dataset"),
    *("drafter", "verifier", "critic", "reviser", "evaluator"),
    *("loop_ms", "iterations", "converged", "termination", "needs_review", "improvement_percentage"),
    *("quality", "confidence", "overall"),
    *("calls", "tries", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"),
    *("hallucination", "revision", "claim_confidence", "claims"),
)
_ITERATION = (
    *("measures_seq", "number", "critic_ms", "reviser_ms", "evaluator_ms", "iteration_ms"),
    *("quality", "improvement_delta", "issues", "major_issues", "confidence", "conflicts"),
    *("invalid_citations", "uncited_claims", "overall", "faithfulness", "relevance", "completeness", "reasoning"),
)


def m011_measures_of_runs(db: Database) -> None:
    """A row of figures for each finished run and each of its iterations, filled for the runs that stand.

    They name a run by its id and no row of ``runs``: what is removed there leaves its figures here.
    """
    for statement in (
        """
        CREATE TABLE run_measures (
            seq INTEGER PRIMARY KEY,
            run_id TEXT NOT NULL UNIQUE,
            finished_at TEXT NOT NULL,
            dataset TEXT,
            drafter TEXT, verifier TEXT, critic TEXT, reviser TEXT, evaluator TEXT,
            loop_ms REAL NOT NULL,
            iterations INTEGER NOT NULL,
            converged INTEGER NOT NULL,
            termination TEXT NOT NULL,
            needs_review INTEGER NOT NULL,
            improvement_percentage REAL,
            quality REAL, confidence REAL, overall REAL,
            calls INTEGER NOT NULL,
            tries INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL,
            cached_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL,
            cost_usd REAL,
            hallucination INTEGER,
            revision INTEGER,
            claim_confidence REAL,
            claims INTEGER
        ) STRICT
        """,
        "CREATE INDEX run_measures_finished ON run_measures (finished_at)",
        "CREATE INDEX run_measures_critic ON run_measures (critic, finished_at)",
        """
        CREATE TABLE iteration_measures (
            measures_seq INTEGER NOT NULL REFERENCES run_measures (seq) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            critic_ms REAL, reviser_ms REAL, evaluator_ms REAL,
            iteration_ms REAL NOT NULL,
            quality REAL,
            improvement_delta REAL,
            issues INTEGER NOT NULL,
            major_issues INTEGER NOT NULL,
            confidence REAL,
            conflicts INTEGER NOT NULL,
            invalid_citations INTEGER NOT NULL,
            uncited_claims INTEGER NOT NULL,
            overall REAL, faithfulness REAL, relevance REAL, completeness REAL, reasoning REAL,
            PRIMARY KEY (measures_seq, number)
        ) STRICT, WITHOUT ROWID
        """,
    ):
        db.execute(statement)
    _fill(db)


def _fill(db: Database) -> None:
    """Read every finished run once; one whose record is damaged is left out."""
    connection: sqlite3.Connection = db.conn
    finished = "FROM runs JOIN cases ON cases.seq = case_seq WHERE runs.state = 'finished' AND payload IS NOT NULL"
    total = connection.execute(f"SELECT count(*) {finished}").fetchone()[0]
    found = connection.execute(f"SELECT runs.seq, runs.id, cases.dataset, payload {finished} ORDER BY runs.seq")
    insert_run, insert_iteration = _inserting("run_measures", _RUN), _inserting("iteration_measures", _ITERATION)
    for seq, run_id, dataset, payload in rows(found, total):
        iterations = [
            _read_iteration(_unpacked(row[0]))
            for row in connection.execute("SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [seq])
        ]
        run = _read(_unpacked(payload))
        if run is None or None in iterations:
            continue
        figures = [_iteration(each) for each in iterations if each is not None]
        row = _run(run, [each for each in iterations if each is not None], figures)
        row |= {"run_id": run_id, "dataset": dataset}
        kept = connection.execute(insert_run, [row.get(column) for column in _RUN]).lastrowid
        connection.executemany(
            insert_iteration, [[kept, *(each.get(column) for column in _ITERATION[1:])] for each in figures]
        )


def _inserting(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608


def _unpacked(payload: bytes) -> bytes:
    """The text; empty where it is damaged."""
    try:
        return zlib.decompress(payload)
    except zlib.error:
        return b""


def _read(text: bytes) -> dict[str, Any] | None:
    try:
        found = from_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _read_iteration(text: bytes) -> dict[str, Any] | None:
    return _read(_without_claims(text)) or _read(text)


def _without_claims(text: bytes) -> bytes:
    """An iteration without its claims, a third of its text, which no figure needs.

    Inside a string every quote has a backslash before it, so that these can only be keys.
    """
    begin = text.find(b'"claims":[')
    end = text.find(b'],"claim_report":', begin)
    return text[: begin + len(b'"claims":[')] + text[end:] if 0 <= begin < end else text


def _run(run: dict[str, Any], iterations: list[dict[str, Any]], figures: list[dict[str, Any]]) -> dict[str, Any]:
    usage, best, first = run.get("usage") or {}, run.get("best"), iterations[0] if iterations else None
    chosen = figures[best] if best is not None and best < len(figures) else {}
    report = (first or {}).get("claim_report") or {}
    wall = datetime.fromisoformat(run["finished_at"]) - datetime.fromisoformat(run["started_at"])
    models = run.get("models") or {}
    return {
        **{role: models.get(role) for role in ("drafter", "verifier", "critic", "reviser", "evaluator")},
        "finished_at": run["finished_at"],
        "loop_ms": max(0.0, wall.total_seconds() * 1000, sum(each["iteration_ms"] for each in figures)),
        "iterations": len(figures),
        "converged": int(run.get("converged", False)),
        "termination": run["termination_reason"],
        "needs_review": int(run.get("needs_review", False)),
        "improvement_percentage": run.get("improvement_percentage"),
        "quality": run.get("final_quality_score"),
        "confidence": chosen.get("confidence"),
        "overall": chosen.get("overall"),
        "calls": usage.get("calls", 0),
        "tries": usage.get("tries", 0),
        "input_tokens": usage.get("prompt_tokens", 0),
        "cached_tokens": usage.get("cached_tokens", 0),
        "output_tokens": usage.get("completion_tokens", 0),
        "cost_usd": usage.get("cost_usd"),
        "hallucination": _known(first, ("hallucination_detected",), (first or {}).get("citation_audit") or {}),
        "revision": _known(first, ("has_major_issues", "needs_retry"), {}),
        "claim_confidence": report.get("confidence"),
        "claims": None if first is None or report.get("unscored") else report.get("facts_checked"),
    }


def _known(first: dict[str, Any] | None, signs: tuple[str, ...], audit: dict[str, Any]) -> int | None:
    """Whether the first answer shows one of the signs; None where its critic failed and code proves nothing."""
    if first is None:
        return None
    critique = first.get("critique") or {}
    if any(critique.get(sign) or audit.get(sign) for sign in signs):
        return 1
    return None if (critique.get("unscored") or {}).get("code") else 0


def _iteration(iteration: dict[str, Any]) -> dict[str, Any]:
    ms, judged = iteration.get("step_ms") or {}, iteration.get("evaluation") or {}
    critique, audit = iteration.get("critique") or {}, iteration.get("citation_audit") or {}
    issues = iteration.get("issues") or []
    return {
        "number": iteration["iteration_number"],
        "critic_ms": ms.get("critique"),
        "reviser_ms": ms.get("revision"),
        "evaluator_ms": ms.get("evaluation"),
        "iteration_ms": float(sum(ms.values())),
        "quality": iteration.get("quality_score"),
        "improvement_delta": iteration.get("improvement_delta"),
        "issues": len(issues),
        "major_issues": sum(issue.get("severity") in ("critical", "high") for issue in issues),
        "confidence": critique.get("confidence"),
        "conflicts": len(critique.get("conflicting_evidence") or ()),
        "invalid_citations": len(audit.get("invalid_citations") or ()),
        "uncited_claims": len(audit.get("uncited_claims") or ()),
        "overall": judged.get("overall_score"),
        "faithfulness": judged.get("faithfulness"),
        "relevance": judged.get("relevance"),
        "completeness": judged.get("completeness"),
        "reasoning": judged.get("reasoning_quality"),
    }


# The log of executions, and what retention removed.


def m012_executions_and_retention(db: Database) -> None:
    """A log of every execution of the loop, filled for the runs that stand, and the record of what was removed."""
    for statement in (
        # only grows (guards.py) and names no row of runs: it outlasts them. One row for each start that has ended.
        """
        CREATE TABLE executions (
            seq INTEGER PRIMARY KEY,
            at TEXT NOT NULL,
            run_id TEXT NOT NULL,
            start INTEGER NOT NULL,
            case_id TEXT NOT NULL,
            started_at TEXT NOT NULL,
            iterations INTEGER NOT NULL,
            final_quality REAL,
            improvement REAL,
            termination TEXT NOT NULL,
            models TEXT NOT NULL,
            app TEXT NOT NULL,
            rubric TEXT NOT NULL,
            UNIQUE (run_id, start)
        ) STRICT
        """,
        "CREATE INDEX executions_of_case ON executions (case_id)",
        # both only grow: who removed what by which rule, without a word of what was removed
        """
        CREATE TABLE purges (
            seq INTEGER PRIMARY KEY,
            at TEXT NOT NULL,
            by TEXT NOT NULL,
            how TEXT NOT NULL,
            rule TEXT NOT NULL,
            app TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE purged (
            seq INTEGER PRIMARY KEY,
            purge_seq INTEGER NOT NULL REFERENCES purges (seq),
            kind TEXT NOT NULL,
            record_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            parts TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX purged_by ON purged (purge_seq)",
        "CREATE INDEX purged_record ON purged (record_id)",
        "ALTER TABLE runs ADD COLUMN removed_by INTEGER REFERENCES purges (seq)",
        "ALTER TABLE screenings ADD COLUMN removed_by INTEGER REFERENCES purges (seq)",
        "CREATE INDEX decisions_of_run ON decision_log (run_seq) WHERE run_seq IS NOT NULL",
    ):
        db.execute(statement)
    _fill_executions(db)


def _fill_executions(db: Database) -> None:
    """Log the runs that have ended, in the order they did; of earlier starts of the same run nothing is known."""
    total = db.execute("SELECT count(*) FROM runs WHERE state != 'running'").fetchone()[0]
    found = db.execute(
        """SELECT runs.seq, runs.id, cases.id, starts, runs.state, started_at, coalesce(ended_at, seen_at),
               runs.iterations, runs.quality, improvement, termination, runs.models, payload
           FROM runs JOIN cases ON cases.seq = case_seq WHERE runs.state != 'running'
           ORDER BY coalesce(ended_at, seen_at), runs.seq"""
    )
    for seq, run_id, case_id, start, state, started_at, at, iterations, quality, gain, why, models, payload in rows(
        found, total
    ):
        if state == "interrupted":
            scores = _scores(db, seq)
            iterations, quality, gain = len(scores), *_outcome(scores)
        versions = _unpacked_json(payload).get("versions") or {}
        db.execute(
            """INSERT INTO executions (at, run_id, start, case_id, started_at, iterations, final_quality, improvement,
                   termination, models, app, rubric) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                *(at, run_id, start, case_id, started_at, iterations or 0, quality, gain),
                "abandoned" if state == "interrupted" else why or "error",
                *(models, str(versions.get("app", "")), str(versions.get("rubric", ""))),
            ],
        )


def _scores(db: Database, run_seq: int) -> list[float | None]:
    kept = db.execute("SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [run_seq])
    return [_unpacked_json(row[0]).get("quality_score") for row in kept.fetchall()]


def _outcome(scores: list[float | None]) -> tuple[float | None, float | None]:
    """The best score, and how far above the first it lies, in percent."""
    scored = [score for score in scores if score is not None]
    final, first = max(scored, default=None), scores[0] if scores else None
    return final, (final - first) / first * 100 if final is not None and first else None


def _unpacked_json(payload: bytes | None) -> dict[str, Any]:
    if payload is None:
        return {}
    try:
        found = json.loads(zlib.decompress(payload))
    except (zlib.error, ValueError):  # damaged: its figures stand beside it, and `masis health` says what is wrong
        return {}
    return found if isinstance(found, dict) else {}


# Reviewing as a team.


def m018_team(db: Database) -> None:
    """Leases, who works on what, policies, rubrics and views; every decision so far is one reviewer's."""
    for statement in (
        # how many people decide a case, how many decisions are still wanted after the first, and the policy these
        # decisions record: a case decided before has none, so that its last decision stands as it did
        "ALTER TABLE cases ADD COLUMN wanted INTEGER NOT NULL DEFAULT 1",
        "ALTER TABLE cases ADD COLUMN pending INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE cases ADD COLUMN policy TEXT",
        """
        CREATE TABLE leases (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            reviewer TEXT NOT NULL,
            taken_at TEXT NOT NULL,
            until TEXT NOT NULL,
            PRIMARY KEY (case_seq, reviewer)
        ) STRICT, WITHOUT ROWID
        """,
        # derived from the decision log: kind is decided, assigned, skipped (who: a reviewer) or tagged (who: the tag)
        """
        CREATE TABLE case_work (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            kind TEXT NOT NULL,
            who TEXT NOT NULL,
            entry_seq INTEGER NOT NULL REFERENCES decision_log (seq),
            PRIMARY KEY (case_seq, kind, who)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX work_of ON case_work (kind, who, case_seq)",
        # only grows (guards.py): the newest row of a kind and name counts
        """
        CREATE TABLE team_records (
            seq INTEGER PRIMARY KEY,
            at TEXT NOT NULL,
            by TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            payload TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX team_records_named ON team_records (kind, name, seq)",
        # each case so far has at most one decision that counts: that of its reviewer
        """
        INSERT INTO case_work SELECT cases.seq, 'decided', written.reviewer, cases.decision_seq
        FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq AND log.kind = 'decision'
        JOIN decision_payloads AS written ON written.entry_seq = log.seq
        """,
    ):
        db.execute(statement)


# Data sets frozen under a name.


def m020_dataset_versions(db: Database) -> None:
    """Which cases, entries and audits a data set was made of, and its manifest; no text of them."""
    for statement in (
        """
        CREATE TABLE dataset_versions (
            seq INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            at TEXT NOT NULL,
            by TEXT NOT NULL,
            description TEXT NOT NULL,
            form TEXT NOT NULL,
            encoding TEXT NOT NULL,
            selection TEXT NOT NULL,
            manifest TEXT NOT NULL,
            log_length INTEGER NOT NULL,
            log_digest TEXT NOT NULL,
            app TEXT NOT NULL
        ) STRICT
        """,
        # judgements: [[entry, in force, run, iteration, redacted then, digest of what was decided], ...]
        """
        CREATE TABLE dataset_members (
            dataset_seq INTEGER NOT NULL REFERENCES dataset_versions (seq),
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            state TEXT NOT NULL,
            redacted INTEGER NOT NULL,
            side TEXT NOT NULL,
            rows INTEGER NOT NULL,
            judgements TEXT NOT NULL,
            PRIMARY KEY (dataset_seq, case_seq)
        ) STRICT, WITHOUT ROWID
        """,
    ):
        db.execute(statement)


# What a page shows of a million cases without reading them.


def m021_kept_counts_of_work_and_audits(db: Database) -> None:
    """Counts that pages show, kept up by triggers: work by person, entries by person, audits by day and models.

    Counting them when a page opens takes the longer, the more cases there are. The two indexes hold the few rows that
    pages look for among many: cases of which further decisions are wanted, and entries that are no policy's.
    """
    # once for each way of being known: the share of a rate is over the audits that say it
    sums = {
        "runs": "1",
        **{f"{name}_known": f"({{row}}.{name} IS NOT NULL)" for name in _KNOWN_SUMS},
        **{name: f"coalesce({{row}}.{name}, 0)" for name in _KNOWN_SUMS},
        **{name: f"{{row}}.{name}" for name in ("needs_review", "loop_ms", "iterations", "calls")},
        **{name: f"{{row}}.{name}" for name in ("input_tokens", "output_tokens")},
        **{f"ended_{ending}": f"({{row}}.termination = '{ending}')" for ending in _ENDINGS},
    }
    keys = ("day", "dataset", "drafter", "verifier", "critic", "reviser", "evaluator")
    key_of = ["substr({row}.finished_at, 1, 10)", *(f"coalesce({{row}}.{name}, '')" for name in keys[1:])]

    def of(row: str, parts: Iterable[str]) -> list[str]:
        return [part.format(row=row) for part in parts]

    new = of("NEW", sums.values())
    added = ", ".join(f"{name} = {name} + {value}" for name, value in zip(sums, new, strict=True))
    old = of("OLD", sums.values())
    removed = ", ".join(f"{name} = {name} - {value}" for name, value in zip(sums, old, strict=True))
    same = " AND ".join(f"{key} = {value}" for key, value in zip(keys, of("OLD", key_of), strict=True))
    columns = ", ".join(f"{name} {'REAL' if name in _REAL_SUMS else 'INTEGER'} NOT NULL" for name in sums)
    read = ", ".join(of("run_measures", key_of))
    total = ", ".join(f"sum({value})" for value in of("run_measures", sums.values()))
    for statement in (
        "CREATE INDEX cases_pending ON cases (seq) WHERE pending > 0",
        "CREATE INDEX entries_of_people ON decision_log (seq) WHERE kind <> 'policy_accept'",
        f"""
        CREATE TABLE measure_days (
            {", ".join(f"{key} TEXT NOT NULL" for key in keys)}, {columns}, PRIMARY KEY ({", ".join(keys)})
        ) STRICT, WITHOUT ROWID
        """,
        f"INSERT INTO measure_days SELECT {read}, {total} FROM run_measures GROUP BY {read}",  # noqa: S608 (every name is ours)
        f"""
        CREATE TRIGGER measure_days_insert AFTER INSERT ON run_measures BEGIN
            INSERT INTO measure_days VALUES ({", ".join([*of("NEW", key_of), *new])})
            ON CONFLICT ({", ".join(keys)}) DO UPDATE SET {added};
        END
        """,  # noqa: S608
        f"""
        CREATE TRIGGER measure_days_delete AFTER DELETE ON run_measures BEGIN
            UPDATE measure_days SET {removed} WHERE {same};
            DELETE FROM measure_days WHERE {same} AND runs = 0;
        END
        """,  # noqa: S608
        *_kept_names("work_counts", "case_work", ("kind", "who")),
        *_kept_names("entry_counts", "decision_payloads", ("reviewer",)),
    ):
        db.execute(statement)


_KNOWN_SUMS = (
    *("hallucination", "revision", "claim_confidence", "claims", "improvement_percentage"),
    *("quality", "confidence", "overall", "cost_usd"),
)
"""Figures of a run that may be unknown: how many runs have them is kept beside their sum."""

_REAL_SUMS = ("claim_confidence", "improvement_percentage", "quality", "confidence", "overall", "cost_usd", "loop_ms")
_ENDINGS = ("no_issues", "convergence", "error")


def _kept_names(kept: str, of: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """How many rows of a table have which names; a name that none has is not kept: it may be a redacted one's."""
    named, new = ", ".join(keys), ", ".join(f"NEW.{key}" for key in keys)
    same = " AND ".join(f"{key} = OLD.{key}" for key in keys)
    columns = ", ".join(f"{key} TEXT NOT NULL" for key in keys)
    return (
        f"CREATE TABLE {kept} ({columns}, rows INTEGER NOT NULL, PRIMARY KEY ({named})) STRICT, WITHOUT ROWID",
        f"INSERT INTO {kept} SELECT {named}, count(*) FROM {of} GROUP BY {named}",  # noqa: S608
        f"""
        CREATE TRIGGER {kept}_insert AFTER INSERT ON {of} BEGIN
            INSERT INTO {kept} VALUES ({new}, 1) ON CONFLICT ({named}) DO UPDATE SET rows = rows + 1;
        END
        """,  # noqa: S608
        f"""
        CREATE TRIGGER {kept}_delete AFTER DELETE ON {of} BEGIN
            UPDATE {kept} SET rows = rows - 1 WHERE {same};
            DELETE FROM {kept} WHERE {same} AND rows = 0;
        END
        """,  # noqa: S608
    )


def m022_redacted_decisions_are_somebodys(db: Database) -> None:
    """Whose a redacted decision was is removed, and that somebody made it stays: m018 had left it out."""
    db.execute(
        """
        INSERT INTO case_work SELECT cases.seq, 'decided', '(redacted entry ' || log.seq || ')', log.seq
        FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq AND log.kind = 'decision'
        WHERE NOT EXISTS (SELECT 1 FROM case_work AS work WHERE work.case_seq = cases.seq AND work.kind = 'decided')
        """
    )
