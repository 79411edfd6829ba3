"""Draws the metrics of one topic: as charts, or as the tables with the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from masis.audit.measures.metrics import REPORT_METRICS, ReportMetric, Topic
from masis.services import Workbench
from masis.services.records import MetricsReport
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import (
    LinkedFigure,
    LinkedRow,
    TableCell,
    TableColumn,
    column,
    figure_table,
    linked_table,
    row,
)
from masis.ui.shell import address
from masis.views.charts import period_chart, share_chart, spread_chart
from masis.views.metrics import (
    NOT_MEASURED,
    SpreadView,
    column_metrics,
    count_of,
    course_rows,
    has_replayed,
    period_name,
    spread_view,
    topic_metrics,
    unmet_needs,
    value_text,
)
from masis.views.numbers import in_unit
from masis.views.words import model_words

FILTERS = ("by", "as", "since", "until", "role", "model", "dataset")
"""Parameters of the address that links between parts of the page keep."""
PICKED = ("show", "above", "most", "at", "of", "page")
"""Parameters of the address that pick the runs to list."""
PERIODS_LISTED = 60
"""Periods in the table, newest first; the charts show all."""


READ_AT_ONCE = 10_000
"""Entries of the decision log up to which pages read all decisions without being asked."""


def has_short_log(workbench: Workbench) -> bool:
    """Return whether pages may read all decisions without being asked."""
    return workbench.store.decisions.head().length <= READ_AT_ONCE


def list_runs(**parameters: str) -> None:
    """List the runs behind a metric by naming it in the address."""
    for name in PICKED:
        address.set_param(name, parameters.get(name, ""))


def shows_tables() -> bool:
    """Return whether the page shows tables instead of charts."""
    return address.value("as") == "tables"


def draw_figures(figures: Sequence[LinkedFigure], *, key: str, description: str) -> None:
    """Draw figures in a table, and those that are shares as bars unless the page shows tables.

    A click on a figure lists its audits or opens its page.
    """
    bars = [] if shows_tables() else [figure for figure in figures if figure.share is not None]
    listed = [figure for figure in figures if figure not in bars]
    opened = None
    if listed:
        opened = figure_table(
            listed, key=key, description=description, here="metrics", kept_params=_filters()
        )
    if bars:
        st.markdown(f"**{description}**")
        opened = _draw_bars(bars, f"{key}-bars", description) or opened
    if opened is None or not opened.page:
        return
    if opened.page != "metrics":
        st.switch_page(f"pages/{opened.page}.py", query_params=dict(opened.parameters))
    list_runs(**opened.parameters)
    st.rerun()


def _draw_bars(figures: Sequence[LinkedFigure], key: str, description: str) -> LinkedFigure | None:
    """Draw shares as bars and return the one that was just clicked."""

    def on_select() -> None:
        # Only a callback tells a click from the selection that the chart still has.
        st.session_state[f"{key}-opened"] = [mark["label"] for mark in _picked_marks(key)]

    rows = [
        {
            "name": f"{figure.title}\n{figure.value}",
            "label": figure.title,
            "share": figure.share,
            "value": figure.value,
            "meaning": figure.reads,
        }
        for figure in figures
    ]
    numbers = "; ".join(f"{figure.title}: {figure.value}" for figure in figures)
    draw_chart(
        share_chart,
        len(rows),
        rows=rows,
        description=f"{description}: {numbers}",
        key=key,
        on_select=on_select,
    )
    opened = st.session_state.pop(f"{key}-opened", [])
    return next((figure for figure in figures if figure.title in opened), None)


def draw_topic(report: MetricsReport, topic: Topic, description: str) -> None:
    """Draw every metric of a topic.

    A metric that has no chart here (one period, or equal values) is listed in a table.
    """
    metrics = topic_metrics(report, topic)
    names = {metric.name for metric in metrics}
    spreads = {
        spread.measure: spread_view(spread)
        for spread in report.distributions
        if spread.measure in names
    }
    charts = {}
    for metric in () if shows_tables() else metrics:
        if metric.chart == "spread":
            charts[metric] = spreads[metric.name].bars
        else:
            charts[metric] = course_rows(report, metric)
    charts = {metric: rows for metric, rows in charts.items() if len(rows) > 1}
    listed = [metric for metric in metrics if metric.chart != "spread" or metric not in charts]
    figures = [_figure(report, metric, spreads.get(metric.name)) for metric in listed]
    draw_figures(figures, key=f"metrics-{topic}", description=description)
    for box, (metric, rows) in zip(_chart_boxes(len(charts)), charts.items(), strict=True):
        with box:
            _draw_metric(report, metric, rows, spreads.get(metric.name))
    needed = {metric.needs for metric in REPORT_METRICS.values() if metric.topic == topic}
    for need in sorted(unmet_needs(report) & needed - {"calls"}):
        st.caption(NOT_MEASURED[need])
    if charts:
        newest = report.spread_over and f" Histograms show the newest {report.spread_over:,}."
        st.caption(f"Click a bar or a point to list its audits.{newest or ''}")


def _figure(report: MetricsReport, metric: ReportMetric, shown: SpreadView | None) -> LinkedFigure:
    """Return a metric as a figure with an explanation and a link to its audits."""
    total, write, links = report.total, in_unit(metric.unit), {"show": metric.name}
    if metric.chart == "spread" and shown is not None:
        limit = f" {shown.limit}." if shown.limit and total.values["calls"] else ""
        reads = f"Median. {metric.meaning} {shown.numbers.capitalize()}.{limit}"
        return LinkedFigure(metric.label, shown.median, reads, "metrics", links)
    value, text = total.values[metric.name], value_text(metric, total)
    if metric.unit == "share":
        page = "metrics" if value else ""
        return LinkedFigure(metric.label, text, metric.meaning, page, links, value)
    mean = write((value or 0) / (total.known[metric.name] or 1))
    return LinkedFigure(metric.label, text, f"{metric.meaning} The mean is {mean} per audit.")


def _draw_metric(
    report: MetricsReport,
    metric: ReportMetric,
    rows: Sequence[dict[str, Any]],
    shown: SpreadView | None,
) -> None:
    """Draw a metric by period, or as a histogram."""
    st.markdown(f"**{metric.label}**", help=metric.meaning)
    key, numbers = f"metrics-{metric.chart}-{metric.name}", f"by {report.period}"
    chart: tuple[Any, ...] = (period_chart, metric.unit)
    if shown is not None:
        chart, numbers = (spread_chart, metric.unit, metric.base), shown.numbers
    draw_chart(
        *chart,
        rows=rows,
        description=f"{metric.label}: {numbers}",
        key=key,
        on_select=partial(_on_chart_select, key, metric),
        marks=shown.marks if shown is not None else [],
    )
    if shown is not None:
        # Streamlit draws the text between two dollar signs as a TeX formula.
        st.caption(f"{numbers}.".replace("$", r"\$"))
        if shown.limit and report.total.values["calls"]:
            sign = ":green[:material/check:]" if shown.held else ":red[:material/close:]"
            st.caption(f"{sign} {shown.limit}")


def _chart_boxes(count: int) -> Iterator[DeltaGenerator]:
    """Yield bordered boxes, three in a row and equally high."""
    for first in range(0, count, 3):
        # always three columns, so that the boxes of the last row aren't wider than the others
        for place in st.columns(3, gap="medium")[: count - first]:
            yield place.container(border=True, height="stretch")


def _picked_marks(key: str) -> list[dict[str, Any]]:
    return st.session_state[key].selection.get("picked") or []


def _on_chart_select(key: str, metric: ReportMetric) -> None:
    """List the runs behind the clicked part of a chart."""
    show = metric.name if metric.chart != "total" else "all"
    for mark in _picked_marks(key)[:1]:
        bounds = {"above": mark.get("low", ""), "most": mark.get("high", "")}
        list_runs(show=show, at=mark.get("at", ""), **bounds)


def _filters() -> dict[str, str]:
    return {name: address.value(name) for name in FILTERS if address.value(name)}


def draw_group_tables(report: MetricsReport) -> None:
    """Draw the tables by period and by model; each count lists its audits."""
    role, period = report.measure_filter.role, report.period
    opened = None
    for by, heading in (("at", f"By {period}"), ("of", f"By model of the {role}")):
        st.header(heading, anchor=False)
        if by == "at" and len(report.periods) > PERIODS_LISTED:
            count = len(report.periods)
            st.caption(f"The newest {PERIODS_LISTED} of {count:,}; the charts show all.")
        columns, rows = group_table(report, by)
        opened = linked_table(columns, rows, description=heading, key=f"metrics-by-{by}") or opened
    if opened:
        list_runs(**dict(parse_qsl(opened)))
        st.rerun()


def group_table(report: MetricsReport, by: str) -> tuple[list[TableColumn], list[LinkedRow]]:
    """Return a table of metrics by model or by period, newest first.

    Args:
        report: The metrics of the role in the filter.
        by: The parameter that names the row's model (``of``) or period (``at``).

    """
    metrics = column_metrics()
    replayed = [has_replayed([model.name]) for model in report.models]
    groups = zip(report.models, replayed, strict=True)
    if by == "at":
        # repeat has no end, so this zip can't be strict.
        groups = zip(reversed(report.periods[-PERIODS_LISTED:]), repeat(all(replayed)))
    columns = [column("Model" if by == "of" else report.period.capitalize())]
    columns += [column("Audits", "figure")]
    columns += [
        column(metric.label, "figure", hide="" if metric.unit == "share" else "hide-medium")
        for metric in metrics
    ]
    rows = []
    for group, untimed in groups:
        name = group.name or ""

        # The default binds the name of this group, because the loop changes the variable.
        def link(text: str, show: str, name: str = name) -> TableCell:
            parameters = {by: name, "show": show}
            href = address.link("metrics", **{**_filters(), **parameters})
            return {"text": text, "href": href, "open": urlencode(parameters)}

        title = model_words(name or "not reported")
        cells: list[TableCell | str | None] = [
            link(period_name(report.period, name) if by == "at" else title, "all"),
            link(f"{group.runs:,}", "all"),
        ]
        for metric in metrics:
            text = value_text(metric, group)
            if metric.unit == "share" and count_of(metric, group):
                cells.append(link(text, metric.name))
            else:
                cells.append(None if untimed and metric.needs == "time" else text)
        rows.append(row(*cells))
    return columns, rows
