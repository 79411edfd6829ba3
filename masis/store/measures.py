"""The figures of finished runs: written as a run ends, added up in SQL, found again run by run.

A run's figures stand in tables of their own that hold no text and name the run by its id, so that they outlast what
retention removes. Times are UTC; a week begins on its Monday. Nothing is counted where nothing was measured.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from masis.schema.run import Run
from masis.settings import ROLES
from masis.steps import measures
from masis.store.measure_records import (
    COLUMNS,
    Bin,
    Distribution,
    Measure,
    MeasuredRun,
    MeasuredRuns,
    MeasureFilter,
    Period,
    Pick,
    Rates,
)
from masis.store.opening import Database

_OF_RUN = (
    *("loop_ms", "converged", "termination", "needs_review", "improvement_percentage"),
    *("quality", "confidence", "overall"),
    *("calls", "tries", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"),
)
_OF_ITERATION = measures.IterationMeasures._fields

_STARTS: dict[Period, str] = {
    "day": "substr(finished_at, 1, 10)",
    "week": "date(substr(finished_at, 1, 10), 'weekday 0', '-6 days')",
    "month": "substr(finished_at, 1, 7) || '-01'",
}

_SUMS = """
    count(*) AS runs, count(hallucination) AS hallucination_known, total(hallucination) AS hallucinated,
    count(revision) AS revision_known, total(revision) AS needed_revision,
    total(converged) AS converged, total(needs_review) AS needs_review,
    total(termination = 'no_issues') AS no_issues, total(termination = 'error') AS failed,
    avg(loop_ms) AS latency_ms, avg(claim_confidence) AS claim_confidence, avg(claims) AS claims,
    avg(iterations) AS iterations, avg(improvement_percentage) AS improvement_percentage,
    avg(quality) AS quality, avg(confidence) AS confidence, avg(overall) AS overall,
    total(calls) AS calls, total(input_tokens) AS input_tokens, total(output_tokens) AS output_tokens,
    count(cost_usd) AS cost_known, sum(cost_usd) AS cost_usd
