"""Many runs, half of them decided, and others at work meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from masis.errors import Removed
from masis.schema.retention import RetentionRule
from masis.store import Store
from masis.store.retention import removal
from tests.store.factories import SETTINGS, a_case, a_decision, a_run, accepted, an_event, an_iteration

pytestmark = pytest.mark.slow

RULE = RetentionRule(cutoff="2026-02-01T00:00:00.000Z", days=30)
TEXT = " ".join(
    f"In the year {number} the bridge over the river {number * 7919 % 1009} was opened." for number in range(30)
)


def fill(store: Store, runs: int) -> None:
    """Old runs in turn decided by a person and accepted by policy, every one with two iterations and six events."""
    for start in range(0, runs, 200):
        with store.transaction():
            for number in range(start, min(start + 200, runs)):
                case = a_case(f"case-{number}")
                store.cases.add(case)
                its = (an_iteration(1, f"{TEXT} {number} [1]."), an_iteration(2, f"{TEXT} {number}, better [1]."))
                run = a_run(case, f"run-{number}", iterations=its, needs_review=False, review_reasons=())
                store.runs.start(
                    run.id, case_id=case.id, case_digest=case.digest(), models=run.models, settings=SETTINGS
                )
                store.runs.append_events(an_event(case, run.id, seq=seq) for seq in range(1, 7))
                store.runs.finish(run)
                store.decisions.append(accepted(run) if number % 2 else a_decision(case, run.id))


@pytest.mark.spec("REQ-CRITIC-COMP-002")
@pytest.mark.soak(smoke=300, full=10_000)
def test_of_runs_half_of_which_are_decided_the_other_half_goes_and_the_file_shrinks(path: Path, rounds: int) -> None:
    runs = rounds
    with Store.open(path) as store:
        fill(store, runs)
        head = store.decisions.head()
        undecided = {f"run-{number}" for number in range(1, runs, 2)}
        plan = store.retention.plan(RULE)
        assert {each.id for each in plan.goes} == undecided
        assert plan.kept == {"decided": runs // 2}
        store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        done = store.retention.remove(RULE, by="Ada", how="command")
        shrunk = store.shrink()
        assert done is not None
        assert {each.id for each in store.purges.removals(done.seq)} == undecided
        assert (done.runs, done.parts, done.bytes) == (runs // 2, plan.parts, plan.bytes)
        for number in (0, 1, runs - 2, runs - 1):
            if number % 2:
                with pytest.raises(Removed):
                    store.runs.get(f"run-{number}")
            else:
                assert len(store.runs.get(f"run-{number}").iterations) == 2
        check = store.check()
        assert check.ok, check.problems
        assert (check.log.length, check.log.head, check.log.intact) == (*head, True)
        assert (check.counts["runs"], check.counts["iterations"], check.counts["events"]) == (
            runs,
            runs,
            runs // 2 * 6,
        )
        assert store.executions.page(1, 1).total == runs
        assert store.cases.facets().states == {"accepted": runs // 2, "approved": runs // 2}
    assert shrunk.after < shrunk.before * 0.8  # 0.784 at 300 runs, 0.756 at 600: log entries and executions stay
    assert path.stat().st_size == shrunk.after


EACH = 40


def work(path: Path, name: str) -> None:
    """Audit old cases, and let people decide on every second run a moment later."""
    with Store.open(path) as store:
        for number in range(EACH):
            case = a_case(f"{name}-{number}")
            store.cases.add(case)
            run = a_run(case, f"run-{case.id}", needs_review=False, review_reasons=())
            store.runs.start(run.id, case_id=case.id, case_digest=case.digest(), models={}, settings=SETTINGS)
            store.runs.append_event(an_event(case, run.id))
            store.runs.save_iteration(run.id, an_iteration(1))
            with store.transaction():
                store.runs.finish(run)
                store.decisions.append(a_decision(case, run.id) if number % 2 else accepted(run))


def remove(path: Path) -> None:
    with Store.open(path) as store:
        for _ in range(60):
            store.retention.remove(RULE, by="Ada", how="command")
            store.shrink()


def test_what_is_decided_between_the_look_and_the_removal_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 1)
    with Store.open(path) as store:
        fill(store, 6)

        def decide(done: int) -> None:
            if done == 1:
                store.decisions.append(a_decision(a_case("case-3"), "run-3", verdict="reject", reason="no"))

        made = store.retention.remove(RULE, by="Ada", how="command", on_batch=decide)
        assert made is not None
        assert [each.id for each in store.purges.removals(made.seq)] == ["run-1", "run-5"]
        assert store.runs.get("run-3").final_answer


def test_between_two_batches_the_lock_is_left_alone_for_half_as_long_as_it_was_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH", 10)
    breaths: list[float] = []
    with Store.open(path) as store:
        fill(store, 60)
        monkeypatch.setattr("masis.store.retention.removal.time.sleep", breaths.append)
        begun = time.monotonic()
        assert store.retention.remove(RULE, by="Ada", how="command") is not None
        took = time.monotonic() - begun
    assert len(breaths) == 3
    assert 0 < sum(breaths) <= took * removal.BREATH


def test_a_purge_waits_for_its_turn_and_others_get_theirs_between_two_batches(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "BATCH", 10)
    with Store.open(path) as store:
        fill(store, 60)
        entered = threading.Event()

        def write_meanwhile() -> None:
            with store.transaction():
                entered.set()
                store.cases.add(a_case("meanwhile"))

        def on_batch(done: int) -> None:
            if done == 10:
                thread = threading.Thread(target=write_meanwhile)
                thread.start()
                thread.join(10)
                assert entered.is_set()

        assert store.retention.remove(RULE, by="Ada", how="command", on_batch=on_batch)
        assert store.cases.get("meanwhile")
