"""Words, chart rows and tables for the metrics of finished runs (``REPORT_METRICS``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple

from masis.audit.measures.metrics import (
    REPORT_METRICS,
    Bin,
    Distribution,
    MetricsReport,
    Period,
    ReportMetric,
    RunGroup,
    Topic,
    bound_text,
    per_run_metrics,
)
from masis.schema.model_ref import REPLAY
from masis.views.numbers import NOTHING, day, in_unit, percent

NOT_MEASURED = {
    "calls": "No model was called.",
    "time": "All replies are recorded: no model took time for them.",
    "revision": "No answer was revised.",
}
"""Why a metric isn't shown, by what it ``needs``."""


def has_replayed(models: Iterable[str | None]) -> bool:
    """Return whether any of these models' replies were recorded, so that no time was measured."""
    return any(REPLAY in (model or "") for model in models)


def unmet_needs(report: MetricsReport) -> set[str]:
    """Return what these audits lack, so that zeros aren't shown for what wasn't measured."""
    met = {
        "calls": report.total.values["calls"],
        "time": not all(has_replayed([model.name]) for model in report.models),
        "revision": any(
            spread.measure == "iterations" and (spread.most or 0) > 1
            for spread in report.distributions
        ),
    }
    return {need for need, is_met in met.items() if not is_met}


def topic_metrics(report: MetricsReport, topic: Topic) -> list[ReportMetric]:
    """Return the metrics of a section that have a chart and were measured."""
    unmet = unmet_needs(report)
    measured = {spread.measure for spread in report.distributions if spread.count}
    return [
        metric
        for metric in REPORT_METRICS.values()
        if metric.topic == topic
        and metric.chart
        and metric.needs not in unmet
        and (metric.chart != "spread" or metric.name in measured)
    ]


def column_metrics() -> list[ReportMetric]:
    """Return the columns of the tables by model and by period."""
    return [metric for metric in per_run_metrics() if metric.is_column]


def count_of(metric: ReportMetric, group: RunGroup) -> int:
    """Return in how many runs of a group a share holds."""
    return round((group.values[metric.name] or 0) * group.known[metric.name])


def value_text(metric: ReportMetric, group: RunGroup) -> str:
    """Return the value of a group; a share with its base, for example ``31% (4 of 13)``."""
    value = group.values[metric.name]
    if value is None:
        return NOTHING
    if metric.unit == "share":
        base = group.known[metric.name]
        return f"{percent(value, whole_from=0.01)} ({count_of(metric, group):,} of {base:,})"
    return f"{value:,.0f}" if metric.unit == "integer" else in_unit(metric.unit)(value)


def course_rows(report: MetricsReport, metric: ReportMetric) -> list[dict[str, Any]]:
    """Return a metric by period as rows of its chart, without periods in which it isn't known."""
    return [
        {
            "at": group.name,
            "name": period_name(report.period, group.name or ""),
            "value": value,
            "audits": value_text(metric, group),
        }
        for group in report.periods
        if (value := group.values[metric.name]) is not None
    ]


class SpreadView(NamedTuple):
    """A distribution: bars and marks of its chart, key numbers, and its limit in words."""

    bars: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    median: str
    numbers: str
    limit: str
    held: bool


def spread_view(distribution: Distribution) -> SpreadView:
    """Describe one distribution for its chart."""
    metric = REPORT_METRICS[distribution.measure]
    write, p95 = in_unit(metric.unit), distribution.p95
    held = metric.limit is not None and p95 is not None and p95 <= metric.limit
    limit = ""
    if metric.limit is not None:
        limit = f"95% {'are' if held else 'are not'} within the limit of {write(metric.limit)}"
    return SpreadView(
        bars(distribution, write),
        _percentile_marks(distribution),
        write(distribution.p50),
        f"mean {write(distribution.mean)}, median {write(distribution.p50)}, "
        f"95% up to {write(p95)}, "
        f"at most {write(distribution.most)}; {distribution.count:,} measured",
        limit,
        held,
    )


