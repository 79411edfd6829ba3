"""The figures of runs, apart from the runs, so that they can be added up and outlast the texts."""

from __future__ import annotations

import sqlite3
import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from masis.store.core.migrations.migration_progress import rows

if TYPE_CHECKING:
    from sqlite_utils import Database

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
