"""The one queue of jobs that run beside the pages: audits and screenings, in worker processes of their own.

Progress is in the store (events, iterations, rounds), so that any tab, a reload and a restarted server find it by the
job's id. Only what the store can't know is here: which jobs wait, and which could not be run.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from masis.services import Workbench
from masis.ui.jobs.worker import Job, Worker, WorkerDied

log = logging.getLogger(__name__)
AT_ONCE = 2
"""Jobs of one kind that run at the same time."""

_IDLE_WORKERS = 2
_FAILURES = 1000


class Kind(NamedTuple):
    """What the queue asks about the jobs of one kind.

    Attributes:
        mark_lost: Marks jobs of this kind as interrupted whose process is gone.
        begun: Whether the store has anything of a job.
        spare: The job to run while none of this kind waits; called with the queue's lock held.
        finished: Called with the lock held, with the error where the job failed.

    """

    mark_lost: Callable[[], object]
    begun: Callable[[Job], bool]
    spare: Callable[[], Job | None] = lambda: None
    finished: Callable[[Job, str | None], None] = lambda job, error: None


class JobQueue:
    """Jobs in the order they were added, at most ``at_once`` of each kind at a time, in worker processes."""

    def __init__(self, workbench: Workbench, at_once: int = AT_ONCE) -> None:
        self.workbench = workbench
        self.changed = threading.Condition()
        self._at_once = at_once
        self._kinds: dict[str, Kind] = {}
        self._waiting: deque[Job] = deque()
        self._jobs: dict[tuple[str, str], Job] = {}
        self._running: dict[str, Worker | None] = {}
        self._cancelled: set[str] = set()
        self._failed: dict[tuple[str, str], str] = {}
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        self._closed = False

    def serve(self, name: str, kind: Kind) -> None:
        """Run jobs of this kind from now on; those of a server that ended in the middle are marked as interrupted."""
        kind.mark_lost()
        self._kinds[name] = kind
        for number in range(self._at_once):
            threading.Thread(target=self._serve, args=(name,), daemon=True, name=f"{name}-{number}").start()

    def add(self, job: Job) -> Job:
        """Add a job at the end; returns the one that waits or runs under its key where there is one.

        Raises NotAllowed where the role of the job's actor does not grant audits.
        """
        self.workbench.access.require(job.actor, "audit")
        with self.changed:
            if (held := self._jobs.get(job.key)) is not None:
                return held
            self._failed.pop(job.key, None)
            self._jobs[job.key] = job
            self._waiting.append(job)
            self.changed.notify_all()
        return job

    def get(self, kind: str, about: str) -> Job | None:
        """The job of a case or of a screening that waits or runs."""
        with self.changed:
            return self._jobs.get((kind, about))

    def find(self, job_id: str) -> Job | None:
        """The job of this id that waits or runs."""
        with self.changed:
            return next((job for job in self._jobs.values() if job.id == job_id), None)

    def ahead(self, kind: str, about: str) -> int | None:
        """How many jobs of the same kind wait before this one; None where it does not wait."""
        with self.changed:
            waiting = [job.key for job in self._waiting if job.kind == kind]
            return waiting.index((kind, about)) if (kind, about) in waiting else None

    def cancel(self, job: Job) -> bool:
        """Remove a waiting job, or ask a running one to stop after its step; whether it was removed."""
        with self.changed:
            if job in self._waiting:
                self._waiting.remove(job)
                del self._jobs[job.key]
                return True
            self._cancelled.add(job.id)
            worker = self._running.get(job.id)
        if worker is not None:
            worker.cancel(job)
        return False

    def cancelling(self, job_id: str) -> bool:
        """Whether a job of this server has been asked to stop."""
        with self.changed:
            return job_id in self._cancelled

    def failure(self, kind: str, about: str) -> str | None:
        """Why the last job of a case or of a screening could not be run in this server, if it could not."""
        with self.changed:
            return self._failed.get((kind, about))

    def note_failure(self, job: Job, error: str) -> None:
        """Note why a job was not run."""
        with self.changed:
            self._failed[job.key] = error
            while len(self._failed) > _FAILURES:
                self._failed.pop(next(iter(self._failed)))

    def warm_up(self) -> None:
        """Start the first worker, so that the next job need not wait a second for it."""
        with self.changed:
            if not self._closed and not self._workers:
                self._idle.append(self._new_worker())

    def close(self) -> None:
        """End the workers; jobs they were in the middle of are interrupted."""
        with self.changed:
            self._closed = True
            workers = list(self._workers)
            self.changed.notify_all()
        for worker in workers:
            worker.close()
        if workers and self.workbench.database.exists():
            for kind in self._kinds.values():
                kind.mark_lost()

    def _serve(self, kind: str) -> None:
        """Run jobs of one kind, one at a time; this thread only waits: for jobs, and for a worker's replies."""
        while (job := self._next(kind)) is not None:
            worker = None
            try:
                worker = self._worker(job)
                error = worker.run(job)
            except (WorkerDied, OSError) as died:
                with self.changed:
                    self._workers -= {worker}
                error = f"{died} {self._what_is_stored(job)}".strip()
            else:
                self._release(worker)
            self._finish(job, error)

    def _next(self, kind: str) -> Job | None:
        with self.changed:
            while not self._closed:
                job = next((each for each in self._waiting if each.kind == kind), None)
                if job is not None:
                    self._waiting.remove(job)
                else:
                    job = self._kinds[kind].spare()
                if job is not None:
                    self._jobs[job.key] = job
                    self._running[job.id] = None
                    return job
                self.changed.wait()
        return None

    def _worker(self, job: Job) -> Worker:
        with self.changed:
            if self._closed:
                raise WorkerDied("The server is closing.")
            worker = self._idle.pop() if self._idle else self._new_worker()
            self._running[job.id] = worker
            cancelled = job.id in self._cancelled
        if cancelled:
            worker.cancel(job)
        return worker

    def _new_worker(self) -> Worker:
        worker = Worker(self.workbench.database)
        self._workers.add(worker)
        return worker

    def _release(self, worker: Worker) -> None:
        """Let the worker wait for the next job, or end it where enough of them wait."""
        with self.changed:
            if len(self._idle) < _IDLE_WORKERS:
                self._idle.append(worker)
                return
            self._workers.discard(worker)
        worker.close()

    def _what_is_stored(self, job: Job) -> str:
        if self._closed:
            return ""
        kind = self._kinds[job.kind]
        try:
            kind.mark_lost()
            begun = kind.begun(job)
        except Exception as error:  # noqa: BLE001 (this thread serves all later jobs; the page shows what went wrong)
            return str(error)
        return "What it had finished is stored: resume it." if begun else "It had not begun: start it again."

    def _finish(self, job: Job, error: str | None) -> None:
        with self.changed:
            self._jobs.pop(job.key, None)
            self._running.pop(job.id, None)
            self._cancelled.discard(job.id)
            self._kinds[job.kind].finished(job, error)
            if error is not None:
                log.warning("the %s %s failed; its page says why", job.kind, job.id)
                self.note_failure(job, error)
