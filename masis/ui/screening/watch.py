"""Watching a screening: live while it runs, found again by the address alone; taken up where it was interrupted."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.screening import ScreeningEvent
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import ScreeningProgress, ScreeningSummary
from masis.ui.components.case_head import case_head
from masis.ui.jobs.screening_jobs import ScreeningJobs
from masis.ui.jobs.served_jobs import screening_jobs
from masis.ui.screening.result import show_rounds
from masis.ui.screening.view import round_rows
from masis.ui.screening.wording import INTERRUPTED, REMOVED, UNDER_WAY
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.wording import Word, label

LOOK_EVERY_S = 0.5


def summary_of(workbench: Workbench, screening_id: str) -> ScreeningSummary | None:
    """Return the screening as the store has it; None where it has none."""
    try:
        return workbench.screenings.summary(screening_id)
    except UnknownRecord:
        return None


def under_way(jobs: ScreeningJobs, summary: ScreeningSummary | None, screening_id: str) -> bool:
    """Return whether a screening waits or runs, here or in another process."""
    return jobs.job(screening_id) is not None or (summary is not None and summary.state == "running")


def show_live(question: str, screening_id: str) -> None:
    """Draw a screening under way, again and again until it is over."""
    _head(question, UNDER_WAY, [])
    _live(screening_id)


def show_interrupted(workbench: Workbench, summary: ScreeningSummary) -> None:
    """Draw a screening that stopped in the middle: what it had finished, and the way on."""
    _head(summary.question, INTERRUPTED, [summary.why] if summary.why else [])
    st.button(
        "Resume the screening",
        type="primary",
        icon=":material/play_arrow:",
        help="Goes on after the last finished round.",
        on_click=_resume,
        args=(summary.id,),
    )
    _rounds(workbench.screenings.progress(summary.id), "")


def show_removed(summary: ScreeningSummary) -> None:
    """Draw a screening that retention has removed: its question and outcome, and the way to another one."""
    at = (summary.removed_at or "")[:10]
    _head(summary.question, REMOVED, [f"Its rounds and grades were removed on {at} by retention."])
    st.page_link("pages/screening.py", label="Screen it again", icon=":material/biotech:")


def _resume(screening_id: str) -> None:
    screening_jobs().resume(actor(), screening_id)


def show_never_began(screening_id: str, why: str | None) -> None:
    """Say that the screening in the address is not here, or why it failed."""
    if why:
        st.title("The screening failed")
        st.text(why)
        st.markdown("Your question is still in the form: fix what is named here and start it again.")
    else:
        st.title("There is no such screening")
        st.text(screening_id[:200])
        st.markdown("It may be in another database, or its id may be cut off in the address you followed.")


def _head(question: str, state: Word, reasons: list[str]) -> None:
    st.set_page_config(page_title=tab_title(state.text, question))
    case_head(
        {"question": question, "state": label(state), "flags": [], "facts": [], "reasons": reasons},
        key="screening-head",
    )


@st.fragment(run_every=LOOK_EVERY_S)
def _live(screening_id: str) -> None:
    """Draw what has happened so far; redraws the whole page once the screening is over."""
    workbench, jobs = served_workbench(), screening_jobs()
    here, summary = jobs.job(screening_id), summary_of(workbench, screening_id)
    if here is None and summary is not None and summary.state == "running":
        workbench.screenings.mark_lost()
        summary = summary_of(workbench, screening_id)
    if here is None and (summary is None or summary.state != "running"):
        st.rerun()
    stopping = jobs.cancelling(screening_id)
    stop, says = st.columns([2, 7], vertical_alignment="center")
    stop.button(
        "Stopping" if stopping else "Stop the screening",
        icon=":material/stop_circle:",
        on_click=acting(jobs.cancel, screening_id),
        width="stretch",
        key="stop-screening",
        **needs("audit", disabled=stopping),
    )
    says.caption(
        "It stops after the current step; finished rounds are stored."
        if stopping
        else "You can leave this page or close it: the screening goes on, and this address leads back to it."
    )
    ahead = jobs.ahead(screening_id)
    if ahead:
        st.text(f"{counted(ahead, 'screening is', 'screenings are')} ahead of this one in the queue.")
    elif summary is None:
        st.text("Waiting for a worker to start it.")
    else:
        _rounds(workbench.screenings.progress(screening_id), now_words(workbench.screenings.events(screening_id)))


def _rounds(done: ScreeningProgress, waiting: str) -> None:
    keep_share = done.thresholds.keep_share if done.thresholds else served_workbench().settings.screening_keep_share
    rounds = [finished.round for finished in done.progress.finished]
    show_rounds(round_rows(rounds), keep_share, waiting)


def now_words(events: Sequence[ScreeningEvent]) -> str:
    """Say what is being done, from the last event."""
    last = events[-1] if events else None
    if last is None or last.kind in ("screening_started", "round_finished"):
        return "Starting the next round."
    number = f"Round {last.round}" if last.round is not None else "It"
    if last.kind == "round_started":
        queries = last.data.get("queries")
        return f"{number}: searching ({counted(len(queries) if isinstance(queries, list) else 1, 'query', 'queries')})."
    if last.kind == "searched":
        return f"{number}: {last.data.get('retrieved')} found, {last.data.get('new')} to grade."
    if last.kind == "graded":
        return f"{number}: {last.data.get('done')} of {last.data.get('of')} graded."
    return last.message or f"{number} continues."
