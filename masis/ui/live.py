"""The jobs of this server, and how a page shows one that is under way: drawn again and again until
it is over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from masis.schema.actor import Permission
from masis.schema.wording import count_noun
from masis.services.background import BackgroundTask
from masis.services.jobs import Jobs, WorkerProcess
from masis.ui.shell import worker
from masis.ui.shell.permissions import action, button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_database, served_workbench
from masis.views.markdown import escape_markdown

REDRAW_EVERY_S = 0.5


@st.cache_resource(show_spinner=False, on_release=lambda jobs: jobs.close())
def _jobs_on(_path: str) -> Jobs:
    return Jobs(served_workbench(), partial(WorkerProcess, module=worker.__name__))


def served_jobs() -> Jobs:
    """Return the jobs of this server on the served database, shared by all sessions."""
    return _jobs_on(str(served_database()))


@st.fragment(run_every=REDRAW_EVERY_S)
def show_live(draw: Callable[..., bool], *args: Any) -> None:
    """Draw a job under way, again and again.

    ``draw`` is called with ``args`` and returns False, before it draws anything, once the job is
    over: then the whole page is drawn anew.
    """
    if not draw(*args):
        st.rerun()


def waiting_text(what: str, job_id: str, running: bool) -> str:
    """Say what a job under way waits for: others ahead of it, or a worker; "" where it runs."""
    if ahead := served_jobs().ahead(job_id):
        return f"{count_noun(ahead, f'{what} is', f'{what}s are')} ahead of this one in the queue."
    return "" if running else "Waiting for a worker to start it."


def show_stop(
    what: str, parts: str, *, stopping: bool, on_click: Callable[[], None], label: str = "Stop"
) -> None:
    """Draw the button that stops a job which this address leads back to, and what that means.

    ``what`` it is (``audit``), and which ``parts`` (``steps``) are stored when it stops.
    """
    stop, says = st.columns([2, 7], vertical_alignment="center")
    stop.button(
        "Stopping" if stopping else label,
        icon=":material/stop_circle:",
        on_click=on_click,
        width="stretch",
        key=f"stop-{what}",
        **button_state("audit", disabled=stopping),
    )
    says.caption(
        f"It is about to stop; finished {parts} are stored."
        if stopping
        else (
            f"You can leave this page or close it: the {what} goes on, and this address leads back"
            " to it."
        )
    )


def draw_task(
    find: Callable[[], BackgroundTask | None],
    what: str,
    key: str,
    *,
    says: str,
    takes: Permission = "audit",
    stopped: str = "What has arrived so far is stored.",
) -> bool:
    """Draw how far work on a thread has come, for ``show_live``; returns whether it is under way.

    Args:
        find: Returns the task; None where there is none.
        what: What the button under ``key`` stops: ``import``.
        key: Key of the button.
        says: What a person may do meanwhile.
        takes: The permission that stopping it takes.
        stopped: What becomes of what is done by then, if it is stopped.

    """
    task = find()
    if task is None or task.over:
        return False

    def stop() -> None:
        served_workbench().access.require(actor(), takes)
        task.stop()

    st.progress(task.share, text=escape_markdown(task.says))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(says, width="stretch")
        label = "Stopping" if task.stopping else f"Stop the {what}"
        action(
            label,
            key,
            "stop_circle",
            stop,
            takes=takes,
            disabled=task.stopping,
            why=stopped,
            type="tertiary",
        )
    return True
