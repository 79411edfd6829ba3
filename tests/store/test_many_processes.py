"""Several processes on one database: nothing is lost, and what a killed one had done stays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from masis.schema.case import Case
from masis.store import Store
from tests.store.factories import SETTINGS, a_case, a_decision, a_run, accepted, an_event, an_iteration, an_undo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EACH = 40


def work(path: Path, name: str) -> None:
    """Audit cases of its own, and decide a case that both decide, as fast as it goes."""
    shared = a_case("shared")
    with Store.open(path) as store:
        for number in range(EACH):
            case = a_case(f"{name}-{number}")
            audit(store, case, f"run-{case.id}")
            entry = store.decisions.append(a_decision(shared, None, reviewer=name, note=str(number)))
            if number % 5 == 0 and store.decisions.current("shared") == entry:
                undo_if_it_still_stands(store, shared, entry.id)


def undo_if_it_still_stands(store: Store, case: Case, entry_id: str) -> None:
    with store.transaction():
        current = store.decisions.current(case.id)
        if current is not None and current.id == entry_id:
            store.decisions.append(an_undo(case, entry_id, token=f"undo-{entry_id}"))


def audit(store: Store, case: Case, run_id: str) -> None:
    store.cases.add(case)
    store.runs.start(run_id, case_id=case.id, case_digest=case.digest(), models={}, settings=SETTINGS)
    for number in (1, 2):
        store.runs.append_event(an_event(case, run_id, seq=number))
        store.runs.save_iteration(run_id, an_iteration(number))
    run = a_run(case, run_id, iterations=(an_iteration(1), an_iteration(2)), needs_review=False, review_reasons=())
    with store.transaction():
        store.runs.finish(run)
        store.decisions.append(accepted(run))


def test_two_processes_auditing_and_deciding_at_once_lose_nothing(path: Path) -> None:
    with Store.open(path) as store:
        store.cases.add(a_case("shared"))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(path, name)) for name in ("Ada", "Grace")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    with Store.open(path) as store:
        check = store.check()
        assert check.ok, check.problems
        assert check.counts["cases"] == check.counts["runs"] + 1 == 2 * EACH + 1
        assert check.counts["events"] == check.counts["iterations"] == 4 * EACH
        entries = [entry.decision for entry in store.decisions.iterate()]
        for name in ("Ada", "Grace"):
            notes = [each.note for each in entries if each and each.reviewer == name and each.kind == "decision"]
            assert notes == [str(number) for number in range(EACH)]
        assert sum(1 for each in entries if each and each.kind == "policy_accept") == 2 * EACH
        assert store.cases.facets().states["accepted"] == 2 * EACH


ADD = "import sys; from masis.store import Store; from tests.store.factories import a_case\n"
ADD += "with Store.open(sys.argv[1]) as store: store.cases.add(a_case(sys.argv[2]))"


def test_opening_a_database_twice_keeps_its_locks_against_other_processes(path: Path) -> None:
    # A lock goes with the first handle a process closes on the file, whoever opened it: without its locks this process
    # reads on in a log that the other one has deleted, and writes into it.
    with Store.open(path) as store:
        store.cases.add(a_case("ours"))
        with Store.open(path) as again:
            again.cases.count()
        subprocess.run([sys.executable, "-c", ADD, str(path), "theirs"], check=True, cwd=ROOT)
        assert store.cases.count() == 2
        store.cases.add(a_case("ours too"))
    with Store.open(path) as store:
        assert store.cases.count() == 3
        assert store.check().ok


def test_threads_sharing_one_store_lose_nothing(store: Store) -> None:
    store.cases.add(a_case())
    threads = [
        threading.Thread(
            target=lambda name=name: [
                store.decisions.append(a_decision(a_case(), None, reviewer=name)) for _ in range(EACH)
            ]
        )
        for name in "ABCD"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check = store.decisions.verify()
    assert (check.length, check.intact) == (4 * EACH, True)


def test_many_submits_of_one_form_at_once_make_one_decision(store: Store) -> None:
    store.cases.add(a_case())
    barrier, ids = threading.Barrier(6), set[str]()

    def submit() -> None:
        barrier.wait()
        ids.add(store.decisions.append(a_decision(a_case(), None, token="form-1")).id)

    threads = [threading.Thread(target=submit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ids), store.decisions.head().length) == (1, 1)


KILLED_AT_WORK = """
import sys, time
from pathlib import Path
from masis.store import Store
from tests.store.factories import SETTINGS, a_case, an_event, an_iteration
store = Store.open(Path(sys.argv[1]))
case = a_case()
store.cases.add(case)
store.runs.start("run-1", case_id=case.id, case_digest=case.digest(), models={}, settings=SETTINGS)
store.runs.append_event(an_event(case))
store.runs.save_iteration("run-1", an_iteration(1))
with store.transaction():
    store.runs.save_iteration("run-1", an_iteration(2))
    print("in the middle", flush=True)
    time.sleep(60)
"""


def test_a_process_killed_in_the_middle_of_a_run_leaves_a_database_that_opens_and_a_run_to_resume(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_WORK, str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    with Store.open(path) as watching:
        assert watching.runs.in_state("running") == ("run-1",)
        assert watching.cases.summary("case-1").state == "running"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Store.open(path) as store:
        assert store.check().ok
        assert store.runs.in_state("interrupted") == ("run-1",)
        assert store.runs.summary("run-1").why
        assert store.cases.summary("case-1").state == "interrupted"
        progress = store.runs.resume("run-1")
        assert progress.iterations == (an_iteration(1),)
        assert progress.last_event == 1
        store.runs.save_iteration("run-1", an_iteration(2))
        store.runs.finish(a_run(a_case(), iterations=(an_iteration(1), an_iteration(2))))
        assert store.cases.summary("case-1").state == "needs_review"


def test_a_reader_with_plain_sqlite_sees_what_was_committed(store: Store, path: Path) -> None:
    store.cases.add(a_case())
    store.decisions.append(a_decision(a_case(), None, verdict="escalate"))
    raw = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert raw.execute("SELECT id, state FROM cases").fetchall() == [("case-1", "escalated")]
    raw.close()
