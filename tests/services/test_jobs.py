"""Jobs in the background: queued, cancelled, resumed, and shared by several servers on one
database.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from masis.errors import (
    CaseHeld,
    InputError,
    MasisError,
    RecordDamaged,
    StaleVersion,
    UnknownRecord,
)
from masis.schema.case import Case
from masis.schema.providers import Price
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Actor, Workbench, demo_cases
from masis.services.arrivals.ingestion import audit_settings
from masis.services.jobs import Jobs, QueuedJob, WorkerProcess, run_job
from masis.services.records import CaseFilter
from masis.settings import Settings
from tests.cases import case_of
from tests.reviewing import ADA
from tests.serving_models import ModelServer
from tests.store.factories import a_case, an_audited_case
from tests.waiting import run_at_once, until


class Pool:
    """Workers on the queue's own threads; while ``held`` a job waits before its first step."""

    def __init__(self, database: Path) -> None:
        self.workbench = Workbench.open(database)
        self.held = threading.Event()
        self.begun: list[str] = []
        self.settings: list[Settings] = []
        self.cancelled: set[str] = set()

    def hold(self) -> None:
        self.held.clear()

    def let_go(self) -> None:
        self.held.set()

    def __call__(self, database: Path) -> Pool:
        assert database == self.workbench.database
        return self

    def run(self, job: QueuedJob) -> str | None:
        self.begun.append(job.subject)
        self.settings.append(job.settings)
        while not self.held.wait(0.01) and job.id not in self.cancelled:
            pass
        try:
            run_job(self.workbench, job, lambda: job.id in self.cancelled)
        except MasisError as error:
            return str(error)
        return None

    def cancel(self, job: QueuedJob) -> None:
        self.cancelled.add(job.id)

    def close(self) -> None:
        self.let_go()


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench.open(tmp_path / "jobs.db")
    workbench.cases.add(ADA, [case for case, _ in zip(demo_cases(), range(6), strict=False)])
    yield workbench
    workbench.close()


@pytest.fixture
def pool(workbench: Workbench) -> Iterator[Pool]:
    pool = Pool(workbench.database)
    pool.let_go()
    yield pool
    pool.workbench.close()


@pytest.fixture
def jobs(workbench: Workbench, pool: Pool) -> Iterator[Jobs]:
    jobs = Jobs(workbench, pool, at_once=1)
    yield jobs
    jobs.close()


def first_case(workbench: Workbench) -> str:
    return next(iter(workbench.store.cases.iterate())).id


def over(jobs: Jobs, *case_ids: str) -> None:
    until(lambda: not any(jobs.is_auditing(case_id) for case_id in case_ids), "the audits")


def batch_over(jobs: Jobs) -> None:
    until(lambda: (batch := jobs.batch()) is not None and not batch.is_running, "the batch")


