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
from masis.store.reviews.drafts import NOBODY_YET
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


def test_a_case_comes_out_as_it_went_in_with_keys_it_does_not_know(store: Store) -> None:
    content = {
        "id": "straße-1",
        "query": "Qué?",
        "evidence": [{"id": "b", "text": "", "source": None, "page": 3}, {"id": "a"}],
        "metadata": {"zeta": [1, 2.5, None], "alpha": {"x": "é\U0001f600"}},
        "labels": {"clean": True, "house": {"rule": 1}},
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


def test_the_same_case_again_changes_nothing_whatever_the_order_of_its_keys(store: Store) -> None:
    store.cases.add(a_case(metadata={"a": 1, "b": 2}))
    assert store.cases.add(a_case(metadata={"b": 2, "a": 1})) == "unchanged"
    assert store.cases.count() == 1


def test_another_case_under_a_taken_id_is_refused_and_the_first_one_stays(store: Store) -> None:
    store.cases.add(a_case())
    with pytest.raises(
        CaseConflict, match=r"'case-1' is already here with other content.*another id"
    ):
        store.cases.add(a_case(answer="Something else."))
    assert store.cases.get("case-1") == a_case()


def test_many_cases_go_in_past_a_conflict_which_is_named(store: Store) -> None:
    store.cases.add(a_case("c-3"))
    store.cases.add(a_case("c-4"))
    arriving = [a_case(f"c-{n}") for n in range(10)]
    arriving[3] = a_case("c-3", query="Something else?")
    heard: list[int] = []
    result = store.cases.add_many(iter(arriving), batch=4, on_batch=heard.append)
    assert (result.added, result.unchanged, len(result.conflicts)) == (8, 1, 1)
    assert "'c-3'" in str(result.conflicts[0])
    assert heard == [4, 4, 2]


def test_what_was_read_before_an_interruption_is_kept(store: Store) -> None:
    def interrupted() -> Iterator[Case]:
        yield from (a_case(f"c-{n}") for n in range(7))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.cases.add_many(interrupted(), batch=5)
    assert store.cases.count() == 7


def test_a_case_that_is_not_there_is_an_error_that_says_what_to_do(store: Store) -> None:
    with pytest.raises(UnknownRecord, match=r"no case 'nowhere'.*masis import"):
        store.cases.get("nowhere")


def test_values_that_json_does_not_know_are_refused_with_the_case_named(store: Store) -> None:
    with pytest.raises(InputError, match="case 'case-1' holds what JSON can't"):
        store.cases.add(a_case(metadata={"score": object()}))


def test_cases_come_in_the_order_they_went_in(store: Store) -> None:
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
def test_an_id_finds_the_cases_with_exactly_such_a_chunk(
    shared: Store, evidence_id: str, cases: tuple[str, ...]
) -> None:
    assert shared.evidence.cases_with([evidence_id]) == {evidence_id: (cases, len(cases))}


def test_of_many_cases_the_first_are_named_and_all_counted(shared: Store) -> None:
    assert shared.evidence.cases_with(["a"], limit=1) == {"a": (("one",), 2)}


def test_many_ids_are_looked_for_at_once(shared: Store) -> None:
    wanted = ["c", "nothing", "é", "a", 'q"uo\\te', "a"]
    found = shared.evidence.cases_with(wanted)
    assert found == {
        "c": (("three",), 1),
        "nothing": ((), 0),
        "é": (("two",), 1),
        "a": (("one", "two"), 2),
        'q"uo\\te': (("one",), 1),
    }
    assert found == {each: shared.evidence.cases_with([each])[each] for each in wanted}


def test_words_are_looked_for_in_evidence_only_and_the_best_case_comes_first(shared: Store) -> None:
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
def test_nothing_that_is_typed_is_read_as_syntax(shared: Store, text: str) -> None:
    assert shared.evidence.with_words(text, limit=5).total == 0 or "otters" in text


def test_a_field_is_there_after_the_store_is_opened_again(path: Path) -> None:
    with Store.open(path) as store:
        store.drafts.save("Ada", "case:1", {"note": "half a sen"})
        store.drafts.save("Ada", "case:1", {"note": "half a sentence"})
        store.drafts.save("Ada", "case:1", {"labels": {"0-5": ["supported", None]}})
    with Store.open(path) as store:
        kept = store.drafts.get("Ada", "case:1").values
    assert kept == {"note": "half a sentence", "labels": {"0-5": ["supported", None]}}


def test_people_and_subjects_do_not_mix(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "hers"})
    store.drafts.save("Bo", "case:1", {"note": "his"})
    store.drafts.save("Ada", "case:2", {"note": "another"})
    assert store.drafts.get("Bo", "case:1").values == {"note": "his"}
    store.drafts.clear("Ada", "case:1")
    assert store.drafts.get("Ada", "case:1").values == {}
    assert store.drafts.get("Bo", "case:1").values == {"note": "his"}
    assert store.drafts.get("Ada", "case:2").values == {"note": "another"}


