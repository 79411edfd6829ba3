"""Audits that run beside the pages: whatever a page starts goes before the batch of all that are not audited yet."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from masis.audit import loop
from masis.errors import UnknownRecord
from masis.schema.review import CaseState
from masis.services import Actor
from masis.services.records import CaseFilter
from masis.settings import Settings
from masis.ui.jobs.job_queue import JobQueue, Kind
from masis.ui.jobs.worker import Job

log = logging.getLogger(__name__)
UNAUDITED: tuple[CaseState, ...] = ("new", "interrupted")
"""The states of cases without a finished audit: what ``audit_all_new`` takes."""

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
    actor: Actor
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
    """The audits that this server runs, one at most for each case at a time."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._workbench = queue.workbench
        self._of_batch: set[str] = set()
        self._batch: _Batch | None = None
        queue.serve(
            "audit",
            Kind(
                mark_lost=self._workbench.runs.mark_lost,
                begun=self._begun,
                spare=self._next_of_batch,
                finished=self._count,
            ),
        )

    def start(self, actor: Actor, case_id: str, settings: Settings | None = None) -> str:
        """Audit a case, ahead of any batch; returns the run's id, of the one under way where there is one.

        An interrupted run of the same content with the same settings is resumed. Raises UnknownRecord.
        """
        settings = settings or self._workbench.settings
        if elsewhere := self._workbench.runs.under_way(case_id):
            return elsewhere
        run_id = self._workbench.audits.resumable(case_id, settings) or loop.new_run_id()
        return self._queue.add(Job("audit", run_id, case_id, settings, actor)).id

    def resume(self, actor: Actor, run_id: str) -> str:
        """Resume an interrupted run after its last finished iteration; returns its id. Raises UnknownRecord."""
        progress = self._workbench.runs.progress(run_id)
        return self.start(actor, progress.case_id, self._workbench.settings.as_told(progress.settings))

    def audit_all_new(self, actor: Actor) -> None:
        """Audit every case without a finished audit, one after the other, unless that is under way.

        Raises NotAllowed.
        """
        self._workbench.access.require(actor, "audit")
        states = self._workbench.cases.facets().states
        with self._queue.changed:
            if self._batch is not None and self._batch.under_way:
                return
            total = sum(states.get(state, 0) for state in UNAUDITED)
            batch = _Batch(actor, iter(()), total, self._workbench.settings, exhausted=not total)
            batch.cases = self._unaudited(batch)
            self._batch = batch
            self._queue.changed.notify_all()

    def batch(self) -> Batch | None:
        """How far the last batch of this server has come; None where there was none."""
        with self._queue.changed:
            batch = self._batch
            if batch is None:
                return None
            whole = not batch.under_way and not batch.stopping
            total = batch.done if whole else max(batch.total, batch.done + batch.running)
            return Batch(total, batch.done, batch.failed, batch.stopping and batch.under_way, batch.under_way)

    def cancel_batch(self, actor: Actor) -> None:
        """Let the batch end with what is under way; the cases left stay as they are. Raises NotAllowed."""
        self._workbench.access.require(actor, "audit")
        with self._queue.changed:
            if self._batch is not None:
                self._batch.stopping = True

    def under_way(self, case_id: str) -> bool:
        """Whether an audit of the case waits or runs in this server."""
        return self._queue.get("audit", case_id) is not None

    def job(self, run_id: str) -> Job | None:
        """The job of a run that waits or runs in this server."""
        return self._queue.find(run_id)

    def ahead(self, case_id: str) -> int | None:
        """How many audits wait before this one; None where it does not wait."""
        return self._queue.ahead("audit", case_id)

    def cancel(self, actor: Actor, case_id: str) -> None:
        """Remove the waiting audit of a case, or ask one under way, here or in another process, to stop.

        Raises NotAllowed.
        """
        self._workbench.access.require(actor, "audit")
        if (job := self._queue.get("audit", case_id)) is not None:
            self._queue.cancel(job)
        elif run_id := self._workbench.runs.under_way(case_id):
            self._workbench.runs.cancel(actor, run_id)

    def cancelling(self, run_id: str) -> bool:
        """Whether a run under way has been asked to stop."""
        if self._queue.cancelling(run_id):
            return True
        try:
            return self._workbench.runs.cancel_requested(run_id)
        except UnknownRecord:
            return False

    def failure(self, case_id: str) -> str | None:
        """Why the last audit of a case in this server could not be run, if it could not."""
        return self._queue.failure("audit", case_id)

    def warm_up(self) -> None:
        """Start the first worker, so that the next audit need not wait a second for it."""
        self._queue.warm_up()

    def _begun(self, job: Job) -> bool:
        return any(run.id == job.id for run in self._workbench.runs.for_case(job.subject))

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
        return Job("audit", run_id, case_id, batch.settings, batch.actor)

    def _unaudited(self, batch: _Batch) -> Iterator[str]:
        """Ids of cases without a finished audit, some hundred looked up at a time; none comes twice."""
        fresh = True
        while fresh:
            fresh, page = False, 1
            while rows := self._listed(page):
                for case_id in rows:
                    if case_id not in batch.tried and not self.under_way(case_id):
                        fresh = True
                        yield case_id
                page += 1

    def _listed(self, page: int) -> list[str]:
        wanted = CaseFilter(states=UNAUDITED, order="oldest", page=page, size=_LISTED)
        return [row.id for row in self._workbench.cases.find(wanted).rows]

    def _count(self, job: Job, error: str | None) -> None:
        """Count a finished job of the batch."""
        if self._batch is not None and job.subject in self._of_batch:
            self._of_batch.discard(job.subject)
            self._batch.done += 1
            self._batch.running -= 1
            self._batch.failed += error is not None