SPREAD_TITLES = ("", "count", "mean", "p50", "p95", "most", "95% under")


def spread_cells(distribution: Distribution) -> list[str]:
    """Return the row of a distribution in tables with ``SPREAD_TITLES``."""
    metric = REPORT_METRICS[distribution.measure]
    write, limit = in_unit(metric.unit), ""
    if metric.limit is not None and distribution.p95 is not None:
        limit = f"{write(metric.limit)} {'met' if distribution.p95 <= metric.limit else 'MISSED'}"
    values = (distribution.mean, distribution.p50, distribution.p95, distribution.most)
    return [metric.label, f"{distribution.count:,}", *map(write, values), limit]


def _percentile_marks(distribution: Distribution) -> list[dict[str, Any]]:
    """Return marks for the median and the 95th percentile, merged if their names would overlap."""
    if (
        distribution.p50 is None
        or distribution.p95 is None
        or distribution.least is None
        or distribution.most is None
    ):
        return []
    if distribution.p95 - distribution.p50 > 0.15 * (distribution.most - distribution.least):
        return [
            {"value": distribution.p50, "name": "median"},
            {"value": distribution.p95, "name": "95%"},
        ]
    names = "median, 95%" if distribution.p50 == distribution.p95 else "median and 95%"
    return [{"value": distribution.p50, "name": names}, {"value": distribution.p95, "name": ""}]


def bars(distribution: Distribution, write: Callable[[float | None], str]) -> list[dict[str, Any]]:
    """Return the bars of a distribution, all equally wide; none if all values are in one bin."""
    inner = [bin_.high for bin_ in distribution.bins if bin_.high is not None]
    if not inner:
        return []
    # The first and the last bin are open, so they are drawn as wide as the others.
    width = (
        inner[1] - inner[0]
        if len(inner) > 1
        else abs(inner[0] - (distribution.least or 0.0)) or 1.0
    )
    aside = 0.5 if REPORT_METRICS[distribution.measure].is_count else 0.0
    first = inner[0] - width
    if not aside and (distribution.least or 0.0) >= 0.0:  # Times and shares can't be negative.
        first = max(first, 0.0)
    edges = [first, *inner, inner[-1] + width]
    return [
        {
            "from": edges[place] + aside,
            "to": edges[place + 1] + aside,
            "count": bin_.count,
            "low": bound_text(bin_.low),
            "high": bound_text(bin_.high),
            "values": bin_text(bin_, write),
            "audits": f"{bin_.count:,} of {distribution.count:,}",
        }
        for place, bin_ in enumerate(distribution.bins)
    ]


def bin_text(bin_: Bin, write: Callable[[float | None], str]) -> str:
    """Describe the values in a bin."""
    if bin_.low is None:
        return "any value" if bin_.high is None else f"up to {write(bin_.high)}"
    return (
        f"over {write(bin_.low)}"
        if bin_.high is None
        else f"over {write(bin_.low)}, up to {write(bin_.high)}"
    )


def period_bounds(period: Period, first: str) -> tuple[date, date] | None:
    """Return a period's first day and the day after its last; None if ``first`` isn't a date."""
    try:
        begins = date.fromisoformat(first)
        if period == "month":
            begins = begins.replace(day=1)
            # 31 days after the first day of a month is always a day of the next month.
            return begins, (begins + timedelta(days=31)).replace(day=1)
        return begins, begins + timedelta(days=7 if period == "week" else 1)
    except (ValueError, OverflowError):
        return None


def period_name(period: Period, first: str) -> str:
    """Name a period: ``21 Nov 2026``, ``week of 16 Nov 2026``, ``November 2026``."""
    try:
        begins = date.fromisoformat(first)
    except ValueError:
        return first
    if period == "month":
        return f"{begins:%B %Y}"
    return f"week of {day(first)}" if period == "week" else day(first)
