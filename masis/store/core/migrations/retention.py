"""The log of executions, and what retention removed."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

from masis.store.core.migrations.migration_progress import rows

if TYPE_CHECKING:
    from sqlite_utils import Database


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
        versions = _unpacked(payload).get("versions") or {}
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
    return [_unpacked(row[0]).get("quality_score") for row in kept.fetchall()]


def _outcome(scores: list[float | None]) -> tuple[float | None, float | None]:
    """The best score, and how far above the first it lies, in percent."""
    scored = [score for score in scores if score is not None]
    final, first = max(scored, default=None), scores[0] if scores else None
    return final, (final - first) / first * 100 if final is not None and first else None


def _unpacked(payload: bytes | None) -> dict[str, Any]:
    if payload is None:
        return {}
    try:
        found = json.loads(zlib.decompress(payload))
    except (zlib.error, ValueError):  # damaged: its figures stand beside it, and `masis health` says what is wrong
        return {}
    return found if isinstance(found, dict) else {}
