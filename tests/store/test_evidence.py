"""Evidence across cases: by its id, by its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.store import Store
from tests.store.factories import a_case


@pytest.fixture
def store(tmp_path: Path) -> Store:
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
    store: Store, evidence_id: str, cases: tuple[str, ...]
) -> None:
    assert store.evidence.cases_with([evidence_id]) == {evidence_id: (cases, len(cases))}


def test_of_many_cases_the_first_are_named_and_all_counted(store: Store) -> None:
    assert store.evidence.cases_with(["a"], limit=1) == {"a": (("one",), 2)}


def test_many_ids_are_looked_for_at_once(store: Store) -> None:
    wanted = ["c", "nothing", "é", "a", 'q"uo\\te', "a"]
    found = store.evidence.cases_with(wanted)
    assert found == {
        "c": (("three",), 1),
        "nothing": ((), 0),
        "é": (("two",), 1),
        "a": (("one", "two"), 2),
        'q"uo\\te': (("one",), 1),
    }
    assert found == {each: store.evidence.cases_with([each])[each] for each in wanted}


def test_words_are_looked_for_in_evidence_only_and_the_best_case_comes_first(store: Store) -> None:
    assert store.evidence.with_words("otters", limit=5) == (("two", "one"), 2)
    assert store.evidence.with_words("otters", limit=1, offset=1) == (("one",), 2)
    assert store.evidence.with_words("OTTERS eat", limit=5) == (("two",), 1)
    assert store.evidence.with_words("bridge opened", limit=5) == ((), 0), "these words are in question and answer"
    assert store.evidence.with_words("ott", limit=5).total == 2, "the beginning of a word, where no word is it"


@pytest.mark.parametrize(
    "text", ['"', "otters)", "NOT otters*", "evidence : x", "^", "a OR b", "é" * 50, "-", "query : otters"]
)
def test_nothing_that_is_typed_is_read_as_syntax(store: Store, text: str) -> None:
    assert store.evidence.with_words(text, limit=5).total == 0 or "otters" in text
