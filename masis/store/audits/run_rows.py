"""The rows of a run: its result, iterations and steps in and out. Used inside a transaction of its callers."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from masis.audit.acceptance import disagreement
from masis.errors import Removed, StoreError, UnknownRecord
from masis.schema.run import Iteration, Run, StepsDone
from masis.store.audits import metrics
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.process_owner import Owner
from masis.store.records import RunSummary
from masis.store.reviews.states import refresh

# The figures of a run that lists show, filter and sort by: pure, from the run alone.


class RunFigures(NamedTuple):
    """Columns of a finished run. ``disagreement`` and ``doubt`` sort the queue, higher first; unscored counts as 1."""

    quality: float | None
    confidence: float | None
    overall: float | None
    invalid: int | None
    uncited: int | None
    iterations: int
    improvement: float | None
    termination: str
    needs_review: bool
    spot_check: bool
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    disagreement: float
    doubt: float


def figures(run: Run) -> RunFigures:
    """Scores of the best iteration, faults of the answer as it came."""
    first = run.iterations[0] if run.iterations else None
    best = run.best_iteration
    confidence = best.critique.confidence if best else None
    reasons = tuple(dict.fromkeys(reason.code for reason in run.review_reasons))
    return RunFigures(
        quality=run.final_quality_score,
        confidence=confidence,
        overall=best.evaluation.overall_score if best and best.evaluation else None,
        invalid=len(first.citation_audit.invalid_citations) if first else None,
        uncited=len(first.citation_audit.uncited_claims) if first else None,
        iterations=len(run.iterations),
        improvement=run.improvement_percentage,
        termination=run.termination_reason,
        needs_review=run.needs_review,
        spot_check=run.spot_check,
        flags=flags(run),
        reasons=reasons,
        disagreement=max((disagreement(each) for each in (first, best) if each), default=1.0),
        doubt=1.0 if confidence is None else 1.0 - confidence,
    )


def flags(run: Run) -> tuple[str, ...]:
    """What is wrong with the answer as it came, in fixed words, and how the run went."""
    found: list[str] = []
    if run.iterations:
        found += _faults(run.iterations[0])
    if run.draft is not None:
        found.append("drafted")
    if run.spot_check:
        found.append("spot_check")
    if run.termination_reason in ("error", "cancelled"):
        found.append(run.termination_reason)
    return tuple(found)


def _faults(iteration: Iteration) -> list[str]:
    audit, verdicts = iteration.citation_audit, {check.verdict for check in iteration.claims}
    references = {reference.finding for check in iteration.claims for reference in check.references}
    unscored = iteration.quality_score is None or "unscored" in verdicts
    signs = (
        ("invalid_reference", bool(audit.invalid_citations)),
        ("uncited", bool(audit.uncited_claims)),
        ("misattributed", "misattributed" in references),
        ("redundant", "needless" in references),
        ("contradicted", "contradicted" in verdicts),
        ("unsupported", "unsupported" in verdicts),
        ("partial", "partial" in verdicts),
        ("hallucination", iteration.critique.hallucination_detected or audit.hallucination_detected),
        ("conflicting_evidence", bool(iteration.critique.conflicting_evidence)),
        ("unscored", unscored),
    )
    return [name for name, present in signs if present]


def row_of(connection: sqlite3.Connection, run_id: str) -> sqlite3.Row:
    """The row of a run. Raises UnknownRecord."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM runs WHERE id = ?", [run_id]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no run {run_id!r}.")
    return row


def assert_kept(connection: sqlite3.Connection, run: sqlite3.Row) -> None:
    """Raise Removed where retention has removed what was kept of a run."""
    if run["removed_by"] is not None:
        at, how = connection.execute("SELECT at, how FROM purges WHERE seq = ?", [run["removed_by"]]).fetchone()
        if how == "redaction":
            raise Removed(f"the content of run {run['id']!r} was removed on {at[:10]}: its case was redacted.")
        raise Removed(
            f"the content of run {run['id']!r} was removed on {at[:10]} by retention. Audit the case again to have "
            "it anew; `masis purge --history` says what was removed, and by whom."
        )


def unfinished(connection: sqlite3.Connection, run_id: str) -> sqlite3.Row:
    """The row of a run that may still be written to. Raises UnknownRecord, and StoreError where it is finished."""
    row = row_of(connection, run_id)
    if row["state"] == "finished":
        raise StoreError(f"run {run_id!r} is finished: what it said is never overwritten.")
    return row


def case_id_of(connection: sqlite3.Connection, run: sqlite3.Row) -> str:
    """The id of the case that a run is of."""
    return str(connection.execute("SELECT id FROM cases WHERE seq = ?", [run["case_seq"]]).fetchone()[0])


