"""Saved views of the queue: a filter under a name, for oneself or for the team."""

from __future__ import annotations

import streamlit as st

from masis.errors import MasisError
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.ui.shell import address
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, reviewer
from masis.views.markdown import escaped

KEPT = tuple(name for name in address.LIST_PARAMETERS if name not in ("page",))
"""What of a list's address a view keeps."""


LONG_SEARCH = 20_000
"""Cases found by words up to which it is counted how far they have come: of a million it takes as long as the list."""


def show_views(workbench: Workbench, wanted: CaseFilter, total: int) -> None:
    """Draw the saved views, what is assigned to this reviewer, and how far the list of ``total`` cases has come."""
    mine = workbench.store.team.counted("assigned").get(actor().name, 0) if reviewer() else 0
    with st.container(horizontal=True, vertical_alignment="center", key="views"):
        if not wanted.text or total <= LONG_SEARCH:
            progress = workbench.store.team.progress(wanted)
            st.caption(f"{progress.done:,} of {progress.cases:,} decided by people in this view")
        if mine:
            st.page_link("pages/queue.py", label=f"Assigned to me ({mine:,})", query_params={"assignee": actor().name})
        views = workbench.store.team.views(actor().name)
        for view in views:
            known = {name: text for name, text in view.parameters.items() if name in KEPT}
            st.page_link("pages/queue.py", label=escaped(view.name), query_params=known)
        if reviewer() is None:
            return
        with st.popover("Views", icon=":material/bookmark:"):
            with st.form("save-view", clear_on_submit=True, border=False):
                name = st.text_input("Name of this view", max_chars=60)
                shared = st.checkbox("For the whole team")
                saved = st.form_submit_button("Save this view", **needs("decide"))
            if saved:
                parameters = {key: text for key, text in address.list_parameters().items() if key in KEPT}
                try:
                    workbench.team.save_view(actor(), name, parameters, shared=shared)
                except MasisError as error:
                    st.warning(escaped(str(error)))
                else:
                    st.rerun()
            for number, view in enumerate(views):
                if st.button(
                    f"Remove {escaped(view.name)}",
                    key=f"remove-view-{number}",
                    icon=":material/delete:",
                    **needs("decide"),
                ):
                    workbench.team.remove_view(actor(), view)
                    st.rerun()
