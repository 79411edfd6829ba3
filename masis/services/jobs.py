"""Jobs: audits and screenings that run beside the pages, in worker processes fed from one queue of
this server.

A job writes what it finds into the database (events, iterations, rounds), where every tab, a reload
and a restarted server find it by the job's id; there it is cancelled from another process, marked
interrupted once its process is gone, and resumed. Only what the store can't know is here: which
jobs wait, and which could not be run.

A worker is a process, so that no page waits for a busy core. The server writes one JSON object a
line to its input (a job, or ``cancel``) and reads one line back for each job. It is started
plainly, not through ``multiprocessing``: that would run the main module again, which inside
Streamlit is the page.
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
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TextIO

from pydantic import TypeAdapter

from masis.api.batch import Budget
from masis.api.roles import uses_models
from masis.audit import loop
from masis.errors import MasisError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.calls import Usage
from masis.schema.case import Case
from masis.schema.review import CaseState, Standing
from masis.screening.grading.question import Part
from masis.screening.rounds.round_loop import new_screening_id
from masis.services.arrivals import ingestion
from masis.services.records import CaseFilter, CaseSummary
from masis.services.workbench import Workbench
from masis.settings import Settings
from masis.store.audits.runs import Runs
from masis.store.screening.screenings import Screenings

log = logging.getLogger(__name__)

JobKind = Literal["audit", "screening"]

AT_ONCE = 2
"""Jobs of one kind that run at the same time."""

UNAUDITED: tuple[CaseState, ...] = ("new", "interrupted")
"""The states of cases without a finished audit: what ``audit_all_new`` takes."""

NICENESS = 10
"""Workers step back behind the pages where both want a core."""

SHUTDOWN_GRACE_S = 1.0
"""How long the end of a worker waits for what it has left to send; the server waits twice as long
for the worker.
"""

_IDLE_WORKERS = 2
_FAILURES = 1000


class QueuedJob(NamedTuple):
    """One audit or screening to run; its id is known before it begins, so that a page can wait for
    it.

    ``id`` is that of the run or the screening, ``subject`` the id of the case or the question,
    ``sources`` where a screening searches (``corpus:NAME``, ``pubmed``).
    """

    kind: JobKind
    id: str
    subject: str
    settings: Settings
    actor: Actor
    sources: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[JobKind, str]:
        """What at most one job at a time is for: a case to audit, or a screening."""
        return self.kind, self.subject if self.kind == "audit" else self.id


_JOB = TypeAdapter(QueuedJob)


class WorkerDied(Exception):
    """The process ended in the middle of a job; what the job had finished is in the database."""


@dataclass
class BatchProgress:
    """How far "audit everything" has come: ``done`` of ``total``, of which ``failed`` could not be
    audited.

    ``standings`` counts where its cases stand since, ``lesser`` those with lesser issues only;
    ``cost_usd`` is None where a price is not known.
    """

    actor: Actor
    total: int
    settings: Settings
    budget: Budget
    cases: Iterator[str | None]
    day: str = ""
    """Of the batch that goes on for ever: the day whose costs it counts."""
    waiting_case: str | None = None
    """The next case, which has to wait until what is under way has shown its cost."""
    done: int = 0
    failed: int = 0
    standings: Counter[Standing] = field(default_factory=Counter)
    lesser: int = 0
    cost_usd: float | None = 0.0
    running: set[str] = field(default_factory=set)
    stopping: bool = False
    exhausted: bool = False
    checked_at: int = -1
    """At which state of the queue no case of it could begin: it is looked at again once that has
    changed.
    """

    @property
    def under_way(self) -> bool:
        """Whether an audit of it runs or may begin."""
        return bool(self.running) or not (self.exhausted or self.stopping)

    @property
    def limit_reached(self) -> bool:
        """Whether the next audit could have cost more than the limit, so that the other cases are
        left.
        """
        return self.budget.exhausted


@dataclass
class _QueueEntry:
    """A job that waits or runs; ``worker`` runs it, once there is one for it."""

    job: QueuedJob
    running: bool = False
    worker: WorkerProcess | None = None
    cancelled: bool = False


class _NextCase(NamedTuple):
    """The next case of a batch as it was read: with the run that its audit makes, or why it can't
    be audited.

    ``case`` is read where its cost has to be estimated; ``run_id`` is "" where there is an error.
    """

    case_id: str
    run_id: str = ""
    case: Case | None = None
    error: str | None = None


class Jobs:
    """The jobs of this server, in the order they were added, at most ``at_once`` of each kind at a
    time.

    One at most for each case and each screening. Whatever a person starts goes before the batch of
    all cases that are not audited yet. Jobs of a server that ended in the middle are marked as
    interrupted at the start.

    Pages ask for the state of jobs every moment, so the lock is held for a look at what is in
    memory only, never while the database is read.
    """

    def __init__(
        self,
        workbench: Workbench,
        start_worker: Callable[[Path], WorkerProcess] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.workbench = workbench
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
        kinds: tuple[JobKind, ...] = ("audit", "screening")
        for kind in kinds * at_once:
            threading.Thread(
                target=self._serve, args=(kind,), daemon=True, name=f"{kind} jobs"
            ).start()

    # starting

    def audit(self, actor: Actor, case_id: str, settings: Settings | None = None) -> str:
        """Audit a case, ahead of any batch; returns the run's id, of the one under way where there
        is one.

        An interrupted run of the same content with the same settings is resumed. Raises
        UnknownRecord and NotAllowed.
        """
        settings = settings or self.workbench.settings
        if elsewhere := self.workbench.runs.under_way(case_id):
            return elsewhere
        return self._add(
            QueuedJob("audit", self._run_id(case_id, settings), case_id, settings, actor)
        )

    def resume_audit(self, actor: Actor, run_id: str) -> str:
        """Resume an interrupted run after its last finished iteration; returns its id. Raises
        UnknownRecord.
        """
        progress = self.workbench.runs.progress(run_id)
        return self.audit(
            actor, progress.case_id, self.workbench.settings.with_values(progress.settings)
        )

    def audit_all_new(self, actor: Actor, max_cost: float | None = None) -> None:
        """Audit every case without a finished audit, one after the other, unless that is under way.

        Raises NotAllowed, and InputError where ``max_cost`` (US dollars) is set for models whose
        price is not known.
        """
        self.workbench.access.require(actor, "audit")
        states, settings = self.workbench.store.cases.states(), self.workbench.settings
        budget = Budget(settings, max_cost)
        with self._changed:
            if self._batch is not None and self._batch.under_way:
                return
            total = sum(states.get(state, 0) for state in UNAUDITED)
            self._batch = BatchProgress(
                actor, total, settings, budget, self._unaudited_ids(), exhausted=not total
            )
            self._announce()

    def audit_arrived(self, settings: Settings) -> None:
        """Audit what programs have sent in over HTTP and nobody has audited, the oldest first.

        Call it again whenever more has come; what failed, and what the limit on a day's cost has
        left, is tried again on the next day (UTC) and by the next server. Raises InputError where
        the price of a model is not known.
        """
        today = datetime.now(UTC).date().isoformat()
        with self._changed:
            begun = self._batch is not None
        limit = settings.ingest_cost_a_day if uses_models(settings) else 0.0
        spent = (
            self.workbench.store.inbox.cost_since(ingestion.ACTOR.name, today)
            if limit and not begun
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
                self._batch.budget.renew()
            self._batch.exhausted = self._batch.budget.exhausted
            self._announce()

    def screen(
        self,
        actor: Actor,
        question: str,
        sources: tuple[str, ...],
        settings: Settings | None = None,
    ) -> str:
        """Screen a question on these sources (``corpus:NAME``, ``pubmed``); returns the screening's
        id at once.
        """
        settings = settings or self.workbench.settings
        return self._add(
            QueuedJob("screening", new_screening_id(), question, settings, actor, sources)
        )

    def resume_screening(self, actor: Actor, screening_id: str) -> str:
        """Resume an interrupted screening after its last finished round. Raises UnknownRecord."""
        stored = self.workbench.store.screenings.progress(screening_id)
        settings = self.workbench.settings.with_values(stored.settings)
        return self._add(
            QueuedJob("screening", screening_id, stored.question, settings, actor, stored.sources)
        )

    def search_further(self, actor: Actor, screening_id: str, rounds: int) -> str:
        """Search further for a finished screening; returns the id of the new one. Raises
        MasisError.
        """
        return self.resume_screening(
            actor, self.workbench.screenings.begin_further(actor, screening_id, rounds)
        )

    def screen_again(self, actor: Actor, screening_id: str, concepts: Mapping[Part, str]) -> str:
        """Screen a question again with other concepts; returns the id of the new screening. Raises
        MasisError.
        """
        self.workbench.access.require(actor, "audit")
        return self.screen(actor, *self.workbench.screenings.plan_again(screening_id, concepts))

    def _run_id(self, case_id: str, settings: Settings) -> str:
        return self.workbench.audits.resumable(case_id, settings) or loop.new_run_id()

    def _add(self, job: QueuedJob) -> str:
        """Add a job at the end; returns the id of the one that waits or runs under its key. Raises
        NotAllowed.
        """
        self.workbench.access.require(job.actor, "audit")
        with self._changed:
            if (held := self._jobs.get(job.key)) is not None:
                return held.job.id
            self._failed.pop(job.key, None)
            self._jobs[job.key] = _QueueEntry(job)
            if self._batch is not None and self._batch.waiting_case == job.subject:
                self._batch.waiting_case = None
            self._announce()
        return job.id

    # following

    def get(self, job_id: str) -> QueuedJob | None:
        """The job of a run or a screening that waits or runs in this server."""
        with self._changed:
            return next((held.job for held in self._jobs.values() if held.job.id == job_id), None)

    def is_auditing(self, case_id: str) -> bool:
        """Whether an audit of the case waits or runs in this server."""
        with self._changed:
            return ("audit", case_id) in self._jobs

    def count_ahead(self, job_id: str) -> int | None:
        """How many jobs of the same kind wait before this one; None where it does not wait."""
        with self._changed:
            waiting = [held.job for held in self._jobs.values() if not held.running]
            job = next((each for each in waiting if each.id == job_id), None)
            return (
                None
                if job is None
                else [each for each in waiting if each.kind == job.kind].index(job)
            )

    def failure(self, kind: JobKind, subject: str) -> str | None:
        """Why the last job of a case or of a screening could not be run in this server, if it could
        not.
        """
        with self._changed:
            return self._failed.get((kind, subject))

    def batch(self) -> BatchProgress | None:
        """How far the last batch of this server has come; None where there was none."""
        with self._changed:
            batch = self._batch
            if batch is None:
                return None
            total = max(batch.total, batch.done + len(batch.running))
            if not batch.under_way and not batch.stopping and not batch.limit_reached:
                total = batch.done
            return replace(
                batch, total=total, standings=batch.standings.copy(), running=batch.running.copy()
            )

    # stopping

    def cancel(self, actor: Actor, kind: JobKind, subject: str) -> None:
        """Remove a waiting job, or ask one under way, here or in another process, to stop after its
        step.

        ``subject`` is the id of the case or of the screening. Raises NotAllowed.
        """
        self.workbench.access.require(actor, "audit")
        with self._changed:
            held = self._jobs.get((kind, subject))
            if held is not None and not held.running:
                del self._jobs[kind, subject]
                # of an audit the case is there, and can be started again from its page
                if kind == "screening":
                    self._note_failure(held.job.key, "It was stopped before it began.")
                return
            if held is not None:
                held.cancelled = True
        if held is not None:
            if held.worker is not None:
                held.worker.cancel(held.job)
        elif kind == "screening":
            self.workbench.screenings.cancel(actor, subject)
        elif run_id := self.workbench.runs.under_way(subject):
            self.workbench.audits.cancel(actor, run_id)

    def is_cancelling(self, kind: JobKind, job_id: str) -> bool:
        """Whether a job under way, here or in another process, has been asked to stop."""
        with self._changed:
            if any(held.cancelled for held in self._jobs.values() if held.job.id == job_id):
                return True
        try:
            return self._record_store(kind).cancel_requested(job_id)
        except UnknownRecord:
            return False

    def cancel_batch(self, actor: Actor) -> None:
        """Let the batch end with what is under way; the cases left stay as they are. Raises
        NotAllowed.
        """
        self.workbench.access.require(actor, "audit")
        with self._changed:
            if self._batch is not None:
                self._batch.stopping = True

    # the workers

    def warm_up(self) -> None:
        """Start the first worker, so that the next job need not wait a second for it."""
        with self._changed:
            if not self._closed and not self._workers:
                self._idle.append(self._new_worker())

    def close(self) -> None:
        """End the workers; jobs they were in the middle of are interrupted."""
        with self._changed:
            self._closed = True
            workers = list(self._workers)
            self._announce()
        for worker in workers:
            worker.close()
        if workers and self.workbench.database.exists():
            self._mark_lost()

    def _mark_lost(self) -> None:
        self.workbench.runs.mark_lost()
        self.workbench.screenings.mark_lost()

    def _record_store(self, kind: JobKind) -> Runs | Screenings:
        return self.workbench.runs if kind == "audit" else self.workbench.store.screenings

    def _serve(self, kind: JobKind) -> None:
        """Run jobs of one kind, one at a time; this thread only waits: for jobs, and for a worker's
        replies.
        """
        while (held := self._wait_for_job(kind)) is not None:
            job, worker = held.job, None
            try:
                worker = self._worker_for(held)
                error = worker.run(job)
            except (WorkerDied, OSError) as died:
                with self._changed:
                    self._workers -= {worker}
                error = f"{died} {self._resume_hint(job)}".strip()
            else:
                self._release(worker)
            self._finish(job, error)

    def _announce(self) -> None:
        """Wake whoever waits for a change of the queue. Called with the lock held."""
        self._changes += 1
        self._changed.notify_all()

    def _wait_for_job(self, kind: JobKind) -> _QueueEntry | None:
        """Wait for the next job of a kind; None once the server is closing."""
        while True:
            with self._changed:
                while not self._closed:
                    if (held := self._first_waiting(kind)) is not None:
                        held.running = True
                        return held
                    if kind == "audit" and (batch := self._ready_batch()) is not None:
                        break
                    self._changed.wait()
                else:
                    return None
                self._picking, seen = True, self._changes
            picked = self._read_next_case(batch)
            with self._changed:
                self._picking = False
                if (held := self._first_waiting(kind)) is None:
                    held = self._enqueue_next_case(batch, picked, seen)
                elif picked is not None:  # what a person has started meanwhile goes first
                    batch.waiting_case = picked.case_id
                self._changed.notify_all()  # another thread may look for the next one now
                if held is not None:
                    held.running = True
                    return held

    def _first_waiting(self, kind: JobKind) -> _QueueEntry | None:
        """Return the job of a kind that has waited longest. Called with the lock held."""
        return next(
            (each for each in self._jobs.values() if each.job.kind == kind and not each.running),
            None,
        )

    def _worker_for(self, held: _QueueEntry) -> WorkerProcess:
        with self._changed:
            if self._closed:
                raise WorkerDied("The server is closing.")
            worker = held.worker = self._idle.pop() if self._idle else self._new_worker()
            cancelled = held.cancelled
        if cancelled:
            worker.cancel(held.job)
        return worker

    def _new_worker(self) -> WorkerProcess:
        worker = self._start_worker(self.workbench.database)
        self._workers.add(worker)
        return worker

    def _release(self, worker: WorkerProcess) -> None:
        """Let the worker wait for the next job, or end it where enough of them wait."""
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
            self._record_store(job.kind).summary(job.id)
        except UnknownRecord:
            return "It had not begun: start it again."
        except Exception as error:  # noqa: BLE001 (this thread serves all later jobs; the page shows what went wrong)
            return str(error)
        return "What it had finished is stored: resume it."

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

    def _note_failure(self, key: tuple[JobKind, str], error: str) -> None:
        self._failed[key] = error
        while len(self._failed) > _FAILURES:
            self._failed.pop(next(iter(self._failed)))

    # the batch

    def _ready_batch(self) -> BatchProgress | None:
        """Return the batch if its next case may be read now. Called with the lock held."""
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
        """Read the next case of a batch; None where there is none. One thread at a time, without
        the lock.
        """
        try:
            case_id = batch.waiting_case or next(batch.cases, None)
        except Exception:
            log.exception("the batch of audits stopped: the database could not be read")
            if batch.day:
                batch.cases = (
                    self._arrived_ids()
                )  # an iterator that has failed gives nothing any more
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
        """Put the audit of a case that was picked into the queue, if it may begin. Called with the
        lock held.

        ``seen`` is the state of the queue before it was picked.
        """
        if self._closed or batch is not self._batch or batch.stopping:
            return None
        if picked is None:
            # else more may have come meanwhile
            batch.exhausted = batch.exhausted or seen == self._changes
            return None
        if ("audit", picked.case_id) in self._jobs:  # somebody has started it
            batch.waiting_case = None
            return None
        if picked.error is not None:  # that case alone: the others are audited all the same
            batch.waiting_case = None
            batch.done += 1
            batch.failed += 1
            self._note_failure(("audit", picked.case_id), picked.error)
            return None
        if picked.case is not None and not batch.budget.begin(picked.case):
            batch.waiting_case, batch.checked_at = picked.case_id, seen
            # if not, it may begin once the cost of others is known
            batch.exhausted = batch.budget.exhausted
            return None
        batch.waiting_case = None
        batch.running.add(picked.run_id)
        job = QueuedJob("audit", picked.run_id, picked.case_id, batch.settings, batch.actor)
        held = self._jobs[job.key] = _QueueEntry(job)
        return held

    def _unaudited_ids(self) -> Iterator[str]:
        """Ids of cases without a finished audit, the oldest first."""
        cases, unaudited = (
            self.workbench.cases,
            CaseFilter(states=UNAUDITED, order="oldest", size=1),
        )
        case_id = next((row.id for row in cases.find(unaudited).rows), None)
        while case_id is not None:
            yield case_id
            case_id = cases.beside(case_id, unaudited, forward=True)

    def _arrived_ids(self) -> Iterator[str | None]:
        """Ids of cases that programs have sent in and nobody has audited; None where there are no
        more of them yet.
        """
        after = 0
        while True:
            # one by one: others may audit them meanwhile
            found = self.workbench.store.inbox.next_unaudited(after)
            if found is None:
                yield None
                continue
            after, case_id = found
            yield case_id

    def _result_of(self, job: QueuedJob) -> tuple[CaseSummary | None, Usage | None]:
        """Read where the case of a finished audit stands, and what the audit has used; None for
        what can't be read.
        """
        case = usage = None
        with contextlib.suppress(MasisError):  # redacted meanwhile
            case = self.workbench.cases.summary(job.subject)
        if uses_models(job.settings):
            with contextlib.suppress(MasisError):  # not finished: what it has cost is in no result
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
        """Count a finished job of the batch, and what it cost. Called with the lock held."""
        batch.running.discard(job.id)
        batch.done += 1
        batch.failed += error is not None
        if case is not None:
            batch.standings[case.standing] += 1
            batch.lesser += case.lesser
        if uses_models(batch.settings):
            if usage is not None and batch.cost_usd is not None:
                batch.cost_usd = None if usage.cost_usd is None else batch.cost_usd + usage.cost_usd
            batch.budget.record(usage)


# One worker process: the server's end, then its own.

_PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from {} import main; main(sys.argv[2])"


class WorkerProcess:
    """The server's end of one worker process. One job at a time; ``cancel`` may come from any
    thread.
    """

    def __init__(self, database: Path, module: str = __name__) -> None:
        """``module`` has the ``main`` that the process runs."""
        self._writing = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            [
                sys.executable,
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
        """Run the job to its end; returns why it failed, None where it did not. Raises
        WorkerDied.
        """
        self._send({"run": _JOB.dump_python(job, mode="json")}, job.kind)
        reply = ""
        with contextlib.suppress(OSError, ValueError):  # ValueError: closed meanwhile
            assert self._process.stdout is not None
            reply = self._process.stdout.readline()
        if not reply:
            raise self._death_error(job.kind)
        error: str | None = json.loads(reply)
        return error

    def cancel(self, job: QueuedJob) -> None:
        """Ask the job to stop after its current step; harmless where it is over."""
        with contextlib.suppress(WorkerDied):
            self._send({"cancel": job.id}, job.kind)

    def close(self) -> None:
        """End the process; a job it was in the middle of is interrupted."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.terminate()  # what it was writing is stored completely or not at all
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
            except (OSError, ValueError) as error:  # ValueError: closed meanwhile
                raise self._death_error(kind) from error

    def _death_error(self, kind: str) -> WorkerDied:
        self.close()
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return WorkerDied(f"The process that ran this {kind} {how}.")


