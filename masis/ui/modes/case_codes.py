"""The failure modes of the case that is open, and the dialog that adds one."""

from __future__ import annotations

import streamlit as st

from masis.services import Workbench
from masis.ui.modes.outcome import choose_mode, ensure_mode
from masis.ui.shell.keys import CODE
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown


def show_case_codes(workbench: Workbench, case_id: str) -> None:
    """Draw the codes of a case that this person may see, and the button that adds one."""
    book = workbench.modes.codebook(actor())
    applied = workbench.modes.list_codes(actor(), case_id)
    names = dict.fromkeys(mode.name for code in applied if (mode := book.find(code.code)))
    with st.container(horizontal=True, vertical_alignment="center", key="case-codes"):
        if names:
            st.caption(f"Failure modes: {escape_markdown(', '.join(names))}")
        if st.button(
            "Add failure mode",
            icon=":material/category:",
            key="case-add-code",
            shortcut=CODE.shortcut,
            **button_state("decide"),
        ):
            _add_code(workbench, case_id)


@st.dialog("Add a failure mode to this case")
def _add_code(workbench: Workbench, case_id: str) -> None:
    mode = choose_mode(workbench.modes.codebook(actor()), "Failure mode", "case-code")
    pressed = st.button(
        "Add", key="case-code-add", type="primary", **button_state("decide", disabled=not mode)
    )
    if (
        pressed
        and mode
        and run_action(
            lambda: workbench.modes.code(actor(), case_id, [ensure_mode(workbench, mode)])
        )
    ):
        st.rerun()
