"""Audits in worker processes: found again, cancelled, cut short and taken up, one after the other in a batch."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from masis.errors import UnknownRecord
from masis.schema.case import Case
from masis.screening.demo import CORPUS
from masis.services import Workbench, demo_cases
from masis.settings import Settings
from masis.ui.jobs.audit_jobs import AuditJobs
from masis.ui.jobs.job_queue import JobQueue
from masis.ui.jobs.screening_jobs import ScreeningJobs
from tests.reviewing import ADA

pytestmark = pytest.mark.slow

PATIENCE_S = 100.0


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def long_case(chunks: int = 600, sentences: int = 249) -> Case:
    """A case whose audit takes seconds: many chunks, and an answer that names many of them."""
    evidence = [
        {
            "id": str(n),
            "text": f"Station {n} of the line was opened in {1800 + n % 200} and has {n} platforms.",
        }
        for n in range(1, chunks + 1)
    ]
    told = (
        f"Station {n} was opened in {1801 + n % 200} and has {n + 1} platforms [{n}]." for n in range(1, sentences + 1)
    )
    return Case.model_validate(
        {"id": "long", "query": "When were the stations opened?", "answer": " ".join(told), "evidence": evidence}
    )


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench.open(tmp_path / "jobs.db")
    workbench.cases.add(ADA, [case for case, _ in zip(demo_cases(), range(6), strict=False)])
    yield workbench
    workbench.store.close()


@pytest.fixture
def queue(workbench: Workbench) -> Iterator[JobQueue]:
    queue = JobQueue(workbench)
    yield queue
    queue.close()


@pytest.fixture
def jobs(queue: JobQueue) -> AuditJobs:
    return AuditJobs(queue)


def first_case(workbench: Workbench) -> str:
    return next(iter(workbench.store.cases.iterate())).id


def begun(workbench: Workbench, run_id: str) -> bool:
    try:
        return len(workbench.store.runs.events(run_id)) > 1
    except UnknownRecord:
        return False


def test_an_audit_runs_in_a_process_of_its_own_under_the_id_named_at_the_start(
    workbench: Workbench, jobs: AuditJobs
) -> None:
    case_id = first_case(workbench)
    run_id = jobs.start(ADA, case_id)
    assert jobs.under_way(case_id)
    until(lambda: not jobs.under_way(case_id), "the audit")
    assert jobs.failure(case_id) is None
    assert workbench.store.runs.get(run_id).case_id == case_id
    assert workbench.store.runs.events(run_id)[-1].kind == "run_finished"


def test_starting_twice_is_one_audit(workbench: Workbench, jobs: AuditJobs) -> None:
    case_id = first_case(workbench)
    assert jobs.start(ADA, case_id) == jobs.start(ADA, case_id)
    until(lambda: not jobs.under_way(case_id), "the audit")
    assert len(workbench.store.runs.for_case(case_id)) == 1


def test_settings_reach_the_worker(workbench: Workbench, jobs: AuditJobs) -> None:
    case_id = first_case(workbench)
    run_id = jobs.start(ADA, case_id, Settings(max_iterations=1, strictness="strict"))
    until(lambda: not jobs.under_way(case_id), "the audit")
    assert workbench.store.runs.get(run_id).settings["strictness"] == "strict"


def test_an_unknown_case_is_said_to_be_unknown(jobs: AuditJobs) -> None:
    with pytest.raises(UnknownRecord):
        jobs.start(ADA, "nowhere")


def test_what_the_worker_cannot_do_is_reported(workbench: Workbench, jobs: AuditJobs) -> None:
    case_id = first_case(workbench)
    jobs.start(ADA, case_id, Settings(critic="no-such-model"))
    until(lambda: not jobs.under_way(case_id), "the failure")
    assert "no-such-model" in (jobs.failure(case_id) or "")
    jobs.start(ADA, case_id)
    until(lambda: not jobs.under_way(case_id), "the audit")
    assert jobs.failure(case_id) is None


def test_a_cancelled_audit_ends_between_two_steps(workbench: Workbench, jobs: AuditJobs) -> None:
    workbench.cases.add(ADA, [long_case()])
    run_id = jobs.start(ADA, "long")
    until(lambda: begun(workbench, run_id), "the first step")
    jobs.cancel(ADA, "long")
    until(lambda: not jobs.under_way("long"), "the end")
    assert workbench.store.runs.get(run_id).termination_reason == "cancelled"


def test_an_audit_cancelled_before_its_worker_is_up_ends_too(workbench: Workbench, jobs: AuditJobs) -> None:
    workbench.cases.add(ADA, [long_case()])
    run_id = jobs.start(ADA, "long")
    jobs.cancel(ADA, "long")
    until(lambda: not jobs.under_way("long"), "the end")
    known = {run.id: run.termination for run in workbench.store.runs.for_case("long")}
    assert known in ({}, {run_id: "cancelled"})


def test_a_killed_worker_leaves_an_interrupted_run_that_can_be_taken_up(
    workbench: Workbench, queue: JobQueue, jobs: AuditJobs
) -> None:
    workbench.cases.add(ADA, [long_case(200, 80)])
    run_id = jobs.start(ADA, "long")
    until(lambda: begun(workbench, run_id), "the first step")
    for worker in queue._workers:
        os.kill(worker.pid, signal.SIGKILL)
    until(lambda: not jobs.under_way("long"), "the failure")
    assert workbench.store.runs.summary(run_id).state == "interrupted"
    assert "resume" in (jobs.failure("long") or "")
    assert jobs.resume(ADA, run_id) == run_id
    until(lambda: not jobs.under_way("long"), "the second attempt")
    assert workbench.store.runs.summary(run_id).state == "finished"
    assert jobs.failure("long") is None


def test_closing_interrupts_what_is_under_way(workbench: Workbench) -> None:
    queue = JobQueue(workbench)
    workbench.cases.add(ADA, [long_case()])
    run_id = AuditJobs(queue).start(ADA, "long")
    until(lambda: begun(workbench, run_id), "the first step")
    queue.close()
    assert workbench.store.runs.summary(run_id).state == "interrupted"


def test_all_that_was_not_audited_is_audited_and_counted(workbench: Workbench, jobs: AuditJobs) -> None:
    done = first_case(workbench)
    jobs.start(ADA, done)
    until(lambda: not jobs.under_way(done), "the first audit")
    assert jobs.batch() is None
    jobs.audit_all_new(ADA)
    until(lambda: not (batch := jobs.batch()) or not batch.under_way, "the batch")
    batch = jobs.batch()
    assert batch is not None
    assert (batch.total, batch.done, batch.failed) == (5, 5, 0)
    assert "new" not in {state for state, count in workbench.store.cases.facets().states.items() if count}
    assert len(workbench.store.runs.for_case(done)) == 1


def test_a_batch_stops_when_asked_to_and_leaves_the_rest(workbench: Workbench) -> None:
    queue = JobQueue(workbench, at_once=1)
    jobs = AuditJobs(queue)
    try:
        workbench.cases.add(ADA, [long_case().model_copy(update={"id": f"long-{n}"}) for n in range(3)])
        jobs.audit_all_new(ADA)
        jobs.cancel_batch(ADA)
        until(lambda: not (batch := jobs.batch()) or not batch.under_way, "the batch")
        assert workbench.store.cases.facets().states["new"] >= 3
    finally:
        queue.close()


def test_a_batch_with_nothing_to_do_is_over_at_once(workbench: Workbench, jobs: AuditJobs) -> None:
    jobs.audit_all_new(ADA)
    until(lambda: not (batch := jobs.batch()) or not batch.under_way, "the batch")
    jobs.audit_all_new(ADA)
    until(lambda: not (batch := jobs.batch()) or not batch.under_way, "the second batch")
    batch = jobs.batch()
    assert batch is not None
    assert batch.done == 0


def test_a_screening_that_waits_holds_up_no_audit_and_both_use_the_same_workers(workbench: Workbench) -> None:
    workbench.corpora.add_demo(ADA)
    queue = JobQueue(workbench, at_once=1)
    audits, screenings = AuditJobs(queue), ScreeningJobs(queue)
    try:
        asked = [
            screenings.start(ADA, "Does velotarine lower blood pressure?", (f"corpus:{CORPUS}",)) for _ in range(2)
        ]
        case_id = first_case(workbench)
        run_id = audits.start(ADA, case_id)
        assert audits.ahead(case_id) in (0, None)
        until(lambda: not audits.under_way(case_id), "the audit")
        until(lambda: not any(screenings.job(each) for each in asked), "the screenings")
        assert workbench.store.runs.summary(run_id).state == "finished"
        assert [workbench.store.screenings.summary(each).state for each in asked] == ["finished", "finished"]
        assert len(queue._workers) <= 2
    finally:
        queue.close()


def test_a_screening_under_way_stops_when_asked_to(workbench: Workbench, queue: JobQueue) -> None:
    workbench.corpora.add_demo(ADA)
    screenings = ScreeningJobs(queue)
    screening_id = screenings.start(ADA, "Does velotarine lower blood pressure?", (f"corpus:{CORPUS}",))
    screenings.cancel(ADA, screening_id)
    until(lambda: screenings.job(screening_id) is None, "the end")
    if screenings.failure(screening_id) is None:
        assert workbench.store.screenings.get(screening_id).outcome == "cancelled"
