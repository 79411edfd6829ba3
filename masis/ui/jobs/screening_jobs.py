"""Screenings that run beside the pages: each in a process of its own, some at once, the others wait their turn.

Progress is in the store (events, rounds), so that any tab, a reload and a restarted server find it by the screening's
id. What is only here is what the store can't know: what waits, and what could not be begun.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

import streamlit as st

from masis.errors import UnknownRecord
from masis.screening.rounds.round_loop import new_screening_id
from masis.services import ANONYMOUS, Workbench
from masis.settings import Settings
from masis.ui.jobs.screening_worker import ScreeningJob, ScreeningProcess
from masis.ui.shell.served_database import served_database, served_workbench

log = logging.getLogger(__name__)
AT_ONCE = 2
_FAILURES_KEPT = 200


class ScreeningJobs:
    """The screenings this server makes."""

    def __init__(self, workbench: Workbench, at_once: int = AT_ONCE) -> None:
        self._workbench = workbench
        self._changed = threading.Condition()
        self._waiting: deque[ScreeningJob] = deque()
        self._jobs: dict[str, ScreeningJob] = {}
        self._processes: set[ScreeningProcess] = set()
        self._failed: dict[str, str] = {}
        self._to_cancel: set[str] = set()
        self._closed = False
        workbench.screenings.mark_lost()
        for number in range(at_once):
            threading.Thread(target=self._serve, daemon=True, name=f"screening-{number}").start()

    def start(self, question: str, sources: tuple[str, ...], settings: Settings | None = None) -> str:
        """Screen a question on these sources (``corpus:NAME``, ``pubmed``); returns the screening's id at once."""
        return self._put(ScreeningJob(new_screening_id(), question, sources, settings or self._workbench.settings))

    def resume(self, screening_id: str) -> str:
        """Take up an interrupted screening after its last finished round. Raises UnknownRecord."""
        told = self._workbench.screenings.progress(screening_id)
        return self._put(
            ScreeningJob(screening_id, told.question, told.sources, Settings.model_validate(told.settings))
        )

    def _put(self, job: ScreeningJob) -> str:
        with self._changed:
            if job.screening_id not in self._jobs:
                self._failed.pop(job.screening_id, None)
                self._jobs[job.screening_id] = job
                self._waiting.append(job)
                self._changed.notify()
        return job.screening_id

    def job(self, screening_id: str) -> ScreeningJob | None:
        """The job of a screening that waits or runs in this server."""
        with self._changed:
            return self._jobs.get(screening_id)

    def ahead(self, screening_id: str) -> int | None:
        """How many screenings wait before this one; None where it does not wait."""
        with self._changed:
            ids = [job.screening_id for job in self._waiting]
            return ids.index(screening_id) if screening_id in ids else None

    def cancel(self, screening_id: str) -> None:
        """Take a screening out of the queue, or ask it to stop between two steps."""
        with self._changed:
            job = self._jobs.get(screening_id)
            if job is not None and job in self._waiting:
                self._waiting.remove(job)
                del self._jobs[screening_id]
                self._failed[screening_id] = "It was stopped before it began."
                return
            self._to_cancel.add(screening_id)
        self.cancelling(screening_id)

    def cancelling(self, screening_id: str) -> bool:
        """Whether a screening under way has been asked to stop; one whose process has not begun it is asked as soon as
        it has.
        """
        with self._changed:
            wanted = screening_id in self._to_cancel
        screenings = self._workbench.screenings
        try:
            asked = screenings.cancel_requested(screening_id)
            if wanted and not asked:
                screenings.cancel(ANONYMOUS, screening_id)
        except UnknownRecord:
            return wanted
        return wanted or asked

    def failure(self, screening_id: str) -> str | None:
        """Why a screening of this server could not be made, if it could not."""
        with self._changed:
            return self._failed.get(screening_id)

    def close(self) -> None:
        """End the processes; screenings they were in the middle of are interrupted."""
        with self._changed:
            self._closed = True
            processes = list(self._processes)
            self._changed.notify_all()
        for process in processes:
            process.close()
        if processes and self._workbench.database.exists():
            self._workbench.screenings.mark_lost()

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            try:
                error = self._screen(job)
            except OSError as failed:
                error = str(failed)
            self._finish(job, error)

    def _next(self) -> ScreeningJob | None:
        with self._changed:
            while not self._closed:
                if self._waiting:
                    return self._waiting.popleft()
                self._changed.wait()
        return None

    def _screen(self, job: ScreeningJob) -> str | None:
        process = ScreeningProcess(self._workbench.database)
        with self._changed:
            self._processes.add(process)
        try:
            return process.screen(job)
        finally:
            with self._changed:
                self._processes.discard(process)

    def _finish(self, job: ScreeningJob, error: str | None) -> None:
        if error is not None and not self._closed:
            self._workbench.screenings.mark_lost()
        with self._changed:
            self._jobs.pop(job.screening_id, None)
            self._to_cancel.discard(job.screening_id)
            if error is not None:
                log.warning("the screening %s failed: %s", job.screening_id, error)
                self._failed[job.screening_id] = error
                while len(self._failed) > _FAILURES_KEPT:
                    self._failed.pop(next(iter(self._failed)))


@st.cache_resource(show_spinner=False, on_release=ScreeningJobs.close)
def _jobs_on(path: str) -> ScreeningJobs:
    return ScreeningJobs(served_workbench())


def screening_jobs() -> ScreeningJobs:
    """The screenings of this server on the served database."""
    jobs: Any = _jobs_on(str(served_database()))
    assert isinstance(jobs, ScreeningJobs)
    return jobs
