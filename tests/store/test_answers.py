"""Cases with nearly the same answer, and cases with the words of a sentence."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.schema.faults import PlantedFault
from masis.store import Store
from masis.store.audits.answers import answer_words, are_similar, similar_query
from masis.store.records import CaseFilter
from tests.store.factories import a_case, a_decision

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"
ANSWER = f"{WORDS} sigma tau upsilon [1]."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "answers.db") as opened:
        yield opened


def find_similar(store: Store, case_id: str, **more: object) -> list[str]:
    case_filter = CaseFilter.model_validate({"similar_to": (case_id,), "order": "oldest", **more})
    return [row.id for row in store.cases.search(case_filter).rows]


def add(store: Store, **answers: str | None) -> None:
    for case_id, answer in answers.items():
        store.cases.add(a_case(case_id, answer=answer))


def test_answers_that_differ_in_blanks_case_or_a_word_are_nearly_the_same(store: Store) -> None:
    add(
        store,
        own=ANSWER,
        folded=ANSWER.upper().replace(" ", "\n  "),
        one_word=ANSWER.replace("kappa", "koppa"),
        three_words=ANSWER.replace("alpha beta gamma", "one two three"),
        other="It was opened in 1932 [1].",
        none=None,
    )
    assert find_similar(store, "own") == ["folded", "one_word"]
    assert find_similar(store, "none") == []
    assert find_similar(store, "no such case") == []


def test_near_duplicates_combine_with_the_other_filters(store: Store) -> None:
    add(store, own=ANSWER, second=ANSWER, third=ANSWER)
    assert find_similar(store, "own", text="third") == ["third"]
    assert store.cases.count_matching(CaseFilter(similar_to=("own",))) == 2
    assert store.cases.values(CaseFilter(similar_to=("own",)), "fields") == {"Engineering": 2}
    assert store.cases.standings(CaseFilter(similar_to=("own",)))[0] == {"not_audited": 2}


def test_accents_and_scripts_are_compared_as_the_index_does(store: Store) -> None:
    add(
        store,
        composed="Caf\u00e9 Stra\u00dfe \u043c\u043e\u0441\u0442 \u0939\u093f\u0928\u094d\u0926\u0940",
        decomposed="Cafe\u0301 Stra\u00dfe \u043c\u043e\u0441\u0442 \u0939\u093f\u0928\u094d\u0926\u0940",
    )
    assert find_similar(store, "composed") == ["decomposed"]
    assert find_similar(store, "decomposed") == ["composed"]


def test_an_answer_with_syntax_of_the_index_finds_its_equal(store: Store) -> None:
    hostile = '" OR answer : * NEAR("a" b) AND NOT -x^2 );DROP TABLE cases'
    add(store, own=hostile, same=hostile)
    assert find_similar(store, "own") == ["same"]
    add(store, signs="?! ... --", more_signs="?! ... --")
    assert find_similar(store, "signs") == []


def test_an_earlier_version_of_a_case_isnt_a_duplicate_of_it(store: Store) -> None:
    add(store, old=ANSWER, new=ANSWER, other=ANSWER)
    entry = a_decision(store.cases.get("old"), None, iteration=None)
    store.decisions.append(
        entry.model_copy(update={"kind": "new_version", "newer_case": "new", "verdict": None})
    )
    assert store.cases.summary("old").state == "superseded"
    assert find_similar(store, "new") == ["other"]


def test_a_redacted_answer_isnt_found(store: Store) -> None:
    add(store, own=ANSWER, same=ANSWER)
    store.redactions.redact_case("same", by="Ada", reason="asked")
    assert find_similar(store, "own") == []
    assert find_similar(store, "same") == []


def test_a_copy_with_a_planted_fault_isnt_offered_beside_its_original(store: Store) -> None:
    add(store, own=ANSWER, twin=ANSWER)
    fault = PlantedFault(
        kind="name",
        start=0,
        end=5,
        before="Alpha",
        after="alpha",
        original_start=0,
        original_end=5,
        sentence=ANSWER,
    )
    store.planted.add(a_case("copy", answer=ANSWER), fault, "own", "Lea")
    assert find_similar(store, "own") == ["twin"]
    assert find_similar(store, "twin") == ["own"]
    assert find_similar(store, "copy") == ["twin"]


@given(st.integers(0, 10_000), st.integers(1, 120))
def test_the_query_finds_every_answer_that_is_similar(seed: int, size: int) -> None:
    """The words that a similar answer lacks never spoil all groups of the query."""
    rng = random.Random(seed)
    own = frozenset(f"w{number}" for number in range(size))
    other = set(own)
    while other and are_similar(own, frozenset(other)):
        kept = frozenset(other)
        assert _matches(similar_query(own), kept)
        change = rng.choice(sorted(other))
        other.remove(change)
        if rng.random() < 0.3:
            other.add(f"x{rng.random()}")


def _matches(query: str, words: frozenset[str]) -> bool:
    groups = query.removeprefix("answer : (").removesuffix(")").split(" OR ")
    return any(all(word.strip('"()') in words for word in group.split(" AND ")) for group in groups)


def test_equal_answers_of_few_words_are_found_up_to_a_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.store.audits.answers.MOST_SIMILAR", 3)
    add(store, **{f"case-{number}": "I don't know." for number in range(6)})
    assert len(find_similar(store, "case-0")) == 3


def test_only_cases_that_the_reviewer_decided_are_searched_for_a_sentence(store: Store) -> None:
    add(store, mine=ANSWER, theirs=ANSWER, other="Something else.")
    for case_id, reviewer in (("mine", "Ada"), ("theirs", "Ben"), ("other", "Ada")):
        case = store.cases.get(case_id)
        store.decisions.append(a_decision(case, None, iteration=None, reviewer=reviewer))
    search = store.answers.decided_with_words
    assert search("kappa lambda", "Ada", 10) == ("mine",)
    assert search("kappa", "Ben", 10) == ("theirs",)
    assert search("?!", "Ada", 10) == ()
    assert answer_words("It's 1932.") == {"it", "s", "1932"}
