"""The figures of a lake of audited cases, read directly from its Parquet files without an import.

Only the required columns are read, 50,000 rows at a time. Memory holds the sums for each day and
model, and eight bytes per row for each distribution.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from masis.audit.measures.metrics import (
    AddedUp,
    Distribution,
    MeasureFilter,
    Period,
    Sums,
    add_up,
    per_run_metrics,
    select_metrics,
    spread_of,
)
from masis.datasets.lake import OUTCOMES, Outcome, open_lake

ROWS_AT_ONCE = 50_000

_NUMBERS = (
    "seconds",
    "iterations",
    "improvement_percentage",
    "quality",
    "confidence",
    "overall",
    "hallucination",
    "claims",
    "issues",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
)
_COLUMNS_READ = (
    "outcome",
    "run_id",
    "finished_at",
    "dataset",
    "models",
    "termination_reason",
    "tier",
    *_NUMBERS,
)


class LakeFigures(NamedTuple):
    """The number of matching rows by outcome, and the figures of those that were audited."""

    outcomes: dict[Outcome, int]
    rates: AddedUp
    distributions: tuple[Distribution, ...]


def lake_figures(place: str, measure_filter: MeasureFilter, period: Period) -> LakeFigures:
    """Return the figures of a lake, which is a folder or an address that fsspec reads.

    A failed row has no time and no models, so filters on these exclude it.

    Raises:
        InputError: There is no lake at this place.

    """
    outcomes, sums = Counter[str](), dict[tuple[str, str | None], Sums]()
    values: dict[str, list[NDArray[np.float64]]] = {
        metric.name: [] for metric in select_metrics("spread")
    }
    for rows in _measure_frames(open_lake(place), measure_filter):
        outcomes.update(rows["outcome"])
        audited = _with_metrics(rows[rows["run_id"].notna()], [*values])
        # dropna=False keeps runs without a model of this role as a group.
        groups = audited.groupby([period, "model"], dropna=False)[
            [metric.name for metric in per_run_metrics()]
        ]
        added = groups.sum().join(groups.count().add_suffix("_known")).assign(runs=groups.size())
        for row in added.reset_index().to_dict("records"):
            first, model = row.pop(period), row.pop("model")
            sums.setdefault((first, None if pd.isna(model) else model), Sums()).update(
                {str(name): value for name, value in row.items()}
            )
        for name, parts in values.items():
            parts.append(audited[name].dropna().to_numpy())
    return LakeFigures(
        outcomes={outcome: outcomes[outcome] for outcome in OUTCOMES},
        rates=add_up(sums),
        distributions=tuple(
            spread_of(name, np.sort(np.concatenate(parts)) if parts else np.empty(0))
            for name, parts in values.items()
        ),
    )


def _measure_frames(lake: Any, measure_filter: MeasureFilter) -> Iterator[pd.DataFrame]:
    """Yield the matching rows of a lake, with the ``model`` of the role."""
    import pyarrow
    from pyarrow import dataset

    finished, condition = dataset.field("finished_at"), dataset.scalar(True)
    since, until = (
        text and pyarrow.scalar(pd.to_datetime(text, utc=True), pyarrow.timestamp("us", tz="UTC"))
        for text in (measure_filter.since, measure_filter.until)
    )
    if since:
        condition &= finished >= since
    if until:
        condition &= finished < until
    if measure_filter.datasets:
        condition &= dataset.field("dataset").isin(list(measure_filter.datasets))
    # One fragment ahead at most, since each holds the texts of thousands of runs.
    scanner = lake.scanner(
        columns=list(_COLUMNS_READ), filter=condition, batch_size=ROWS_AT_ONCE, fragment_readahead=1
    )
    for batch in scanner.to_batches():
        rows = batch.to_pandas()
        # Most runs have the same models, so each distinct text is parsed only once.
        known = {
            text: json.loads(text).get(measure_filter.role)
            for text in rows["models"].dropna().unique()
        }
        rows["model"] = rows["models"].map(known)
        yield rows[rows["model"].isin(measure_filter.models)] if measure_filter.models else rows


def _with_metrics(rows: pd.DataFrame, spreads: Sequence[str]) -> pd.DataFrame:
    """Return audited rows with a column for each metric and for the first days of periods.

    Values that a lake doesn't have are NaN.
    """
    ended, at = rows["termination_reason"], rows["finished_at"]
    # The times are UTC, so the zone can be dropped.
    days = at.dt.tz_localize(None).dt.normalize()
    frame = rows[["model"]].join(rows[list(_NUMBERS)].astype(np.float64))
    frame = frame.rename(
        columns={"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    )
    frame = frame.assign(
        needs_review=rows["tier"].isin(["must_look", "not_certified"]),
        loop_ms=frame["seconds"] * 1000,
        tokens=frame["input_tokens"] + frame["output_tokens"],
        total_tokens=frame["input_tokens"] + frame["output_tokens"],
        cost=frame["cost_usd"],
        converged=ended.isin(["no_issues", "convergence"]),
        convergence_ending=ended == "convergence",
        no_issues=ended == "no_issues",
        failed=ended == "error",
    )
    names = dict.fromkeys(["model", *spreads, *(metric.name for metric in per_run_metrics())])
    return frame.reindex(columns=[*names]).assign(
        day=days.dt.strftime("%Y-%m-%d"),
        # day_of_week is 0 on Monday.
        week=(days - pd.to_timedelta(days.dt.day_of_week, unit="D")).dt.strftime("%Y-%m-%d"),
        month=days.dt.strftime("%Y-%m-01"),
    )
