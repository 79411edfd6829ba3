"""The reviewer's name: asked for once, shown in the frame, recorded with every decision.

The browser it was typed in stores it (local storage), so that it is not asked for again after a reload or a restart of
the server, and never follows anyone to another browser. It is a signature, not a proof: there are no accounts.
"""

from __future__ import annotations

import streamlit as st

from masis.services import ANONYMOUS, POLICY, Actor, Workbench
from masis.ui.components import registered
from masis.ui.review.decision_form import LONGEST_NAME, clean
from masis.ui.shell.inputs import show_value
from masis.ui.shell.streamlit_internals import with_selectors

_KEY = "reviewer-name"
_MEMORY = registered("reviewer", "way_back")

_STYLE = """<style>
.st-key-reviewer-badge { position: fixed; top: 0.875rem; right: 3.4rem; z-index: 999991; width: auto; }
.st-key-reviewer-badge button { border: 0; background: transparent; min-height: 2rem; }
@st-wrapper:has(> .st-key-reviewer-badge),
@st-wrapper:has(> .st-key-reviewer-memory) { position: absolute; }
.st-key-reviewer-memory { position: absolute; width: 0; height: 0; overflow: hidden; }
</style>"""


def reviewer() -> str | None:
    """Return the name of the person in this session, None until it is known."""
    return st.session_state.get(_KEY)


def actor() -> Actor:
    """Return who the pages of this session act for: the reviewer, once their name is known."""
    name = reviewer()
    return Actor(name=name) if name else ANONYMOUS


def name_reviewer(workbench: Workbench, typed: object) -> str | None:
    """Set the name of this session and hand earlier drafts to it. Returns the name as set, None if it is no name.

    The name that the acceptance policy signs with is refused.
    """
    name = " ".join(clean(typed, LONGEST_NAME).split())
    if not name or name.casefold() == POLICY.name.casefold():
        return None
    st.session_state[_KEY] = name
    workbench.drafts.adopt(actor())
    return name


def reviewer_badge(workbench: Workbench) -> None:
    """Show the reviewer's name at the right of the frame, with a way to change it; once a page, before the page."""
    name = reviewer()
    with st.container(key="reviewer-badge"):  # all of it out of the flow: the page begins where it would without
        st.html(with_selectors(_STYLE))
        _remember(workbench)
        popover = st.popover(_escaped(name) if name else "Your name", icon=":material/person:", type="tertiary")
    with popover:
        st.markdown("**Who decides?** The name is recorded with every decision and remembered by this browser.")
        show_value("reviewer-field", name or "")
        st.text_input(
            "Your name",
            key="reviewer-field",
            max_chars=LONGEST_NAME,
            on_change=_rename,
            args=(workbench,),
        )


def _rename(workbench: Workbench) -> None:
    name_reviewer(workbench, st.session_state["reviewer-field"])


def _remember(workbench: Workbench) -> None:
    """Let the browser store the name, or take the one it has stored."""
    with st.container(key="reviewer-memory"):
        stored = _MEMORY(
            data={"name": reviewer() or ""}, key="reviewer-store", on_kept_change=_nothing, on_wake_change=_nothing
        ).kept
    if isinstance(stored, str) and reviewer() is None and name_reviewer(workbench, stored):
        st.rerun()


def _escaped(name: str) -> str:
    """A name as a label takes it: labels read Markdown, and a name is no link or picture."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+-.!|~:$&" else char for char in name)


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
