"""The comparison of two audits of a case, with the history of its audits."""

from __future__ import annotations

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.run import Run
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.records import CaseSummary, RunSummary
from masis.ui.components import register_component
from masis.ui.components.case_head import case_head
from masis.ui.components.linked_table import linked_table
from masis.ui.review.run_list import RUN_COLUMNS, run_name, run_row
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.ui.shell.reviewer import actor
from masis.views.comparison import SIDE, Of, differing, issues_by_side, score_frame
from masis.views.diff import word_changes
from masis.views.markdown import badge
from masis.views.words import NOT_AUDITED, label, rule_word, status_label

OF: dict[Of, str] = {"first": "In the original answer", "chosen": "In the answer each run chose"}


def show_run_comparison(workbench: Workbench) -> None:
    """Draw the comparison of two audits of the case in the address."""
    case_id = address.value("case")
    try:
        summary = workbench.cases.summary(case_id)
    except UnknownRecord:
        st.title("There is no such case")
        st.text(case_id[:500])
        return
    if workbench.team.machine_hidden(actor(), case_id):
        st.title("Hidden until you decide")
        st.markdown("Your team's policy hides the results of audits until you've decided the case.")
        return
    runs = workbench.runs.for_case(case_id)
    if st.button("Back to the case", icon=":material/arrow_back:", type="tertiary"):
        address.open_case(case_id)
    _draw_compare_head(summary, len(runs))
    finished = [run for run in runs if run.readable]
    left, right = chosen_runs(finished)
    _history(runs, left, right)
    if left is None or right is None:
        st.markdown(
            "**There is nothing to compare yet.** Audit the case again with other settings or other"
            " models. Every audit is stored, and you can compare two of them here."
        )
        st.page_link(
            "pages/new.py",
            label="Audit it with other settings",
            icon=":material/add_circle:",
            query_params={"case": case_id},
        )
        return
    _draw_side_by_side(workbench, finished, left, right)


def chosen_runs(finished: list[RunSummary]) -> tuple[RunSummary | None, RunSummary | None]:
    """Return the two runs named in the address, or else the two newest with the older on the left.

    Returns (None, None) if there are fewer than two.
    """
    if len(finished) < 2:
        return (None, None)
    by_id = {run.id: run for run in finished}
    right = by_id.get(address.value("right"))
    left = by_id.get(address.value("left"))
    right = right or next(run for run in finished if run is not left)
    left = left or next(
        (run for run in finished if run is not right and run.started_at <= right.started_at), None
    )
    return left or next(run for run in finished if run is not right), right


def _draw_compare_head(summary: CaseSummary, runs: int) -> None:
    st.set_page_config(page_title=tab_title("Compare", summary.query))
    word, more = status_label(summary.standing, summary.state, summary.severity)
    facts = [*filter(None, [more, summary.field]), summary.id, count_noun(runs, "audit")]
    case_head({"question": summary.query, "state": label(word), "facts": facts}, key="compare-head")


def _history(
    runs: tuple[RunSummary, ...], left: RunSummary | None, right: RunSummary | None
) -> None:
    st.header("History")
    if not runs:
        st.caption(NOT_AUDITED)
        return
    sides = {"left": left.id if left else "", "right": right.id if right else ""}
    rows = [run_row(run, **sides) for run in runs]
    opened = linked_table(RUN_COLUMNS, rows, description="Audits of this case", key="run-history")
    if run := next((run for run in runs if run.id == opened), None):
        st.switch_page("pages/review.py", query_params={"case": run.case_id, "run": run.id})


def _draw_side_by_side(
    workbench: Workbench, finished: list[RunSummary], left: RunSummary, right: RunSummary
) -> None:
    st.header("Side by side")
    names = {run.id: run_name(run) for run in finished}
    left_column, right_column = st.columns(2)
    with left_column:
        _draw_side_choice("Left", "left", names, left.id)
    with right_column:
        _draw_side_choice("Right", "right", names, right.id)
    if left.id == right.id:
        st.markdown("**The same audit is on both sides.** Choose another one.")
        return
    of: Of = "chosen" if address.value("of") == "chosen" else "first"
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"
    ):
        st.segmented_control(
            "Compare the issues",
            list(OF),
            format_func=OF.__getitem__,
            required=True,
            **address.bind_query_param("of", "first", shows=of, key="compare-of", drops=()),
        )
        st.button(
            "Swap left and right",
            key="swap-runs",
            icon=":material/swap_horiz:",
            on_click=_swap,
            args=(left.id, right.id),
        )
    _show_comparison(workbench.runs.get(left.id), workbench.runs.get(right.id), of)


def _show_comparison(left: Run, right: Run, of: Of) -> None:
    """Draw the differences between two runs: settings, scores, issues and answers."""
    st.header("Different settings and models")
    if left.case_digest != right.case_digest:
        st.markdown("The case changed between the two audits, so their content differs.")
    if (settings := differing(left, right)).empty:
        st.markdown("Models, settings and versions are the same.")
    else:
        st.table(settings, border="horizontal", width="content", alt="Different settings")
    st.header("Scores by iteration")
    st.table(
        score_frame(left, right), border="horizontal", alt="Scores by iteration, left and right"
    )
    st.header(f"Issues {OF[of][0].lower()}{OF[of][1:]}")
    for place, (side, issues) in zip(
        st.columns(3, gap="medium"), issues_by_side(left, right, of).items(), strict=True
    ):
        with place:
            st.markdown(f"**{SIDE[side].text}: {len(issues)}**")
            for issue in issues[:ISSUES_SHOWN]:
                with st.container(border=True):
                    st.markdown(f"{badge(rule_word(issue.rule))} {issue.severity}")
                    for text in (
                        issue.description,
                        # The description may already contain the quotation.
                        "" if (issue.quote or "") in issue.description else issue.quote,
                        issue.reason,
                    ):
                        if text:
                            st.text(shorten(text, LONGEST_TEXT))
            if len(issues) > ISSUES_SHOWN:
                st.caption(f"and {len(issues) - ISSUES_SHOWN:,} more")
    st.header("Chosen answers")
    is_same = left.final_answer == right.final_answer
    if is_same:
        st.markdown("Both audits chose the same answer.")
    changes = word_changes(left.final_answer, right.final_answer)
    CHANGES(
        data={
            "pieces": [change._asdict() for change in changes],
            "key": None if is_same else {"out": "Left only", "in": "Right only"},
            "description": "The chosen answers compared",
        },
        key="comparison-answers",
    )


CHANGES = register_component("changes")
ISSUES_SHOWN = 40
"""The number of issues listed for each side."""

LONGEST_TEXT = 400
"""The number of characters shown of an issue; the case page has the rest."""


def _draw_side_choice(title: str, side: str, names: dict[str, str], chosen: str) -> None:
    bound = address.bind_query_param(side, shows=chosen, key=f"compare-{side}", drops=())
    st.selectbox(title, list(names), format_func=names.__getitem__, **bound)


def _swap(left: str, right: str) -> None:
    address.set_param("left", right)
    address.set_param("right", left)
