"""Stores the figures of finished runs, and computes sums and distributions of them in SQL.

The figures have their own tables, which contain no text and refer to a run by its id. They are kept
when retention removes the run. Times are UTC, and a week begins on Monday. Values that weren't
measured aren't counted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from masis.audit.measures import run_metrics
from masis.audit.measures.metrics import (
    ITERATION_VIEW,
    REPORT_METRICS,
    RUN_VIEW,
    AddedUp,
    Distribution,
    MeasureFilter,
    MetricsReport,
    Period,
    Sums,
    add_up,
    per_run_metrics,
    select_metrics,
    spread_of,
)
from masis.schema.base import Page, Record
from masis.schema.run import Run
from masis.settings import ROLES
from masis.store.core.connections import StorePart
from masis.store.core.sql import (
    Condition,
    any_of,
    compare_column,
    insert,
    join_conditions,
    record_of,
)


class Pick(Record):
    """The runs behind one metric, or all of them.

    For a share, the runs in which it holds. For another metric, the runs with a value, or an
    iteration with a value, greater than ``above`` and at most ``most``.
    """

    metric: str | None = None
    above: float | None = None
    most: float | None = None


class MeasuredRun(Record):
    """One run in a list of figures.

    ``value`` is the requested figure. ``case_id`` is None if the run is gone.
    """

    run_id: str
    case_id: str | None
    query: str | None
    finished_at: str
    models: dict[str, str]
    termination: str
    iterations: int
    loop_ms: float
    quality: float | None
    hallucination: bool | None
    needs_review: bool
    value: float | None


_OF_RUN = ("converged", "needs_review", "improvement_percentage", "quality", "revised_quality")
_OF_USAGE = ("calls", "tries", "cached_tokens", "cost_usd")
_ROWS_AT_ONCE = 20_000
_PACE_OF = 2_000
"""How many of the newest audits ``pace`` searches. Older ones say little about the current pace."""


class Measures(StorePart):
    """The figures of the runs of a store."""

    def newest(self) -> int:
        """Return a number that changes when figures are added."""
        return int(self._database.value("SELECT coalesce(max(seq), 0) FROM run_measures"))

    def span(self) -> tuple[str, str] | None:
        """Return when the first and the last run finished, or None if there are none."""
        # SQLite answers a lone min() or max() from one end of the index, but reads the whole index
        # if one statement asks for both (sqlite.org/optoverview.html, "MIN/MAX optimization").
        first = self._database.value("SELECT min(finished_at) FROM run_measures")
        last = self._database.value("SELECT max(finished_at) FROM run_measures")
        return None if first is None else (first, last)

    def count_names(self, column: str) -> dict[str, int]:
        """Count the runs of each model of a role, or of each data set, most frequent first."""
        assert column in (*ROLES, "dataset")
        sql = (
            f"SELECT {column}, count(*) FROM run_measures "  # noqa: S608
            f"WHERE {column} <> '' GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        return dict(self._database.cached_rows(sql))

    def pace(self, models: Mapping[str, str], runs: int = 50) -> tuple[float, int] | None:
        """Return the mean milliseconds of the newest audits by these models, and their number.

        The drafter's model isn't compared, because most answers were written before the audit.

        Args:
            models: The model of each role.
            runs: The maximum number of audits to average.

        Returns:
            None if these models haven't audited anything recently.

        """
        judging = [role for role in ROLES if role != "drafter"]
        same_models = " AND ".join(f"{role} = ?" for role in judging)
        rows = self._database.execute(
            f"""SELECT avg(loop_ms), count(*) FROM (
                    SELECT loop_ms FROM (
                        SELECT * FROM run_measures ORDER BY seq DESC LIMIT {_PACE_OF}
                    ) WHERE {same_models} LIMIT ?)""",  # noqa: S608
            [*(models[role] for role in judging), runs],
        )
        return (rows[0][0], rows[0][1]) if rows[0][1] else None

    def report(
        self, measure_filter: MeasureFilter, period: Period, *, newest: int | None = None
    ) -> MetricsReport:
        """Return everything that the metrics page shows and ``masis metrics`` prints.

        All figures are read from one snapshot. Rates always cover all matching runs; ``newest``
        limits the distributions to that many of the newest.
        """
        with self._database.reading():
            added = self.added_up(measure_filter, period)
            spread = self.distributions(
                measure_filter, [metric.name for metric in select_metrics("spread")], newest
            )
        over = newest if newest is not None and added.total.runs > newest else None
        figures = added._asdict() | {"distributions": spread, "spread_over": over}
        return MetricsReport(measure_filter=measure_filter, period=period, **figures)

    def added_up(self, measure_filter: MeasureFilter, period: Period) -> AddedUp:
        """Sum the matching runs by period and model in one statement, then combine these sums."""
        where, values = _measure_condition(measure_filter)
        summed = ", ".join(
            f"total({metric.column}) AS {metric.name},"
            f" count({metric.column}) AS {metric.name}_known"
            for metric in per_run_metrics()
        )
        sql = f"""SELECT {period}, {measure_filter.role}, count(*) AS runs, {summed}
                  FROM {RUN_VIEW} WHERE {where} GROUP BY 1, 2"""  # noqa: S608 (names of ours)
        rows = self._database.cached_rows(sql, values)
        names = [*rows[0].keys()][2:] if rows else ()  # the first two are the period and the model
        return add_up(
            {(row[0], row[1]): Sums(dict(zip(names, row[2:], strict=True))) for row in rows}
        )

    def distributions(
        self, measure_filter: MeasureFilter, names: Sequence[str], newest: int | None = None
    ) -> tuple[Distribution, ...]:
        """Return the mean, the percentiles (nearest rank) and a histogram of metrics.

        A value on a bound belongs to the bin below it. Each view is read once. ``newest`` limits
        the matching runs to that many of those stored last.
        """
        where, bound = _measure_condition(measure_filter)
        if newest is not None:
            where = (
                f"seq IN (SELECT seq FROM run_measures WHERE {where}"  # noqa: S608
                f" ORDER BY seq DESC LIMIT {int(newest)})"
            )
        values: dict[str, NDArray[np.float64]] = {}
        for view in (RUN_VIEW, ITERATION_VIEW):
            metrics = [REPORT_METRICS[name] for name in names if REPORT_METRICS[name].view == view]
            if not metrics:
                continue
            columns = ", ".join(metric.column for metric in metrics)
            parts = [np.empty((0, len(metrics)))]
            with self._database.reading() as connection:
                cursor = connection.cursor()
                cursor.row_factory = None  # tuples are read faster
                cursor.execute(f"SELECT {columns} FROM {view} WHERE {where}", bound)  # noqa: S608
                while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                    parts.append(np.array(rows, dtype=np.float64))  # None becomes NaN
            for metric, column in zip(metrics, np.concatenate(parts).T, strict=True):
                values[metric.name] = np.sort(column[~np.isnan(column)])
        return tuple(spread_of(name, values[name]) for name in names)

    def find_runs(
        self, measure_filter: MeasureFilter, pick: Pick, *, page: int = 1, size: int = 20
    ) -> Page[MeasuredRun]:
        """Return the runs behind a figure, newest first.

        A run whose case was removed has neither case nor question.
        """
        conditions, value = _picked_conditions(pick)
        where, values = join_conditions([_measure_condition(measure_filter), *conditions])
        with self._database.reading() as connection:
            total = connection.execute(
                f"SELECT count(*) FROM {RUN_VIEW} WHERE {where}",  # noqa: S608
                values,
            ).fetchone()[0]
            rows = connection.execute(
                f"""SELECT picked.*, cases.id AS case_id, cases.query_start AS query FROM (
                        SELECT *, {value} AS value FROM {RUN_VIEW} WHERE {where}
                        ORDER BY finished_at DESC, seq DESC LIMIT ? OFFSET ?
                    ) AS picked LEFT JOIN runs ON runs.id = picked.run_id
                    LEFT JOIN cases ON cases.seq = runs.case_seq
                    ORDER BY picked.finished_at DESC, picked.seq DESC""",  # noqa: S608
                [*values, size, (page - 1) * size],
            ).fetchall()
        runs = []
        for row in rows:
            models = {role: row[role] for role in ROLES if row[role] is not None}
            runs.append(record_of(MeasuredRun, row, models=models))
        return Page[MeasuredRun](rows=tuple(runs), total=total)


def write(connection: sqlite3.Connection, run: Run) -> None:
    """Store the figures of a finished run, replacing earlier ones, in the transaction that ends it.

    The state of its case is derived afterwards. That deletes the figures if the case is a copy with
    a planted fault that people have decided (``reviews/states.py``).
    """
    measured = run_metrics.of_run(run)
    row = {name: getattr(run, name) for name in _OF_RUN} | {
        name: getattr(run.usage, name) for name in _OF_USAGE
    }
    row |= {role: run.models.get(role) for role in ROLES}
    row |= {
        "run_id": run.id,
        "finished_at": run.finished_at,
        "dataset": (
            connection.execute("SELECT dataset FROM cases WHERE id = ?", [run.case_id]).fetchone()[
                0
            ]
        ),
        "loop_ms": measured.loop_ms,
        "termination": run.termination_reason,
        "confidence": measured.confidence,
        "overall": measured.overall,
        "input_tokens": run.usage.prompt_tokens,
        "output_tokens": run.usage.completion_tokens,
        "iterations": len(measured.iterations),
        "hallucination": measured.critique.hallucination,
        "revision": measured.critique.revision,
        "claim_confidence": measured.critique.confidence,
        "claims": measured.critique.claims,
    }
    connection.execute("DELETE FROM run_measures WHERE run_id = ?", [run.id])
    seq = insert(connection, "run_measures", row)
    for iteration in measured.iterations:
        insert(connection, "iteration_measures", {"measures_seq": seq, **iteration._asdict()})


def _measure_condition(measure_filter: MeasureFilter) -> tuple[str, list[Any]]:
    return join_conditions(
        [
            *compare_column("finished_at", ">=", measure_filter.since or None),
            *compare_column("finished_at", "<", measure_filter.until or None),
            *any_of(measure_filter.role, measure_filter.models),
            *any_of("dataset", measure_filter.datasets),
        ]
    )


def _picked_conditions(pick: Pick) -> tuple[list[Condition], str]:
    """Return the conditions that pick the runs, and the SQL of the figure shown with each."""
    if pick.metric is None:
        return [], "NULL"
    metric = REPORT_METRICS[pick.metric]
    if metric.unit == "share":
        return compare_column(metric.column, "=", 1), "NULL"
    bounds = [
        *compare_column(metric.column, ">", pick.above),
        *compare_column(metric.column, "<=", pick.most),
    ]
    in_bounds, values = join_conditions([(f"{metric.column} IS NOT NULL", ()), *bounds])
    if metric.view == RUN_VIEW:
        return [(in_bounds, values)], metric.column
    iterations = f"FROM {ITERATION_VIEW} WHERE"
    return (
        [(f"seq IN (SELECT seq {iterations} {in_bounds})", values)],
        f"(SELECT max({metric.column}) {iterations} seq = {RUN_VIEW}.seq)",
    )
