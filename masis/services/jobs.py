"""Run audits and other jobs in worker processes, fed from one queue per server.

A job writes its results (events, iterations, rounds) to the database, where every tab finds them by
the job's id, even after a reload or a restart. Through the database, a job can be cancelled from
another process, marked as interrupted when its process is gone, and resumed. This module has only
the state that the store doesn't have: waiting jobs, and jobs that couldn't be run.

A worker is a process, because a thread that audits would block the pages through Python's global
interpreter lock. The server writes one JSON object per line to the worker's stdin (a job, or
``cancel``) and reads one line back for each job. The process is started with ``subprocess`` because
``multiprocessing`` would import the main module again, which inside Streamlit is the page.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, TextIO

from pydantic import TypeAdapter

from masis.api.batch import Budget
from masis.api.roles import uses_models
from masis.audit import loop
from masis.errors import MasisError, UnknownRecord
from masis.extensions import extensions, load
from masis.schema.actor import Actor
from masis.schema.calls import Usage
from masis.schema.case import Case
from masis.schema.review import CaseState, Standing
from masis.services.access import RUN_AUDITS, requires
from masis.services.arrivals import ingestion
from masis.services.model_names import assert_listed
from masis.services.records import CaseFilter, CaseSummary
from masis.services.workbench import Workbench
from masis.settings import Settings
from masis.store.jobs import StoredJobs

log = logging.getLogger(__name__)

AUDIT = "audit"

AT_ONCE = 2
"""How many jobs of each kind run at the same time."""

UNAUDITED: tuple[CaseState, ...] = ("new", "interrupted")
"""The states of cases without a finished audit, which ``audit_all_new`` audits."""

NICENESS = 10
"""The nice value of workers, so that pages get the processor first."""

SHUTDOWN_GRACE_S = 1.0
"""How long an exiting worker may take to send pending data; the server waits twice as long."""

_IDLE_WORKERS = 2
"""Maximum number of workers that stay alive without a job. Starting one takes about a second."""

_FAILURES = 1000
"""Maximum number of failed jobs whose error is remembered."""


class QueuedJob(NamedTuple):
    """One job to run. It has its id before it starts, so that a page can show it.

    Args:
        kind: The kind, a name of ``job_kinds``.
        id: The id of what the job stores, such as a run.
        subject: What it's about: the case's id, or a question.
        settings: The settings of the job.
        actor: Who asked for it.
        sources: The sources that a screening searches (``corpus:NAME``, ``pubmed``).

    """

    kind: str
    id: str
    subject: str
    settings: Settings
    actor: Actor
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The key under which at most one job exists at a time: the case of an audit, or the id."""
        return self.kind, self.subject if self.kind == AUDIT else self.id


_JOB = TypeAdapter(QueuedJob)


class JobKind(Protocol):
    """A kind of jobs: how to run one, and where its progress is stored."""

    def run(self, workbench: Workbench, job: QueuedJob, cancelled: Callable[[], bool]) -> None:
        """Run a job in this process and store its result. Raises MasisError if it can't be run."""

    def cancel(self, workbench: Workbench, actor: Actor, subject: str) -> None:
        """Ask another process to stop its job with this key after the current step."""

    def get_stored_jobs(self, workbench: Workbench) -> StoredJobs[Any, Any]:
        """Return the stored jobs of this kind."""


class _AuditJobs:
    def run(self, workbench: Workbench, job: QueuedJob, cancelled: Callable[[], bool]) -> None:
        case = workbench.store.cases.get(job.subject)
        workbench.audits.audit(
            job.actor, case, settings=job.settings, run_id=job.id, cancelled=cancelled
        )

    def cancel(self, workbench: Workbench, actor: Actor, subject: str) -> None:
        if run_id := workbench.runs.find_running(subject):
            workbench.audits.cancel(actor, run_id)

    def get_stored_jobs(self, workbench: Workbench) -> StoredJobs[Any, Any]:
        return workbench.runs


@cache
def job_kinds() -> Mapping[str, JobKind]:
    """Return the kinds of jobs by name: audits, and those of extensions."""
    added = {
        name: load(target)
        for extension in extensions()
        for name, target in extension.job_kinds.items()
    }
    return {AUDIT: _AuditJobs(), **added}


