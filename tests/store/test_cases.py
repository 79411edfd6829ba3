"""Cases go in and come out the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masis.errors import CaseConflict, InputError, UnknownRecord
from masis.schema.case import Case
from masis.store import Store
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