def main(database: str, prepare: Callable[[Settings], None] = lambda settings: None) -> None:
    """Run the jobs that the server sends until the server is gone; the worker's end.

    ``prepare`` is called before each job with its settings.
    """
    # Ctrl-C is for the server, whose end closes the input
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    replies, sys.stdout = sys.stdout, sys.stderr
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    cancelled: set[str] = set()
    threading.Thread(target=_listen, args=(sys.stdin, orders, cancelled), daemon=True).start()
    workbench: Workbench | None = None
    while True:
        order, error = orders.get(), None
        try:
            job = _JOB.validate_python(order)
            workbench = workbench or Workbench.open(Path(database))
            prepare(job.settings)
            run_job(workbench, job, partial(cancelled.__contains__, job.id))
        except MasisError as failed:
            error = str(failed)
        except Exception as failed:  # noqa: BLE001 (one job must not end the others; the page shows what went wrong)
            traceback.print_exc()
            error = f"{type(failed).__name__}: {failed}"
        cancelled.clear()
        print(json.dumps(error), file=replies, flush=True)


def run_job(workbench: Workbench, job: QueuedJob, cancelled: Callable[[], bool]) -> None:
    """Run one job here and now; its result is stored. Raises MasisError."""
    if job.kind == "audit":
        case = workbench.store.cases.get(job.subject)
        workbench.audits.audit(
            job.actor, case, settings=job.settings, run_id=job.id, cancelled=cancelled
        )
        return
    workbench.screenings.screen(
        job.actor,
        job.subject,
        job.sources,
        settings=job.settings,
        screening_id=job.id,
        cancelled=cancelled,
    )


def _listen(lines: TextIO, orders: queue.SimpleQueue[Any], cancelled: set[str]) -> None:
    for line in lines:
        order = json.loads(line)
        if "cancel" in order:
            cancelled.add(order["cancel"])
        else:
            orders.put(order["run"])
    # the server is gone; the job under way is marked interrupted by whoever opens the database next
    exit_worker()


_exit_callbacks: list[Callable[[float], object]] = []
_exiting = threading.Lock()


def on_worker_exit(send: Callable[[float], object]) -> None:
    """Have a worker process call this before it ends, also when terminated; it is given the seconds
    it may take.
    """
    if send not in _exit_callbacks:
        _exit_callbacks.append(send)
    signal.signal(
        signal.SIGTERM,
        lambda number, frame: None if _exiting.locked() else exit_worker(128 + number),
    )


def exit_worker(status: int = 0) -> NoReturn:
    """End this worker process at once, after what ``at_the_end`` named, for a second at most."""
    if _exiting.acquire(blocking=False):
        for send in _exit_callbacks:
            send(SHUTDOWN_GRACE_S)
        os._exit(status)
    time.sleep(2 * SHUTDOWN_GRACE_S)  # another thread is at it
    os._exit(status)