"""


class Measures:
    """The figures of the runs of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """How many finished runs have figures."""
        return int(self._connection().execute("SELECT count(*) FROM run_measures").fetchone()[0])

    def newest(self) -> int:
        """A number that changes when figures come in."""
        return int(self._connection().execute("SELECT coalesce(max(seq), 0) FROM run_measures").fetchone()[0])

    def span(self) -> tuple[str, str] | None:
        """When the first and the last run finished; None where there is none."""
        first, last = (
            self._connection().execute("SELECT min(finished_at), max(finished_at) FROM run_measures").fetchone()
        )
        return None if first is None else (first, last)

    def names(self, column: str) -> dict[str, int]:
        """The models of a role, or the data sets, with how many runs each has, the most first."""
        assert column in (*ROLES, "dataset")
        rows = self._connection().execute(
            f"SELECT {column}, count(*) FROM run_measures WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608
        )
        return {str(name): int(runs) for name, runs in rows}

    def total(self, wanted: MeasureFilter) -> Rates:
        """All runs that match, added up."""
        where, values = _where(wanted)
        row = self._connection().execute(f"SELECT '' AS name, {_SUMS} FROM run_measures {where}", values).fetchone()  # noqa: S608
        return _rates(row)

    def by_period(self, wanted: MeasureFilter, period: Period) -> tuple[Rates, ...]:
        """Added up by day, week or month, the oldest first; a period without a run is left out."""
        return self._grouped(wanted, _STARTS[period], "1")

    def by_model(self, wanted: MeasureFilter) -> tuple[Rates, ...]:
        """Added up by the model of the filter's role, the most used first."""
        return self._grouped(wanted, wanted.role, "runs DESC, 1")

    def _grouped(self, wanted: MeasureFilter, by: str, order: str) -> tuple[Rates, ...]:
        where, values = _where(wanted)
        rows = self._connection().execute(
            f"SELECT {by} AS name, {_SUMS} FROM run_measures {where} GROUP BY 1 ORDER BY {order}",  # noqa: S608
            values,
        )
        return tuple(_rates(row) for row in rows)

    def distribution(self, wanted: MeasureFilter, measure: Measure, bounds: Sequence[float]) -> Distribution:
        """How one figure is spread: mean, percentiles (nearest rank) and how many lie in each bin.

        ``bounds`` are the upper bounds of the bins but the last, ascending; a value on a bound lies below it.
        """
        source, value = _source(measure)
        where, values = _where(wanted)
        known = f"{where} {'AND' if where else 'WHERE'} {value} IS NOT NULL"
        bins = " + ".join(f"({value} > ?)" for _ in bounds) or "0"
        rows = self._connection().execute(
            f"SELECT {bins} AS bin, count(*), total({value}), min({value}), max({value}) FROM {source} {known} "  # noqa: S608
            "GROUP BY 1 ORDER BY 1",
            [*bounds, *values],
        )
        found = {int(row[0]): _Summed(int(row[1]), *map(float, row[2:])) for row in rows}
        count = sum(each.number for each in found.values())
        edges = (None, *bounds, None)
        return Distribution(
            measure=measure,
            count=count,
            mean=sum(each.total for each in found.values()) / count if count else None,
            least=min((each.least for each in found.values()), default=None),
            most=max((each.most for each in found.values()), default=None),
            p50=self._ranked(source, value, known, values, count, 50),
            p95=self._ranked(source, value, known, values, count, 95),
            bins=tuple(
                Bin(low=edges[number], high=edges[number + 1], count=found[number].number if number in found else 0)
                for number in range(len(bounds) + 1)
            ),
        )

    def _ranked(
        self, source: str, value: str, known: str, values: Sequence[Any], count: int, percent: int
    ) -> float | None:
        """The value at or below which so many percent lie; sought from the nearer end."""
        if not count:
            return None
        rank = -(-count * percent // 100) - 1
        order, offset = ("ASC", rank) if rank < count / 2 else ("DESC", count - 1 - rank)
        row = (
            self._connection()
            .execute(
                f"SELECT {value} FROM {source} {known} ORDER BY 1 {order} LIMIT 1 OFFSET ?",  # noqa: S608
                [*values, offset],
            )
            .fetchone()
        )
        return float(row[0])

    def runs(self, wanted: MeasureFilter, pick: Pick, *, page: int = 1, size: int = 20) -> MeasuredRuns:
        """The runs behind a figure, newest first; one whose case is gone has no case and no question."""
        where, values = _where(wanted)
        conditions, more, value = _picked(pick)
        if conditions:
            where = f"{where} {'AND' if where else 'WHERE'} {conditions}"
        values = [*values, *more]
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) FROM run_measures {where}", values).fetchone()[0]  # noqa: S608
            rows = connection.execute(
                f"""SELECT found.*, cases.id AS case_id, cases.query_start AS query FROM (
                        SELECT *, {value} AS value FROM run_measures {where}
                        ORDER BY finished_at DESC, seq DESC LIMIT ? OFFSET ?
                    ) AS found LEFT JOIN runs ON runs.id = found.run_id LEFT JOIN cases ON cases.seq = runs.case_seq
                    ORDER BY found.finished_at DESC, found.seq DESC""",  # noqa: S608
                [*values, size, (page - 1) * size],
            ).fetchall()
        return MeasuredRuns(rows=tuple(_measured(row) for row in rows), total=total)

    def _connection(self) -> sqlite3.Connection:
        return self._database.connection()


class _Summed(NamedTuple):
    """One bin's values added up."""

    number: int
    total: float
    least: float
    most: float


