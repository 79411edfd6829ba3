"""The page of an adjudication: its question, its desk and the way back.

The final verdict is a new entry of the log. The reviewers' decisions stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.errors import InputError, UnknownRecord
from masis.schema.wording import shorten
from masis.services import CaseView, Workbench
from masis.ui.components import HERE
from masis.ui.review.decision import answer_place, draw_desk, open_final_desk
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.ui.shell.streamlit_internals import with_selectors
from masis.ui.team.final_desk import differences
from masis.ui.team.leases import ask_name
from masis.views.headline import headline
from masis.views.markdown import colour_label, escape_markdown
from masis.views.words import Word

_LAYOUT = (
    f"<style>{with_selectors((HERE / 'adjudication.css').read_text(encoding='utf-8'))}</style>"
)
LONGEST_QUESTION = 250
"""The number of characters shown of a question: two lines at 1440 pixels."""


def show_adjudication(workbench: Workbench, case_id: str) -> None:
    """Draw the adjudication of a case: question, answer, evidence, decisions, final verdict."""
    st.html(_LAYOUT)
    _draw_bar()
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        st.markdown("**There is no such case.**")
        st.text(case_id[:500])
        return
    desk = open_final_desk(workbench, view)
    try:
        parts = differences(desk.decisions)
    except InputError:
        _draw_question(view, ())
        st.markdown(
            "This case isn't waiting for an adjudication. Some of its reviewers haven't decided"
            " yet, or it has only one reviewer."
        )
        return
    with st.container(key="adjudication"):
        read, final = st.columns([2, 1], gap="small")
        with read:
            _draw_question(view, parts)
            if desk.run and not view.machine_hidden:
                worst = headline(desk.run)  # the desk scrolls to the issue named here
                others = f" · {escape_markdown(worst.others)}" if worst.others else ""
                st.markdown(f"**The audit:** {colour_label(Word(worst.text, worst.tone))}{others}")
            with st.container(key="adjudicated-answer", gap="xsmall"):
                answer_place()
            st.page_link(
                "pages/review.py",
                label="Open the case" if view.machine_hidden else "Open the case with its audit",
                help="The policy hides the audit until the case is settled."
                if view.machine_hidden
                else None,
                query_params={"case": case_id},
            )
        with final:
            ask_name(workbench)
            draw_desk(desk)


def _draw_bar() -> None:
    """Draw the bar above an adjudication."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="adjudication-bar"
    ):
        st.button(
            "Team",
            icon=":material/arrow_back:",
            type="tertiary",
            on_click=address.set_param,
            args=("case", ""),
        )
        st.title("Adjudication", anchor=False, width="content")


def _draw_question(view: CaseView, parts: Sequence[str]) -> None:
    """Draw the question of a case, its id and the parts in which its reviewers differ.

    A long question is cut, with its full text in a popover. A scrolling container would keep its
    scroll position for the next case.
    """
    question = view.case.query
    with st.container(key="adjudicated-question", gap="xsmall"):
        st.text(shorten(question, LONGEST_QUESTION))
        if len(question) > LONGEST_QUESTION:
            with st.popover("Show full question", type="tertiary"):
                st.text(question)
        difference = (
            f" · the reviewers differ in the {escape_markdown(', '.join(parts))}" if parts else ""
        )
        st.caption(f"{escape_markdown(view.case.id)}{difference}")
