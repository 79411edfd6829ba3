"""Screenings that run beside the pages."""

from __future__ import annotations

from collections.abc import Mapping

from masis.errors import UnknownRecord
from masis.screening.grading.question import Part
from masis.screening.rounds.round_loop import new_screening_id
from masis.services import Actor
from masis.settings import Settings
from masis.ui.jobs.job_queue import JobQueue, Kind
from masis.ui.jobs.worker import Job


class ScreeningJobs:
    """The screenings that this server runs."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._workbench = queue.workbench
        queue.serve("screening", Kind(mark_lost=self._workbench.screenings.mark_lost, begun=self._begun))

    def start(self, actor: Actor, question: str, sources: tuple[str, ...], settings: Settings | None = None) -> str:
        """Screen a question on these sources (``corpus:NAME``, ``pubmed``); returns the screening's id at once."""
        settings = settings or self._workbench.settings
        return self._queue.add(Job("screening", new_screening_id(), question, settings, actor, sources)).id

    def resume(self, actor: Actor, screening_id: str) -> str:
        """Resume an interrupted screening after its last finished round. Raises UnknownRecord."""
        stored = self._workbench.screenings.progress(screening_id)
        settings = Settings.model_validate(stored.settings)
        return self._queue.add(Job("screening", screening_id, stored.question, settings, actor, stored.sources)).id

    def search_further(self, actor: Actor, screening_id: str, rounds: int) -> str:
        """Search further for a finished screening; returns the id of the new one. Raises MasisError."""
        return self.resume(actor, self._workbench.screenings.begin_further(actor, screening_id, rounds))

    def screen_again(self, actor: Actor, screening_id: str, concepts: Mapping[Part, str]) -> str:
        """Screen a question again with other concepts; returns the id of the new screening. Raises MasisError."""
        self._workbench.access.require(actor, "audit")
        plan = self._workbench.screenings.plan_again(screening_id, concepts)
        return self.start(actor, plan.question, plan.sources, plan.settings)

    def job(self, screening_id: str) -> Job | None:
        """The job of a screening that waits or runs in this server."""
        return self._queue.get("screening", screening_id)

    def ahead(self, screening_id: str) -> int | None:
        """How many screenings wait before this one; None where it does not wait."""
        return self._queue.ahead("screening", screening_id)

    def cancel(self, actor: Actor, screening_id: str) -> None:
        """Remove a waiting screening, or ask one under way, here or in another process, to stop after its step.

        Raises NotAllowed.
        """
        self._workbench.access.require(actor, "audit")
        job = self.job(screening_id)
        if job is None:
            self._workbench.screenings.cancel(actor, screening_id)
        elif self._queue.cancel(job):
            self._queue.note_failure(job, "It was stopped before it began.")

    def cancelling(self, screening_id: str) -> bool:
        """Whether a screening under way has been asked to stop."""
        if self._queue.cancelling(screening_id):
            return True
        try:
            return self._workbench.screenings.cancel_requested(screening_id)
        except UnknownRecord:
            return False

    def failure(self, screening_id: str) -> str | None:
        """Why a screening of this server could not be run, if it could not."""
        return self._queue.failure("screening", screening_id)

    def _begun(self, job: Job) -> bool:
        try:
            self._workbench.screenings.summary(job.id)
        except UnknownRecord:
            return False
        return True
