"""Screenings as jobs of a server: queued, cancelled, resumed, and run by a worker process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from masis.errors import SettingsError, UnknownRecord
from masis.schema.screening import Abstract
from masis.screening.demo import CORPUS
from masis.screening.services import corpus_service, screening_service
from masis.screening.services.jobs import ScreeningJobs
from masis.screening.store import ScreeningStore
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.jobs import Jobs, WorkerProcess
from masis.services.model_names import assert_listed
from masis.settings import Settings
from tests.reviewing import ADA
from tests.services.test_jobs import Pool, first_case
from tests.services.test_model_names import person
from tests.waiting import until

ASKED = "Does velotarine lower blood pressure?"
SOURCE = f"corpus:{CORPUS}"
ASPIRIN = [Abstract(id="1", title="Aspirin", text="Aspirin reduced headache in a trial.")]


def test_a_cancelled_queued_screening_never_starts_and_its_page_says_so(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    corpus_service(workbench).add_demo(ADA)
    pool.hold()
    run = jobs.audit(ADA, first_case(workbench))
    screenings = [ScreeningJobs(jobs).screen(ADA, ASKED, (SOURCE,)) for _ in range(3)]
    until(lambda: len(pool.begun) == 2, "both kinds")
    assert [jobs.count_ahead(job) for job in (run, *screenings)] == [None, None, 0, 1]
    jobs.cancel(ADA, "screening", screenings[1])
    assert jobs.get(screenings[1]) is None
    assert jobs.count_ahead(screenings[2]) == 0
    assert "before it started" in (jobs.failure("screening", screenings[1]) or "")
    pool.let_go()
    until(lambda: not any(map(jobs.get, screenings)), "the screenings")
    stored = ScreeningStore(workbench.store).screenings
    assert [stored.summary(job).state for job in screenings[::2]] == ["finished"] * 2
    with pytest.raises(UnknownRecord):
        stored.summary(screenings[1])


def test_a_screening_of_another_process_can_be_stopped(workbench: Workbench, jobs: Jobs) -> None:
    ScreeningStore(workbench.store).screenings.start(
        "elsewhere", question=ASKED, sources=(SOURCE,), settings={}
    )
    assert not jobs.is_cancelling("screening", "elsewhere")
    jobs.cancel(ADA, "screening", "elsewhere")
    assert jobs.is_cancelling("screening", "elsewhere")


def test_a_resumed_screening_keeps_its_settings(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    begun = Settings(screening_max_rounds=2).of_screening()
    ScreeningStore(workbench.store).screenings.start(
        "interrupted", question=ASKED, sources=(SOURCE,), settings=begun
    )
    now = Settings(screening_max_rounds=3, screening_pubmed_email="ada@example.org")
    workbench.use_settings(ADA, now)
    pool.hold()
    job = jobs.get(ScreeningJobs(jobs).resume_screening(ADA, "interrupted"))
    assert job is not None
    assert (job.settings.screening_max_rounds, job.settings.screening_pubmed_email) == (
        2,
        "ada@example.org",
    )


def test_every_start_of_a_screening_uses_the_settings_that_the_workbench_has_now(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    corpus_service(workbench).add_demo(ADA)
    screening = screening_service(workbench).screen(ADA, ASKED, [SOURCE]).id
    starts: tuple[Callable[[], str], ...] = (
        lambda: ScreeningJobs(jobs).screen(ADA, ASKED, (SOURCE,)),
        lambda: ScreeningJobs(jobs).search_further(ADA, screening, 1),
        lambda: ScreeningJobs(jobs).screen_again(ADA, screening, {}),
    )
    for number, start in enumerate(starts, start=1):
        # neither setting is stored with a screening
        now = Settings(local_threads=number + 1, screening_pubmed_email=f"ada{number}@example.org")
        workbench.use_settings(ADA, now)
        pool.settings.clear()
        job = start()
        until(lambda job=job: jobs.get(job) is None, "the job")
        [used] = pool.settings
        assert used.local_threads == now.local_threads, number
        assert used.screening_pubmed_email == now.screening_pubmed_email, number


@pytest.mark.slow
def test_a_worker_process_runs_a_screening(workbench: Workbench) -> None:
    corpus_service(workbench).add_demo(ADA)
    jobs = Jobs(workbench, WorkerProcess, at_once=1)
    try:
        screening = ScreeningJobs(jobs).screen(ADA, ASKED, (SOURCE,))
        until(lambda: jobs.get(screening) is None, "the screening")
        assert jobs.failure("screening", screening) is None
        assert screening_service(workbench).summary(screening).state == "finished"
    finally:
        jobs.close()


@pytest.mark.parametrize("names", ["replay:{}", "offline, replay:{}", "local:{}"])
def test_a_grader_of_abstracts_opens_no_file_that_isn_t_configured(
    tmp_path: Path, names: str
) -> None:
    there, missing = tmp_path / "replies.jsonl", tmp_path / "missing0.jsonl"
    there.write_text("{}")
    workbench = Workbench.open(tmp_path / "desk.db", access=SIGN_IN_REQUIRED)
    corpus_service(workbench).add(person("reviewer"), "headache", ASPIRIN, source="test")
    jobs, refusals = Jobs(workbench), set[str]()
    for path in (there, missing, tmp_path):
        named = Settings(screening_graders=names.format(path))
        with pytest.raises(SettingsError, match="isn't a model of this workbench") as refused:
            ScreeningJobs(jobs).screen(
                person("reviewer"), "Does aspirin help?", ("corpus:headache",), named
            )
        refusals.add(str(refused.value).replace(str(path), "PATH"))
    assert len(refusals) == 1
    jobs.close()
    workbench.close()
    listed = Settings(screening_graders=names.format(there))
    assert_listed(SIGN_IN_REQUIRED, person("reviewer"), listed, listed)
