"""Reassess: what the current acceptance rule makes of audits that an earlier one judged, shown first, then applied."""

from __future__ import annotations

import streamlit as st

from masis.audit.acceptance import RULE_VERSION
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.reassessment import Reassessment, in_words
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown
from masis.views.markdown import escaped
from masis.views.words import REASON

MOST_HERE = 2_000
"""Cases reassessed on the page, some ten seconds; for more there is the command, which can be interrupted."""

_SHOWN = "reassessed"


def show_reassessment(workbench: Workbench) -> None:
    """Draw how many audits an earlier rule judged, what the current rule would change, and the button that does it."""
    st.header("Acceptance")
    waiting = workbench.reassessment.waiting()
    found: Reassessment | None = st.session_state.get(_SHOWN)
    if not waiting and not (found and found.applied):
        st.markdown(f"The current acceptance rule ({RULE_VERSION}) has judged every audit that no person decided on.")
        return
    if waiting:
        st.markdown(
            f"An earlier acceptance rule judged {counted(waiting, 'audit')}. Their decisions stand. Reassessing "
            f"applies rule {RULE_VERSION} to the stored iterations; nothing is audited again, and what "
            "people decided stays."
        )
    if waiting > MOST_HERE:
        st.markdown(f"For so many use the command line: {command_markdown('masis db reassess')}.")
        return
    if found is not None:
        _changes(found)
    if not waiting:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Show what would change",
            key="reassess-look",
            on_click=_reassess,
            args=(workbench, False),
            **needs("oversee"),
        )
        if found is not None and not found.applied:
            st.button(
                f"Reassess {counted(waiting, 'audit')}",
                key="reassess-do",
                type="primary",
                on_click=_reassess,
                args=(workbench, True),
                **needs(
                    "oversee",
                    disabled=not actor().name.strip(),
                    help="Each change is an entry of the decision log, with your name.",
                ),
            )
            if not actor().name.strip():
                st.caption("Type your name first: each change is an entry of the decision log.")


def _changes(found: Reassessment) -> None:
    lines = [*in_words(found)]
    if found.reasons:
        named = ", ".join(f"{REASON[code].text} {count:,}" for code, count in found.reasons.most_common())
        lines.append(f"Reasons for review: {named}.")
    st.markdown("\n".join(f"- {escaped(line)}" for line in lines))


def _reassess(workbench: Workbench, apply: bool) -> None:
    with st.spinner("Reassessing"):
        st.session_state[_SHOWN] = workbench.reassessment.run(actor(), apply=apply)
