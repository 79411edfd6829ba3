"""Screenings as jobs of a server (``masis.services.jobs``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from masis.schema.actor import Actor
from masis.screening.grading.question import Part
from masis.screening.rounds.round_loop import new_screening_id
from masis.screening.services import screening_service
from masis.screening.services.screenings import RUN_SCREENINGS
from masis.screening.store import ScreeningStore
from masis.services.access import requires
from masis.services.jobs import Jobs, QueuedJob
from masis.services.model_names import assert_listed
from masis.services.workbench import Workbench
from masis.settings import Settings
from masis.store.jobs import StoredJobs

KIND = "screening"


class ScreeningJobs:
    """Starts screenings in the worker processes of a server."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs, self._workbench, self.access = jobs, jobs.workbench, jobs.access

    @requires("audit", RUN_SCREENINGS)
    def screen(
        self,
        actor: Actor,
        question: str,
        sources: tuple[str, ...],
        settings: Settings | None = None,
    ) -> str:
        """Queue the screening of a question on these sources and return its id at once.

        ``sources`` are names such as ``corpus:NAME`` and ``pubmed``.

        Raises:
            SettingsError: The settings name a file or folder that isn't configured.

        """
        settings = settings or self._workbench.settings
        assert_listed(self.access, actor, settings, self._workbench.settings)
        return self._jobs.add(
            QueuedJob(KIND, new_screening_id(), question, settings, actor, sources)
        )

    @requires("audit", RUN_SCREENINGS)
    def resume_screening(self, actor: Actor, screening_id: str) -> str:
        """Resume an interrupted screening after its last finished round.

        Raises:
            UnknownRecord: There is no such screening.

        """
        stored = screening_service(self._workbench).progress(screening_id)
        settings = self._workbench.settings.with_values(stored.settings)
        return self._jobs.add(
            QueuedJob(KIND, screening_id, stored.question, settings, actor, stored.sources)
        )

    @requires("audit", RUN_SCREENINGS)
    def search_further(self, actor: Actor, screening_id: str, rounds: int) -> str:
        """Search further for a finished screening and return the id of the new one.

        Raises:
            MasisError: The screening can't be searched further
                (``ScreeningService.begin_further``).

        """
        return self.resume_screening(
            actor, screening_service(self._workbench).begin_further(actor, screening_id, rounds)
        )

    @requires("audit", RUN_SCREENINGS)
    def screen_again(self, actor: Actor, screening_id: str, concepts: Mapping[Part, str]) -> str:
        """Screen a question again with other concepts and return the id of the new screening.

        Raises:
            MasisError: The screening can't be repeated (``ScreeningService.plan_again``).

        """
        return self.screen(
            actor, *screening_service(self._workbench).plan_again(screening_id, concepts)
        )


class _Screenings:
    """Implements ``masis.services.jobs.JobKind``."""

    def run(self, workbench: Workbench, job: QueuedJob, cancelled: Callable[[], bool]) -> None:
        screening_service(workbench).screen(
            job.actor,
            job.subject,
            job.sources,
            settings=job.settings,
            screening_id=job.id,
            cancelled=cancelled,
        )

    def cancel(self, workbench: Workbench, actor: Actor, subject: str) -> None:
        screening_service(workbench).cancel(actor, subject)

    def get_stored_jobs(self, workbench: Workbench) -> StoredJobs[Any, Any]:
        return ScreeningStore(workbench.store).screenings


SCREENINGS = _Screenings()
