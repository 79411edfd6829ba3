"""The figures of finished runs: written as a run ends, added up in SQL, found again run by run.

A run's figures stand in tables of their own that hold no text and name the run by its id, so that they outlast what
retention removes. Times are UTC; a week begins on its Monday. Nothing is counted where nothing was measured.
"""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from masis.audit import run_metrics
from masis.audit.statistics import percentile
from masis.schema.base import Record
from masis.schema.run import Run
from masis.settings import ROLES, Role
from masis.store.core.connections import Database

Period = Literal["day", "week", "month"]
Rate = Literal["hallucination", "revision", "converged", "convergence_ending", "needs_review"]
Measure = Literal[
    "critic_ms",
    "reviser_ms",
    "iteration_ms",
    "loop_ms",
    "iterations",
    "improvement_delta",
    "improvement_percentage",
    "issues",
    "claims",
    "confidence",
    "tokens",
    "cost_usd",
]
COLUMNS: dict[Measure, tuple[Literal["run", "iteration"], str]] = {
    "critic_ms": ("iteration", "critic_ms"),
    "reviser_ms": ("iteration", "reviser_ms"),
    "iteration_ms": ("iteration", "iteration_ms"),
    "loop_ms": ("run", "loop_ms"),
    "iterations": ("run", "iterations"),
    "improvement_delta": ("iteration", "improvement_delta"),
    "improvement_percentage": ("run", "improvement_percentage"),
    "issues": ("iteration", "issues"),
    "claims": ("run", "claims"),
    "confidence": ("run", "confidence"),
    "tokens": ("run", "(input_tokens + output_tokens)"),
    "cost_usd": ("run", "cost_usd"),
}
"""Where each figure stands: once a run, or once an iteration, which is one audited answer."""


class MeasureFilter(Record):
    """Which runs. Times are ISO 8601, ``until`` is excluded; ``models`` are those of ``role``. Empty doesn't filter."""

    since: str | None = None
    until: str | None = None
    role: Role = "critic"
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()


class Pick(Record):
    """The runs behind one figure: those of which ``rate`` is ``yes``, those that ended so, those with an iteration (or
    themselves) whose ``measure`` lies above ``above`` and at most at ``most``.
    """

    rate: Rate | None = None
    yes: bool = True
    termination: str | None = None
    measure: Measure | None = None
    above: float | None = None
    most: float | None = None


class Rates(Record):
    """Runs added up. Shares are 0..1, latency is the mean in milliseconds, the other figures are means but for calls,
    tokens and cost, which are sums. None: nothing was measured. ``name`` is the period's first day, or the model.

    ``converged_rate`` is the share of runs that ended well (by ``no_issues`` or ``convergence``), ``convergence_rate``
    that of ``convergence`` endings alone; the bases of the first two rates are ``hallucination_known`` and
    ``revision_known``, that of all others is ``runs``.
    """

    name: str | None
    runs: int
    critique_hallucination_rate: float | None
    critique_revision_rate: float | None
    hallucination_known: int
    revision_known: int
    critique_latency_ms: float | None
    critique_confidence_avg: float | None
    claims_per_draft: float | None
    converged_rate: float | None
    convergence_rate: float | None
    no_issues_rate: float | None
    error_rate: float | None
    needs_review_rate: float | None
    iterations: float | None
    improvement_percentage: float | None
    quality: float | None
    confidence: float | None
    overall: float | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Bin(Record):
    """How many values lie above ``low`` and at most at ``high``; None leaves a side open."""

    low: float | None
    high: float | None
    count: int


class Distribution(Record):
    """How one figure is spread over runs or iterations; percentiles are values that occurred."""

    measure: Measure
    count: int
    mean: float | None
    least: float | None
    most: float | None
    p50: float | None
    p95: float | None
    bins: tuple[Bin, ...]


class MeasuredRun(Record):
    """One run in a list of figures; ``value`` is the figure asked for. Without ``case_id`` the run is gone."""

    run_id: str
    case_id: str | None
    query: str | None
    finished_at: str
    models: dict[str, str]
    termination: str
    iterations: int
    loop_ms: float
    quality: float | None
    confidence: float | None
    improvement_percentage: float | None
    hallucination: bool | None
    revision: bool | None
    converged: bool
    needs_review: bool
    value: float | None


class MeasuredRuns(Record):
    """One page of runs, and how many there are in all."""

    rows: tuple[MeasuredRun, ...]
    total: int = Field(ge=0)


