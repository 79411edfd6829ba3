"""Queries made from what was missing: each says so, none is searched twice, something is always left to read."""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, Query
from masis.screening.rounds.queries import MOST_QUERIES, Gap, GradedAbstract, find_gaps, first_queries, next_queries
from tests.screening.scripted import AWAY, BORDERLINE, SERIES, STRONG, Said, grade_of

QUESTION = "Does aspirin prevent heart attack in older adults?"


def seen(said: Said, title: str = "Aspirin and heart attack in older adults", text: str = "") -> GradedAbstract:
    abstract = Abstract(id=title, title=title, text=text)
    return GradedAbstract(abstract, grade_of(abstract.id, said))


def what(*found: GradedAbstract) -> list[str]:
    return [lack.what for lack in find_gaps(QUESTION, found)]


def words(*found: GradedAbstract) -> list[str]:
    return [" ".join(lack.words) for lack in find_gaps(QUESTION, found)]


def test_nothing_found_looks_for_other_words() -> None:
    assert what() == ["The searches brought nothing."]
    assert "myocardial infarction" in words()[0]


@pytest.mark.spec("AESOP-BORDERLINE")
def test_a_part_of_the_question_that_few_name_is_looked_for_by_its_other_names() -> None:
    found = [seen(BORDERLINE, "Aspirin in older adults"), seen(BORDERLINE, "Aspirin in older women")]
    assert what(*found)[0] == "Only 0 of 2 name “heart attack” (outcome)."
    assert words(*found)[0].startswith("myocardial infarction")


def test_too_much_about_something_else_narrows_the_search_to_the_words_of_the_relevant_titles() -> None:
    near = [seen(STRONG, f"Low-dose enteric aspirin and heart attack in older adults {i}") for i in ("x", "y")]
    away = [seen(AWAY, f"Knees of runners {i}") for i in range(4)]
    found = find_gaps(QUESTION, [*near, *away])
    lack = next(each for each in found if "something else" in each.what)
    assert lack.what == "4 of 6 are about something else."
    assert "enteric" in lack.words
    assert "knees" not in lack.words


def test_weak_designs_ask_for_trials_reviews_and_cohorts() -> None:
    found = words(seen(SERIES), seen(SERIES, "Aspirin and heart attack in older adults again"))
    assert {"randomised controlled trial", "systematic review meta-analysis", "prospective cohort study"} <= set(found)


def test_small_studies_ask_for_large_ones() -> None:
    assert "multicentre large trial" in words(seen(STRONG._replace(adequate=False)))


def test_an_average_that_is_too_low_is_never_a_lack_without_words() -> None:
    found = find_gaps(QUESTION, [seen(STRONG._replace(relevance=0.55, methodology=0.65))])
    assert found == (Gap("What is kept is not good enough on average.", ("randomised", "controlled", "trial")),)


def test_every_query_says_what_it_aims_at_and_what_it_added() -> None:
    missing = find_gaps(QUESTION, [seen(SERIES)])
    for query in next_queries(QUESTION, missing, first_queries(QUESTION), 20):
        assert query.aims_at is not None
        assert query.aims_at in query.why
        assert "aspirin" in query.text


@pytest.mark.parametrize("said", [SERIES, AWAY, BORDERLINE, STRONG])
def test_no_search_is_made_twice_in_however_many_rounds(said: Said) -> None:
    tried = list(first_queries(QUESTION))
    for _ in range(12):
        asked = next_queries(QUESTION, find_gaps(QUESTION, [seen(said)]), tried, 20)
        assert 1 <= len(asked) <= MOST_QUERIES
        tried.extend(asked)
    searches = [(frozenset(query.text.lower().split()), query.offset) for query in tried]
    assert len(set(searches)) == len(searches)


def test_where_no_words_are_left_the_list_of_the_question_is_read_on() -> None:
    tried = [*first_queries(QUESTION)]
    lack = Gap("Nothing new.", ())
    tried.extend(next_queries(QUESTION, [lack], tried, 20))
    (first,) = next_queries(QUESTION, [lack], tried, 20)
    assert (first.text, first.offset) == (QUESTION, 20)
    (second,) = next_queries(QUESTION, [lack], [*tried, first], 20)
    assert second.offset == 40
    assert "read on from place 41" in second.why


def test_a_question_that_names_nothing_is_searched_as_it_stands() -> None:
    asked = next_queries("???", find_gaps("???", []), [Query(text="???", why="")], 5)
    assert all(query.text for query in asked)
