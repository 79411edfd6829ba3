"""Cases, the search in their evidence, and drafts: what goes in comes out, and nothing is overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masis.errors import CaseConflict, InputError, UnknownRecord
from masis.schema.case import Case
from masis.store import Store
from masis.store.reviews.drafts import NOBODY_YET
from tests.store.factories import a_case

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
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
    assert json.dumps(kept.to_json_dict()) == json.dumps(Case.model_validate(content).to_json_dict())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=TEXT.filter(bool), answer=st.none() | TEXT, text=TEXT, metadata=st.dictionaries(TEXT, JSON, max_size=3))
def test_any_text_survives_the_store(store: Store, query: str, answer: str | None, text: str, metadata: dict) -> None:
    content = {"query": query, "answer": answer, "evidence": [{"id": "1", "text": text}], "metadata": metadata}
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
    with pytest.raises(CaseConflict, match=r"'case-1' is already here with other content.*another id"):
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
    assert [case.id for case in store.cases.iterate(after="c-3")] == ["c-9", "c-1"]


@pytest.fixture
def shared(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "m.db")
    store.cases.add(a_case("one", evidence=[{"id": "a", "text": "Otters swim."}, {"id": 'q"uo\\te', "text": "a"}]))
    store.cases.add(
        a_case("two", evidence=[{"id": "a", "text": "Otters swim and otters eat."}, {"id": "é", "text": "b"}])
    )
    store.cases.add(a_case("three", evidence=[{"id": "c", "text": "Owls", "source": "a"}], metadata={"a": "a"}))
    return store


@pytest.mark.parametrize(
    ("evidence_id", "cases"),
    [("a", ("one", "two")), ('q"uo\\te', ("one",)), ("é", ("two",)), ("c", ("three",)), ("A", ()), ("%", ()), ("", ())],
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
    assert shared.evidence.with_words("bridge opened", limit=5) == ((), 0), "these words are in question and answer"
    assert shared.evidence.with_words("ott", limit=5).total == 2, "the beginning of a word, where no word is it"


@pytest.mark.parametrize(
    "text", ['"', "otters)", "NOT otters*", "evidence : x", "^", "a OR b", "é" * 50, "-", "query : otters"]
)
def test_nothing_that_is_typed_is_read_as_syntax(shared: Store, text: str) -> None:
    assert shared.evidence.with_words(text, limit=5).total == 0 or "otters" in text


def test_a_field_is_there_after_the_store_is_opened_again(path: Path) -> None:
    with Store.open(path) as store:
        store.drafts.save("Ada", "case:1", "note", "half a sen")
        store.drafts.save("Ada", "case:1", "note", "half a sentence")
        store.drafts.save("Ada", "case:1", "labels", {"0-5": ["supported", None]})
    with Store.open(path) as store:
        assert store.drafts.load("Ada", "case:1") == {"note": "half a sentence", "labels": {"0-5": ["supported", None]}}


def test_people_and_subjects_do_not_mix(store: Store) -> None:
    store.drafts.save("Ada", "case:1", "note", "hers")
    store.drafts.save("Bo", "case:1", "note", "his")
    store.drafts.save("Ada", "case:2", "note", "another")
    assert store.drafts.load("Bo", "case:1") == {"note": "his"}
    store.drafts.clear("Ada", "case:1")
    assert store.drafts.load("Ada", "case:1") == {}
    assert store.drafts.load("Bo", "case:1") == {"note": "his"}
    assert store.drafts.load("Ada", "case:2") == {"note": "another"}


def test_a_draft_tells_when_it_was_saved_and_the_same_text_again_is_no_new_draft(store: Store) -> None:
    assert store.drafts.get("Ada", "case:1").saved_at is None
    store.drafts.save("Ada", "case:1", "note", "a")
    first = store.drafts.get("Ada", "case:1").saved_at
    store.drafts.save("Ada", "case:1", "note", "a")
    assert store.drafts.get("Ada", "case:1").saved_at == first
    store.drafts.save("Ada", "case:1", "note", "b")
    assert str(store.drafts.get("Ada", "case:1").saved_at) > str(first)


def test_single_fields_can_go(store: Store) -> None:
    store.drafts.save_all("Ada", "case:1", {"note": "a", "reason": "other", "verdict": "reject"})
    store.drafts.clear("Ada", "case:1", "note", "reason")
    assert store.drafts.load("Ada", "case:1") == {"verdict": "reject"}


def test_what_was_typed_before_a_name_was_given_goes_to_that_name(store: Store) -> None:
    store.drafts.save(NOBODY_YET, "case:1", "note", "typed first")
    store.drafts.save(NOBODY_YET, "case:2", "note", "must not replace")
    store.drafts.save("Ada", "case:2", "note", "hers")
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.load("Ada", "case:1") == {"note": "typed first"}
    assert store.drafts.load("Ada", "case:2") == {"note": "hers"}
    assert store.drafts.load(NOBODY_YET, "case:1") == {}


def test_what_was_typed_after_an_older_draft_of_that_name_is_not_taken_away(store: Store) -> None:
    store.drafts.save_all("Ada", "case:1", {"note": "last week's", "other": "older", "reason": "other"})
    store.drafts.save_all(NOBODY_YET, "case:1", {"note": "typed just now", "other": ""})
    store.drafts.hand_over(NOBODY_YET, "Ada")
    assert store.drafts.load("Ada", "case:1") == {"note": "typed just now", "other": "older", "reason": "other"}


def test_any_text_can_be_kept(store: Store) -> None:
    nasty = "'; DROP TABLE drafts; -- \x00 \ud800 \u202e <script> 🜁" + "x" * 100_000
    store.drafts.save("Ada'; --", "case:\x01", "note", nasty)
    assert store.drafts.load("Ada'; --", "case:\x01") == {"note": nasty}