def test_an_audit_runs_once_under_its_announced_id(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    case_id = first_case(workbench)
    pool.hold()
    run_id = jobs.audit(ADA, case_id, Settings(max_iterations=1, strictness="strict"))
    assert jobs.audit(ADA, case_id) == run_id
    assert jobs.is_auditing(case_id)
    assert jobs.get(run_id) is not None
    pool.let_go()
    over(jobs, case_id)
    assert jobs.failure("audit", case_id) is None
    assert [run.id for run in workbench.runs.for_case(case_id)] == [run_id]
    assert workbench.runs.get(run_id).settings["strictness"] == "strict"
    assert workbench.runs.events(run_id)[-1].kind == "run_finished"


def test_an_unknown_case_is_reported(jobs: Jobs) -> None:
    with pytest.raises(UnknownRecord):
        jobs.audit(ADA, "nowhere")


def test_a_job_failure_is_reported_until_the_next_attempt(workbench: Workbench, jobs: Jobs) -> None:
    case_id = first_case(workbench)
    jobs.audit(ADA, case_id, Settings(critic="no-such-model"))
    over(jobs, case_id)
    assert "no-such-model" in (jobs.failure("audit", case_id) or "")
    jobs.audit(ADA, case_id)
    over(jobs, case_id)
    assert jobs.failure("audit", case_id) is None


def test_a_cancelled_audit_ends_before_its_next_step(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    case_id = first_case(workbench)
    pool.hold()
    run_id = jobs.audit(ADA, case_id)
    until(lambda: pool.begun, "the worker")
    assert not jobs.is_cancelling("audit", run_id)
    jobs.cancel(ADA, "audit", case_id)
    assert jobs.is_cancelling("audit", run_id)
    over(jobs, case_id)
    assert workbench.runs.get(run_id).termination_reason == "cancelled"


def test_a_cancelled_queued_job_never_starts(workbench: Workbench, jobs: Jobs, pool: Pool) -> None:
    pool.hold()
    ids = [case.id for case in workbench.store.cases.iterate()]
    runs = [jobs.audit(ADA, case_id) for case_id in ids[:3]]
    until(lambda: pool.begun, "the worker")
    assert [jobs.count_ahead(run) for run in runs] == [None, 0, 1]
    jobs.cancel(ADA, "audit", ids[1])
    assert jobs.get(runs[1]) is None
    assert jobs.count_ahead(runs[2]) == 0
    assert jobs.failure("audit", ids[1]) is None
    pool.let_go()
    over(jobs, *ids[:3])
    assert not workbench.runs.for_case(ids[1])


def test_an_audit_of_another_process_can_be_stopped(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    case = workbench.store.cases.get(first_case(workbench))
    workbench.store.runs.start(
        "elsewhere",
        case_id=case.id,
        case_digest=case.digest(),
        models={},
        settings=Settings().of_audit(),
    )
    assert jobs.audit(ADA, case.id) == "elsewhere"
    assert not jobs.is_auditing(case.id)
    jobs.cancel(ADA, "audit", case.id)
    assert jobs.is_cancelling("audit", "elsewhere")


def test_every_audit_runs_with_the_settings_that_the_workbench_uses_now(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    case_id = first_case(workbench)
    starts: tuple[Callable[[], object], ...] = (
        lambda: jobs.audit(ADA, case_id),
        lambda: jobs.audit_all_new(ADA),
    )
    for number, start in enumerate(starts, start=1):
        # neither setting is stored with a run or a screening
        now = Settings(local_threads=number + 1, screening_pubmed_email=f"ada{number}@example.org")
        workbench.use_settings(ADA, now)
        pool.settings.clear()
        start()
        until(lambda: pool.settings, "the job")
        over(jobs, case_id)
        if jobs.batch() is not None:
            batch_over(jobs)
        for used in pool.settings:
            assert used.local_threads == now.local_threads, number
            assert used.screening_pubmed_email == now.screening_pubmed_email, number


def test_every_service_of_a_worker_process_has_the_settings_of_the_job(
    workbench: Workbench,
) -> None:
    case_id = first_case(workbench)
    with closing(WorkerProcess(workbench.database, "tests.services.settings_worker")) as worker:
        for threads in (2, 3):
            given = Settings(local_threads=threads, screening_max_rounds=1)
            reply = worker.run(QueuedJob("audit", f"run-{threads}", case_id, given, ADA))
            of_services = [Settings.model_validate(record) for record in json.loads(reply or "")]
            assert len(of_services) > 3
            assert set(map(str, of_services)) == {str(given)}


def test_jobs_started_by_people_precede_the_batch(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    ids = [case.id for case in workbench.store.cases.iterate()]
    pool.hold()
    jobs.audit_all_new(ADA)
    until(lambda: pool.begun, "the first of the batch")
    jobs.audit(ADA, ids[-1])
    pool.let_go()
    batch_over(jobs)
    over(jobs, *ids)
    assert pool.begun[1] == ids[-1]
    assert sorted(pool.begun) == sorted(ids)


def test_all_unaudited_cases_are_audited_and_counted(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    done = first_case(workbench)
    jobs.audit(ADA, done)
    over(jobs, done)
    assert jobs.batch() is None
    jobs.audit_all_new(ADA)
    batch_over(jobs)
    batch = jobs.batch()
    assert (batch.total, batch.done, batch.failed, batch.limit_reached) == (5, 5, 0, False)
    audited = [workbench.cases.summary(case_id) for case_id in pool.begun[1:]]
    assert batch.standings == Counter(case.standing for case in audited)
    assert batch.minor == sum(case.minor for case in audited)
    assert "new" not in {state for state, count in workbench.cases.facets().states.items() if count}
    assert len(pool.begun) == 6
    jobs.audit_all_new(ADA)
    batch_over(jobs)
    batch = jobs.batch()
    assert batch.done == 0


@pytest.mark.parametrize("error", [RecordDamaged("its record is damaged."), ValueError("not JSON")])
def test_an_unreadable_case_counts_as_failed_and_others_are_audited(
    workbench: Workbench, jobs: Jobs, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    ids = [case.id for case in workbench.store.cases.iterate()]
    bad, resumable = ids[1], workbench.audits.resumable

    def read(case_id: str, settings: Settings) -> str | None:
        if case_id == bad:
            raise error
        return resumable(case_id, settings)

    monkeypatch.setattr(workbench.audits, "resumable", read)
    jobs.audit_all_new(ADA)
    batch_over(jobs)
    batch = jobs.batch()
    assert batch is not None
    assert (batch.done, batch.failed, batch.total) == (len(ids), 1, len(ids))
    assert str(error) in (jobs.failure("audit", bad) or "")
    assert [
        case_id for case_id in ids if workbench.audits.is_needed(workbench.store.cases.get(case_id))
    ] == [bad]


def test_job_status_never_waits_for_the_database(
    workbench: Workbench, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, bool] = {}

    def watch(owner: object, name: str) -> None:
        read = getattr(owner, name)

        def watch_read(*args: Any, **keys: Any) -> Any:
            page = threading.Thread(target=jobs.batch)
            page.start()
            page.join(5)
            asked[name] = asked.get(name, True) and not page.is_alive()
            return read(*args, **keys)

        monkeypatch.setattr(owner, name, watch_read)

    watch(workbench.audits, "resumable")
    watch(workbench.cases, "find")
    watch(workbench.cases, "neighbor")
    watch(workbench.cases, "summary")
    jobs.audit_all_new(ADA)
    batch_over(jobs)
    assert asked == dict.fromkeys(("find", "resumable", "summary", "neighbor"), True)


def test_a_stopped_batch_leaves_the_rest_unaudited(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    pool.hold()
    jobs.audit_all_new(ADA)
    until(lambda: pool.begun, "the first of the batch")
    jobs.cancel_batch(ADA)
    batch = jobs.batch()
    assert (batch.stopping, batch.is_running) == (True, True)
    pool.let_go()
    batch_over(jobs)
    assert len(pool.begun) == 1
    assert workbench.cases.facets().states["new"] == 5


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[tuple[Workbench, Pool]]:
    """Six cases, models that cost much, and the workers that audit by them."""
    with ModelServer(issues="always", keep=False) as server:
        settings = Settings.model_validate(
            {
                "providers": {"here": {"kind": "openai", "address": server.address}},
                "prices": {"here:m": Price(input=1000.0, output=1000.0)},
                "max_iterations": 1,
                **dict.fromkeys(
                    ("drafter", "verifier", "critic", "reviser", "evaluator"), "here:m"
                ),
            }
        )
        workbench = Workbench.open(tmp_path / "cost.db", settings)
        workbench.cases.add(ADA, [case for case, _ in zip(demo_cases(), range(6), strict=False)])
        pool = Pool(workbench.database)
        pool.let_go()
        yield workbench, pool
        pool.workbench.close()
        workbench.close()


def cost(workbench: Workbench, pool: Pool) -> float:
    runs = [run for case_id in pool.begun for run in workbench.runs.for_case(case_id)]
    return sum(workbench.runs.get(run.id).usage.cost_usd or 0.0 for run in runs)


def test_a_batch_ends_before_exceeding_its_cost_limit(
    paid: tuple[Workbench, Pool],
) -> None:
    workbench, pool = paid
    with closing(Jobs(workbench, pool)) as jobs:
        with pytest.raises(InputError, match="above 0"):
            jobs.audit_all_new(ADA, max_cost=0)
        jobs.audit_all_new(ADA, max_cost=0.01)
        batch_over(jobs)
        assert not pool.begun
        jobs.audit_all_new(ADA, max_cost=30)
        batch_over(jobs)
        batch = jobs.batch()
        assert batch.limit_reached
        assert batch.total == 6
        assert 0 < batch.done < 6
        assert not batch.failed
        assert batch.done == len(pool.begun)
        assert cost(workbench, pool) <= 30


def test_the_daily_cost_limit_survives_a_restart(
    paid: tuple[Workbench, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench, pool = paid
    settings = audit_settings(
        workbench.settings.with_values({"ingest_model": "settings", "ingest_cost_a_day": 30})
    )
    workbench.store.inbox.record_arrivals(
        [case for case, _ in zip(demo_cases(), range(6), strict=False)], "chatbot"
    )
    with closing(Jobs(workbench, pool)) as jobs:
        jobs.audit_arrived(settings)
        batch_over(jobs)
        first = len(pool.begun)
        assert 0 < first < 6
        assert cost(workbench, pool) <= 30
        jobs.audit_arrived(settings)  # as when more has come
        batch_over(jobs)
    spent = workbench.store.inbox.cost_since("ingestion", "2000-01-01")
    assert spent == pytest.approx(cost(workbench, pool))
    with closing(Jobs(workbench, pool)) as jobs:
        jobs.audit_arrived(settings)
        batch_over(jobs)
        assert cost(workbench, pool) <= 30
        before = len(pool.begun)

        class Tomorrow(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
                return datetime.now(tz) + timedelta(days=1)

        monkeypatch.setattr("masis.services.jobs.datetime", Tomorrow)
        jobs.audit_arrived(settings)
        batch_over(jobs)
        assert len(pool.begun) > before
    unpriced = settings.with_values({"prices": {}})
    with (
        closing(Jobs(workbench, pool)) as jobs,
        pytest.raises(InputError, match="no price is known"),
    ):
        jobs.audit_arrived(unpriced)


def test_received_cases_are_audited_once_in_order(
    workbench: Workbench, jobs: Jobs, pool: Pool
) -> None:
    cases = [case for case, _ in zip(demo_cases(), range(6), strict=False)]
    workbench.store.inbox.record_arrivals([cases[3], cases[1]], "chatbot")
    jobs.audit_arrived(Settings())
    batch_over(jobs)
    workbench.store.inbox.record_arrivals([cases[3], cases[5]], "other")
    jobs.audit_arrived(Settings())
    batch_over(jobs)
    assert Counter(pool.begun) == {cases[3].id: 1, cases[1].id: 1, cases[5].id: 1}
    assert not audit_settings(Settings(ingest_model="off"))


def long_case(chunks: int = 200, sentences: int = 80) -> Case:
    """A case whose audit takes seconds: many chunks, and an answer that names many of them."""
    evidence = {
        str(n): f"Station {n} of the line was opened in {1800 + n % 200} and has {n} platforms."
        for n in range(1, chunks + 1)
    }
    answer = " ".join(
        f"Station {n} was opened in {1801 + n % 200} and has {n + 1} platforms [{n}]."
        for n in range(1, sentences + 1)
    )
    return case_of(answer, evidence, case_id="long", query="When were the stations opened?")


def when_begun(workbench: Workbench, run_id: str, events: int = 2) -> Callable[[], bool]:
    def has_begun() -> bool:
        try:
            return len(workbench.runs.events(run_id)) >= events
        except UnknownRecord:
            return False

    return has_begun


@pytest.mark.slow
def test_worker_processes_are_killed_resumed_cancelled_and_closed(workbench: Workbench) -> None:
    workbench.cases.add(ADA, [long_case(), long_case(600, 249).model_copy(update={"id": "longer"})])
    workers: list[WorkerProcess] = []

    def start(database: Path) -> WorkerProcess:
        workers.append(WorkerProcess(database))
        return workers[-1]

    jobs = Jobs(workbench, start)
    try:
        run_id = jobs.audit(ADA, "long")
        until(when_begun(workbench, run_id), "the first step")
        os.kill(workers[0].pid, signal.SIGKILL)
        over(jobs, "long")
        assert workbench.runs.summary(run_id).state == "interrupted"
        assert "was killed by signal 9. Its finished steps are stored. Resume it." in (
            jobs.failure("audit", "long") or ""
        )
        assert jobs.resume_audit(ADA, run_id) == run_id
        over(jobs, "long")
        assert workbench.runs.summary(run_id).state == "finished"
        assert jobs.failure("audit", "long") is None
        case_id = first_case(workbench)
        jobs.audit(ADA, case_id, Settings(critic="no-such-model"))
        over(jobs, case_id)
        assert "no-such-model" in (jobs.failure("audit", case_id) or "")
        cancelled = jobs.audit(ADA, "longer")
        until(when_begun(workbench, cancelled), "the first step")
        jobs.cancel(ADA, "audit", "longer")
        over(jobs, "longer")
        assert workbench.runs.get(cancelled).termination_reason == "cancelled"
        assert len(workers) <= 3
        closed = jobs.audit(ADA, "longer")
        until(when_begun(workbench, closed), "the first step")
    finally:
        jobs.close()
    assert workbench.runs.summary(closed).state == "interrupted"


# Many reviewers on one database that several server processes share, as behind a proxy with sticky
# sessions

SERVERS = 2
HUMAN_PACE_S = 4.0
"""Mean seconds that a reviewer reads in the full trial: short for a person, which makes the trial
the harder.
"""


def review(
    workbench: Workbench, name: str, pace_s: float, made: list[tuple[str, str]], saw: list[str]
) -> None:
    """Decide cases under a name until none is left; ``saw`` receives decisions of others that were
    shown too early.
    """
    me, draw, reading = Actor(name=name), random.Random(name), threading.Event()
    while (
        lease := workbench.team.claim_next(me, CaseFilter(order="random", seed=draw.randrange(99)))
    ) is not None:
        view = workbench.cases.open_for(me, lease.case_id)
        saw += [
            f"{name}: {entry.id}"
            for entry in view.history
            if entry.decision and entry.decision.reviewer != name
        ]
        reading.wait(pace_s * 2 * draw.random())
        decision = Decision(
            reviewer=name,
            case_id=lease.case_id,
            run_id=view.run.id if view.run else None,
            iteration=1,
            verdict=draw.choice(("approve", "reject")),
            reason="why",
        )
        try:
            workbench.reviews.submit(me, decision, seen_version=view.summary.version)
        except (CaseHeld, StaleVersion):
            continue
        made.append((name, lease.case_id))


def serve(database: str, names: list[str], pace_s: float) -> None:
    """Be one server: a workbench that all its sessions share, a thread for each; prints what was
    decided.
    """
    workbench = Workbench.open(Path(database))
    made: list[tuple[str, str]] = []
    saw: list[str] = []
    problems: list[str] = []

    def session(name: str) -> None:
        try:
            review(workbench, name, pace_s, made, saw)
        except BaseException as error:
            problems.append(f"{name}: {error!r}")
            raise

    threads = [threading.Thread(target=session, args=(name,)) for name in names]
    run_at_once(threads)
    workbench.close()
    sys.stdout.write(json.dumps({"made": made, "saw": saw, "problems": problems}))


@pytest.mark.timeout(900)
@pytest.mark.soak(smoke=6, full=60)
def test_two_server_processes_share_a_queue_without_loss_or_duplication(
    tmp_path: Path, rounds: int
) -> None:
    """As many reviewers as rounds, half of them with each server; two decide each case."""
    path, cases = tmp_path / "shared.db", 2 * rounds if rounds < 60 else 300
    opened = Workbench.open(path)
    for number in range(cases):
        an_audited_case(opened.store, a_case(f"case-{number}"), f"run-{number}")
    opened.team.put_in_force(Actor(name="lead"), QueuePolicy(reviewers=2))
    names = [f"reviewer {number}" for number in range(rounds)]
    pace_s = HUMAN_PACE_S if rounds >= 60 else 0.0
    code = f"from {__name__} import serve; import sys, json; serve(*json.loads(sys.argv[1]))"
    servers = [
        subprocess.Popen(
            [sys.executable, "-c", code, json.dumps([str(path), names[number::SERVERS], pace_s])],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        for number in range(SERVERS)
    ]
    found = [json.loads(server.communicate()[0]) for server in servers]
    assert [report["problems"] for report in found] == [[]] * SERVERS
    assert [report["saw"] for report in found] == [[]] * SERVERS
    made = [tuple(entry) for one in found for entry in one["made"]]
    assert len(set(made)) == len(made)
    assert Counter(case_id for _, case_id in made) == {
        f"case-{number}": 2 for number in range(cases)
    }
    entries = [decision.decision for decision in opened.store.decisions.iterate()]
    in_log = [
        (entry.reviewer, entry.case_id) for entry in entries if entry and entry.kind == "decision"
    ]
    assert sorted(in_log) == sorted(made)
    assert opened.store.check().ok
    assert opened.store.team.leases() == ()
    assert opened.store.team.count_cases("decided") == Counter(name for name, _ in made)
    opened.close()
