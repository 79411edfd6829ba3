"""Cases, the search in their evidence, drafts, and runs: what goes in comes out, and nothing is
overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masis.errors import CaseConflict, InputError, StoreError, UnknownRecord
from masis.schema.audit import Draft
from masis.schema.case import Case
from masis.store import Store
from masis.store.core.process_owner import SILENCE_S, Owner, this_process
from masis.store.records import CaseFilter
from tests.store.factories import (
    JUDGE,
    SETTINGS,
    a_case,
    a_run,
    an_audited_case,
    an_event,
    an_iteration,
)

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def test_a_case_round_trips_with_unknown_keys(store: Store) -> None:
    content = {
        "id": "straße-1",
        "query": "Qué?",
        "evidence": [{"id": "b", "text": "", "source": None, "page": 3}, {"id": "a"}],
        "metadata": {"zeta": [1, 2.5, None], "alpha": {"x": "é\U0001f600"}},
        "labels": {"clean": True},
        "extra": [1, "two"],
    }
    assert store.cases.add(Case.model_validate(content)) == "added"
    kept = store.cases.get("straße-1")
    assert kept == Case.model_validate(content)
    assert json.dumps(kept.to_json_dict()) == json.dumps(
        Case.model_validate(content).to_json_dict()
    )


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    query=TEXT.filter(bool),
    answer=st.none() | TEXT,
    text=TEXT,
    metadata=st.dictionaries(TEXT, JSON, max_size=3),
)
def test_any_text_survives_the_store(
    store: Store, query: str, answer: str | None, text: str, metadata: dict
) -> None:
    content = {
        "query": query,
        "answer": answer,
        "evidence": [{"id": "1", "text": text}],
        "metadata": metadata,
    }
    case_id = Case.model_validate({"id": "x", **content}).digest()
    case = Case.model_validate({"id": case_id, **content})
    store.cases.add(case)
    assert store.cases.get(case_id) == case
    assert store.cases.get(case_id).digest() == case.digest()


def test_adding_an_equal_case_again_changes_nothing(store: Store) -> None:
    store.cases.add(a_case(metadata={"a": 1, "b": 2}))
    assert store.cases.add(a_case(metadata={"b": 2, "a": 1})) == "unchanged"
    assert store.cases.count() == 1


def test_a_different_case_with_a_used_id_is_rejected(store: Store) -> None:
    store.cases.add(a_case())
    with pytest.raises(
        CaseConflict, match=r"'case-1' is already here with other content.*another id"
    ):
        store.cases.add(a_case(answer="Something else."))
    assert store.cases.get("case-1") == a_case()


def test_a_conflict_is_named_and_other_cases_are_added(store: Store) -> None:
    store.cases.add(a_case("c-3"))
    store.cases.add(a_case("c-4"))
    arriving = [a_case(f"c-{n}") for n in range(10)]
    arriving[3] = a_case("c-3", query="Something else?")
    heard: list[int] = []
    result = store.cases.add_many(iter(arriving), batch=4, on_batch=heard.append)
    assert (result.added, result.unchanged, len(result.conflicts)) == (8, 1, 1)
    assert "'c-3'" in str(result.conflicts[0])
    assert heard == [4, 4, 2]


def test_cases_read_before_an_interruption_are_kept(store: Store) -> None:
    def yield_then_interrupt() -> Iterator[Case]:
        yield from (a_case(f"c-{n}") for n in range(7))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.cases.add_many(yield_then_interrupt(), batch=5)
    assert store.cases.count() == 7


def test_a_missing_case_is_an_error_with_a_hint(store: Store) -> None:
    with pytest.raises(UnknownRecord, match=r"no case 'nowhere'.*masis import"):
        store.cases.get("nowhere")


def test_non_json_values_are_rejected_with_the_case_id(store: Store) -> None:
    with pytest.raises(InputError, match="case 'case-1' holds what JSON can't"):
        store.cases.add(a_case(metadata={"score": object()}))


def test_cases_keep_their_insertion_order(store: Store) -> None:
    ids = [f"c-{n}" for n in (5, 3, 9, 1)]
    store.cases.add_many(a_case(case_id) for case_id in ids)
    assert [case.id for case in store.cases.iterate()] == ids


@pytest.fixture
def shared(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "m.db")
    store.cases.add(
        a_case(
            "one", evidence=[{"id": "a", "text": "Otters swim."}, {"id": 'q"uo\\te', "text": "a"}]
        )
    )
    store.cases.add(
        a_case(
            "two",
            evidence=[{"id": "a", "text": "Otters swim and otters eat."}, {"id": "é", "text": "b"}],
        )
    )
    store.cases.add(
        a_case("three", evidence=[{"id": "c", "text": "Owls", "source": "a"}], metadata={"a": "a"})
    )
    return store


@pytest.mark.parametrize(
    ("evidence_id", "cases"),
    [
        ("a", ("one", "two")),
        ('q"uo\\te', ("one",)),
        ("é", ("two",)),
        ("c", ("three",)),
        ("A", ()),
        ("%", ()),
        ("", ()),
    ],
)
def test_cases_are_found_by_exact_chunk_id(
    shared: Store, evidence_id: str, cases: tuple[str, ...]
) -> None:
    assert shared.evidence.cases_with([evidence_id]) == {evidence_id: (cases, len(cases))}


def test_long_results_are_truncated_and_counted(shared: Store) -> None:
    assert shared.evidence.cases_with(["a"], limit=1) == {"a": (("one",), 2)}


def test_many_chunk_ids_are_searched_at_once(shared: Store) -> None:
    wanted = ["c", "nothing", "é", "a", 'q"uo\\te', "a"]
    found = shared.evidence.cases_with(wanted)
    assert found == {
        "c": (("three",), 1),
        "nothing": ((), 0),
        "é": (("two",), 1),
        "a": (("one", "two"), 2),
        'q"uo\\te': (("one",), 1),
    }
    assert found == {
        document_id: shared.evidence.cases_with([document_id])[document_id]
        for document_id in wanted
    }


def test_text_search_covers_evidence_and_ranks_cases(shared: Store) -> None:
    assert shared.evidence.with_words("otters", limit=5) == (("two", "one"), 2)
    assert shared.evidence.with_words("otters", limit=1, offset=1) == (("one",), 2)
    assert shared.evidence.with_words("OTTERS eat", limit=5) == (("two",), 1)
    assert shared.evidence.with_words("bridge opened", limit=5) == (
        (),
        0,
    ), "these words are in question and answer"
    assert shared.evidence.with_words("ott", limit=5).total == 2, (
        "the beginning of a word, where no word is it"
    )


@pytest.mark.parametrize(
    "text",
    ['"', "otters)", "NOT otters*", "evidence : x", "^", "a OR b", "é" * 50, "-", "query : otters"],
)
def test_typed_text_isnt_search_syntax(shared: Store, text: str) -> None:
    assert shared.evidence.with_words(text, limit=5).total == 0 or "otters" in text


def test_a_draft_survives_reopening_the_store(path: Path) -> None:
    with Store.open(path) as store:
        store.drafts.save("Ada", "case:1", {"note": "half a sen"})
        store.drafts.save("Ada", "case:1", {"note": "half a sentence"})
        store.drafts.save("Ada", "case:1", {"labels": {"0-5": ["supported", None]}})
    with Store.open(path) as store:
        kept = store.drafts.get("Ada", "case:1").values
    assert kept == {"note": "half a sentence", "labels": {"0-5": ["supported", None]}}


def test_drafts_are_separate_per_person_and_subject(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "hers"})
    store.drafts.save("Bo", "case:1", {"note": "his"})
    store.drafts.save("Ada", "case:2", {"note": "another"})
    assert store.drafts.get("Bo", "case:1").values == {"note": "his"}
    store.drafts.clear("Ada", "case:1")
    assert store.drafts.get("Ada", "case:1").values == {}
    assert store.drafts.get("Bo", "case:1").values == {"note": "his"}
    assert store.drafts.get("Ada", "case:2").values == {"note": "another"}


def test_an_unchanged_draft_keeps_its_time(
    store: Store,
) -> None:
    assert store.drafts.get("Ada", "case:1").saved_at is None
    store.drafts.save("Ada", "case:1", {"note": "a"})
    first = store.drafts.get("Ada", "case:1").saved_at
    store.drafts.save("Ada", "case:1", {"note": "a"})
    assert store.drafts.get("Ada", "case:1").saved_at == first
    store.drafts.save("Ada", "case:1", {"note": "b"})
    assert str(store.drafts.get("Ada", "case:1").saved_at) > str(first)


def test_single_draft_fields_can_be_deleted(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "a", "reason": "other", "verdict": "reject"})
    store.drafts.clear("Ada", "case:1", "note", "reason")
    assert store.drafts.get("Ada", "case:1").values == {"verdict": "reject"}


NOBODY = "browser b1"


def test_anonymous_drafts_are_adopted_by_a_name(store: Store) -> None:
    store.drafts.save(NOBODY, "case:1", {"note": "typed first"})
    store.drafts.save(NOBODY, "case:2", {"note": "must not replace"})
    store.drafts.save("Ada", "case:2", {"note": "hers"})
    store.drafts.hand_over(NOBODY, "Ada")
    assert store.drafts.get("Ada", "case:1").values == {"note": "typed first"}
    assert store.drafts.get("Ada", "case:2").values == {"note": "hers"}
    assert store.drafts.get(NOBODY, "case:1").values == {}


def test_adopting_keeps_newer_text(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "last week's", "other": "older", "reason": "other"})
    store.drafts.save(NOBODY, "case:1", {"note": "typed just now", "other": ""})
    store.drafts.hand_over(NOBODY, "Ada")
    assert store.drafts.get("Ada", "case:1").values == {
        "note": "typed just now",
        "other": "older",
        "reason": "other",
    }


def test_any_text_can_be_drafted(store: Store) -> None:
    nasty = "'; DROP TABLE drafts; -- \x00 \ud800 \u202e <script> 🜁" + "x" * 100_000
    store.drafts.save("Ada'; --", "case:\x01", {"note": nasty})
    assert store.drafts.get("Ada'; --", "case:\x01").values == {"note": nasty}


# Runs are kept as they go and can be taken up where they stopped

DEAD = Owner(this_process().host, 2**22 + 1, "long ago")


def start_run(store: Store, case: Case, run_id: str = "run-1", owner: Owner | None = None) -> None:
    store.cases.add(case)
    store.runs.start(
        run_id,
        case_id=case.id,
        case_digest=case.digest(),
        models={},
        settings=SETTINGS,
        owner=owner,
    )


def test_a_finished_run_round_trips(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    run = a_run(
        case,
        iterations=(an_iteration(1), an_iteration(2, "Grey – “no”.", invalid=(), confidence=0.9)),
    )
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    assert store.runs.get("run-1").model_dump_json() == run.model_dump_json()


def test_progress_shows_events_and_finished_iterations(store: Store) -> None:
    case = a_case()
    start_run(store, case)
    store.runs.save_draft("run-1", Draft(answer="A draft [1].", judged_by=JUDGE))
    store.runs.append_event(an_event(case, seq=1))
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.append_event(an_event(case, seq=2, message="later"))
    progress = store.runs.progress("run-1")
    assert progress.state == "running"
    assert progress.draft.answer == "A draft [1]."
    assert progress.iterations == (an_iteration(1),)
    assert progress.last_event == 2
    assert [event.message for event in store.runs.events("run-1")][-1] == "later"
    assert store.cases.summary("case-1").state == "running"


def test_a_duplicate_event_number_is_replaced(store: Store) -> None:
    case = a_case()
    start_run(store, case)
    kept = [store.runs.append_event(an_event(case, seq=seq)).seq for seq in (1, 2, 1, 7, 7)]
    assert kept == [1, 2, 3, 7, 8]
    assert [event.seq for event in store.runs.events("run-1")] == kept


def test_an_interrupted_run_can_be_resumed(store: Store) -> None:
    case = a_case()
    start_run(store, case)
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.abandon("run-1", "Ctrl-C")
    (listed,) = map(store.runs.summary, store.runs.in_state("interrupted"))
    assert (listed.id, listed.why, store.cases.summary("case-1").state) == (
        "run-1",
        "Ctrl-C",
        "interrupted",
    )
    progress = store.runs.resume("run-1")
    assert (progress.state, len(progress.iterations)) == ("running", 1)
    run = a_run(case, iterations=(an_iteration(1), an_iteration(2)))
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    assert store.runs.in_state("interrupted") == ()


def test_a_run_of_a_live_process_isnt_interrupted(
    store: Store,
) -> None:
    start_run(store, a_case())
    assert store.runs.mark_lost() == ()
    with pytest.raises(StoreError, match=f"running in process {this_process().pid}"):
        store.runs.resume("run-1")


def test_opening_marks_runs_of_dead_processes_as_interrupted(store: Store, path: Path) -> None:
    start_run(store, a_case("alive"), "run-alive")
    start_run(store, a_case("dead"), "run-dead", DEAD)
    reborn = this_process()._replace(started="when another process had this number")
    start_run(store, a_case("reborn"), "run-reborn", reborn)
    with Store.open(path) as again:
        assert set(again.runs.in_state("interrupted")) == {"run-dead", "run-reborn"}
        assert again.runs.in_state("running") == ("run-alive",)
        assert again.cases.summary("dead").state == "interrupted"


def test_unfinished_runs_are_found_through_an_index(store: Store) -> None:
    start_run(store, a_case())
    asked = list[str]()
    with store.database.reading() as connection:  # given back, it is the one lent next
        connection.set_trace_callback(asked.append)
    assert store.runs.in_state("running") == ("run-1",)
    store.runs.mark_lost()
    store.runs.abandon("run-1", "stopped")
    assert store.runs.in_state("interrupted") == ("run-1",)
    connection.set_trace_callback(None)
    looks = [
        sql
        for sql in asked
        if sql.startswith("SELECT") and "FROM jobs" in sql and "state !=" in sql
    ]
    plans = [
        row["detail"] for sql in looks for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")
    ]
    assert sum("INDEX jobs_unfinished" in plan for plan in plans) == 3
    assert not [plan for plan in plans if plan.startswith("SCAN")]


def test_a_run_on_another_machine_is_interrupted_after_a_timeout(path: Path) -> None:
    now = ["2026-01-01T12:00:00.000Z"]
    with Store.open(path, now=lambda: now[0]) as store:
        start_run(store, a_case(), owner=Owner("elsewhere", 1, "then"))
        now[0] = "2026-01-01T12:59:00.000Z"
        assert store.runs.mark_lost() == ()
        store.runs.append_event(an_event(a_case()))
        now[0] = "2026-01-01T13:30:00.000Z"
        assert store.runs.mark_lost() == ()
        now[0] = "2026-01-01T14:00:00.000Z"
        assert SILENCE_S == 3600
        assert store.runs.mark_lost() == ("run-1",)


def test_a_sign_of_life_from_before_the_clock_was_set_back_keeps_no_run_running(
    path: Path,
) -> None:
    now = ["2027-01-01T12:00:00.000Z"]
    with Store.open(path, now=lambda: now[0]) as store:
        start_run(store, a_case(), owner=Owner("elsewhere", 1, "then"))
        now[0] = "2027-01-01T11:58:00.000Z"
        assert store.runs.mark_lost() == (), "clocks of two machines may differ a little"
        now[0] = "2026-01-01T12:00:00.000Z"
        assert store.runs.mark_lost() == ("run-1",)


def test_a_finished_run_is_never_overwritten(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    run = a_run(case)
    store.runs.finish(run)
    store.runs.finish(run)
    with pytest.raises(StoreError, match="finished with a different result"):
        store.runs.finish(run.model_copy(update={"final_answer": "Other."}))
    with pytest.raises(StoreError, match="never overwritten"):
        store.runs.save_iteration("run-1", an_iteration(1))
    with pytest.raises(StoreError, match="can't be resumed"):
        store.runs.resume("run-1")
    store.runs.abandon("run-1", "too late")
    assert store.runs.get("run-1") == run


def test_a_run_of_another_or_missing_case_is_rejected(store: Store) -> None:
    store.cases.add(a_case())
    with pytest.raises(StoreError, match="audits other content"):
        store.runs.finish(a_run(a_case(answer="Another.")))
    with pytest.raises(UnknownRecord, match="no case 'nowhere'"):
        store.runs.finish(a_run(a_case("nowhere")))
    assert store.runs.for_case("case-1") == ()


def test_iterations_not_in_the_result_are_deleted(store: Store) -> None:
    case = a_case()
    start_run(store, case)
    store.runs.save_iteration("run-1", an_iteration(1))
    store.runs.save_iteration("run-1", an_iteration(2))
    store.runs.finish(a_run(case, iterations=(an_iteration(1),)))
    assert len(store.runs.get("run-1").iterations) == 1


def test_a_cancel_request_reaches_the_runner_and_is_cleared_on_resume(
    store: Store, path: Path
) -> None:
    start_run(store, a_case())
    with Store.open(path) as page:
        page.runs.request_cancel("run-1")
    assert store.runs.cancel_requested("run-1")
    store.runs.abandon("run-1", "cancelled")
    store.runs.resume("run-1")
    assert not store.runs.cancel_requested("run-1")


def test_a_finished_run_with_the_same_settings_is_found(
    store: Store,
) -> None:
    case = a_case()
    start_run(store, case)
    digest = case.digest()
    assert store.runs.find("case-1", "finished", digest, SETTINGS) is None
    assert store.runs.find("case-1", "running", digest, SETTINGS) == "run-1"
    store.runs.finish(a_run(case))
    assert (
        store.runs.find("case-1", "finished", digest, dict(reversed(SETTINGS.items()))) == "run-1"
    )
    assert store.runs.find("case-1", "finished", digest, SETTINGS | {"max_iterations": 1}) is None
    assert store.runs.find("case-1", "finished", "other content", SETTINGS) is None


def test_runs_are_listed_newest_first_with_figures(store: Store) -> None:
    case = an_audited_case(store, a_case(), "first")
    store.runs.finish(
        a_run(case, "second", iterations=(an_iteration(invalid=(), quality=0.8, confidence=0.9),))
    )
    second, first = store.runs.for_case("case-1")
    assert (second.id, second.quality, second.confidence, second.invalid) == ("second", 0.8, 0.9, 0)
    assert (first.id, first.invalid, first.flags) == (
        "first",
        1,
        ("invalid_reference", "hallucination"),
    )
    assert first.reasons == ("invalid_reference",)


def test_a_run_without_iterations_is_stored_unscored(store: Store) -> None:
    case = a_case(answer=None)
    store.cases.add(case)
    run = a_run(case, iterations=(), termination_reason="error", converged=False)
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    (row,) = store.cases.search(CaseFilter(order="least_confident")).rows
    assert (row.quality, row.confidence, row.iterations, row.flags) == (None, None, 0, ("error",))
