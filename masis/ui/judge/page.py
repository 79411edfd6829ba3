"""The judge page: choose decided cases, see where the judge differs, tell it, try and compare."""

from __future__ import annotations

import streamlit as st

from masis.services import Workbench
from masis.ui.judge.choosing import show_choice
from masis.ui.judge.comparing import show_comparison
from masis.ui.judge.history import show_history
from masis.ui.judge.seeing import show_differences
from masis.ui.judge.telling import show_rules
from masis.ui.judge.trying import show_trial
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown

STEPS = {
    "choose": "1 Choose",
    "see": "2 Review differences",
    "tell": "3 Write rules",
    "try": "4 Try",
    "compare": "5 Compare",
    "history": "Versions",
}
"""The steps by their names in the address."""


def show_judge(workbench: Workbench) -> None:
    """Draw the page: the judge that audits use now, and the step in the address."""
    st.title("Judge")
    st.markdown(
        "Tell the judge what your team requires, and measure it against cases that people have"
        " decided. Half of them are held out: no rules may be based on them, so they show whether a"
        " version really decides as your team does."
    )
    adopted = workbench.judge.find_adopted(actor())
    if adopted is None:
        st.caption("Audits use the default judge.")
    else:
        st.caption(
            f"Audits use **{escape_markdown(adopted.name)}**, adopted by"
            f" {escape_markdown(adopted.decided_by or adopted.author)} on"
            f" {(adopted.decided_at or adopted.changed_at)[:10]}."
        )
    step = address.one_of("step", STEPS, "choose")
    st.segmented_control(
        "Step",
        list(STEPS),
        format_func=STEPS.__getitem__,
        required=True,
        **address.bind_query_param("step", shows=step, key="judge-step", drops=()),
    )
    if step == "choose":
        show_choice(workbench)
    elif step == "see":
        show_differences(workbench)
    elif step == "tell":
        show_rules(workbench)
    elif step == "try":
        show_trial(workbench)
    elif step == "compare":
        show_comparison(workbench)
    else:
        show_history(workbench)
    st.caption(
        "On the command line, `masis judge` does the same. docs/judge.md explains each step and"
        " each figure."
    )
