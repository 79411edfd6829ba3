"""The page of failure modes, with one view for each step of the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import streamlit as st

from masis.services import Workbench
from masis.services.modes.grouping import load_modules
from masis.ui.modes.book import show_book
from masis.ui.modes.coding import show_coding
from masis.ui.modes.counts import show_counts
from masis.ui.modes.groups import show_groups
from masis.ui.modes.outcome import forget_outcome, show_outcome
from masis.ui.shell import address
from masis.ui.shell.streamlit_internals import with_selectors

_SHOWN = "modes-shown"
"""Session state key of the view that was drawn last."""

_STYLE = with_selectors("""<style>
@st-wrapper:has(> .st-key-modes-outcome) {
  position: sticky; top: 4rem; z-index: 90; background: light-dark(#fbfaf7, #14181c); }
</style>""")
"""What an action did, and its undo, stay in sight: the button may be far down the page.

The colors are the background's (``.streamlit/config.toml``).
"""

VIEWS: Mapping[str, tuple[str, Callable[[Workbench], None]]] = {
    "read": ("Read and code", show_coding),
    "groups": ("Groups", show_groups),
    "book": ("Codebook", show_book),
    "counts": ("Counts", show_counts),
}


@st.cache_resource(show_spinner=False)
def _load_grouping() -> None:
    """Load what groups need in a thread, once per server, while the person reads this page.

    At the start of the server it would slow the first pages of everybody, most of whom never ask
    for groups.
    """
    threading.Thread(target=load_modules, name="modules of groups", daemon=True).start()


def show_modes(workbench: Workbench) -> None:
    """Draw the page: the view in the address, after the outcome of the last action."""
    st.title("Failure modes")
    st.markdown(
        "How the answers fail, and how often. Read and code some rows, confirm groups of similar"
        " ones, arrange the modes in the codebook, and see the counts."
    )
    shown = address.one_of("view", VIEWS, "read")
    st.segmented_control(
        "View",
        list(VIEWS),
        format_func=lambda view: VIEWS[view][0],
        required=True,
        **address.bind_query_param(
            "view", "read", shows=shown, key="modes-view", drops=("page", "group", "code")
        ),
    )
    if st.session_state.get(_SHOWN, shown) != shown:
        forget_outcome()
    st.session_state[_SHOWN] = shown
    st.html(_STYLE)
    with st.container(key="modes-outcome"):
        show_outcome(workbench)
    VIEWS[shown][1](workbench)
    _load_grouping()
