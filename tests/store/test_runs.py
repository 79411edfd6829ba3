"""Runs are kept as they go and can be taken up where they stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.errors import StoreError, UnknownRecord
from masis.schema.audit import Draft
from masis.schema.case import Case
from masis.store import CaseFilter, Owner, Store, this_process
from masis.store.core.process_owner import SILENCE_S
from tests.store.factories import JUDGE, SETTINGS, a_case, a_run, an_event, an_iteration

DEAD = Owner(this_process().host, 2**22 + 1, "long ago")


def started(store: Store, case: Case, run_id: str = "run-1", owner: Owner | None = None) -> None:
    store.cases.add(case)
    store.runs.start(run_id, case_id=case.id, case_digest=case.digest(), models={}, settings=SETTINGS, owner=owner)


def test_a_finished_run_comes_back_whole(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    run = a_run(case, iterations=(an_iteration(1), an_iteration(2, "Grey – “no”.", invalid=(), confidence=0.9)))
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    assert store.runs.get("run-1").model_dump_json() == run.model_dump_json()


def test_progress_shows_draft_events_and_each_iteration_as_it_is_finished(store: Store) -> None:
    case = a_case()
    started(store, case)
    store.runs.save_draft("run-1", Draft(answer="A draft [1].", judged_by=JUDGE))
    store.runs.append_event(an_event(case, seq=1))
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.append_event(an_event(case, seq=2, message="later"))
    progress = store.runs.progress("run-1")
    assert progress.state == "running"
    assert progress.draft is not None
    assert progress.draft.answer == "A draft [1]."
    assert progress.iterations == (an_iteration(1),)
    assert progress.last_event == 2
    assert [event.message for event in store.runs.events("run-1")][-1] == "later"
    assert store.cases.summary("case-1").state == "running"


def test_an_event_whose_number_is_taken_gets_the_next_one(store: Store) -> None:
    case = a_case()
    started(store, case)
    kept = [store.runs.append_event(an_event(case, seq=seq)).seq for seq in (1, 2, 1, 7, 7)]
    assert kept == [1, 2, 3, 7, 8]
    assert [event.seq for event in store.runs.events("run-1")] == kept


def test_an_interrupted_run_is_listed_and_resumes_after_its_last_iteration(store: Store) -> None:
    case = a_case()
    started(store, case)
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.abandon("run-1", "Ctrl-C")
    (listed,) = map(store.runs.summary, store.runs.in_state("interrupted"))
    assert (listed.id, listed.why, store.cases.summary("case-1").state) == ("run-1", "Ctrl-C", "interrupted")
    progress = store.runs.resume("run-1")
    assert (progress.state, len(progress.iterations)) == ("running", 1)
    run = a_run(case, iterations=(an_iteration(1), an_iteration(2)))
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    assert store.runs.in_state("interrupted") == ()


def test_a_run_under_way_in_a_living_process_can_neither_be_resumed_nor_is_it_marked_lost(store: Store) -> None:
    started(store, a_case())
    assert store.runs.mark_lost() == ()
    with pytest.raises(StoreError, match=f"under way in process {this_process().pid}"):
        store.runs.resume("run-1")


def test_opening_marks_runs_of_dead_processes_as_interrupted(store: Store, path: Path) -> None:
    started(store, a_case("alive"), "run-alive")
    started(store, a_case("dead"), "run-dead", DEAD)
    reborn = this_process()._replace(started="when another process had this number")
    started(store, a_case("reborn"), "run-reborn", reborn)
    with Store.open(path) as again:
        assert set(again.runs.in_state("interrupted")) == {"run-dead", "run-reborn"}
        assert again.runs.in_state("running") == ("run-alive",)
        assert again.cases.summary("dead").state == "interrupted"


def test_runs_under_way_and_interrupted_are_found_without_reading_all_runs(store: Store) -> None:
    started(store, a_case())
    asked = list[str]()
    with store.database.reading() as connection:  # given back, it is the one lent next
        connection.set_trace_callback(asked.append)
    assert store.runs.in_state("running") == ("run-1",)
    store.runs.mark_lost()
    store.runs.abandon("run-1", "stopped")
    assert store.runs.in_state("interrupted") == ("run-1",)
    connection.set_trace_callback(None)
    looks = [sql for sql in asked if sql.startswith("SELECT") and "FROM jobs" in sql and "state !=" in sql]
    plans = [row["detail"] for sql in looks for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert sum("INDEX jobs_unfinished" in plan for plan in plans) == 3
    assert not [plan for plan in plans if plan.startswith("SCAN")]


def test_a_run_on_another_machine_is_lost_only_after_a_long_silence(path: Path) -> None:
    now = ["2026-01-01T12:00:00.000Z"]
    with Store.open(path, now=lambda: now[0]) as store:
        started(store, a_case(), owner=Owner("elsewhere", 1, "then"))
        now[0] = "2026-01-01T12:59:00.000Z"
        assert store.runs.mark_lost() == ()
        store.runs.append_event(an_event(a_case()))
        now[0] = "2026-01-01T13:30:00.000Z"
        assert store.runs.mark_lost() == ()
        now[0] = "2026-01-01T14:00:00.000Z"
        assert SILENCE_S == 3600
        assert store.runs.mark_lost() == ("run-1",)


def test_what_a_finished_run_said_is_never_overwritten(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    run = a_run(case)
    store.runs.finish(run)
    store.runs.finish(run)
    with pytest.raises(StoreError, match="finished with another result"):
        store.runs.finish(run.model_copy(update={"final_answer": "Other."}))
    with pytest.raises(StoreError, match="never overwritten"):
        store.runs.save_iteration("run-1", an_iteration(1))
    with pytest.raises(StoreError, match="nothing to resume"):
        store.runs.resume("run-1")
    store.runs.abandon("run-1", "too late")
    assert store.runs.get("run-1") == run


def test_a_run_of_other_content_or_of_no_case_is_refused(store: Store) -> None:
    store.cases.add(a_case())
    with pytest.raises(StoreError, match="audits other content"):
        store.runs.finish(a_run(a_case(answer="Another.")))
    with pytest.raises(UnknownRecord, match="no case 'nowhere'"):
        store.runs.finish(a_run(a_case("nowhere")))
    assert store.runs.for_case("case-1") == ()


def test_an_iteration_saved_before_but_not_in_the_result_is_gone(store: Store) -> None:
    case = a_case()
    started(store, case)
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.save_iteration("run-1", an_iteration(2))
    store.runs.finish(a_run(case, iterations=(an_iteration(1),)))
    assert len(store.runs.get("run-1").iterations) == 1


def test_cancelling_is_seen_by_whoever_runs_it_and_forgotten_on_resuming(store: Store, path: Path) -> None:
    started(store, a_case())
    with Store.open(path) as page:
        page.runs.request_cancel("run-1")
    assert store.runs.cancel_requested("run-1")
    store.runs.abandon("run-1", "cancelled")
    store.runs.resume("run-1")
    assert not store.runs.cancel_requested("run-1")


def test_a_finished_run_with_the_same_settings_is_found_so_that_it_need_not_be_done_again(store: Store) -> None:
    case = a_case()
    started(store, case)
    digest = case.digest()
    assert store.runs.find("case-1", "finished", digest, SETTINGS) is None
    assert store.runs.find("case-1", "running", digest, SETTINGS) == "run-1"
    store.runs.finish(a_run(case))
    assert store.runs.find("case-1", "finished", digest, dict(reversed(SETTINGS.items()))) == "run-1"
    assert store.runs.find("case-1", "finished", digest, SETTINGS | {"max_iterations": 1}) is None
    assert store.runs.find("case-1", "finished", "other content", SETTINGS) is None


def test_runs_of_a_case_are_listed_newest_first_with_their_figures(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    store.runs.finish(a_run(case, "first"))
    store.runs.finish(a_run(case, "second", iterations=(an_iteration(invalid=(), quality=0.8, confidence=0.9),)))
    second, first = store.runs.for_case("case-1")
    assert (second.id, second.quality, second.confidence, second.invalid) == ("second", 0.8, 0.9, 0)
    assert (first.id, first.invalid, first.flags) == ("first", 1, ("invalid_reference", "hallucination"))
    assert first.reasons == ("invalid_reference",)


def test_a_run_without_a_single_iteration_is_kept_as_unscored(store: Store) -> None:
    case = a_case(answer=None)
    store.cases.add(case)
    run = a_run(case, iterations=(), termination_reason="error", converged=False)
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    (row,) = store.cases.search(CaseFilter(order="least_confident")).rows
    assert (row.quality, row.confidence, row.iterations, row.flags) == (None, None, 0, ("error",))