def test_a_draft_tells_when_it_was_saved_and_the_same_text_again_is_no_new_draft(
    store: Store,
) -> None:
    assert store.drafts.get("Ada", "case:1").saved_at is None
    store.drafts.save("Ada", "case:1", {"note": "a"})
    first = store.drafts.get("Ada", "case:1").saved_at
    store.drafts.save("Ada", "case:1", {"note": "a"})
    assert store.drafts.get("Ada", "case:1").saved_at == first
    store.drafts.save("Ada", "case:1", {"note": "b"})
    assert str(store.drafts.get("Ada", "case:1").saved_at) > str(first)


def test_single_fields_can_go(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "a", "reason": "other", "verdict": "reject"})
    store.drafts.clear("Ada", "case:1", "note", "reason")
    assert store.drafts.get("Ada", "case:1").values == {"verdict": "reject"}


def test_what_was_typed_before_a_name_was_given_goes_to_that_name(store: Store) -> None:
    store.drafts.save(NOBODY_YET, "case:1", {"note": "typed first"})
    store.drafts.save(NOBODY_YET, "case:2", {"note": "must not replace"})
    store.drafts.save("Ada", "case:2", {"note": "hers"})
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.get("Ada", "case:1").values == {"note": "typed first"}
    assert store.drafts.get("Ada", "case:2").values == {"note": "hers"}
    assert store.drafts.get(NOBODY_YET, "case:1").values == {}


def test_what_was_typed_after_an_older_draft_of_that_name_is_not_taken_away(store: Store) -> None:
    store.drafts.save("Ada", "case:1", {"note": "last week's", "other": "older", "reason": "other"})
    store.drafts.save(NOBODY_YET, "case:1", {"note": "typed just now", "other": ""})
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.get("Ada", "case:1").values == {
        "note": "typed just now",
        "other": "older",
        "reason": "other",
    }


def test_any_text_can_be_kept(store: Store) -> None:
    nasty = "'; DROP TABLE drafts; -- \x00 \ud800 \u202e <script> 🜁" + "x" * 100_000
    store.drafts.save("Ada'; --", "case:\x01", {"note": nasty})
    assert store.drafts.get("Ada'; --", "case:\x01").values == {"note": nasty}


# Runs are kept as they go and can be taken up where they stopped

DEAD = Owner(this_process().host, 2**22 + 1, "long ago")


def started(store: Store, case: Case, run_id: str = "run-1", owner: Owner | None = None) -> None:
    store.cases.add(case)
    store.runs.start(
        run_id,
        case_id=case.id,
        case_digest=case.digest(),
        models={},
        settings=SETTINGS,
        owner=owner,
    )


def test_a_finished_run_comes_back_whole(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    run = a_run(
        case,
        iterations=(an_iteration(1), an_iteration(2, "Grey – “no”.", invalid=(), confidence=0.9)),
    )
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


def test_a_run_under_way_in_a_living_process_can_neither_be_resumed_nor_is_it_marked_lost(
    store: Store,
) -> None:
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


def test_cancelling_is_seen_by_whoever_runs_it_and_forgotten_on_resuming(
    store: Store, path: Path
) -> None:
    started(store, a_case())
    with Store.open(path) as page:
        page.runs.request_cancel("run-1")
    assert store.runs.cancel_requested("run-1")
    store.runs.abandon("run-1", "cancelled")
    store.runs.resume("run-1")
    assert not store.runs.cancel_requested("run-1")


def test_a_finished_run_with_the_same_settings_is_found_so_that_it_need_not_be_done_again(
    store: Store,
) -> None:
    case = a_case()
    started(store, case)
    digest = case.digest()
    assert store.runs.find("case-1", "finished", digest, SETTINGS) is None
    assert store.runs.find("case-1", "running", digest, SETTINGS) == "run-1"
    store.runs.finish(a_run(case))
    assert (
        store.runs.find("case-1", "finished", digest, dict(reversed(SETTINGS.items()))) == "run-1"
    )
    assert store.runs.find("case-1", "finished", digest, SETTINGS | {"max_iterations": 1}) is None
    assert store.runs.find("case-1", "finished", "other content", SETTINGS) is None


def test_runs_of_a_case_are_listed_newest_first_with_their_figures(store: Store) -> None:
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


def test_a_run_without_a_single_iteration_is_kept_as_unscored(store: Store) -> None:
    case = a_case(answer=None)
    store.cases.add(case)
    run = a_run(case, iterations=(), termination_reason="error", converged=False)
    store.runs.finish(run)
    assert store.runs.get("run-1") == run
    (row,) = store.cases.search(CaseFilter(order="least_confident")).rows
    assert (row.quality, row.confidence, row.iterations, row.flags) == (None, None, 0, ("error",))
