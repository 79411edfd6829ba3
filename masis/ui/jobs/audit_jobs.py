"""Audits that run beside the pages: two worker processes a server, whatever a page starts goes before the batch.

Progress is in the store (events, iterations), so that any tab, a reload and a restarted server find it by the run's id.
What is only here is what the store can't know: what waits its turn, what could not be begun, how far the batch is.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import streamlit as st

from masis.audit import loop
from masis.errors import UnknownRecord
from masis.schema.review import CaseState
from masis.services import ANONYMOUS, Workbench
from masis.services.records import CaseFilter
from masis.settings import Settings
from masis.ui.jobs.audit_worker import Job, Worker, WorkerDied
from masis.ui.shell.served_database import served_database, served_workbench

log = logging.getLogger(__name__)
WORKERS = 2
UNAUDITED: tuple[CaseState, ...] = ("new", "interrupted")
"""The states of cases without a finished audit: what ``audit_all_new`` takes."""

_FAILURES_KEPT = 1000
_LISTED = 500


class Batch(NamedTuple):
    """How far "audit everything" has come: ``done`` of ``total``, of which ``failed`` could not be audited."""

    total: int
    done: int
    failed: int
    stopping: bool
    under_way: bool


@dataclass
class _Batch:
    cases: Iterator[str]
    total: int
    settings: Settings
    done: int = 0
    failed: int = 0
    running: int = 0
    stopping: bool = False
    exhausted: bool = False
    tried: set[str] = field(default_factory=set)

    @property
    def under_way(self) -> bool:
        return bool(self.running) or not (self.exhausted or self.stopping)


class AuditJobs:
    """The audits this server makes, one at most for each case at a time."""

    def __init__(self, workbench: Workbench, workers: int = WORKERS) -> None:
        self._workbench = workbench
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: dict[str, Worker | None] = {}
        self._jobs: dict[str, Job] = {}
        self._cancelled: set[str] = set()
        self._of_batch: set[str] = set()
        self._failed: dict[str, str] = {}
        self._batch: _Batch | None = None
        self._closed = False
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        workbench.runs.mark_lost()
        for number in range(workers):
            threading.Thread(target=self._serve, daemon=True, name=f"audit-{number}").start()

    def start(self, case_id: str, settings: Settings | None = None) -> str:
        """Audit a case, ahead of any batch; returns the run's id, of the one under way where there is one.

        An interrupted run of the same content with the same settings is taken up. Raises UnknownRecord.
        """
        settings = settings or self._workbench.settings
        if elsewhere := self._workbench.runs.under_way(case_id):
            return elsewhere
        run_id = self._workbench.audits.resumable(case_id, settings) or loop.new_run_id()
        with self._changed:
            if known := self._jobs.get(case_id):
                return known.run_id
            self._failed.pop(case_id, None)
            self._jobs[case_id] = job = Job(run_id, case_id, settings)
            self._waiting.append(job)
            self._changed.notify()
        return run_id

    def resume(self, run_id: str) -> str:
        """Take up an interrupted run after its last finished iteration; returns its id. Raises UnknownRecord."""
        progress = self._workbench.runs.progress(run_id)
        return self.start(progress.case_id, self._workbench.settings.as_told(progress.settings))

    def audit_all_new(self) -> None:
        """Audit every case without a finished audit, one after the other, unless that is under way."""
        states = self._workbench.cases.facets().states
        with self._changed:
            if self._batch is not None and self._batch.under_way:
                return
            total = sum(states.get(state, 0) for state in UNAUDITED)
            batch = _Batch(iter(()), total, self._workbench.settings, exhausted=not total)
            batch.cases = self._unaudited(batch)
            self._batch = batch
            self._changed.notify_all()

    def batch(self) -> Batch | None:
        """How far the last batch of this server has come; None where there was none."""
        with self._changed:
            batch = self._batch
            if batch is None:
                return None
            whole = not batch.under_way and not batch.stopping
            total = batch.done if whole else max(batch.total, batch.done + batch.running)
            return Batch(total, batch.done, batch.failed, batch.stopping and batch.under_way, batch.under_way)

    def cancel_batch(self) -> None:
        """Let the batch end with what is under way; the cases left stay as they are."""
        with self._changed:
            if self._batch is not None:
                self._batch.stopping = True

    def under_way(self, case_id: str) -> bool:
        """Whether an audit of the case waits or runs in this server."""
        with self._changed:
            return case_id in self._jobs

    def job(self, run_id: str) -> Job | None:
        """The job of a run that waits or runs in this server."""
        with self._changed:
            return next((job for job in self._jobs.values() if job.run_id == run_id), None)

    def ahead(self, case_id: str) -> int | None:
        """How many audits wait before this one; None where it does not wait."""
        with self._changed:
            return next((place for place, job in enumerate(self._waiting) if job.case_id == case_id), None)

    def cancel(self, case_id: str) -> None:
        """Take the audit of a case out of the queue, or ask it to stop after its current step."""
        with self._changed:
            job, worker = self._jobs.get(case_id), self._running.get(case_id)
            if job is not None and job in self._waiting:
                self._waiting.remove(job)
                del self._jobs[case_id]
                return
            if job is not None:
                self._cancelled.add(job.run_id)
        if job is not None and worker is not None:
            worker.cancel(job.run_id)
        elif job is None and (run_id := self._workbench.runs.under_way(case_id)):
            self._workbench.runs.cancel(ANONYMOUS, run_id)

    def cancelling(self, run_id: str) -> bool:
        """Whether a run under way has been asked to stop."""
        with self._changed:
            if run_id in self._cancelled:
                return True
        try:
            return self._workbench.runs.cancel_requested(run_id)
        except UnknownRecord:
            return False

    def failure(self, case_id: str) -> str | None:
        """Why the last audit of a case in this server could not be made, if it could not."""
        with self._changed:
            return self._failed.get(case_id)

    def warm_up(self) -> None:
        """Start the first worker, so that the next audit need not wait a second for it."""
        with self._changed:
            if not self._closed and not self._workers:
                self._idle.append(self._new_worker())

    def pids(self) -> tuple[int, ...]:
        """The process ids of the workers that have been started."""
        with self._changed:
            return tuple(worker.pid for worker in self._workers)

    def close(self) -> None:
        """End the workers; runs they were in the middle of are interrupted."""
        with self._changed:
            self._closed = True
            workers = list(self._workers)
            self._changed.notify_all()
        for worker in workers:
            worker.close()
        if workers and self._workbench.database.exists():
            self._workbench.runs.mark_lost()

    def _serve(self) -> None:
        """One thread for each audit at a time; it only waits: for jobs, and for a worker's answers."""
        while (job := self._next()) is not None:
            worker = None
            try:
                worker = self._worker(job)
                error = worker.audit(job)
            except (WorkerDied, OSError) as died:
                with self._changed:
                    self._workers -= {worker}
                error = f"{died} {self._kept(job)}".strip()
            else:
                with self._changed:
                    self._idle.append(worker)
            self._finish(job, error)

    def _new_worker(self) -> Worker:
        worker = Worker(self._workbench.database)
        self._workers.add(worker)
        return worker

    def _worker(self, job: Job) -> Worker:
        with self._changed:
            if self._closed:
                raise WorkerDied("The server is closing.")
            worker = self._idle.pop() if self._idle else self._new_worker()
            self._running[job.case_id] = worker
            cancelled = job.run_id in self._cancelled
        if cancelled:
            worker.cancel(job.run_id)
        return worker

    def _kept(self, job: Job) -> str:
        if self._closed:
            return ""
        try:
            self._workbench.runs.mark_lost()
            begun = any(run.id == job.run_id for run in self._workbench.runs.for_case(job.case_id))
        except Exception as error:  # noqa: BLE001 (this thread serves all later audits; the page says what went wrong)
            return str(error)
        return "What it had finished is kept: resume it." if begun else "It had not begun: start it again."

    def _next(self) -> Job | None:
        with self._changed:
            while not self._closed:
                job = self._waiting.popleft() if self._waiting else self._next_of_batch()
                if job is not None:
                    self._jobs[job.case_id] = job
                    self._running[job.case_id] = None
                    return job
                self._changed.wait()
        return None

    def _next_of_batch(self) -> Job | None:
        batch = self._batch
        if batch is None or batch.stopping or batch.exhausted:
            return None
        try:
            case_id = next(batch.cases, None)
            if case_id is not None:
                run_id = self._workbench.audits.resumable(case_id, batch.settings) or loop.new_run_id()
        except Exception:
            log.exception("the batch of audits stopped: the database could not be read")
            case_id = None
        if case_id is None:
            batch.exhausted = True
            return None
        batch.running += 1
        batch.tried.add(case_id)
        self._of_batch.add(case_id)
        return Job(run_id, case_id, batch.settings)

    def _unaudited(self, batch: _Batch) -> Iterator[str]:
        """Ids of cases without a finished audit, some hundred looked up at a time; none comes twice."""
        fresh = True
        while fresh:
            fresh, page = False, 1
            while rows := self._listed(page):
                for case_id in rows:
                    if case_id not in batch.tried and case_id not in self._jobs:
                        fresh = True
                        yield case_id
                page += 1

    def _listed(self, page: int) -> list[str]:
        wanted = CaseFilter(states=UNAUDITED, order="oldest", page=page, size=_LISTED)
        return [row.id for row in self._workbench.cases.find(wanted).rows]

    def _finish(self, job: Job, error: str | None) -> None:
        with self._changed:
            self._jobs.pop(job.case_id, None)
            self._running.pop(job.case_id, None)
            self._cancelled.discard(job.run_id)
            if self._batch is not None and job.case_id in self._of_batch:
                self._of_batch.discard(job.case_id)
                self._batch.done += 1
                self._batch.running -= 1
                self._batch.failed += error is not None
            if error is not None:
                log.warning("the audit of run %s failed; the page of its case says why", job.run_id)
                self._failed[job.case_id] = error
                while len(self._failed) > _FAILURES_KEPT:
                    self._failed.pop(next(iter(self._failed)))


@st.cache_resource(show_spinner=False, on_release=AuditJobs.close)
def _jobs_on(path: str) -> AuditJobs:
    return AuditJobs(served_workbench())


def audit_jobs() -> AuditJobs:
    """The audits of this server on the served database."""
    return _jobs_on(str(served_database()))
