"""The figures of a lake of audited cases, read straight from its Parquet files: nothing is imported.

Only the columns that figures need are read, some thousand rows at a time; what is held is a sum for each day and set of
models, and eight bytes a row for each distribution.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.datasets.lake import OUTCOMES, Outcome, open_lake
from masis.store.audits.metrics import (
    Distribution,
    Measure,
    MeasureFilter,
    Period,
    Rates,
    first_day,
    rates_of,
    spread_of,
)

ROWS_AT_ONCE = 50_000

_SPREADS: dict[Measure, tuple[str, ...]] = {
    "loop_ms": ("seconds",),
    "iterations": ("iterations",),
    "improvement_percentage": ("improvement_percentage",),
    "issues": ("issues",),
    "claims": ("claims",),
    "confidence": ("confidence",),
    "tokens": ("prompt_tokens", "completion_tokens"),
    "cost_usd": ("cost_usd",),
}
"""The distributions that the columns give; several columns are added up."""

_KNOWN = {
    "hallucination": "hallucinated",
    "claims": "claims",
    "improvement_percentage": "improvement_percentage",
    "quality": "quality",
    "confidence": "confidence",
    "overall": "overall",
}
"""Columns that may be null, and what their sum is called; how many are known is counted beside it."""

_ADDED = {"iterations": "iterations", "calls": "calls", "prompt_tokens": "input_tokens"}
_READ = (
    *("outcome", "run_id", "finished_at", "dataset", "models", "termination_reason", "tier", "seconds"),
    *(*_KNOWN, "cost_usd", "issues", *_ADDED, "completion_tokens"),
)


class LakeFigures(NamedTuple):
    """How many rows of the lake match by outcome, and the figures of those that were audited."""

    outcomes: dict[Outcome, int]
    total: Rates
    periods: tuple[Rates, ...]
    models: tuple[Rates, ...]
    distributions: tuple[Distribution, ...]


def lake_figures(place: str, wanted: MeasureFilter, period: Period) -> LakeFigures:
    """Return the figures of a lake. A row that failed has no time and no models: filters by these leave it out.

    Args:
        place: A folder, or an address that fsspec reads.
        wanted: Which rows.
        period: What rates are given for.

    Raises:
        InputError: There is no lake.

    """
    gathered = _Gathered(wanted, period)
    for rows in _batches(open_lake(place), wanted):
        gathered.add(rows)
    return gathered.figures()


def _batches(lake: Any, wanted: MeasureFilter) -> Iterator[Any]:
    """Yield the rows of a lake that match but for their models, as tables of the columns that are read."""
    import pyarrow
    from pyarrow import dataset

    condition = None
    bounds = [(wanted.since, "__ge__"), (wanted.until, "__lt__")]
    conditions = [
        getattr(dataset.field("finished_at"), how)(pyarrow.scalar(_moment(bound), pyarrow.timestamp("us", tz="UTC")))
        for bound, how in bounds
        if bound
    ]
    if wanted.datasets:
        conditions.append(dataset.field("dataset").isin(list(wanted.datasets)))
    for each in conditions:
        condition = each if condition is None else condition & each
    scanner = lake.scanner(columns=list(_READ), filter=condition, batch_size=ROWS_AT_ONCE, fragment_readahead=1)
    for batch in scanner.to_batches():
        if batch.num_rows:
            yield pyarrow.Table.from_batches([batch])


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


class _Gathered:
    """Sums by day and models, and the values of each distribution."""

    def __init__(self, wanted: MeasureFilter, period: Period) -> None:
        self._wanted, self._period = wanted, period
        self._outcomes: Counter[str] = Counter()
        self._sums: dict[tuple[str, str | None], Counter[str]] = {}
        self._values: dict[Measure, list[NDArray[np.float64]]] = {measure: [] for measure in _SPREADS}

    def add(self, rows: Any) -> None:
        """Add rows of the lake."""
        from pyarrow import compute

        models = _of_role(rows["models"], self._wanted.role)
        if self._wanted.models:
            keep = compute.is_in(models, value_set=_strings(self._wanted.models))
            rows, models = rows.filter(keep), models.filter(keep)
        self._outcomes.update(rows["outcome"].to_pylist())
        audited = compute.is_valid(rows["run_id"])
        rows, models = rows.filter(audited), models.filter(audited)
        if not rows.num_rows:
            return
        self._add_sums(rows, models)
        for measure, columns in _SPREADS.items():
            parts = [rows[column].to_numpy(zero_copy_only=False).astype(np.float64) for column in columns]
            found = sum(parts[1:], parts[0]) * (1000 if measure == "loop_ms" else 1)
            self._values[measure].append(found[~np.isnan(found)])

    def _add_sums(self, rows: Any, models: Any) -> None:
        import pyarrow
        from pyarrow import compute

        ended = compute.fill_null(rows["termination_reason"], "")
        columns: dict[str, Any] = {
            "day": compute.strftime(rows["finished_at"], "%Y-%m-%d"),
            "model": models,
            "runs": pyarrow.array(np.ones(rows.num_rows, dtype=np.int64)),
            "needs_review": _flags(compute.is_in(rows["tier"], value_set=_strings(("must_look", "not_certified")))),
            "loop_ms": compute.multiply(rows["seconds"], 1000.0),
            "output_tokens": rows["completion_tokens"],
            "cost_known": _flags(compute.is_valid(rows["cost_usd"])),
            "cost_usd": rows["cost_usd"],
            **{name: rows[column] for column, name in _ADDED.items()},
            **{f"{column}_known": _flags(compute.is_valid(rows[column])) for column in _KNOWN},
            **{name: compute.cast(rows[column], pyarrow.float64()) for column, name in _KNOWN.items()},
            "converged": _flags(compute.is_in(ended, value_set=_strings(("no_issues", "convergence")))),
            "convergence": _flags(compute.equal(ended, "convergence")),
            "no_issues": _flags(compute.equal(ended, "no_issues")),
            "failed": _flags(compute.equal(ended, "error")),
        }
        sums = [name for name in columns if name not in ("day", "model")]
        found = pyarrow.table(columns).group_by(["day", "model"]).aggregate([(name, "sum") for name in sums])
        for row in found.to_pylist():
            added = Counter({name: row[f"{name}_sum"] or 0 for name in sums})
            self._sums.setdefault((row["day"], row["model"]), Counter()).update(added)

    def figures(self) -> LakeFigures:
        """Return everything that was added."""
        total, periods, models = Counter[str](), dict[str, Counter[str]](), dict[str | None, Counter[str]]()
        for (day, model), sums in self._sums.items():
            of_period = periods.setdefault(first_day(day, self._period), Counter())
            for added in (total, of_period, models.setdefault(model, Counter())):
                added.update(sums)
        by_runs = sorted(models.items(), key=lambda each: (-each[1]["runs"], each[0] or ""))
        return LakeFigures(
            outcomes={outcome: self._outcomes[outcome] for outcome in OUTCOMES},
            total=rates_of("", total),
            periods=tuple(rates_of(first, periods[first]) for first in sorted(periods)),
            models=tuple(rates_of(model, sums) for model, sums in by_runs),
            distributions=tuple(
                spread_of(measure, np.sort(np.concatenate(values)) if values else np.empty(0))
                for measure, values in self._values.items()
            ),
        )


def _of_role(models: Any, role: str) -> Any:
    """Return the model of a role from the JSON of all roles: there are few different ones among many rows."""
    import pyarrow

    known: dict[str | None, str | None] = {None: None}
    for text in models.unique().to_pylist():
        if text is not None:
            known[text] = json.loads(text).get(role)
    return pyarrow.array([known[text] for text in models.to_pylist()], pyarrow.string())


def _strings(values: tuple[str, ...]) -> Any:
    import pyarrow

    return pyarrow.array(values, pyarrow.string())


def _flags(values: Any) -> Any:
    from pyarrow import compute

    return compute.cast(values, "int64")
