"""The page of the evidence critic: a new screening and those made before, or the one that the address names."""

from __future__ import annotations

import streamlit as st

from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import ScreeningSummary
from masis.ui.components.linked_table import linked_table
from masis.ui.live import served_jobs, show_live
from masis.ui.screening.finished import show_over
from masis.ui.screening.live_screening import (
    draw_live,
    show_head,
    show_interrupted,
    show_never_began,
    show_removed,
    summary_of,
)
from masis.ui.screening.memory_panel import show_memory
from masis.ui.screening.new import show_form
from masis.ui.screening.screening_tables import SUMMARY_COLUMNS, summary_row
from masis.ui.shell import address
from masis.views.words import RUN_STATE

LISTED = 20
OF_ONE = ("abstract", "show", "order", "page")
"""What the address says of one screening only."""


def show_screening(workbench: Workbench) -> None:
    """Draw the page of screenings, or of the one in the address."""
    if screening_id := address.value("screening"):
        _one(workbench, screening_id)
        return
    st.title("Screening")
    st.markdown(
        "The evidence critic searches abstracts for a question, grades each one, and decides whether what was found "
        "suffices or more must be retrieved."
    )
    show_form(workbench)
    with st.container():
        _earlier(workbench)
    _memory(workbench)


def _memory(workbench: Workbench) -> None:
    """Memory and drift, read from the store only where they are looked at."""
    key = "screening-memory-open"
    if key not in st.session_state:
        st.session_state[key] = address.value("memory") == "open"
    panel = st.expander("Acceptance memory and drift", icon=":material/monitoring:", key=key, on_change=_note_memory)
    if panel.open:
        with panel:
            show_memory(workbench)


def _note_memory() -> None:
    address.put("memory", "open" if st.session_state["screening-memory-open"] else "")


def _one(workbench: Workbench, screening_id: str) -> None:
    st.button("Screenings", icon=":material/arrow_back:", type="tertiary", key="leave-screening", on_click=_leave)
    jobs, summary = served_jobs(), summary_of(workbench, screening_id)
    job = jobs.get(screening_id)
    if job is not None or (summary is not None and summary.state == "running"):
        show_head(job.subject if job else summary.question if summary else "", RUN_STATE["running"], [])
        show_live(draw_live, screening_id)
    elif summary is None:
        show_never_began(screening_id, jobs.failure("screening", screening_id))
    elif summary.removed_at is not None:
        show_removed(summary)
    elif summary.state == "interrupted":
        show_interrupted(workbench, summary)
    else:
        show_over(workbench, screening_id)


def _earlier(workbench: Workbench) -> None:
    found: tuple[ScreeningSummary, ...] = workbench.store.screenings.newest(LISTED)
    st.header("Earlier screenings")
    if not found:
        st.caption("None yet. Each is stored with its rounds and grades, and can be opened again.")
        return
    rows = [summary_row(each) for each in found]
    if opened := linked_table(SUMMARY_COLUMNS, rows, description="Earlier screenings", key="screening-list"):
        address.put("screening", opened)
        st.rerun()
    if len(found) == LISTED:
        st.caption(f"The newest {counted(LISTED, 'screening')}.")


def _leave() -> None:
    for name in ("screening", *OF_ONE):
        address.put(name, "")
