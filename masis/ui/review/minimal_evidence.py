"""Verifying the claims of a case without the passages that decide them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from masis.errors import MasisError
from masis.llm.estimates import CostEstimate
from masis.schema.run import Run
from masis.schema.wording import count_noun, shorten
from masis.services import CaseView, Workbench
from masis.services.minimal_evidence import MinimalEvidencePlan
from masis.ui.live import draw_task, show_live
from masis.ui.shell.keys import WITHOUT_PASSAGES
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import escape_markdown
from masis.views.minimal_evidence import newest_results
from masis.views.numbers import cost_text

_ALL = 0
"""The choice of all claims; claims are counted from 1."""


def show_minimal_evidence(workbench: Workbench, view: CaseView, run: Run, iteration: int) -> None:
    """Draw the button that verifies claims without their passages, its progress, and the results.

    Args:
        workbench: The workbench.
        view: The case.
        run: The audit shown.
        iteration: The number of the answer shown, from 1.

    """
    newest = next((finished.id for finished in view.runs if finished.readable), None)
    if view.machine_hidden or run.id != newest:
        return
    case_id = view.case.id
    task = workbench.minimal_evidence.latest(case_id)
    is_running = task is not None and not task.over
    results = newest_results(
        workbench.minimal_evidence.results(actor(), case_id), run.id, iteration
    )
    with st.container(horizontal=True, vertical_alignment="center", key="minimal-evidence"):
        opens = st.button(
            "Verify without passages",
            icon=":material/content_cut:",
            key="minimal-open",
            shortcut=WITHOUT_PASSAGES.shortcut,
            **button_state(
                "audit",
                disabled=is_running,
                help="Shows whether the passages are the reason for the verdict on a claim.",
            ),
        )
        if results:
            changed = sum(result.decisive for result in results.values())
            st.caption(
                f"The verdict changed for {changed:,} of {count_noun(len(results), 'claim')}."
                " See each claim for details."
            )
    if is_running:
        show_live(_draw_verification, case_id)
    elif task is not None and task.failed:
        st.warning(escape_markdown(task.failed), icon=":material/error:")
    if opens:
        title = f"Verify {escape_markdown(case_id)} without passages"
        st.dialog(title)(_draw_choice)(workbench, case_id, iteration)


def cost_words(cost: CostEstimate, models: tuple[str, ...]) -> str:
    """Return the most that a verification may cost, in words."""
    if not cost.calls:
        return "This uses the offline checks. It calls no model and is free."
    return (
        f"This uses {', '.join(models)}, with up to {cost.calls:,} calls and"
        f" {cost.tokens:,} tokens, {cost_text(cost.cost_usd)}."
    )


def _draw_verification(case_id: str) -> bool:
    return draw_task(
        partial(served_workbench().minimal_evidence.latest, case_id),
        "verification",
        "minimal-stop",
        says="You can leave this page. The verification continues.",
        stopped="Results so far are stored.",
    )


def _draw_choice(workbench: Workbench, case_id: str, iteration: int) -> None:
    st.markdown(
        "A claim is verified again without the passages that decide it. If the verdict stays, they"
        " weren't the only reason for it."
    )
    try:
        plan = workbench.minimal_evidence.plan(actor(), case_id, iteration=iteration)
    except MasisError as error:
        st.warning(escape_markdown(str(error)), icon=":material/error:")
        return
    if not plan.claims:
        st.markdown(
            "**No claim has a passage that decides its verdict.** Label a claim with a passage of"
            " the evidence first."
        )
        return
    claim = st.selectbox(
        "Claim",
        [_ALL, *plan.claims],
        format_func=lambda number: _claim_name(plan, number),
        key="minimal-claim",
    )
    chosen = plan.cost.values() if claim == _ALL else [plan.cost[claim]]
    cost = CostEstimate()
    for one in chosen:
        cost = cost.plus(one)
    st.text(cost_words(cost, plan.models))
    start = partial(workbench.minimal_evidence.start, claim=claim or None, iteration=iteration)
    # A callback, because a click in a dialog runs the dialog only, and the page must follow.
    if st.button(
        "Verify",
        key="minimal-start",
        type="primary",
        on_click=acting(start, case_id),
        **button_state("audit"),
    ):
        st.rerun()


def _claim_name(plan: MinimalEvidencePlan, number: int) -> str:
    if number == _ALL:
        return f"All {count_noun(len(plan.claims), 'claim')} with passages"
    return f"{number}: {shorten(plan.claims[number], 100)}"