_OF_RUN = (
    *("loop_ms", "converged", "termination", "needs_review", "improvement_percentage"),
    *("quality", "confidence", "overall"),
    *("calls", "tries", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"),
)
_OF_ITERATION = run_metrics.IterationMeasures._fields

_SUMS = """
    count(*) AS runs, count(hallucination) AS hallucination_known, total(hallucination) AS hallucinated,
    count(revision) AS revision_known, total(revision) AS needed_revision,
    sum(termination IN ('no_issues', 'convergence')) AS converged, sum(termination = 'convergence') AS convergence,
    sum(termination = 'no_issues') AS no_issues, sum(termination = 'error') AS failed,
    sum(needs_review) AS needs_review,
    total(loop_ms) AS loop_ms, total(claim_confidence) AS claim_confidence,
    count(claim_confidence) AS claim_confidence_known, total(claims) AS claims, count(claims) AS claims_known,
    sum(iterations) AS iterations, total(improvement_percentage) AS improvement_percentage,
    count(improvement_percentage) AS improvement_percentage_known, total(quality) AS quality,
    count(quality) AS quality_known, total(confidence) AS confidence, count(confidence) AS confidence_known,
    total(overall) AS overall, count(overall) AS overall_known, sum(calls) AS calls,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    count(cost_usd) AS cost_known, total(cost_usd) AS cost_usd
"""
_KEPT_SUMS = ", ".join(
    f"sum({column}) AS {name}"
    for name, column in {
        **{name: name for name in ("runs", "needs_review", "loop_ms", "iterations", "calls")},
        **{name: name for name in ("input_tokens", "output_tokens", "cost_usd")},
        **{
            name: name
            for known in ("claim_confidence", "claims", "improvement_percentage", "quality", "confidence", "overall")
            for name in (known, f"{known}_known")
        },
        "hallucination_known": "hallucination_known",
        "hallucinated": "hallucination",
        "revision_known": "revision_known",
        "needed_revision": "revision",
        "cost_known": "cost_usd_known",
        "converged": "ended_no_issues + ended_convergence",
        "convergence": "ended_convergence",
        "no_issues": "ended_no_issues",
        "failed": "ended_error",
    }.items()
)
"""The same sums from the rows that triggers keep by day, data set and models."""

_COUNTED = ("hallucination_known", "revision_known", "calls", "input_tokens", "output_tokens")
_OF_RATE: dict[Rate, str] = {
    "hallucination": "hallucination",
    "revision": "revision",
    "converged": "(termination IN ('no_issues', 'convergence'))",
    "convergence_ending": "(termination = 'convergence')",
    "needs_review": "needs_review",
}
_ROWS_AT_ONCE = 20_000
_PACE_OF = 2_000
"""Audits that are looked at for those by the same models: older ones say little about the pace of now."""


_DAY = len("2026-01-01")


class AddedUp(NamedTuple):
    """The same runs in all, by period and by model."""

    total: Rates
    periods: tuple[Rates, ...]
    models: tuple[Rates, ...]


class Measures:
    """The figures of the runs of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self) -> int:
        """How many finished runs have figures."""
        return int(self._database.value("SELECT count(*) FROM run_measures"))

    def newest(self) -> int:
        """A number that changes when figures come in."""
        return int(self._database.value("SELECT coalesce(max(seq), 0) FROM run_measures"))

    def span(self) -> tuple[str, str] | None:
        """When the first and the last run finished; None where there is none."""
        # two queries: for both at once SQLite reads the whole index, for either its end
        first = self._database.value("SELECT min(finished_at) FROM run_measures")
        last = self._database.value("SELECT max(finished_at) FROM run_measures")
        return None if first is None else (first, last)

    def names(self, column: str) -> dict[str, int]:
        """The models of a role, or the data sets, with how many runs each has, the most first."""
        assert column in (*ROLES, "dataset")
        rows = self._database.execute(
            f"SELECT {column}, sum(runs) FROM measure_days WHERE {column} <> '' GROUP BY 1 ORDER BY 2 DESC, 1"  # noqa: S608
        )
        return {str(name): int(runs) for name, runs in rows}

    def pace(self, models: Mapping[str, str], runs: int = 50) -> tuple[float, int] | None:
        """Mean milliseconds of the newest audits by these models (by role), and of how many; None where there is none.

        The drafter plays no part: most answers were written before.
        """
        judging = [role for role in ROLES if role != "drafter"]
        same = " AND ".join(f"{role} = ?" for role in judging)
        rows = self._database.execute(
            f"SELECT loop_ms FROM (SELECT * FROM run_measures ORDER BY seq DESC LIMIT {_PACE_OF}) "  # noqa: S608 (names of ours)
            f"WHERE {same} LIMIT ?",
            [*(models[role] for role in judging), runs],
        )
        return (sum(row[0] for row in rows) / len(rows), len(rows)) if rows else None

    def total(self, wanted: MeasureFilter) -> Rates:
        """All runs that match, added up."""
        return self.added_up(wanted, "month").total

    def added_up(self, wanted: MeasureFilter, period: Period) -> AddedUp:
        """The runs that match, read once: added up in SQL by day and model, then to whatever is asked for."""
        where, values = _where(wanted)
        if all(len(bound) == _DAY for bound in (wanted.since, wanted.until) if bound):
            where = where.replace("finished_at", "day")
            rows = self._database.execute(
                f"SELECT day, nullif({wanted.role}, '') AS model, {_KEPT_SUMS} FROM measure_days {where} GROUP BY 1, 2",  # noqa: S608
                values,
            )
        else:
            rows = self._database.execute(
                f"SELECT substr(finished_at, 1, 10) AS day, {wanted.role} AS model, {_SUMS} FROM run_measures {where} "  # noqa: S608
                "GROUP BY 1, 2",
                values,
            )
        total, periods, models = Counter[str](), dict[str, Counter[str]](), dict[str | None, Counter[str]]()
        for row in rows:
            sums = Counter({name: row[name] for name in row.keys() if name not in ("day", "model")})  # noqa: SIM118
            for added in (
                total,
                periods.setdefault(first_day(row["day"], period), Counter()),
                models.setdefault(row["model"], Counter()),
            ):
                added.update(sums)
        return AddedUp(
            total=rates_of("", total),
            periods=tuple(rates_of(first, periods[first]) for first in sorted(periods)),
            models=tuple(
                rates_of(model, sums)
                for model, sums in sorted(models.items(), key=lambda each: (-each[1]["runs"], each[0] or ""))
            ),
        )

    def distribution(self, wanted: MeasureFilter, measure: Measure) -> Distribution:
        """Describe how one metric is spread; see ``distributions``."""
        return self.distributions(wanted, (measure,))[0]

    def distributions(
        self, wanted: MeasureFilter, asked: Iterable[Measure], newest: int | None = None
    ) -> tuple[Distribution, ...]:
        """Describe how metrics are spread: mean, percentiles (nearest rank) and how many values lie in each bin.

        A value on a bound lies in the bin below it. Each table is read once; with ``newest`` only so many of the runs
        that match, those stored last.
        """
        values: dict[Measure, NDArray[np.float64]] = {}
        for table in ("run", "iteration"):
            measures_there = [measure for measure in asked if COLUMNS[measure][0] == table]
            if measures_there:
                values |= self._values(wanted, table, measures_there, newest)
        return tuple(spread_of(measure, values[measure]) for measure in asked)

    def _values(
        self, wanted: MeasureFilter, table: str, asked: Sequence[Measure], newest: int | None
    ) -> dict[Measure, NDArray[np.float64]]:
        """The values of figures of one table that are known, ascending."""
        where, bound = _where(wanted)
        source = "run_measures"
        if newest is not None:
            source = f"(SELECT * FROM run_measures {where} ORDER BY seq DESC LIMIT {int(newest)}) AS run_measures"  # noqa: S608
            where = ""
        if table == "iteration" and (where or newest is not None):  # in this order: the runs that match are the fewer
            source = f"{source} CROSS JOIN iteration_measures AS it ON it.measures_seq = run_measures.seq"
        elif table == "iteration":
            source = "iteration_measures AS it"
        prefix = "it." if table == "iteration" else ""
        columns = ", ".join(f"{prefix}{COLUMNS[measure][1]}" for measure in asked)
        parts = []
        with self._database.reading() as connection:
            cursor = connection.cursor()
            cursor.row_factory = None  # tuples are read faster
            cursor.execute(f"SELECT {columns} FROM {source} {where}", bound)  # noqa: S608
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                parts.append(np.array(rows, dtype=np.float64))  # None becomes NaN
        read = np.concatenate(parts) if parts else np.empty((0, len(asked)))
        found = {}
        for number, measure in enumerate(asked):
            column = read[:, number]
            found[measure] = np.sort(column[~np.isnan(column)])
        return found

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


def first_day(day: str, period: Period) -> str:
    """The first day of the period that a day lies in."""
    if period == "day":
        return day
    if period == "month":
        return f"{day[:7]}-01"
    there = date.fromisoformat(day)
    return (there - timedelta(days=there.weekday())).isoformat()


MOST_BINS = 10
"""A bar is something to click on, and needs its room."""


def equal_bounds(values: NDArray[np.float64]) -> list[float]:
    """Return the inner bounds of bins that are equally wide, 1, 2 or 5 times a power of ten, for ascending values.

    A long tail would squeeze everything else into one bin: where the largest value lies more than twice as far out as
    the 99th percentile, what is above that shares the last bin, which is open.
    """
    if not len(values) or values[0] == values[-1]:
        return []
    whole = bool(np.all(values == np.floor(values)))
    least, most, tail = float(values[0]), float(values[-1]), percentile(values, 99)
    if most - least > 2 * (tail - least) > 0:
        most = tail
    step = 1.0 if whole else 10.0 ** (math.floor(math.log10(max(most - least, abs(most) * 1e-9, 1e-12))) - 2)
    for factor in itertools.cycle((2, 2.5, 2)):
        first = math.floor(least / step) * step
        bins = math.floor((most - first) / step) + 1 if whole else max(1, math.ceil(round((most - first) / step, 9)))
        if bins + (float(values[-1]) > most) <= MOST_BINS:
            break
        step *= factor
    # a bin holds its upper bound: of whole numbers the last one before the next step
    last = bins + (float(values[-1]) > most)
    return [round(first + step * number - whole, 12) for number in range(1, last)]


def spread_of(measure: Measure, values: NDArray[np.float64]) -> Distribution:
    """Describe how ascending values are spread."""
    count = len(values)
    bounds = equal_bounds(values)
    ends = [0, *np.searchsorted(values, bounds, side="right").tolist(), count]
    edges = (None, *bounds, None)

    return Distribution(
        measure=measure,
        count=count,
        mean=float(values.mean()) if count else None,
        least=float(values[0]) if count else None,
        most=float(values[-1]) if count else None,
        p50=percentile(values, 50) if count else None,
        p95=percentile(values, 95) if count else None,
        bins=tuple(
            Bin(low=edges[number], high=edges[number + 1], count=ends[number + 1] - ends[number])
            for number in range(len(bounds) + 1)
        ),
    )


def write(connection: sqlite3.Connection, run: Run) -> None:
    """Store the figures of a finished run, in place of those it may have; in the transaction that ends it."""
    found = run_metrics.of_run(run)
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


def _picked(pick: Pick) -> tuple[str, list[Any], str]:
    """What of the runs is meant: a condition, its values, and the figure to show beside each."""
    conditions: list[str] = []
    values: list[float | str] = []
    shown = "NULL"
    if pick.rate is not None:
        conditions.append(f"{_OF_RATE[pick.rate]} = ?")
        values.append(int(pick.yes))
    if pick.termination is not None:
        conditions.append("termination = ?")
        values.append(pick.termination)
    if pick.measure is not None:
        table, column = COLUMNS[pick.measure]
        bounds = [(sign, bound) for sign, bound in ((">", pick.above), ("<=", pick.most)) if bound is not None]
        asked = " AND ".join([f"{column} IS NOT NULL", *(f"{column} {sign} ?" for sign, _ in bounds)])
        if table == "iteration":
            asked = f"seq IN (SELECT measures_seq FROM iteration_measures WHERE {asked})"  # noqa: S608
            shown = f"(SELECT max({column}) FROM iteration_measures WHERE measures_seq = run_measures.seq)"  # noqa: S608
        else:
            shown = column
        conditions.append(asked)
        values += [bound for _, bound in bounds]
    return " AND ".join(conditions), values, shown


def rates_of(name: str | None, sums: Mapping[str, float]) -> Rates:
    """Return the rates that sums over runs give, under the names of ``_SUMS``."""
    runs = int(sums["runs"]) if sums else 0

    def over(what: str, known: str) -> float | None:
        return sums[what] / sums[known] if sums.get(known) else None

    return Rates(
        name=name,
        runs=runs,
        critique_hallucination_rate=over("hallucinated", "hallucination_known"),
        critique_revision_rate=over("needed_revision", "revision_known"),
        critique_latency_ms=over("loop_ms", "runs"),
        critique_confidence_avg=over("claim_confidence", "claim_confidence_known"),
        claims_per_draft=over("claims", "claims_known"),
        converged_rate=over("converged", "runs"),
        convergence_rate=over("convergence", "runs"),
        no_issues_rate=over("no_issues", "runs"),
        error_rate=over("failed", "runs"),
        needs_review_rate=over("needs_review", "runs"),
        iterations=over("iterations", "runs"),
        improvement_percentage=over("improvement_percentage", "improvement_percentage_known"),
        quality=over("quality", "quality_known"),
        confidence=over("confidence", "confidence_known"),
        overall=over("overall", "overall_known"),
        cost_usd=sums["cost_usd"] if sums.get("cost_known") else None,
        **{total: int(sums.get(total, 0)) for total in _COUNTED},
    )


def _measured(row: sqlite3.Row) -> MeasuredRun:
    names = set(MeasuredRun.model_fields) - {"models"}
    return MeasuredRun(
        **{name: row[name] for name in names}, models={role: row[role] for role in ROLES if row[role] is not None}
    )
