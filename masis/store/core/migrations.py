"""Creates new databases from ``schema.sql`` and updates existing ones with migrations.

Until 0.2.0 is released, ``schema.sql`` is edited in place, and databases made with another one are
refused (``connections.open_database``). Changes that keep stored rows readable are migrations
already. From 0.2.0 on, ``schema.sql`` doesn't change.

A migration is a function in ``MIGRATIONS``. Never edit one after a release, since existing
databases have already run it. It contains its own SQL and calls no other code of the product, which
may have changed by the time it runs. Each migration runs in one transaction with its record in
``_sqlite_migrations`` (sqlite-utils applies them).

sqlite-utils is imported only if a migration is pending. It imports pandas, which takes longer than
opening a database.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from masis import version
from masis.store.core import guards

if TYPE_CHECKING:
    from sqlite_utils import Database

Migration: TypeAlias = "Callable[[Database], None]"

APPLICATION_ID = 0x4D415349
"""``MASI`` in the file header, set by ``schema.sql``. It identifies a database of the workbench."""

SET_NAME = "masis"
_SCHEMA = Path(__file__).parent.parent / "schema.sql"


def m001_schema(db: Database) -> None:
    """Create everything in ``schema.sql`` and store the digest of that file."""
    for statement in _statements(_SCHEMA.read_text(encoding="utf-8")):
        db.execute(statement)
    db.execute("INSERT INTO store_info VALUES ('schema', ?)", [schema_digest()])


def m002_structured_headlines(db: Database) -> None:
    """Store headlines as JSON instead of text, and drop the version of their wording.

    A stored line keeps its words, with the counts behind a dot instead of on a line of their own,
    until its case is audited or reassessed again.
    """
    for table in ("cases", "jobs"):
        db.execute(
            f"""UPDATE {table} SET headline = json_object(
                    'kind', 'nothing',
                    'sentence', 'earlier',
                    'values', json_object('message', replace(headline, char(10), ' · ')))
                WHERE headline IS NOT NULL"""  # noqa: S608 (our own table names)
        )
    # SQLite refuses to drop a column that a view names (sqlite.org/lang_altertable.html).
    db.execute("DROP VIEW runs")
    db.execute("ALTER TABLE jobs DROP COLUMN worded")
    db.execute(
        """CREATE VIEW runs AS SELECT
            seq, id, state, owner, starts, started_at, seen_at, ended_at, why, cancel_requested,
                removed_by, asked_by, settings,
            case_seq, case_digest, models, settings_digest, quality, revised_quality, confidence,
                overall, invalid, uncited,
            iterations, improvement, termination, needs_review, spot_check, flags, reasons,
                disagreement, doubt, tier, risk, rule,
            auditor, likely, coverable, headline, severity, draft, payload
        FROM jobs WHERE kind = 'run'"""
    )


def m003_metric_views(db: Database) -> None:
    """Add the views that metrics are read from: one row for each run, one for each iteration.

    Days, weeks, months and how a run ended are derived here once. If a statement reads no column
    of the run, SQLite leaves out the LEFT JOIN of the second view (sqlite.org/optoverview.html,
    "The Omit LEFT JOIN Optimization"), so that a metric over all iterations reads one table.
    """
    db.execute(
        """CREATE VIEW run_metrics AS SELECT
            *,
            substr(finished_at, 1, 10) AS day,
            date(finished_at, 'weekday 0', '-6 days') AS week,
            substr(finished_at, 1, 7) || '-01' AS month,
            termination IN ('no_issues', 'convergence') AS ended_well,
            termination = 'convergence' AS ended_by_convergence,
            termination = 'no_issues' AS ended_without_issues,
            termination = 'error' AS ended_by_error,
            input_tokens + output_tokens AS tokens
        FROM run_measures"""
    )
    db.execute(
        """CREATE VIEW iteration_metrics AS SELECT
            iteration.measures_seq AS seq, iteration.number, critic_ms, reviser_ms, evaluator_ms,
            iteration_ms, improvement_delta, issues, major_issues, conflicts, invalid_citations,
            uncited_claims, faithfulness, relevance, completeness, reasoning, iteration.quality,
            iteration.confidence, iteration.overall,
            finished_at, dataset, drafter, verifier, critic, reviser, evaluator
        FROM iteration_measures AS iteration
        LEFT JOIN run_measures AS run ON run.seq = iteration.measures_seq"""
    )


def m004_api_tokens(db: Database) -> None:
    """Add the personal tokens of the JSON API. Only the SHA-256 of a token is stored."""
    db.execute(
        """CREATE TABLE api_tokens (
            id TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            role TEXT NOT NULL,
            label TEXT NOT NULL,
            digest TEXT NOT NULL UNIQUE,
            created_at TEXT NOT NULL,
            created_by TEXT NOT NULL,
            expires_at TEXT NOT NULL,
            used_at TEXT,
            revoked_at TEXT,
            revoked_by TEXT
        ) STRICT"""
    )


def m005_failure_modes(db: Database) -> None:
    """Add what people and audits wrote as rows, the failure modes applied to them, and systems.

    ``observations_due`` lists the cases whose rows are yet to be derived, which here are all cases
    with an audit or a log entry (``reviews/observations.py``).
    """
    for statement in (
        "ALTER TABLE cases ADD COLUMN system TEXT",
        """UPDATE cases SET system = (
            SELECT nullif(trim(substr(payload ->> '$.metadata.system', 1, 100)), '')
            FROM case_payloads WHERE case_seq = cases.seq
                AND json_type(payload, '$.metadata.system') = 'text'
        )""",
        "CREATE INDEX cases_system ON cases (system) WHERE system IS NOT NULL",
        """CREATE TABLE observation_patterns (
            seq INTEGER PRIMARY KEY,
            pattern TEXT NOT NULL UNIQUE,
            vector BLOB
        ) STRICT""",
        """CREATE TABLE observations (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            place TEXT NOT NULL,
            kind TEXT NOT NULL,
            run_seq INTEGER REFERENCES jobs (seq),
            entry_seq INTEGER REFERENCES decision_log (seq),
            type TEXT NOT NULL,
            severity TEXT,
            author TEXT NOT NULL,
            at TEXT NOT NULL,
            is_fault INTEGER NOT NULL,
            pattern_seq INTEGER NOT NULL REFERENCES observation_patterns (seq),
            text TEXT NOT NULL,
            quote TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX observations_of_case ON observations (case_seq, place)",
        """CREATE INDEX observations_listed ON observations (
            pattern_seq, is_fault, kind, case_seq, author, type, at, place
        )""",
        """CREATE VIRTUAL TABLE observation_words USING fts5 (
            text, quote, content='observations', content_rowid='seq',
            tokenize='unicode61 remove_diacritics 2', prefix='3 4'
        )""",
        """CREATE TRIGGER observations_indexed AFTER INSERT ON observations BEGIN
            INSERT INTO observation_words (rowid, text, quote)
            VALUES (NEW.seq, NEW.text, NEW.quote);
        END""",
        """CREATE TRIGGER observations_unindexed AFTER DELETE ON observations BEGIN
            INSERT INTO observation_words (observation_words, rowid, text, quote)
            VALUES ('delete', OLD.seq, OLD.text, OLD.quote);
            DELETE FROM observation_patterns WHERE seq = OLD.pattern_seq
                AND NOT EXISTS (SELECT 1 FROM observations WHERE pattern_seq = OLD.pattern_seq);
        END""",
        """CREATE TABLE case_codes (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            place TEXT NOT NULL,
            code TEXT NOT NULL,
            reviewer TEXT NOT NULL,
            entry_seq INTEGER NOT NULL REFERENCES decision_log (seq),
            PRIMARY KEY (case_seq, place, code, reviewer)
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX codes_applied ON case_codes (code, case_seq)",
        # Groups that were proposed for a filter of observations. It can be emptied at any time.
        """CREATE TABLE proposed_groups (
            key TEXT PRIMARY KEY,
            at TEXT NOT NULL,
            stamp TEXT NOT NULL,
            payload BLOB NOT NULL
        ) STRICT""",
        "CREATE TABLE observations_due (case_seq INTEGER PRIMARY KEY) STRICT",
        """INSERT INTO observations_due SELECT seq FROM cases WHERE run_seq IS NOT NULL
            OR EXISTS (SELECT 1 FROM decision_log WHERE case_seq = cases.seq)""",
    ):
        db.execute(statement)


def m006_dataset_guarantees(db: Database) -> None:
    """Add the copies of cases that other people label again, to guarantee a dataset version.

    ``entry_seq`` is the entry with the label, and ``plan`` the version of the plan
    (``RelabelPlan``). Such a copy has 2 in ``cases.planted``.
    """
    db.execute(
        """CREATE TABLE relabel_copies (
            case_seq INTEGER PRIMARY KEY REFERENCES cases (seq),
            source_seq INTEGER NOT NULL REFERENCES cases (seq),
            entry_seq INTEGER NOT NULL REFERENCES decision_log (seq),
            plan INTEGER NOT NULL,
            withdrawn_at TEXT
        ) STRICT"""
    )
    db.execute("CREATE INDEX relabel_copies_of ON relabel_copies (source_seq)")
    db.execute("CREATE INDEX relabel_copies_in ON relabel_copies (plan)")


def m007_batches(db: Database) -> None:
    """Add actions on many cases at once, and which cases each reviewer has opened.

    ``request`` holds the reason and the label of an action, and is emptied once its cases are
    handled, so that no text outlives a redaction here.
    """
    db.execute(
        """CREATE TABLE batches (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            token TEXT NOT NULL,
            by TEXT NOT NULL,
            at TEXT NOT NULL,
            action TEXT NOT NULL,
            names TEXT NOT NULL,
            digest TEXT NOT NULL,
            request TEXT,
            state TEXT NOT NULL,
            UNIQUE (by, token)
        ) STRICT"""
    )
    db.execute(
        """CREATE TABLE batch_cases (
            batch_seq INTEGER NOT NULL REFERENCES batches (seq),
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            place INTEGER NOT NULL,
            version INTEGER NOT NULL,
            outcome TEXT NOT NULL,
            why TEXT,
            entry_seq INTEGER REFERENCES decision_log (seq),
            undo_seq INTEGER REFERENCES decision_log (seq),
            PRIMARY KEY (batch_seq, case_seq)
        ) STRICT, WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX batch_cases_left ON batch_cases (batch_seq, outcome, place)")
    db.execute(
        """CREATE TABLE openings (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            reviewer TEXT NOT NULL,
            at TEXT NOT NULL,
            PRIMARY KEY (case_seq, reviewer)
        ) STRICT, WITHOUT ROWID"""
    )


def m008_minimal_evidence(db: Database) -> None:
    """Add the verdicts on claims without the passages that decide them.

    ``label_by`` and ``entry_id`` name the reviewer and the log entry whose label names the
    passages; both are empty if the audit named them. Earlier results on the same passages stay, for
    the dataset versions that were frozen with them.
    """
    db.execute(
        """CREATE TABLE minimal_evidence (
            seq INTEGER PRIMARY KEY,
            run_seq INTEGER NOT NULL REFERENCES jobs (seq),
            iteration INTEGER NOT NULL,
            claim INTEGER NOT NULL,
            label_by TEXT NOT NULL,
            entry_id TEXT NOT NULL,
            at TEXT NOT NULL,
            payload BLOB NOT NULL
        ) STRICT"""
    )
    db.execute(
        "CREATE INDEX minimal_evidence_of ON minimal_evidence (run_seq, iteration, claim, entry_id)"
    )


def m040_systems(db: Database) -> None:
    """Add questions and systems: a case is the answer of one system to one question.

    A question's digest is of its words, regardless of case and spacing. Cases that don't name a
    system have the system "unnamed". Of two answers with other ids to the same words, the earlier
    one's question is that of both if they're of different systems, as for later imports
    (``audits/systems.py``).
    """
    for statement in (
        """CREATE TABLE systems (
            name TEXT PRIMARY KEY,
            added_at TEXT NOT NULL,
            changed_at TEXT NOT NULL DEFAULT '',
            changed_by TEXT NOT NULL DEFAULT '',
            details TEXT NOT NULL DEFAULT '{}'
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE questions (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            digest TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX questions_digest ON questions (digest, seq)",
        "ALTER TABLE cases ADD COLUMN question_seq INTEGER REFERENCES questions (seq)",
        # The characters of the answer, which a comparison of systems shows.
        "ALTER TABLE cases ADD COLUMN answer_length INTEGER",
        "DROP INDEX cases_system",
        "UPDATE cases SET system = 'unnamed' WHERE system IS NULL",
        "CREATE INDEX cases_system ON cases (system)",
        "CREATE INDEX cases_question ON cases (question_seq, system)",
        """INSERT INTO systems (name, added_at)
            SELECT system, min(imported_at) FROM cases GROUP BY system""",
    ):
        db.execute(statement)
    answered = set[tuple[int, str]]()
    known = dict[str, list[int]]()
    rows = db.execute(
        """SELECT cases.seq, cases.id, system, payload ->> '$.query', payload ->> '$.supersedes.id',
                length(payload ->> '$.answer')
            FROM cases JOIN case_payloads ON case_seq = cases.seq ORDER BY cases.seq"""
    ).fetchall()
    question_of = dict[str, int]()
    for seq, case_id, system, query, earlier, length in rows:
        folded = " ".join(unicodedata.normalize("NFC", query).casefold().split())
        digest = hashlib.sha256(folded.encode()).hexdigest()[:32]
        same = known.setdefault(digest, [])
        question = question_of.get(earlier) if earlier else None
        if question is None:
            question = next((q for q in same[:100] if (q, system) not in answered), None)
        if question is None:
            db.execute(
                "INSERT INTO questions (seq, id, digest) VALUES (?, ?, ?)", [seq, case_id, digest]
            )
            same.append(question := seq)
        answered.add((question, system))
        question_of[case_id] = question
        db.execute(
            "UPDATE cases SET question_seq = ?, answer_length = ? WHERE seq = ?",
            [question, length, seq],
        )


def m041_answer_costs(db: Database) -> None:
    """Add what an answer cost, in US dollars, as its metadata says (``cost_usd``)."""
    db.execute("ALTER TABLE cases ADD COLUMN answer_cost REAL")
    db.execute(
        """UPDATE cases SET answer_cost = (
            SELECT payload ->> '$.metadata.cost_usd' FROM case_payloads
            WHERE case_seq = cases.seq
                AND json_type(payload, '$.metadata.cost_usd') IN ('integer', 'real')
                AND payload ->> '$.metadata.cost_usd' >= 0
        )"""
    )


def m042_preferences(db: Database) -> None:
    """Add preferences between two systems' answers: a log, and the verdicts in force.

    ``preferences`` has one row for each reviewer and pair of cases, in the order of their numbers.
    The index has what is needed to count the questions that several systems answered.
    """
    for statement in (
        """CREATE TABLE preference_log (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            at TEXT NOT NULL,
            payload_digest TEXT NOT NULL,
            previous TEXT NOT NULL,
            digest TEXT NOT NULL,
            left_seq INTEGER NOT NULL REFERENCES cases (seq),
            right_seq INTEGER NOT NULL REFERENCES cases (seq),
            kind TEXT NOT NULL,
            verdict TEXT,
            token TEXT UNIQUE,
            undoes INTEGER UNIQUE REFERENCES preference_log (seq),
            redacts INTEGER UNIQUE REFERENCES preference_log (seq)
        ) STRICT""",
        "CREATE INDEX preferences_of_left ON preference_log (left_seq)",
        "CREATE INDEX preferences_of_right ON preference_log (right_seq)",
        """CREATE TABLE preference_log_payloads (
            entry_seq INTEGER PRIMARY KEY REFERENCES preference_log (seq),
            reviewer TEXT NOT NULL,
            payload TEXT NOT NULL
        ) STRICT""",
        """CREATE TABLE preferences (
            reviewer TEXT NOT NULL,
            question_seq INTEGER NOT NULL REFERENCES questions (seq),
            first_seq INTEGER NOT NULL REFERENCES cases (seq),
            second_seq INTEGER NOT NULL REFERENCES cases (seq),
            verdict TEXT NOT NULL,
            entry_seq INTEGER NOT NULL UNIQUE REFERENCES preference_log (seq),
            PRIMARY KEY (reviewer, question_seq, first_seq, second_seq)
        ) STRICT, WITHOUT ROWID""",
        """CREATE INDEX cases_comparable ON cases (question_seq, system, seq)
            WHERE planted = 0 AND redaction_seq IS NULL AND answer_length > 0
                AND state <> 'superseded'""",
    ):
        db.execute(statement)


def m044_judge_versions(db: Database) -> None:
    """Add the versions of the judge's guidance, and each content that a version ever had.

    A run names a version and the digest of its content, so contents are never changed or removed.
    They name cases and hold none of their texts.
    """
    db.execute(
        """CREATE TABLE judge_versions (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL UNIQUE COLLATE NOCASE,
            state TEXT NOT NULL,
            digest TEXT NOT NULL,
            author TEXT NOT NULL,
            created_at TEXT NOT NULL,
            changed_at TEXT NOT NULL,
            note TEXT NOT NULL,
            based_on TEXT,
            decided_at TEXT,
            decided_by TEXT
        ) STRICT"""
    )
    db.execute(
        "CREATE UNIQUE INDEX judge_adopted ON judge_versions (state) WHERE state = 'adopted'"
    )
    db.execute(
        """CREATE TABLE judge_contents (
            version_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            at TEXT NOT NULL,
            payload BLOB NOT NULL,
            PRIMARY KEY (version_id, digest)
        ) STRICT, WITHOUT ROWID"""
    )


def m046_judge_trials(db: Database) -> None:
    """Add the splits of decided cases that measure the judge, and the trials of judge versions.

    ``digest`` is that of the version's content, so trying the same content again costs nothing.
    """
    db.execute(
        """CREATE TABLE judge_splits (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            payload TEXT NOT NULL
        ) STRICT"""
    )
    db.execute(
        """CREATE TABLE judge_trials (
            run_seq INTEGER NOT NULL REFERENCES jobs (seq),
            digest TEXT NOT NULL,
            at TEXT NOT NULL,
            payload BLOB NOT NULL,
            PRIMARY KEY (run_seq, digest)
        ) STRICT, WITHOUT ROWID"""
    )


def m050_seen_verdicts(db: Database) -> None:
    """Remember whether the machine's verdict was shown when a reviewer opened a case.

    It isn't known for cases that were opened before.
    """
    db.execute("ALTER TABLE openings ADD COLUMN machine_seen INTEGER NOT NULL DEFAULT 0")


def m051_imports(db: Database) -> None:
    """Store with each case the import of a file that added it. Earlier imports aren't known."""
    db.execute("ALTER TABLE cases ADD COLUMN import_id TEXT")
    db.execute("CREATE INDEX cases_import ON cases (import_id) WHERE import_id IS NOT NULL")


def m052_queues(db: Database) -> None:
    """Add the named queue of a decision, and the state of each case in each queue.

    Which cases a queue has isn't stored. ``queue_states`` and ``queue_work`` are derived from the
    log, and empty for a case that was decided in the first queue alone (``reviews/states.py``).
    """
    for statement in (
        "ALTER TABLE decision_log ADD COLUMN queue TEXT",
        """CREATE INDEX decisions_in_queue ON decision_log (queue, case_seq)
            WHERE queue IS NOT NULL""",
        """CREATE TABLE queue_states (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            queue TEXT NOT NULL,
            state TEXT NOT NULL,
            pending INTEGER NOT NULL,
            entry_seq INTEGER REFERENCES decision_log (seq),
            policy TEXT,
            PRIMARY KEY (case_seq, queue)
        ) STRICT, WITHOUT ROWID""",
        "CREATE INDEX queue_states_of ON queue_states (queue, state, case_seq)",
        """CREATE TABLE queue_work (
            case_seq INTEGER NOT NULL REFERENCES cases (seq),
            queue TEXT NOT NULL,
            who TEXT NOT NULL,
            entry_seq INTEGER NOT NULL REFERENCES decision_log (seq),
            PRIMARY KEY (case_seq, queue, who)
        ) STRICT, WITHOUT ROWID""",
    ):
        db.execute(statement)


def m056_observation_causes(db: Database) -> None:
    """Store where the fault of each observation comes from, which its labels' passages decide.

    The rows are derived again (``reviews/observations.py``).
    """
    for statement in (
        "ALTER TABLE observations ADD COLUMN cause TEXT",
        "INSERT OR IGNORE INTO observations_due SELECT DISTINCT case_seq FROM observations",
        "DELETE FROM observations",
    ):
        db.execute(statement)


def m057_pattern_digests(db: Database) -> None:
    """Add the digest by which a dismissal names a pattern, with an index.

    Without it, every pattern was read and hashed to find the dismissed ones: 0.6 s for 131,000
    observations.
    """
    db.execute("ALTER TABLE observation_patterns ADD COLUMN digest TEXT")
    patterns = db.execute("SELECT seq, pattern FROM observation_patterns").fetchall()
    db.conn.executemany(
        "UPDATE observation_patterns SET digest = ? WHERE seq = ?",
        [
            (hashlib.blake2b(pattern.encode(), digest_size=12).hexdigest(), seq)
            for seq, pattern in patterns
        ],
    )
    db.execute("CREATE INDEX patterns_by_digest ON observation_patterns (digest)")


MIGRATIONS: tuple[Migration, ...] = (
    m001_schema,
    m002_structured_headlines,
    m003_metric_views,
    m004_api_tokens,
    m005_failure_modes,
    m006_dataset_guarantees,
    m007_batches,
    m008_minimal_evidence,
    m040_systems,
    m041_answer_costs,
    m042_preferences,
    m044_judge_versions,
    m046_judge_trials,
    m050_seen_verdicts,
    m051_imports,
    m052_queues,
    m056_observation_causes,
    m057_pattern_digests,
)


@cache
def schema_digest() -> str:
    """Return the SHA-256 of ``schema.sql`` without comments and line breaks."""
    without_comments = re.sub(r"--.*", "", _SCHEMA.read_text(encoding="utf-8"))
    return hashlib.sha256(" ".join(without_comments.split()).encode()).hexdigest()


def migration_names(migrations: Sequence[Migration] = MIGRATIONS) -> tuple[str, ...]:
    """Return the names of the migrations, in order."""
    return tuple(migration.__name__ for migration in migrations)


def applied_migrations(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the names of the migrations that this database has run, in order."""
    known = "SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'"
    if connection.execute(known).fetchone() is None:
        return ()
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY id", [SET_NAME]
    )
    return tuple(row[0] for row in rows)


def made_with_this_schema(connection: sqlite3.Connection) -> bool:
    """Return whether the database was created with this version's ``schema.sql``."""
    if applied_migrations(connection)[:1] != migration_names()[:1]:
        return False
    row = connection.execute("SELECT value FROM store_info WHERE key = 'schema'").fetchone()
    return row is not None and row[0] == schema_digest()


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> tuple[str, ...]:
    """Run the pending migrations, each in its own transaction with its record, and return their
    names.

    The write lock is taken before the pending migrations are read again, so that two processes that
    open a new file at once don't both create it. The triggers of the logs are created again in the
    same transaction.
    """
    done: list[str] = []
    while pending := _pending(connection, migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if pending[0].__name__ not in applied_migrations(connection):
                _apply(connection, pending[0])
                guards.arm(connection)
                connection.execute(
                    "INSERT OR REPLACE INTO store_info VALUES ('app_version', ?)", [version.APP]
                )
                done.append(pending[0].__name__)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return tuple(done)


def _pending(
    connection: sqlite3.Connection, migrations: Sequence[Migration]
) -> tuple[Migration, ...]:
    """Return the migrations that this database hasn't run."""
    applied = applied_migrations(connection)
    return tuple(migration for migration in migrations if migration.__name__ not in applied)


def schema_differences(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the tables, indexes, views and triggers that differ from those that this version makes.

    A changed definition, such as that of a generated column, would alter what is counted without
    altering any entry. A database with other migrations isn't compared, because opening one runs
    the missing ones and refuses unknown ones.
    """
    if applied_migrations(connection) != migration_names():
        return
    expected, stored = _expected_schema(), _schema_of(connection)
    for name in sorted(expected.keys() | stored.keys()):
        if name not in stored:
            yield f"{name} is missing from the schema of the database"
        elif name not in expected and not name.startswith("table "):
            # A further table, such as the words of a corpus, changes nothing of the others.
            yield f"{name} is in the schema of the database, but the workbench doesn't create it"
        elif stored[name] != expected.get(name, stored[name]):
            yield f"{name} has another definition in the database than the workbench gives it"


@cache
def _expected_schema() -> Mapping[str, str]:
    """Return the schema of a new database, made in memory."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        return _schema_of(connection)


def _schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the definitions in a database by kind and name, with blanks collapsed."""
    # SQLite makes the objects named sqlite_ itself: statistics, and indexes of UNIQUE columns.
    rows = connection.execute(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
    )
    return {f"{kind} {name}": " ".join(sql.split()) for kind, name, sql in rows.fetchall()}


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    from sqlite_utils import Database, Migrations

    one = Migrations(SET_NAME)
    one(name=migration.__name__)(migration)
    one.apply(Database(connection, execute_plugins=False))


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script. Each must end at the end of a line.

    ``executescript`` can't be used here because it commits the open transaction first, which would
    create the schema without its migration record.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