def write(connection: sqlite3.Connection, run: Run) -> None:
    """Keep the figures of a finished run, in place of those it may have; in the transaction that ends it."""
    found = measures.of_run(run)
    row = {name: getattr(found, name) for name in _OF_RUN}
    row |= {role: run.models.get(role) for role in ROLES}
    row |= {
        "run_id": run.id,
        "finished_at": run.finished_at,
        "dataset": connection.execute("SELECT dataset FROM cases WHERE id = ?", [run.case_id]).fetchone()[0],
        "iterations": len(found.iterations),
        "hallucination": found.critique.hallucination,
        "revision": found.critique.revision,
        "claim_confidence": found.critique.confidence,
        "claims": found.critique.claims,
    }
    connection.execute("DELETE FROM run_measures WHERE run_id = ?", [run.id])
    seq = connection.execute(_insert("run_measures", row), list(row.values())).lastrowid
    columns = ("measures_seq", *_OF_ITERATION)
    connection.executemany(_insert("iteration_measures", columns), ([seq, *each] for each in found.iterations))


def _insert(table: str, columns: Iterable[str]) -> str:
    names = tuple(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608


def _where(wanted: MeasureFilter) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    for sign, bound in ((">=", wanted.since), ("<", wanted.until)):
        if bound:
            conditions.append(f"finished_at {sign} ?")
            values.append(bound)
    for column, names in ((wanted.role, wanted.models), ("dataset", wanted.datasets)):
        if names:
            conditions.append(f"{column} IN ({', '.join('?' * len(names))})")
            values += names
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values


def _source(measure: Measure) -> tuple[str, str]:
    """The table, or the join, that a figure stands in, and its column."""
    table, column = COLUMNS[measure]
    if table == "run":
        return "run_measures", f"run_measures.{column}" if column.isidentifier() else column
    return "run_measures JOIN iteration_measures AS it ON it.measures_seq = run_measures.seq", f"it.{column}"


def _picked(pick: Pick) -> tuple[str, list[Any], str]:
    """What of the runs is meant: a condition, its values, and the figure to show beside each."""
    conditions: list[str] = []
    values: list[float | str] = []
    shown = "NULL"
    if pick.rate is not None:
        conditions.append(f"{pick.rate} = ?")
        values.append(int(pick.yes))
    if pick.termination is not None:
        conditions.append("termination = ?")
        values.append(pick.termination)
    if pick.measure is not None:
        table, column = COLUMNS[pick.measure]
        bounds = [(sign, bound) for sign, bound in ((">", pick.above), ("<=", pick.most)) if bound is not None]
        asked = " AND ".join([f"{column} IS NOT NULL", *(f"{column} {sign} ?" for sign, _ in bounds)])
        if table == "iteration":
            source = "FROM iteration_measures WHERE measures_seq = run_measures.seq"
            asked = f"EXISTS (SELECT 1 {source} AND {asked})"
            shown = f"(SELECT max({column}) {source})"
        else:
            shown = column
        conditions.append(asked)
        values += [bound for _, bound in bounds]
    return " AND ".join(conditions), values, shown


def _rates(row: sqlite3.Row) -> Rates:
    known = dict(row)
    runs = int(known["runs"])

    def share(yes: str, of: int) -> float | None:
        return float(known[yes]) / of if of else None

    return Rates(
        name=known["name"],
        runs=runs,
        critique_hallucination_rate=share("hallucinated", known["hallucination_known"]),
        critique_revision_rate=share("needed_revision", known["revision_known"]),
        critique_latency_ms=known["latency_ms"],
        critique_confidence_avg=known["claim_confidence"],
        claims_per_draft=known["claims"],
        convergence_rate=share("converged", runs),
        no_issues_rate=share("no_issues", runs),
        error_rate=share("failed", runs),
        needs_review_rate=share("needs_review", runs),
        **{
            name: known[name]
            for name in ("iterations", "improvement_percentage", "quality", "confidence", "overall", "cost_usd")
        },
        **{name: int(known[name]) for name in ("calls", "input_tokens", "output_tokens")},
    )


def _measured(row: sqlite3.Row) -> MeasuredRun:
    names = set(MeasuredRun.model_fields) - {"models"}
    return MeasuredRun(
        **{name: row[name] for name in names}, models={role: row[role] for role in ROLES if row[role] is not None}
    )
