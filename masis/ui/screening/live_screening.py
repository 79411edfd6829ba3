"""A screening under way: live while it runs, found again by the address alone, resumed where it was interrupted."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.screening import ScreeningEvent
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.records import ScreeningProgress, ScreeningSummary
from masis.ui.components.case_head import case_head
from masis.ui.live import served_jobs, show_stop
from masis.ui.screening.result import show_rounds
from masis.ui.shell.frame import tab_title
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.views.numbers import day
from masis.views.words import RUN_STATE, Word, label


def summary_of(workbench: Workbench, screening_id: str) -> ScreeningSummary | None:
    """Return the screening as the store has it; None where it has none."""
    try:
        return workbench.store.screenings.summary(screening_id)
    except UnknownRecord:
        return None


def show_interrupted(workbench: Workbench, summary: ScreeningSummary) -> None:
    """Draw a screening that stopped in the middle: what it had finished, and the way on."""
    show_head(summary.question, RUN_STATE["interrupted"], [summary.why] if summary.why else [])
    st.button(
        "Resume the screening",
        type="primary",
        icon=":material/play_arrow:",
        help="Goes on after the last finished round.",
        on_click=_resume,
        args=(summary.id,),
    )
    _rounds(workbench.store.screenings.progress(summary.id), "")


def show_removed(summary: ScreeningSummary) -> None:
    """Draw a screening that retention has removed: its question and outcome, and the way to another one."""
    on = f" on {day(summary.removed_at)}" if summary.removed_at else ""
    show_head(summary.question, RUN_STATE["removed"], [f"Its rounds and grades were removed{on} by retention."])
    st.page_link("pages/screening.py", label="Screen it again", icon=":material/biotech:")


def _resume(screening_id: str) -> None:
    served_jobs().resume_screening(actor(), screening_id)


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


def show_head(question: str, state: Word, reasons: list[str]) -> None:
    """Draw the question, what became of its screening, and why."""
    st.set_page_config(page_title=tab_title(state.text, question))
    case_head(
        {"question": question, "state": label(state), "flags": [], "facts": [], "reasons": reasons},
        key="screening-head",
    )


def draw_live(screening_id: str) -> bool:
    """Draw what has happened so far; returns whether the screening is under way."""
    workbench, jobs = served_workbench(), served_jobs()
    here, summary = jobs.get(screening_id) is not None, summary_of(workbench, screening_id)
    running = summary is not None and summary.state == "running"
    if not here and (not running or screening_id in workbench.screenings.mark_lost()):
        return False
    stopping, stop = jobs.cancelling("screening", screening_id), acting(jobs.cancel, "screening", screening_id)
    show_stop("screening", "rounds", stopping=stopping, on_click=stop, label="Stop the screening")
    ahead = jobs.ahead(screening_id)
    if ahead:
        st.text(f"{counted(ahead, 'screening is', 'screenings are')} ahead of this one in the queue.")
    elif summary is None:
        st.text("Waiting for a worker to start it.")
    else:
        _rounds(
            workbench.store.screenings.progress(screening_id),
            now_words(workbench.store.screenings.events(screening_id)),
        )
    return True


def _rounds(done: ScreeningProgress, waiting: str) -> None:
    keep_share = done.thresholds.keep_share if done.thresholds else served_workbench().settings.screening_keep_share
    rounds = [finished.round for finished in done.progress.finished]
    show_rounds(rounds, keep_share, waiting)


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
