"""The jobs of this server: one queue on the served database, shared by all sessions."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from masis.ui.jobs.audit_jobs import AuditJobs
from masis.ui.jobs.job_queue import JobQueue
from masis.ui.jobs.screening_jobs import ScreeningJobs
from masis.ui.shell.served_database import served_database, served_workbench


class _Jobs(NamedTuple):
    queue: JobQueue
    audits: AuditJobs
    screenings: ScreeningJobs


@st.cache_resource(show_spinner=False, on_release=lambda jobs: jobs.queue.close())
def _jobs_on(path: str) -> _Jobs:
    queue = JobQueue(served_workbench())
    return _Jobs(queue, AuditJobs(queue), ScreeningJobs(queue))


def audit_jobs() -> AuditJobs:
    """Return the audits of this server on the served database."""
    return _jobs_on(str(served_database())).audits


def screening_jobs() -> ScreeningJobs:
    """Return the screenings of this server on the served database."""
    return _jobs_on(str(served_database())).screenings
