"""Logs the figures of each execution of the loop (REQ-CRITIC-COMP-001).

A row is written in the transaction that ends the run, whether it finished or was cut short. The
table is append-only, and retention doesn't touch it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

from masis import version
from masis.audit.control import routing
from masis.schema.base import Page
from masis.schema.retention import Execution
from masis.schema.run import Iteration, Run
from masis.store.core.connections import StorePart
from masis.store.core.sql import append, record_of


class Executions(StorePart):
    """The log of executions of a store."""

    def page(self, number: int = 1, size: int = 50) -> Page[Execution]:
        """Return one page of the log, newest first."""
        sql = "SELECT * FROM executions ORDER BY seq DESC LIMIT ? OFFSET ?"
        with self._database.reading():
            # the rows are numbered without gaps, so the last number is their count
            total = self._database.value("SELECT coalesce(max(seq), 0) FROM executions")
            rows = self._database.execute(sql, [size, (number - 1) * size])
        return Page[Execution](rows=tuple(map(_execution_of, rows)), total=total)

    def iterate(self) -> Iterator[Execution]:
        """Yield the whole log from its beginning, loading 100 rows at a time."""
        return map(
            _execution_of,
            self._database.walk("SELECT * FROM executions WHERE seq > ? ORDER BY seq"),
        )


def log_end(connection: sqlite3.Connection, run: Run, start: int) -> None:
    """Log a finished run."""
    _write_execution(
        connection,
        Execution(
            at=run.finished_at,
            run_id=run.id,
            start=start,
            case_id=run.case_id,
            started_at=run.started_at,
            iterations=run.total_iterations,
            final_quality=run.final_quality_score,
            improvement=run.improvement_percentage,
            termination=run.termination_reason,
            models=run.models,
            app=run.versions.app,
            rubric=run.versions.rubric,
        ),
    )


def log_cut_short(
    connection: sqlite3.Connection,
    run: sqlite3.Row,
    case_id: str,
    iterations: Sequence[Iteration],
    at: str,
) -> None:
    """Log a run that was cut short, with the figures of its last state."""
    best = routing.best_index(iterations)
    final = None if best is None else iterations[best].quality_score
    _write_execution(
        connection,
        Execution(
            at=at,
            run_id=run["id"],
            start=run["starts"],
            case_id=case_id,
            started_at=run["started_at"],
            iterations=len(iterations),
            final_quality=final,
            improvement=routing.improvement_percentage(
                iterations[0].quality_score if iterations else None, final
            ),
            termination="abandoned",
            models=json.loads(run["models"]),
            app=version.APP,
            rubric=version.RUBRIC,
        ),
    )


def _write_execution(connection: sqlite3.Connection, execution: Execution) -> None:
    models = json.dumps(execution.models, ensure_ascii=False)
    append(connection, "executions", execution.model_dump() | {"models": models})


def _execution_of(row: sqlite3.Row) -> Execution:
    return record_of(Execution, row, parsed=("models",))
