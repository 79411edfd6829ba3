"""Runs of one case: its history, and two of them side by side."""

from __future__ import annotations

import streamlit as st

from masis.errors import UnknownRecord
from masis.services import Workbench
from masis.services.records import CaseSummary, RunSummary
from masis.ui.components import case_head, case_list, run_comparison, run_history
from masis.ui.queue.case_list import case_row
from masis.ui.review.answer_view import state_label
from masis.ui.review.comparison import Of, compare, run_name, run_row
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.ui.shell.wording import spoken

OF: dict[Of, str] = {"first": "In the answer as it came", "chosen": "In the answer each run chose"}


def show_compare(workbench: Workbench) -> None:
    """The page of runs: of the case in the address, else the way to one."""
    case_id = address.value("case")
    if not case_id:
        _show_ways_in(workbench)
        return
    try:
        summary = workbench.cases.summary(case_id)
    except UnknownRecord:
        st.title("There is no such case")
        st.text(case_id[:500])
        st.page_link("pages/compare.py", label="Cases with several runs", icon=":material/compare_arrows:")
        return
    runs = workbench.runs.for_case(case_id)
    if st.button("Back to the case", icon=":material/arrow_back:", type="tertiary"):
        address.open_case(case_id)
    _head(summary, len(runs))
    finished = [run for run in runs if run.readable]
    left, right = chosen_runs(finished)
    _history(runs, left, right)
    if left is None or right is None:
        st.markdown(
            "**There is nothing to compare yet.** Audit the case again with other settings or other models: every run "
            "is kept, and two of them can be laid side by side here."
        )
        st.page_link(
            "pages/new.py",
            label="Audit it with other settings",
            icon=":material/add_circle:",
            query_params={"case": case_id},
        )
        return
    _compared(workbench, finished, left, right)


def chosen_runs(finished: list[RunSummary]) -> tuple[RunSummary | None, RunSummary | None]:
    """The two runs the address names, else the two newest, the older one left. None where there aren't two."""
    if len(finished) < 2:
        return (None, None)
    by_id = {run.id: run for run in finished}
    right = by_id.get(address.value("right"))
    left = by_id.get(address.value("left"))
    right = right or next(run for run in finished if run is not left)
    left = left or next((run for run in finished if run is not right and run.started_at <= right.started_at), None)
    return left or next(run for run in finished if run is not right), right


def _head(summary: CaseSummary, runs: int) -> None:
    st.set_page_config(page_title=tab_title("Compare", summary.query))
    facts = [summary.id, spoken(runs, "run")]
    case_head(
        {
            "question": summary.query,
            "state": state_label(summary.state),
            "flags": [],
            "facts": [summary.field, *facts] if summary.field else facts,
            "reasons": [],
        },
        key="compare-head",
    )


def _history(runs: tuple[RunSummary, ...], left: RunSummary | None, right: RunSummary | None) -> None:
    st.subheader("History")
    if not runs:
        st.caption("This case has not been audited yet.")
        return
    sides = {"left": left.id if left else "", "right": right.id if right else ""}
    opened = run_history({"rows": [run_row(run, **sides) for run in runs]}, key="run-history")
    if run := next((run for run in runs if run.id == opened), None):
        st.switch_page("pages/review.py", query_params={"case": run.case_id, "run": run.id})


def _compared(workbench: Workbench, finished: list[RunSummary], left: RunSummary, right: RunSummary) -> None:
    st.subheader("Side by side")
    names = {run.id: run_name(run) for run in finished}
    one, other = st.columns(2)
    with one:
        _choice("Left", "left", names, left.id)
    with other:
        _choice("Right", "right", names, right.id)
    if left.id == right.id:
        st.markdown("**The same run stands on both sides.** Choose another one.")
        return
    of: Of = "chosen" if address.value("of") == "chosen" else "first"
    st.session_state["compare-of"] = of
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        st.segmented_control(
            "Compare the findings",
            list(OF),
            key="compare-of",
            format_func=OF.__getitem__,
            required=True,
            on_change=_choose_of,
        )
        st.button(
            "Swap left and right",
            key="swap-runs",
            icon=":material/swap_horiz:",
            on_click=_swap,
            args=(left.id, right.id),
        )
    run_comparison(
        {**compare(workbench.runs.get(left.id), workbench.runs.get(right.id), of), "of": OF[of]}, key="comparison"
    )


def _choice(title: str, side: str, names: dict[str, str], chosen: str) -> None:
    st.session_state[f"compare-{side}"] = chosen
    st.selectbox(
        title,
        list(names),
        key=f"compare-{side}",
        format_func=names.__getitem__,
        on_change=_choose_side,
        args=(side,),
    )


def _show_ways_in(workbench: Workbench) -> None:
    st.title("Compare runs")
    st.markdown(
        "Every audit of a case is kept. Where a case was audited more than once, with other settings or other models, "
        "two of its runs can be laid side by side: which settings differ, what each found, where the scores moved, "
        "and what became of the answer."
    )
    several = workbench.runs.cases_with_several()
    if not several:
        st.markdown(
            "**No case has more than one run yet.** Open a case and audit it again with other settings, "
            "or name a case here to see its history."
        )
    st.text_input("Case", key="compare-case", placeholder="Its id", max_chars=500, on_change=_choose_case)
    if several:
        st.subheader("Cases with several runs")
        rows = [case_row(workbench.cases.summary(case_id), {}) for case_id in several]
        for row in rows:
            row["href"] = address.link("compare", case=row["id"])
        if opened := case_list({"rows": rows, "compact": False}, key="several-runs"):
            address.put("case", opened)
            st.rerun()


def _choose_case() -> None:
    address.put("case", st.session_state["compare-case"].strip())


def _choose_side(side: str) -> None:
    address.put(side, st.session_state[f"compare-{side}"])


def _choose_of() -> None:
    address.put("of", "chosen" if st.session_state["compare-of"] == "chosen" else "")


def _swap(left: str, right: str) -> None:
    address.put("left", right)
    address.put("right", left)
