"""The second step: the audit's verdicts against people's, with the cases on which they differ."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.schema.judge_trials import HALVES
from masis.services import Workbench
from masis.services.judge.alignment import MOST_LISTED, AlignedCase, AlignmentReport
from masis.services.trust.summary import (
    IN_VIEW,
    agreement_text,
    figure_text,
    interval_text,
    simulated_text,
)
from masis.trust.alignment import JudgeFigures
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.judge.reports import alignment_report, chosen_split, issue_lines
from masis.ui.shell import address
from masis.ui.trust.page import AUDIT_RESULTS, BRACKETS


def show_differences(workbench: Workbench) -> None:
    """Draw the figures of one half, and the false flags and misses of the first one."""
    split = chosen_split(workbench)
    if split is None:
        return
    half = address.one_of("half", HALVES, "first")
    st.segmented_control(
        "Half",
        list(HALVES),
        format_func=lambda name: HALVES[name].words,
        required=True,
        **address.bind_query_param("half", "first", shows=half, key="judge-half", drops=()),
    )
    st.caption(f"{HALVES[half].meaning}.")
    report = alignment_report(workbench, split, half)
    if not split.filters.blind_only:
        st.warning(f"Includes decisions made with the audit's verdict visible. {IN_VIEW}")
    if simulated := simulated_text(report.simulated, report.answers):
        st.warning(simulated, icon=":material/science:")
    draw_figures({"": report.figures}, key=f"judge-figures-{half}")
    _draw_confusion(report)
    if half == "held_out":
        st.caption(
            "The cases of this half aren't listed. If you wrote rules from them, they could no"
            " longer test those rules."
        )
        return
    _draw_cases(
        "False flags",
        "The audit says something is wrong, and people found the answer right.",
        report.false_flags,
        "judge-false-flags",
    )
    _draw_cases(
        "Misses",
        "People found the answer faulty, and the audit doesn't say that something is wrong.",
        report.misses,
        "judge-misses",
    )


def draw_figures(judges: dict[str, JudgeFigures], *, key: str) -> None:
    """Draw the figures of one judge, or of several side by side."""
    figures = list(judges.values())
    kappas = [figure_text(judge.kappa, share=False, brief=True) for judge in figures]
    rows = [
        row({"text": "Same verdict as people"}, *_figure_cells(figures, "agreement")),
        row({"text": "Agreement beyond chance (kappa)"}, *kappas),
        row({"text": "Right answers that are flagged"}, *_figure_cells(figures, "false_flags")),
        row({"text": "Faulty answers that are missed"}, *_figure_cells(figures, "misses")),
    ]
    titles = [column("Figure", "main"), *(column(name or "The audit") for name in judges)]
    linked_table(titles, rows, description="The judge compared with people", key=key)
    st.caption(BRACKETS)
    if len(figures) == 1:
        says = [agreement_text(figures[0].kappa), interval_text(figures[0].agreement)]
        st.text("\n".join(filter(None, says)))


def _figure_cells(figures: Sequence[JudgeFigures], name: str) -> list[str]:
    return [figure_text(getattr(judge, name), brief=True) for judge in figures]


def _draw_confusion(report: AlignmentReport) -> None:
    st.subheader("Verdicts", anchor=False)
    rows = [
        row({"text": AUDIT_RESULTS[verdict]}, faulty, right)
        for verdict, (faulty, right) in report.figures.confusion.items()
    ]
    linked_table(
        [
            column("The audit", "main"),
            column("People: faulty", "figure"),
            column("People: right", "figure"),
        ],
        rows,
        description="Confusion of audit and people",
        key="judge-confusion",
    )


def _draw_cases(title: str, meaning: str, cases: Sequence[AlignedCase], key: str) -> None:
    st.subheader(
        f"{title} ({len(cases):,}{'+' if len(cases) == MOST_LISTED else ''})", anchor=False
    )
    st.caption(meaning)
    if not cases:
        st.text("None in this half.")
        return
    linked_table(
        [
            column("Case", "main"),
            column("Serious issues", "text"),
            column("The reviewer's reason", "text", hide="hide-narrow"),
        ],
        [
            row(
                {
                    "text": case.case_id,
                    "href": address.link("review", case=case.case_id),
                    "below": [case.question],
                },
                {"below": issue_lines(case.issues) or ["none"]},
                {"quote": case.reason},
            )
            for case in cases
        ],
        description=title,
        key=key,
    )
