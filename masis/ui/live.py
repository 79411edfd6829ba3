"""The jobs of this server, and redrawing a page while a job is running."""

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
    """Draw a running job repeatedly.

    ``draw`` is called with ``args``. Once the job has ended it must return False without drawing
    anything; then the whole page is drawn again.
    """
    if not draw(*args):
        # Inside a fragment this still runs the whole page, because the scope is the app by default.
        st.rerun()


def waiting_text(what: str, job_id: str, running: bool) -> str:
    """Explain why a job hasn't started: other jobs, or no worker yet; "" if it is running."""
    if ahead := served_jobs().count_ahead(job_id):
        return f"{count_noun(ahead, f'{what} is', f'{what}s are')} ahead of this one in the queue."
    return "" if running else "Waiting for a worker to start it."


def show_stop(
    what: str, parts: str, *, stopping: bool, on_click: Callable[[], None], label: str = "Stop"
) -> None:
    """Draw the button that stops a job, with an explanation.

    ``what`` names the job (``audit``), and ``parts`` its parts (``steps``) that stay stored.
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
        f"Stopping. Finished {parts} are stored."
        if stopping
        else (
            f"You can leave or close this page. The {what} continues, and this address shows it"
            " again."
        )
    )


def draw_task(
    find: Callable[[], BackgroundTask | None],
    what: str,
    key: str,
    *,
    says: str,
    requires: Permission = "audit",
    stopped: str = "Results so far are stored.",
) -> bool:
    """Draw the progress of a background task for ``show_live``, and return whether it is running.

    Args:
        find: Returns the task, or None if there is none.
        what: What the button under ``key`` stops, for example ``import``.
        key: Key of the button.
        says: What the user may do in the meantime.
        requires: The permission needed to stop it.
        stopped: What happens to finished work if it is stopped.

    """
    task = find()
    if task is None or task.over:
        return False

    def stop() -> None:
        # A disabled button is no protection, because a browser can still send its click.
        served_workbench().access.require(actor(), requires)
        task.stop()

    st.progress(task.share, text=escape_markdown(task.progress_text))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(says, width="stretch")
        label = "Stopping" if task.stopping else f"Stop the {what}"
        action(
            label,
            key,
            "stop_circle",
            stop,
            requires=requires,
            disabled=task.stopping,
            why=stopped,
            type="tertiary",
        )
    return True
