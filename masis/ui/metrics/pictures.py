"""The charts at the top of the metrics page, each with its table and a file to download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import streamlit as st

from masis.audit.measures.case_figures import Origin, StoppedCount
from masis.audit.measures.metrics import REPORT_METRICS, MeasureFilter
from masis.datasets.writers.lines import csv_line
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.case_figures import CaseCounts
from masis.services.records import Facets, MetricsReport
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.metrics.sections import has_short_log
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.views import pictures
from masis.views.numbers import percent

ORIGINS: dict[Origin, tuple[str, str, str]] = {
    "system": ("System", "unnamed", "system"),
    "field": ("Field", "No field", "field"),
    "dataset": ("Data set", "No data set", "dataset"),
    "model": ("Judge", "Not reported", "model"),
}
"""The origins of answers: the title, the name of cases without one, and the queue's parameter."""
MOST_ORIGINS = 12
"""Maximum number of origins or failure modes in a chart and its table."""


class Picture(NamedTuple):
    """One chart with its title and its rows.

    ``reads`` says what the rows count. ``arguments`` are those of ``build``. ``opens`` is the page
    that a click opens, and ``names`` the columns that identify the clicked mark. ``origin`` is what
    the rows are grouped by if that can be chosen.
    """

    key: str
    title: str
    reads: str
    rows: Sequence[pictures.Row]
    build: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    opens: str = ""
    names: tuple[str, ...] = ()
    origin: Origin | None = None


def draw_pictures(
    workbench: Workbench, report: MetricsReport, measure_filter: MeasureFilter, facets: Facets
) -> None:
    """Draw all pictures that have something to show, two in a row."""
    origin = next((name for name in ORIGINS if name == address.value("origin")), None)
    counts = workbench.case_figures.count(actor(), measure_filter, origin)
    weeks = counts.weeks
    minutes, by_week = pictures.time_rows(weeks), pictures.week_rows(weeks)
    shown = [
        _standing_picture(facets),
        _stopped_picture(counts.stopped),
        _issue_picture(pictures.issue_rows(counts.issues)),
        _origin_picture(counts),
        _mode_picture(workbench),
        _course_picture(report),
        Picture(
            "decided",
            "Decisions by week",
            "Cases by the week in which they were settled. Escalated ones stay open.",
            by_week,
            pictures.weeks_chart,
            (pictures.parts_of(by_week, "Verdict"),),
            opens="decisions",
            names=("Week of",),
        ),
        Picture(
            "backlog",
            "Backlog by week",
            "Cases that arrived, and those that still needed a person at the end of the week.",
            pictures.backlog_rows(weeks) if len(weeks) > 1 else (),
            pictures.backlog_chart,
        ),
        _agreement_picture(workbench),
        _revision_picture(counts),
        Picture(
            "time",
            "Time per decision by week",
            "Median minutes from opening a case to its decision, for decisions made on the pages.",
            minutes if len(minutes) > 1 else (),
            pictures.time_chart,
        ),
    ]
    drawn = [picture for picture in shown if picture.rows]
    for first in range(0, len(drawn), 2):
        for box, picture in zip(
            st.columns(2, gap="medium"), drawn[first : first + 2], strict=False
        ):
            with box.container(border=True, height="stretch", key=f"picture-{picture.key}"):
                _draw_picture(picture)
    st.caption(
        "Click a bar to see its cases. Whiskers are 95% intervals (Wilson); pale bars cover fewer"
        f" than {pictures.FEW} cases. The buttons at the top right of a picture save it as PNG."
    )


def _draw_picture(picture: Picture) -> None:
    # At the left, because the buttons that Streamlit shows over a chart cover its right end.
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{picture.title}**", help=picture.reads, width="content")
        table = st.popover(
            "Table",
            icon=":material/table_rows:",
            type="tertiary",
            key=f"picture-table-{picture.key}",
            on_change="rerun",
        )
    if picture.origin:
        _choose_origin(picture.origin)
    key = f"picture-chart-{picture.key}"
    draw_chart(
        picture.build,
        *picture.arguments,
        rows=[_drawable(picture_row) for picture_row in picture.rows],
        description=f"{picture.title}: {picture.reads}",
        key=key,
        on_select=(lambda: _open_picked(picture, key)) if picture.opens else None,
    )
    if link := st.session_state.pop(f"{key}-opened", None):
        st.switch_page(f"pages/{picture.opens}.py", query_params=link)
    if table.open:
        with table:
            _draw_rows(picture)


def _drawable(picture_row: pictures.Row) -> pictures.Row:
    return {name: value for name, value in picture_row.items() if name != "link"}


def _open_picked(picture: Picture, key: str) -> None:
    """Remember the link of the clicked mark. Only a callback tells a click from an earlier one."""
    marks = st.session_state[key].selection.get("picked") or []
    for picture_row in picture.rows:
        if marks and all(picture_row[name] == marks[0].get(name) for name in picture.names):
            if link := picture_row.get("link"):
                st.session_state[f"{key}-opened"] = link
            return


