"""Audits that run beside the pages: one pool a process, no page code inside, progress in the store.

A run is found again by its case, so that it survives reruns, navigation and reloads of the page.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import streamlit as st

from masis.errors import MasisError
from masis.ui.place import workbench

log = logging.getLogger(__name__)
WORKERS = 2


class AuditJobs:
    """The audits under way in this process, one at most for each case."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="audit")
        self._lock = threading.Lock()
        self._jobs: dict[str, Future[None]] = {}
        self._cancelled: set[str] = set()
        self._failed: dict[str, str] = {}

    def start(self, case_id: str) -> None:
        """Audit a case, unless that is under way already."""
        with self._lock:
            job = self._jobs.get(case_id)
            if job is not None and not job.done():
                return
            self._failed.pop(case_id, None)
            self._cancelled.discard(case_id)
            self._jobs[case_id] = self._pool.submit(self._audit, case_id)

    def under_way(self, case_id: str) -> bool:
        """Whether an audit of the case waits or runs in this process."""
        with self._lock:
            job = self._jobs.get(case_id)
        return job is not None and not job.done()

    def cancel(self, case_id: str) -> None:
        """Ask the audit of a case to stop after its current step."""
        with self._lock:
            self._cancelled.add(case_id)

    def failure(self, case_id: str) -> str | None:
        """Why the last audit of a case in this process could not be made, if it could not."""
        with self._lock:
            return self._failed.get(case_id)

    def _audit(self, case_id: str) -> None:
        bench = workbench()
        try:
            bench.audit(bench.store.cases.get(case_id), cancelled=lambda: case_id in self._cancelled)
        except MasisError as error:
            self._note(case_id, str(error))
        except Exception as error:  # a person sees it on the page; the log has the traceback
            log.exception("the audit of case %r failed", case_id)
            self._note(case_id, f"{type(error).__name__}: {error}")
            raise

    def _note(self, case_id: str, why: str) -> None:
        with self._lock:
            self._failed[case_id] = why


@st.cache_resource(show_spinner=False)
def audit_jobs() -> AuditJobs:
    """The audits of this process."""
    return AuditJobs()
