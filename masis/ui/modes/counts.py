"""How many cases have each mode, with intervals, and how far reviewers agree about it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.audit.measures.statistics import wilson_bounds
from masis.datasets.writers.lines import csv_line
from masis.schema.causes import CAUSES
from masis.schema.codebook import Codebook
from masis.services import Workbench
from masis.services.modes.service import ModeCount, ModeTable
from masis.services.records import FACETS, CaseFilter
from masis.services.trust.summary import figure_text, interval_text
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.views.charts import interval_chart

BARS = 30
COLUMNS = 8


def show_counts(workbench: Workbench) -> None:
    """Draw the counts by the facet in the address, and the agreement about each mode."""
    book = workbench.modes.codebook(actor())
    facet = address.one_of("facet", FACETS, "mode")
    st.segmented_control(
        "Count by",
        list(FACETS),
        format_func=lambda name: FACETS[name].name,
        required=True,
        **address.bind_query_param("facet", "mode", shows=facet, key="modes-facet"),
    )
    counts = workbench.modes.count_modes(actor(), facet)
    if not counts and FACETS[facet].of_mode and workbench.modes.count_modes(actor()):
        named = ", ".join(cause.name for cause in CAUSES.values())
        st.markdown(
            f"**No coded row has a cause.** A cause ({named}) says where a fault comes from. It"
            " follows from the type of the coded row: the rule of an issue, the reason of a"
            " decision, or a label on the case page. Codes of whole cases have none."
        )
        return
    if not counts:
        st.markdown(
            "**Nothing to count yet.** Code some rows, or confirm a group. Then each mode has a"
            " count here that links to its cases."
        )
        return
    _draw_counts(book, counts, FACETS[facet].name if facet != "mode" else "")
    if FACETS[facet].case_filter and not FACETS[facet].of_mode:
        table = workbench.modes.tabulate_modes(actor(), facet)
        _draw_mode_table(book, table, FACETS[facet].name)
    _draw_mode_agreement(workbench, book)


def queue_parameters(wanted: CaseFilter) -> dict[str, str]:
    """Return the parameters of the queue that list the cases of a count, decided ones too."""
    chosen = {
        filter_.name: address.in_words(getattr(wanted, filter_.field))
        for filter_ in address.DRAWER
        if filter_.kind != "range"
    }
    standing = address.in_words(address.STANDINGS.options)
    return {"standing": standing, **{name: text for name, text in chosen.items() if text}}


def _draw_counts(book: Codebook, counts: Sequence[ModeCount], facet: str) -> None:
    names = {nested.mode.code: nested.indented_name for nested in book.in_tree_order()}
    causes: dict[str, str] = {name: cause.name for name, cause in CAUSES.items()}
    bars, rows = [], []
    for count in counts:
        value = causes.get(count.value, count.value) if facet == "Cause" else count.value
        share = count.cases / count.base if count.base else 0.0
        figure = f"{count.cases:,} of {count.base:,}"
        interval = f"{count.low:.0%} to {count.high:.0%}"
        bars.append(
            {
                "name": f"{names[count.mode]}\n{value}" if value else names[count.mode],
                "share": share,
                "low": count.low,
                "high": count.high,
                "cases": figure,
                "interval": interval,
            }
        )
        link = address.link("queue", **queue_parameters(count.case_filter))
        cells = [value or "unknown"] if facet else []
        rows.append(
            row({"text": names[count.mode], "href": link}, *cells, figure, f"{share:.0%}", interval)
        )
    st.caption(
        "Share of examined cases with the mode, with its 95% interval. Examined cases were audited,"
        " decided or coded. Uncoded cases count as not having the mode, so shares are lower bounds"
        " until all cases are coded."
    )
    draw_chart(
        interval_chart,
        min(len(bars), BARS),
        rows=bars[:BARS],
        description="Shares of cases by failure mode, with intervals; the table has the figures",
    )
    if len(bars) > BARS:
        st.caption(f"The chart shows the first {BARS} of {len(bars):,} counts.")
    columns = [column("Mode", "main"), *([column(facet)] if facet else [])]
    columns += [column("Cases", "figure"), column("Share", "figure"), column("95% interval")]
    linked_table(columns, rows, description="Cases by failure mode", key="modes-counts")


def _draw_mode_table(book: Codebook, table: ModeTable, facet: str) -> None:
    """Draw the counts of all modes side by side, and the file with those of all values."""
    st.header(f"Modes by {facet.lower()}", anchor=False)
    st.caption(
        "Cases with the mode, their share of the examined ones, and its 95% interval. A mode"
        " includes those nested under it, which follow it with a dot."
    )
    lines: list[tuple[str, Sequence[int]]] = [
        *((nested.indented_name, table.cases[nested.mode.code]) for nested in book.in_tree_order()),
        ("Any mode", table.any_mode),
    ]
    columns = [column("Mode", "main")]
    columns += [column(value or "unknown", "figure") for value in table.values[:COLUMNS]]
    rows = [
        row({"text": name}, *map(_share_cell, cases[:COLUMNS], table.examined))
        for name, cases in lines
    ]
    examined = map("{:,}".format, table.examined[:COLUMNS])
    rows.append(row({"text": "Examined cases"}, *examined))
    linked_table(columns, rows, description=f"Modes by {facet.lower()}", key="modes-table")
    if len(table.values) > COLUMNS:
        st.caption(f"The file has all {len(table.values):,} columns.")
    cells: list[list[object]] = [["Mode"], ["Examined cases"]]
    for value, base in zip(table.values, table.examined, strict=True):
        name = value or "unknown"
        cells[0] += [name, f"{name}: share", f"{name}: low", f"{name}: high"]
        cells[1] += [base, "", "", ""]
    for name, cases in lines:
        figures = [
            figure
            for count, base in zip(cases, table.examined, strict=True)
            for figure in (count, *(f"{part:.4f}" for part in _share(count, base)))
        ]
        cells.append([name, *figures])
    st.download_button(
        "Download table",
        b"".join(map(csv_line, cells)),
        file_name=f"failure-modes-by-{facet.lower().replace(' ', '-')}.csv",
        mime="text/csv",
        key="modes-table-download",
        icon=":material/download:",
        on_click="ignore",
    )


def _share(count: int, base: int) -> tuple[float, float, float]:
    """Return a share and the ends of its interval."""
    return (count / base if base else 0.0, *wilson_bounds(count, base))


def _share_cell(count: int, base: int) -> str:
    share, low, high = _share(count, base)
    return f"{count:,} of {base:,}, {share:.0%} ({low:.0%} to {high:.0%})"


def _draw_mode_agreement(workbench: Workbench, book: Codebook) -> None:
    st.header("Agreement between reviewers", anchor=False)
    found = workbench.modes.agreement(actor())
    if not found:
        st.markdown(
            "Several people must decide the same cases and apply codes there. The queue's policy"
            " sets how many decide each case."
        )
        return
    names = {mode.code: mode.name for mode in book.in_use}
    rows = [
        row(
            {"text": names[line.mode]},
            f"{line.both:,}",
            f"{line.one:,}",
            f"{line.pairs:,}",
            figure_text(line.agreement),
            f"{figure_text(line.kappa)} {interval_text(line.kappa)}".strip(),
        )
        for line in found
    ]
    columns = [column("Mode", "main")]
    columns += [column(title, "figure") for title in ("Both", "One", "Pairs", "Agree")]
    linked_table(
        [*columns, column("Kappa")],
        rows,
        description="Agreement about failure modes",
        key="modes-agreement",
    )
