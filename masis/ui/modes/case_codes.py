"""The failure modes of the case that is open, and the dialog that adds and removes them."""

from __future__ import annotations

import streamlit as st

from masis.schema.codebook import Codebook
from masis.services import Workbench
from masis.services.records import AppliedCode
from masis.ui.modes.outcome import choose_mode, ensure_mode
from masis.ui.shell.keys import CODE
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown


def show_case_codes(workbench: Workbench, case_id: str) -> None:
    """Draw the codes of a case that this person may see, and the button that changes them."""
    book = workbench.modes.codebook(actor())
    applied = workbench.modes.list_codes(actor(), case_id)
    names = dict.fromkeys(mode.name for code in applied if (mode := book.find(code.code)))
    with st.container(horizontal=True, vertical_alignment="center", key="case-codes"):
        # The names come after the button, or adding the first one would replace the button, which
        # has the focus after a click.
        opens = st.button(
            "Failure modes",
            icon=":material/category:",
            key="case-add-code",
            shortcut=CODE.shortcut,
            **button_state("decide"),
        )
        st.caption(
            f"Failure modes: {escape_markdown(', '.join(names))}"
            if names
            else "None so far. A failure mode describes why an answer fails, in your team's words."
        )
    if opens:
        # The title names the case, because the desk may open the next one before the page follows.
        title = f"Failure modes of {escape_markdown(case_id)}"
        st.dialog(title)(_change_codes)(workbench, book, case_id, applied)


def _change_codes(
    workbench: Workbench, book: Codebook, case_id: str, applied: tuple[AppliedCode, ...]
) -> None:
    mode = choose_mode(book, "Failure mode", "case-code")
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
    for number, code in enumerate(applied):
        known = book.find(code.code)
        name = known.name if known else code.code
        part = "in one part of the case" if code.place else "on the case"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{name}, {part}, by {code.reviewer}")
            removes = st.button(
                "Remove",
                key=f"case-code-remove-{number}",
                **button_state("decide" if code.reviewer == actor().name else "oversee"),
            )
        if removes and _remove(workbench, code):
            st.rerun()


def _remove(workbench: Workbench, code: AppliedCode) -> bool:
    return run_action(lambda: workbench.modes.remove_code(actor(), code))