def insert(
    connection: sqlite3.Connection,
    run_id: str,
    case_id: str,
    case_digest: str,
    models: dict[str, str],
    settings: dict[str, Any],
    at: str,
    owner: Owner,
) -> int:
    """Write a new run, under way; returns its number. Raises UnknownRecord and StoreError."""
    case = connection.execute("SELECT seq, digest, redaction_seq FROM cases WHERE id = ?", [case_id]).fetchone()
    if case is None:
        raise UnknownRecord(f"there is no case {case_id!r} for run {run_id!r}. Add the case first.")
    if case["redaction_seq"] is not None:
        raise Removed(f"case {case_id!r} was redacted: there is nothing left to audit.")
    if case["digest"] != case_digest:
        raise StoreError(
            f"run {run_id!r} audits other content than case {case_id!r} holds here. Add that as a new case."
        )
    cursor = connection.execute(
        """
        INSERT INTO runs
            (id, case_seq, case_digest, state, owner, started_at, seen_at, models, settings, settings_digest)
        VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)
        """,
        [
            run_id,
            case["seq"],
            case_digest,
            owner.to_text(),
            at,
            at,
            json.dumps(models, ensure_ascii=False),
            json.dumps(settings, ensure_ascii=False),
            sha256(canonical_json(settings)),
        ],
    )
    refresh(connection, case["seq"])
    return int(cursor.lastrowid or 0)


def write_result(connection: sqlite3.Connection, seq: int, run: Run, kept: Collection[int] = ()) -> None:
    """Write the result of a run over what was saved as it went; iterations ``kept`` stand there already."""
    last = run.iterations[-1].iteration_number if run.iterations else 0
    connection.execute("DELETE FROM run_iterations WHERE run_seq = ? AND number > ?", [seq, last])
    connection.execute("DELETE FROM run_steps WHERE run_seq = ?", [seq])
    for iteration in run.iterations:
        if iteration.iteration_number not in kept:
            save_iteration(connection, seq, iteration)
    columns = figures(run)._asdict() | {
        "state": "finished",
        "ended_at": run.finished_at,
        "why": "",
        "draft": run.draft.model_dump_json() if run.draft else None,
        "payload": pack(run.model_copy(update={"iterations": ()}).model_dump_json()),
    }
    columns["flags"], columns["reasons"] = json.dumps(columns["flags"]), json.dumps(columns["reasons"])
    assignments = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE runs SET {assignments} WHERE seq = ?", [*columns.values(), seq])  # noqa: S608
    metrics.write(connection, run)


def save_iteration(connection: sqlite3.Connection, run_seq: int, iteration: Iteration) -> None:
    """Write an iteration, in place of the one with its number."""
    connection.execute(
        "INSERT OR REPLACE INTO run_iterations VALUES (?, ?, ?)",
        [run_seq, iteration.iteration_number, pack(iteration.model_dump_json())],
    )


def read_iterations(connection: sqlite3.Connection, run_seq: int) -> tuple[Iteration, ...]:
    """The iterations of a run, in order."""
    rows = connection.execute("SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [run_seq])
    return tuple(Iteration.model_validate_json(unpack(row[0])) for row in rows)


def read_steps(connection: sqlite3.Connection, run_seq: int) -> StepsDone | None:
    """What the iteration under way has finished, put together from what each step left."""
    rows = connection.execute("SELECT payload FROM run_steps WHERE run_seq = ? ORDER BY seq", [run_seq])
    parts = [StepsDone.model_validate_json(unpack(row[0])) for row in rows]
    whole: StepsDone | None = None
    for part in parts:
        whole = part if whole is None else whole.with_more(part)
    return whole


def read_run(connection: sqlite3.Connection, row: sqlite3.Row) -> Run:
    """The result of a finished run, whole."""
    run = Run.model_validate_json(unpack(row["payload"]))
    return run.model_copy(update={"iterations": read_iterations(connection, row["seq"])})


def pack(text: str, level: int = 6) -> bytes:
    """Text as kept where it is long: an iteration repeats its answer's words and shrinks to a sixth."""
    return zlib.compress(text.encode(), level)


def unpack(packed: bytes) -> str:
    """What ``pack`` packed."""
    return zlib.decompress(packed).decode()


_JSON = ("models", "settings", "flags", "reasons")
_SUMMARY = [name for name in RunSummary.model_fields if name not in ("case_id", *_JSON)]


def summaries(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> tuple[RunSummary, ...]:
    """The runs that a condition of ours names, as lists show them, newest first."""
    rows = connection.execute(
        f"""SELECT runs.*, cases.id AS case_id, purges.at AS removed_at
            FROM runs JOIN cases ON cases.seq = case_seq LEFT JOIN purges ON purges.seq = removed_by
            WHERE {where} ORDER BY runs.seq DESC""",  # noqa: S608 (conditions of ours, values bound)
        values,
    )
    return tuple(
        RunSummary(
            case_id=row["case_id"],
            **{name: json.loads(row[name]) for name in _JSON},
            **{name: row[name] for name in _SUMMARY},
        )
        for row in rows
    )
