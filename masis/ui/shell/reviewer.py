"""Who sits before the page: asked once, shown in the frame, kept with every decision.

The name is kept by the browser it was typed in (its local storage), so that it is not asked again after a reload or a
restart of the server, and never follows anyone to another browser. It is a signature, not a proof: there are no
accounts.
"""

from __future__ import annotations

import streamlit as st

from masis.services import POLICY_REVIEWER, Workbench
from masis.store.reviews.drafts import NOBODY_YET
from masis.ui.components import registered
from masis.ui.review.decision_form import LONGEST_NAME, clean

_KEY = "reviewer-name"
_MEMORY = registered("reviewer", "way_back")

_STYLE = """<style>
.st-key-reviewer-badge { position: fixed; top: 0.875rem; right: 3.4rem; z-index: 999991; width: auto; }
.st-key-reviewer-badge button { border: 0; background: transparent; min-height: 2rem; }
[data-testid=stLayoutWrapper]:has(> .st-key-reviewer-badge),
[data-testid=stLayoutWrapper]:has(> .st-key-reviewer-memory) { position: absolute; }
.st-key-reviewer-memory { position: absolute; width: 0; height: 0; overflow: hidden; }
</style>"""


def reviewer() -> str | None:
    """The name of the person in this session, None until it has been given."""
    return st.session_state.get(_KEY)


def name_reviewer(workbench: Workbench, given: object) -> str | None:
    """Take a name for this session; what was drafted before goes to it. Returns it as kept, None if it is no name.

    The name under which the acceptance policy signs is nobody's.
    """
    name = " ".join(clean(given, LONGEST_NAME).split())
    if not name or name.casefold() == POLICY_REVIEWER.casefold():
        return None
    st.session_state[_KEY] = name
    workbench.store.drafts.hand_over(NOBODY_YET, name)
    return name


def reviewer_badge(workbench: Workbench) -> None:
    """Who is at work, at the right of the frame, with a way to change it. Once a page, before the page itself."""
    name = reviewer()
    with st.container(key="reviewer-badge"):  # all of it out of the flow: the page begins where it would without
        st.html(_STYLE)
        _remember(workbench)
        popover = st.popover(_escaped(name) if name else "Your name", icon=":material/person:", type="tertiary")
    with popover:
        st.markdown("**Who decides?** The name is kept with every decision, and by this browser.")
        st.session_state["reviewer-field"] = name or ""
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
    """Let the browser keep the name, or say the one it has kept."""
    with st.container(key="reviewer-memory"):
        kept = _MEMORY(
            data={"name": reviewer() or ""}, key="reviewer-store", on_kept_change=_nothing, on_wake_change=_nothing
        ).kept
    if isinstance(kept, str) and reviewer() is None and name_reviewer(workbench, kept):
        st.rerun()


def _escaped(name: str) -> str:
    """A name as a label takes it: labels read Markdown, and a name is no link or picture."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+-.!|~:$&" else char for char in name)


def _nothing() -> None:
    """A trigger is delivered only where a callback is named for it."""