def _draw_rows(picture: Picture) -> None:
    titles, rows = pictures.table_of(picture.rows)
    shares = {"Share", "From", "To"}
    st.caption(picture.reads)
    linked_table(
        [column(title, "" if place == 0 else "figure") for place, title in enumerate(titles)],
        [
            row(
                *(
                    percent(value) if title in shares else _write_cell(value)
                    for title, value in zip(titles, cells, strict=True)
                )
            )
            for cells in rows
        ],
        description=picture.title,
        key=f"picture-rows-{picture.key}",
    )
    st.download_button(
        "Download as CSV",
        b"".join(csv_line(cells) for cells in (titles, *rows)),
        file_name=f"{picture.key}.csv",
        mime="text/csv",
        key=f"picture-csv-{picture.key}",
        icon=":material/download:",
        on_click="ignore",
    )


def _write_cell(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _standing_picture(facets: Facets) -> Picture:
    rows = pictures.standing_rows(facets.standings)
    return Picture(
        "standing",
        f"Where {count_noun(sum(facets.standings.values()), 'case')} stand",
        "All cases by their status now, regardless of the chosen time. Each is counted once.",
        rows,
        pictures.bar_chart,
        ("Status", len(rows)),
        "queue",
        ("Status",),
    )


def _stopped_picture(counts: Sequence[StoppedCount]) -> Picture:
    rows = pictures.stopped_rows(counts)
    stopped = sum(picture_row["Cases"] for picture_row in rows)
    return Picture(
        "stopped",
        f"Severity of {count_noun(stopped, 'answer')} that people rejected or corrected",
        "Answers that people rejected or corrected, by the worst issue that the audit found.",
        rows,
        pictures.stacked_chart,
        (
            "Worst issue",
            "Verdict",
            pictures.parts_of(rows, "Verdict"),
            len(pictures.parts_of(rows, "Worst issue")),
        ),
        "queue",
        ("Worst issue", "Verdict"),
    )


def _issue_picture(rows: Sequence[pictures.Row]) -> Picture:
    return Picture(
        "issues",
        "Issues by type",
        "Cases whose original answer has issues of this kind, by the most severe of them. A case"
        " with several kinds counts for each.",
        rows,
        pictures.stacked_chart,
        (
            "Issue",
            "Severity",
            pictures.parts_of(rows, "Severity"),
            len(pictures.parts_of(rows, "Issue")),
        ),
        "queue",
        ("Issue", "Severity"),
    )


def _mode_picture(workbench: Workbench) -> Picture:
    names = {mode.code: mode.name for mode in workbench.modes.codebook(actor()).in_use}
    counts = workbench.modes.count_modes(actor())[:MOST_ORIGINS]
    rows = pictures.mode_rows(
        (names[count.mode], count.mode, count.cases, count.base) for count in counts if count.cases
    )
    return Picture(
        "modes",
        "Failure modes",
        "The share of audited, decided or coded cases that people gave this failure mode.",
        rows,
        pictures.share_chart,
        ("Failure mode", len(rows)),
        "queue",
        ("Failure mode",),
    )


def _course_picture(report: MetricsReport) -> Picture:
    metric = REPORT_METRICS["hallucination"]
    rows = pictures.course_share_rows(report, metric)
    return Picture(
        "course",
        f"Is it getting better? {metric.label} by {report.period}",
        f"{metric.meaning} Each audit counts once, in the {report.period} it finished in.",
        rows if len(rows) > 1 else (),
        pictures.course_share_chart,
    )


def _choose_origin(chosen: Origin) -> None:
    st.segmented_control(
        "Origin",
        list(ORIGINS),
        format_func=lambda origin: ORIGINS[origin][0],
        required=True,
        label_visibility="collapsed",
        **address.bind_query_param("origin", shows=chosen, key="metrics-origin"),
    )


def _origin_picture(counts: CaseCounts) -> Picture:
    title, unnamed, parameter = ORIGINS[counts.origin]
    rows = pictures.origin_rows(counts.origins, unnamed, parameter)[:MOST_ORIGINS]
    return Picture(
        "origin",
        "Where is something wrong?",
        "The share of audited answers in which the audit found something wrong, by"
        f" {title.lower()}; the {MOST_ORIGINS} with the most cases.",
        rows,
        pictures.share_chart,
        ("Name", len(rows)),
        "queue",
        ("Name",),
        counts.origin,
    )


def _revision_picture(counts: CaseCounts) -> Picture:
    rows = pictures.revision_rows(counts.revisions)
    return Picture(
        "revisions",
        "What became of suggested revisions",
        "Of the settled cases for which the audit suggested a revision.",
        rows,
        pictures.share_chart,
        ("Decision", len(rows)),
    )


def _agreement_picture(workbench: Workbench) -> Picture:
    pairs = workbench.trust.people(actor()).pairs if has_short_log(workbench) else []
    rows = pictures.agreement_rows(pair.verdicts for pair in pairs)
    return Picture(
        "agreement",
        "Do reviewers agree?",
        "Verdicts of two reviewers on the same case. Cases on the diagonal got the same verdict"
        " from both. Decisions before an adjudication count.",
        rows,
        pictures.heat_map,
        (max((picture_row["Cases"] for picture_row in rows), default=0),),
    )
