"""Calls of all use cases of screening, for tests/services/test_access.py."""

from __future__ import annotations

from collections.abc import Callable

import masis
from masis.schema.actor import Actor
from masis.schema.screening import Abstract, Screening
from masis.screening.services import corpus_service, screening_service
from masis.screening.services.jobs import ScreeningJobs
from masis.services import Workbench
from masis.services.jobs import Jobs


def run_screening() -> Screening:
    abstract = Abstract(id="a", title="A trial", text="It worked in 40 of 80 patients.")
    return masis.screen_abstracts("Does it work?", [abstract])


CALLS: dict[str, Callable[[Workbench, Actor], object]] = {
    "CorpusService.add": lambda desk, who: corpus_service(desk).add(who, "c", [], source="test"),
    "CorpusService.add_demo": lambda desk, who: corpus_service(desk).add_demo(who),
    "CorpusService.keep_records": lambda desk, who: corpus_service(desk).keep_records(
        who, "c", [], source="x"
    ),
    "CorpusService.remove": lambda desk, who: corpus_service(desk).remove(who, "c"),
    "ScreeningService.screen": lambda desk, who: screening_service(desk).screen(
        who, "Does it work?", ["corpus:c"]
    ),
    "ScreeningService.store_screening": lambda desk, who: screening_service(desk).store_screening(
        who, run_screening(), []
    ),
    "ScreeningService.cancel": lambda desk, who: screening_service(desk).cancel(who, "s"),
    "ScreeningService.override": lambda desk, who: screening_service(desk).override(
        who, "s", "a", "recommendation", "keep", reason="r"
    ),
    "ScreeningService.hand_over": lambda desk, who: screening_service(desk).hand_over(who, "s"),
    "ScreeningService.reset_memory": lambda desk, who: screening_service(desk).reset_memory(
        who, reason="r"
    ),
    "ScreeningService.export": lambda desk, who: screening_service(desk).export(who, "s", "csv"),
    "ScreeningService.import_labels": lambda desk, who: screening_service(desk).import_labels(
        who, "s", []
    ),
    "ScreeningService.agree": lambda desk, who: screening_service(desk).agree(who, "s", "a"),
    "ScreeningService.begin_further": lambda desk, who: screening_service(desk).begin_further(
        who, "s", 1
    ),
    "ScreeningService.search_further": lambda desk, who: screening_service(desk).search_further(
        who, "s"
    ),
}
JOB_CALLS: dict[str, Callable[[ScreeningJobs, Actor], object]] = {
    "ScreeningJobs.screen": lambda jobs, who: jobs.screen(who, "Does it work?", ("corpus:c",)),
    "ScreeningJobs.screen_again": lambda jobs, who: jobs.screen_again(who, "s", {}),
    "ScreeningJobs.resume_screening": lambda jobs, who: jobs.resume_screening(who, "s"),
    "ScreeningJobs.search_further": lambda jobs, who: jobs.search_further(who, "s", 1),
}
WITHOUT_PERMISSION = {
    "ScreeningService.drifts",
    "ScreeningService.memory",
    "ScreeningService.open",
    "ScreeningService.plan_again",
    "ScreeningService.sources",
    "ScreeningService.thresholds",
}


def ask_jobs(jobs: Jobs) -> list[Callable[[Actor], object]]:
    """Return the use cases of screening that start a job, each as a function of the actor."""
    screenings = ScreeningJobs(jobs)
    return [lambda who, call=call: call(screenings, who) for call in JOB_CALLS.values()]
