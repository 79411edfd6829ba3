"""The jobs of this server, and how a page shows one that is under way: drawn again and again until it is over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from masis.services.jobs import Jobs, WorkerProcess
from masis.ui.shell import worker
from masis.ui.shell.permissions import needs
from masis.ui.shell.served_database import served_database, served_workbench

LOOK_EVERY_S = 0.5


@st.cache_resource(show_spinner=False, on_release=lambda jobs: jobs.close())
def _jobs_on(_path: str) -> Jobs:
    return Jobs(served_workbench(), partial(WorkerProcess, module=worker.__name__))


def served_jobs() -> Jobs:
    """Return the jobs of this server on the served database, shared by all sessions."""
    return _jobs_on(str(served_database()))


@st.fragment(run_every=LOOK_EVERY_S)
def show_live(draw: Callable[..., bool], *args: Any) -> None:
    """Draw a job under way, again and again.

    ``draw`` is called with ``args`` and returns False, before it draws anything, once the job is over: then the whole
    page is drawn anew.
    """
    if not draw(*args):
        st.rerun()


def show_stop(what: str, parts: str, *, stopping: bool, on_click: Callable[[], None], label: str = "Stop") -> None:
    """Draw the button that stops a job which this address leads back to, and what that means.

    ``what`` it is (``audit``), and which ``parts`` (``iterations``) are stored when it stops.
    """
    stop, says = st.columns([2, 7], vertical_alignment="center")
    stop.button(
        "Stopping" if stopping else label,
        icon=":material/stop_circle:",
        on_click=on_click,
        width="stretch",
        key=f"stop-{what}",
        **needs("audit", disabled=stopping),
    )
    says.caption(
        f"It stops after the step under way; finished {parts} are stored."
        if stopping
        else f"You can leave this page or close it: the {what} goes on, and this address leads back to it."
    )
