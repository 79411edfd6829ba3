"""The page of the evidence critic: a new screening and those made before, or the one that the address names."""

from __future__ import annotations

import streamlit as st

from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import ScreeningSummary
from masis.ui.components.linked_table import linked_table
from masis.ui.jobs.served_jobs import screening_jobs
from masis.ui.screening.finished import show_over
from masis.ui.screening.memory_panel import show_memory
from masis.ui.screening.new import show_form
from masis.ui.screening.view import SUMMARY_COLUMNS, summary_row
from masis.ui.screening.watch import show_interrupted, show_live, show_never_began, show_removed, summary_of, under_way
from masis.ui.shell import address

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
    jobs, summary = screening_jobs(), summary_of(workbench, screening_id)
    if under_way(jobs, summary, screening_id):
        job = jobs.job(screening_id)
        show_live(job.subject if job else summary.question if summary else "", screening_id)
    elif summary is None:
        show_never_began(screening_id, jobs.failure(screening_id))
    elif summary.removed_at is not None:
        show_removed(summary)
    elif summary.state == "interrupted":
        show_interrupted(workbench, summary)
    else:
        show_over(workbench, screening_id)


def _earlier(workbench: Workbench) -> None:
    found: tuple[ScreeningSummary, ...] = workbench.screenings.newest(LISTED)
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