class WorkerDied(Exception):
    """The worker process ended during a job; the job's finished steps are in the database."""


@dataclass
class BatchProgress:
    """The progress of auditing all new cases.

    ``done`` of ``total`` cases were audited, including ``failed`` ones. ``standings`` counts the
    audited cases by status, and ``minor`` those with less serious issues only. ``cost_usd`` is None
    if a price is unknown.
    """

    actor: Actor
    total: int
    settings: Settings
    budget: Budget
    cases: Iterator[str | None]
    day: str = ""
    """For the batch of ingested cases, which never ends: the day whose costs count."""
    waiting_case: str | None = None
    """The next case, which waits until the running audits have shown their cost."""
    done: int = 0
    failed: int = 0
    standings: Counter[Standing] = field(default_factory=Counter)
    minor: int = 0
    cost_usd: float | None = 0.0
    running: set[str] = field(default_factory=set)
    stopping: bool = False
    exhausted: bool = False
    checked_at: int = -1
    """The queue's change number when the next case couldn't start; it's retried after a change."""

    @property
    def is_running(self) -> bool:
        """Whether an audit of the batch is running or may still start."""
        return bool(self.running) or not (self.exhausted or self.stopping)

    @property
    def limit_reached(self) -> bool:
        """Whether the remaining cases aren't audited because of the cost limit."""
        return self.budget.exhausted


@dataclass
class _QueueEntry:
    """A job that waits or runs, with the worker that runs it."""

    job: QueuedJob
    running: bool = False
    worker: WorkerProcess | None = None
    cancelled: bool = False


class _NextCase(NamedTuple):
    """The next case of a batch, with the id of its run or the error why it can't be audited.

    ``case`` is loaded only if its cost must be estimated; ``run_id`` is "" if there is an error.
    """

    case_id: str
    run_id: str = ""
    case: Case | None = None
    error: str | None = None


class Jobs:
    """The jobs of this server, which run in the order they were added.

    At most ``at_once`` jobs of each kind run at a time, and there is at most one job per case and
    per screening. Jobs that a person starts run before the batch of unaudited cases. Jobs that a
    previous server left unfinished are marked as interrupted at the start.

    Pages poll the state of jobs every half second, so the lock is held only to read and change
    memory, never during a database access.
    """

    def __init__(
        self,
        workbench: Workbench,
        start_worker: Callable[[Path], WorkerProcess] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.workbench, self.access = workbench, workbench.access
        self._start_worker = start_worker or WorkerProcess
        self._changed = threading.Condition()
        self._jobs: dict[tuple[str, str], _QueueEntry] = {}
        self._failed: dict[tuple[str, str], str] = {}
        self._workers: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self._batch: BatchProgress | None = None
        self._picking = False
        self._changes = 0
        self._closed = False
        self._mark_lost()
        for kind in (*job_kinds(),) * at_once:
            # daemon threads, because a thread that waits for a job would keep the process from
            # exiting
            threading.Thread(
                target=self._serve, args=(kind,), daemon=True, name=f"{kind} jobs"
            ).start()

    # Starting jobs

    @requires("audit", RUN_AUDITS)
    def audit(self, actor: Actor, case_id: str, settings: Settings | None = None) -> str:
        """Audit a case before any batch, and return the run's id.

        If an audit of the case is running, its id is returned. An interrupted run of the same
        content with the same settings is resumed.

        Raises:
            UnknownRecord: There is no such case.
            NotAllowed: The actor's role doesn't allow audits.
            SettingsError: The settings name a file or folder that isn't configured.

        """
        settings = settings or self.workbench.settings
        assert_listed(self.access, actor, settings, self.workbench.settings)
        if running := self.workbench.runs.find_running(case_id):
            return running
        return self.add(
            QueuedJob("audit", self._run_id(case_id, settings), case_id, settings, actor)
        )

    @requires("audit", RUN_AUDITS)
    def resume_audit(self, actor: Actor, run_id: str) -> str:
        """Resume an interrupted run after its last finished iteration and return its id.

        Raises:
            UnknownRecord: There is no such run.

        """
        progress = self.workbench.runs.progress(run_id)
        return self.audit(
            actor, progress.case_id, self.workbench.settings.with_values(progress.settings)
        )

    @requires("audit", RUN_AUDITS)
    def audit_all_new(self, actor: Actor, max_cost: float | None = None) -> None:
        """Audit every case without a finished audit, unless such a batch is already running.

        Args:
            actor: Who asks for it.
            max_cost: The limit in US dollars.

        Raises:
            NotAllowed: The actor's role doesn't allow audits.
            InputError: ``max_cost`` is set and the price of a model is unknown.

        """
        states, settings = self.workbench.store.cases.states(), self.workbench.settings
        budget = Budget(settings, max_cost)
        with self._changed:
            if self._batch is not None and self._batch.is_running:
                return
            total = sum(states.get(state, 0) for state in UNAUDITED)
            self._batch = BatchProgress(
                actor, total, settings, budget, self._unaudited_ids(), exhausted=not total
            )
            self._announce()

    def audit_arrived(self, settings: Settings) -> None:
        """Audit the unaudited cases that programs sent over HTTP, oldest first.

        Call it again whenever more cases have arrived. Cases that failed or exceeded the daily cost
        limit are retried on the next day (UTC), and when the server restarts.

        Raises:
            InputError: The price of a model is unknown.

        """
        today = datetime.now(UTC).date().isoformat()
        with self._changed:
            has_batch = self._batch is not None
        # The costs are read between two locked sections, because the lock isn't held during a
        # database access.
        limit = settings.ingest_cost_a_day if uses_models(settings) else 0.0
        spent = (
            self.workbench.store.inbox.cost_since(ingestion.ACTOR.name, today)
            if limit and not has_batch
            else 0.0
        )
        with self._changed:
            if self._batch is None:
                budget = Budget(settings, limit or None, spent)
                self._batch = BatchProgress(
                    ingestion.ACTOR, 0, settings, budget, self._arrived_ids(), day=today
                )
            elif self._batch.day != today:
                self._batch.day, self._batch.cases = today, self._arrived_ids()
                self._batch.budget.reset()
            # More cases may have arrived, so only the budget can keep the batch at its end.
            self._batch.exhausted = self._batch.budget.exhausted
            self._announce()

    def _run_id(self, case_id: str, settings: Settings) -> str:
        return self.workbench.audits.resumable(case_id, settings) or loop.new_run_id()

    def add(self, job: QueuedJob) -> str:
        """Queue a job and return its id, or the id of the existing job with the same key.

        It checks no permission; the use case that calls it does.
        """
        with self._changed:
            if (entry := self._jobs.get(job.key)) is not None:
                return entry.job.id
            self._failed.pop(job.key, None)
            self._jobs[job.key] = _QueueEntry(job)
            if self._batch is not None and self._batch.waiting_case == job.subject:
                self._batch.waiting_case = None
            self._announce()
        return job.id

    # Following jobs

    def get(self, job_id: str) -> QueuedJob | None:
        """Return the waiting or running job of this id in this server, or None."""
        with self._changed:
            return next(
                (entry.job for entry in self._jobs.values() if entry.job.id == job_id), None
            )

    def is_auditing(self, case_id: str) -> bool:
        """Return whether an audit of the case waits or runs in this server."""
        with self._changed:
            return ("audit", case_id) in self._jobs

    def count_ahead(self, job_id: str) -> int | None:
        """Return how many jobs of the same kind are ahead of a waiting job; None if it isn't
        waiting.
        """
        with self._changed:
            waiting = [entry.job for entry in self._jobs.values() if not entry.running]
            job = next((job for job in waiting if job.id == job_id), None)
            if job is None:
                return None
            return [other for other in waiting if other.kind == job.kind].index(job)

    def failure(self, kind: str, subject: str) -> str | None:
        """Return why this server couldn't run the last job of this key, or None."""
        with self._changed:
            return self._failed.get((kind, subject))

    def batch(self) -> BatchProgress | None:
        """Return the progress of this server's last batch, or None if there was none."""
        with self._changed:
            batch = self._batch
            if batch is None:
                return None
            # Cases imported since the start are audited too, so more may be done than were counted.
            total = max(batch.total, batch.done + len(batch.running))
            if not batch.is_running and not batch.stopping and not batch.limit_reached:
                # Fewer are done than were counted if others audited some of the cases in the
                # meantime.
                total = batch.done
            # Copies of the collections, because other threads change them while the caller reads.
            return replace(
                batch, total=total, standings=batch.standings.copy(), running=batch.running.copy()
            )

    # Stopping jobs

    @requires("audit", "stop audits or screenings")
    def cancel(self, actor: Actor, kind: str, subject: str) -> None:
        """Remove a waiting job, or ask a running one to stop after its current step.

        The job may run in another process on the same database.

        Args:
            actor: Who asks for it.
            kind: The kind of the job.
            subject: The id of the case, or of another job.

        Raises:
            NotAllowed: The actor's role doesn't allow audits.

        """
        with self._changed:
            entry = self._jobs.get((kind, subject))
            if entry is not None and not entry.running:
                del self._jobs[kind, subject]
                # A job that hasn't started isn't stored, so its page needs a message. An audit can
                # be started again from the page of its case.
                if kind != AUDIT:
                    self._note_failure(entry.job.key, "It was stopped before it started.")
                return
            if entry is not None:
                entry.cancelled = True
        if entry is not None:
            if entry.worker is not None:
                entry.worker.cancel(entry.job)
        else:
            job_kinds()[kind].cancel(self.workbench, actor, subject)

    def is_cancelling(self, kind: str, job_id: str) -> bool:
        """Return whether a running job, here or in another process, has been asked to stop."""
        with self._changed:
            entries = self._jobs.values()
            if any(entry.cancelled for entry in entries if entry.job.id == job_id):
                return True
        try:
            return job_kinds()[kind].get_stored_jobs(self.workbench).cancel_requested(job_id)
        except UnknownRecord:
            return False

    @requires("audit", RUN_AUDITS)
    def cancel_batch(self, actor: Actor) -> None:
        """End the batch after its running audits; the remaining cases stay unaudited.

        Raises:
            NotAllowed: The actor's role doesn't allow audits.

        """
        with self._changed:
            if self._batch is not None:
                self._batch.stopping = True

    # Workers

    def warm_up(self) -> None:
        """Start the first worker in advance, because starting one takes about a second."""
        with self._changed:
            if not self._closed and not self._workers:
                self._idle.append(self._new_worker())

    def close(self) -> None:
        """End the workers; the jobs they were running are interrupted."""
        with self._changed:
            self._closed = True
            workers = list(self._workers)
            self._announce()
        for worker in workers:
            worker.close()
        if workers and self.workbench.database.exists():
            self._mark_lost()

    def _mark_lost(self) -> None:
        for kind in job_kinds().values():
            kind.get_stored_jobs(self.workbench).mark_lost()

    def _serve(self, kind: str) -> None:
        """Run jobs of one kind, one at a time.

        This thread only waits: for jobs, and for the replies of a worker.
        """
        while (entry := self._wait_for_job(kind)) is not None:
            job, worker = entry.job, None
            try:
                worker = self._worker_for(entry)
                error = worker.run(job)
            except (WorkerDied, OSError) as died:
                with self._changed:
                    # worker is None if the process couldn't be started; then this has no effect.
                    self._workers -= {worker}
                error = f"{died} {self._resume_hint(job)}".strip()
            else:
                self._release(worker)
            self._finish(job, error)

    def _announce(self) -> None:
        """Wake all threads that wait for a change to the queue. Call it with the lock held."""
        self._changes += 1
        self._changed.notify_all()

    def _wait_for_job(self, kind: str) -> _QueueEntry | None:
        """Wait for the next job of a kind and return it, or None once the server is closing."""
        while True:
            with self._changed:
                while not self._closed:
                    if (entry := self._first_waiting(kind)) is not None:
                        entry.running = True
                        return entry
                    if kind == "audit" and (batch := self._ready_batch()) is not None:
                        break
                    self._changed.wait()
                else:
                    return None
                self._picking, seen = True, self._changes
            # Reading the database may take long, so it happens without the lock. _picking keeps
            # other threads from reading the same case, and seen shows whether the queue changed.
            picked = self._read_next_case(batch)
            with self._changed:
                self._picking = False
                if (entry := self._first_waiting(kind)) is None:
                    entry = self._enqueue_next_case(batch, picked, seen)
                elif picked is not None:  # A job that a person has started goes first.
                    batch.waiting_case = picked.case_id
                self._changed.notify_all()  # Another thread may read the next case now.
                if entry is not None:
                    entry.running = True
                    return entry

    def _first_waiting(self, kind: str) -> _QueueEntry | None:
        """Return the job of a kind that has waited longest. Call it with the lock held."""
        return next(
            (
                entry
                for entry in self._jobs.values()
                if entry.job.kind == kind and not entry.running
            ),
            None,
        )

    def _worker_for(self, entry: _QueueEntry) -> WorkerProcess:
        with self._changed:
            if self._closed:
                raise WorkerDied("The server is closing.")
            worker = entry.worker = self._idle.pop() if self._idle else self._new_worker()
            cancelled = entry.cancelled
        if cancelled:
            worker.cancel(entry.job)
        return worker

    def _new_worker(self) -> WorkerProcess:
        worker = self._start_worker(self.workbench.database)
        self._workers.add(worker)
        return worker

    def _release(self, worker: WorkerProcess) -> None:
        """Keep the worker for the next job, or end it if enough workers are idle."""
        with self._changed:
            if len(self._idle) < _IDLE_WORKERS:
                self._idle.append(worker)
                return
            self._workers.discard(worker)
        worker.close()

    def _resume_hint(self, job: QueuedJob) -> str:
        if self._closed:
            return ""
        try:
            self._mark_lost()
            job_kinds()[job.kind].get_stored_jobs(self.workbench).assert_exists(job.id)
        except UnknownRecord:
            return "It didn't start. Start it again."
        # This thread serves all later jobs; the page shows the error.
        except Exception as error:  # noqa: BLE001
            return str(error)
        return "Its finished steps are stored. Resume it."

    def _finish(self, job: QueuedJob, error: str | None) -> None:
        with self._changed:
            batch = (
                self._batch if self._batch is not None and job.id in self._batch.running else None
            )
        case, usage = self._result_of(job) if batch is not None else (None, None)
        with self._changed:
            self._jobs.pop(job.key, None)
            if batch is not None:
                self._count(batch, job, error, case, usage)
            if error is not None:
                log.warning("the %s %s failed; its page says why", job.kind, job.id)
                self._note_failure(job.key, error)
            self._announce()

    def _note_failure(self, key: tuple[str, str], error: str) -> None:
        self._failed[key] = error
        while len(self._failed) > _FAILURES:
            # A dict keeps the order of insertion, so this drops the oldest error.
            self._failed.pop(next(iter(self._failed)))

    # The batch

    def _ready_batch(self) -> BatchProgress | None:
        """Return the batch if its next case may be read now. Call it with the lock held."""
        batch = self._batch
        if (
            batch is None
            or self._picking
            or batch.stopping
            or batch.exhausted
            or batch.checked_at == self._changes
        ):
            return None
        return batch

    def _read_next_case(self, batch: BatchProgress) -> _NextCase | None:
        """Read the next case of a batch, or return None if there is none.

        Only one thread at a time calls it, without the lock.
        """
        try:
            case_id = batch.waiting_case or next(batch.cases, None)
        except Exception:
            log.exception("the batch of audits stopped because the database could not be read")
            if batch.day:
                # A generator that raised an exception is finished, so the next try needs a new one.
                batch.cases = self._arrived_ids()
            return None
        if case_id is None:
            return None
        try:
            case = None if batch.budget.limit is None else self.workbench.store.cases.get(case_id)
            return _NextCase(case_id, self._run_id(case_id, batch.settings), case)
        except MasisError as error:
            return _NextCase(case_id, error=str(error))
        except Exception as error:
            log.exception("case %s could not be read", case_id)
            return _NextCase(case_id, error=f"{type(error).__name__}: {error}")

    def _enqueue_next_case(
        self, batch: BatchProgress, picked: _NextCase | None, seen: int
    ) -> _QueueEntry | None:
        """Queue the audit of the case that was read, if it may start. Call it with the lock held.

        Args:
            batch: The batch that the case was read for.
            picked: The case, or None if there was none.
            seen: The queue's change number before the case was read.

        """
        if self._closed or batch is not self._batch or batch.stopping:
            return None
        if picked is None:
            # If the queue has changed since the read, more cases may have arrived.
            batch.exhausted = batch.exhausted or seen == self._changes
            return None
        if ("audit", picked.case_id) in self._jobs:  # A person has started it in the meantime.
            batch.waiting_case = None
            return None
        if picked.error is not None:  # Only this case fails; the others are still audited.
            batch.waiting_case = None
            batch.done += 1
            batch.failed += 1
            self._note_failure(("audit", picked.case_id), picked.error)
            return None
        if picked.case is not None and not batch.budget.try_start(picked.case):
            batch.waiting_case, batch.checked_at = picked.case_id, seen
            # If the budget isn't exhausted, the case may start once the others' costs are known.
            batch.exhausted = batch.budget.exhausted
            return None
        batch.waiting_case = None
        batch.running.add(picked.run_id)
        job = QueuedJob("audit", picked.run_id, picked.case_id, batch.settings, batch.actor)
        entry = self._jobs[job.key] = _QueueEntry(job)
        return entry

    def _unaudited_ids(self) -> Iterator[str]:
        """Yield the ids of cases without a finished audit, oldest first."""
        cases, unaudited = (
            self.workbench.cases,
            CaseFilter(states=UNAUDITED, order="oldest", size=1),
        )
        case_id = next((row.id for row in cases.find(unaudited).rows), None)
        while case_id is not None:
            yield case_id
            # Step from case to case instead of reading pages: an audited case leaves the filter,
            # which would shift all later pages.
            case_id = cases.neighbor(case_id, unaudited, forward=True)

    def _arrived_ids(self) -> Iterator[str | None]:
        """Yield the ids of unaudited cases that programs sent; None while there are no more."""
        after = 0
        while True:
            # Read the cases one by one, because others may audit them in the meantime.
            arrived = self.workbench.store.inbox.next_unaudited(after)
            if arrived is None:
                yield None
                continue
            after, case_id = arrived
            yield case_id

    def _result_of(self, job: QueuedJob) -> tuple[CaseSummary | None, Usage | None]:
        """Read the case's summary and the audit's usage; each is None if it can't be read."""
        case = usage = None
        with contextlib.suppress(MasisError):  # The case was redacted in the meantime.
            case = self.workbench.cases.summary(job.subject)
        if uses_models(job.settings):
            # A run that didn't finish has no result, so its cost is unknown.
            with contextlib.suppress(MasisError):
                usage = self.workbench.runs.get(job.id).usage
        return case, usage

    def _count(
        self,
        batch: BatchProgress,
        job: QueuedJob,
        error: str | None,
        case: CaseSummary | None,
        usage: Usage | None,
    ) -> None:
        """Count a finished job of the batch and its cost. Call it with the lock held."""
        batch.running.discard(job.id)
        batch.done += 1
        batch.failed += error is not None
        if case is not None:
            batch.standings[case.standing] += 1
            batch.minor += case.minor
        if uses_models(batch.settings):
            if usage is not None and batch.cost_usd is not None:
                batch.cost_usd = None if usage.cost_usd is None else batch.cost_usd + usage.cost_usd
            batch.budget.record(usage)


# One worker process: the server's end, then the worker's own.

_PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from {} import main; main(sys.argv[2])"


class WorkerProcess:
    """The server's end of one worker process, which runs one job at a time.

    Any thread may call ``cancel``.
    """

    def __init__(self, database: Path, module: str = __name__) -> None:
        """Start the process, which runs the ``main`` function of ``module``."""
        # Other threads send cancellations, and the lines of two orders must not be mixed.
        self._writing = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [
                sys.executable,
                # -P keeps the current folder off sys.path, where a file could shadow a module
                # (Python 3.11). The package's own folder is passed instead.
                "-P",
                "-c",
                _START.format(module),
                str(_PACKAGE_FOLDER),
                str(database),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def run(self, job: QueuedJob) -> str | None:
        """Run the job to its end and return its error message, or None if it succeeded.

        Raises:
            WorkerDied: The process ended during the job.

        """
        self._send({"run": _JOB.dump_python(job, mode="json")}, job.kind)
        reply = ""
        with contextlib.suppress(OSError, ValueError):  # ValueError: the pipe was closed.
            assert self._process.stdout is not None
            reply = self._process.stdout.readline()
        # An empty string is the end of the pipe, so the process is gone.
        if not reply:
            raise self._death_error(job.kind)
        error: str | None = json.loads(reply)
        return error

    def cancel(self, job: QueuedJob) -> None:
        """Ask the job to stop after its current step; it has no effect if the job has ended."""
        with contextlib.suppress(WorkerDied):
            self._send({"cancel": job.id}, job.kind)

    def close(self) -> None:
        """End the process; a job that it is running is interrupted."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        # Safe at any time, because SQLite rolls back an unfinished transaction
        # (sqlite.org/atomiccommit.html).
        self._process.terminate()
        try:
            self._process.wait(timeout=2 * SHUTDOWN_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _send(self, order: dict[str, Any], kind: str) -> None:
        with self._writing:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(order) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError) as error:  # ValueError: the pipe was closed.
                raise self._death_error(kind) from error

    def _death_error(self, kind: str) -> WorkerDied:
        self.close()
        code = self._process.returncode
        # subprocess reports a signal as the negative of its number.
        end = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return WorkerDied(f"The process that ran this {kind} {end}.")


def main(database: str, prepare: Callable[[Settings], None] = lambda settings: None) -> None:
    """Run the jobs that the server sends until the server is gone. This is the worker's main
    function.

    Args:
        database: The path of the database.
        prepare: Called with the settings before each job.

    """
    # A terminal sends Ctrl-C to the whole process group. The worker ignores it and ends when the
    # server does, because that closes its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # only on Unix
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # Replies use the original stdout. Text that a library prints must not mix with them.
    replies, sys.stdout = sys.stdout, sys.stderr
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, cancelled), daemon=True).start()
    workbench: Workbench | None = None
    while True:
        order, error = orders.get(), None
        try:
            job = _JOB.validate_python(order)
            # Opened here, so that an error of the database is the job's error and is shown on its
            # page.
            workbench = workbench or Workbench.open(Path(database))
            # This process doesn't know the server's options, so each job brings its settings.
            workbench.use_settings(job.actor, job.settings)
            prepare(job.settings)
            run_job(workbench, job, partial(cancelled.__contains__, job.id))
        except MasisError as raised:
            error = str(raised)
        # One job must not end the others; the page shows the error.
        except Exception as raised:  # noqa: BLE001
            traceback.print_exc()
            error = f"{type(raised).__name__}: {raised}"
        # A resumed run has the same id, so an old cancellation would stop it at once.
        cancelled.clear()
        print(json.dumps(error), file=replies, flush=True)


def run_job(workbench: Workbench, job: QueuedJob, cancelled: Callable[[], bool]) -> None:
    """Run one job in this process and store its result.

    Raises:
        MasisError: The job can't be run.

    """
    job_kinds()[job.kind].run(workbench, job, cancelled)


def _listen(lines: TextIO, orders: queue.SimpleQueue[Any], cancelled: set[str]) -> None:
    for line in lines:
        order = json.loads(line)
        if "cancel" in order:
            cancelled.add(order["cancel"])
        else:
            orders.put(order["run"])
    # The input is at its end, so the server is gone. The next process that opens the database marks
    # the running job as interrupted.
    exit_worker()


_exit_callbacks: list[Callable[[float], object]] = []
_exiting = threading.Lock()


def on_worker_exit(send: Callable[[float], object]) -> None:
    """Register a callback for the end of a worker process, even when it is terminated.

    The callback receives the seconds that it may take.
    """
    if send not in _exit_callbacks:
        _exit_callbacks.append(send)
    # While the callbacks run, the signal is ignored. It is handled in the main thread, which may be
    # the one that runs them, and exit_worker would make that thread sleep instead.
    signal.signal(
        signal.SIGTERM,
        lambda number, frame: None if _exiting.locked() else exit_worker(128 + number),
    )


def exit_worker(status: int = 0) -> NoReturn:
    """Run the callbacks of ``on_worker_exit`` and end this worker process."""
    if _exiting.acquire(blocking=False):
        for send in _exit_callbacks:
            send(SHUTDOWN_GRACE_S)
        # os._exit, because sys.exit ends only the calling thread, which may not be the main one
        os._exit(status)
    # Another thread runs the callbacks and then ends the process; this is only the fallback.
    time.sleep(2 * SHUTDOWN_GRACE_S)
    os._exit(status)
