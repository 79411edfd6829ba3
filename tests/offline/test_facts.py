"""Numbers and dates: found with offsets, compared with their units."""

import pytest

from masis.offline.parsing.facts import Day, Fact, agree, comparable, extract, likeness


def only(text: str, kind: str) -> Fact:
    found = [fact for fact in extract(text) if fact.kind == kind]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("It has 67 million users", 67e6, ""),
        ("a loss of $1.2bn", 1.2e9, "money:usd"),
        ("a loss of NOK 2,184 million", 2.184e9, "money:nok"),
        ("up 12%", 12.0, "percent"),
        ("up 12 per cent", 12.0, "percent"),
        ("a dose of 0.002 mg", 2e-6, "mass"),
        ("after three years", 36.0, "months"),
        ("twenty-five people", 25.0, ""),
        ("1500 patients", 1500.0, ""),
    ],
)
def test_a_number_is_read_with_magnitude_and_unit(text: str, value: float, dimension: str) -> None:
    fact = only(text, "number")
    assert fact.value == pytest.approx(value)
    assert fact.dimension == dimension
    assert text[fact.start : fact.end] == fact.text


def test_the_unit_behind_a_range_belongs_to_both_ends() -> None:
    low, high = (fact for fact in extract("profit of $205 to $215 million") if fact.kind == "number")
    assert (low.value, high.value) == (205e6, 215e6)
    assert [fact.dimension for fact in extract("from 6 to 8%")] == ["percent", "percent"]


@pytest.mark.parametrize("text", ["on 5 May 2021", "on May 5, 2021.", "on 2021-05-05", "on the 5th of May 2021"])
def test_a_date_is_the_same_however_it_is_written(text: str) -> None:
    fact = only(text, "date")
    assert fact.value == Day(2021, 5, 5)
    assert not fact.text.endswith((".", ","))


def test_dates_agree_as_far_as_both_are_given() -> None:
    full, month, year, other = (only(text, "date") for text in ("5 May 2021", "May 2021", "in 2021", "5 May 2020"))
    assert agree(month, full)
    assert agree(year, full)
    assert not agree(other, full)
    assert not agree(only("on 10 July", "date"), only("in 2020", "date"))


def test_numbers_agree_across_units_and_by_rounding() -> None:
    assert agree(only("three years", "number"), only("36 months", "number"))
    assert agree(only("14%", "number"), only("14.2%", "number"))
    assert not agree(only("67 million users", "number"), only("999 million users", "number"))
    assert not agree(only("0.02 mg", "number"), only("0.002 mg", "number"))


def test_what_measures_another_thing_cannot_contradict() -> None:
    assert not comparable(only("12%", "number"), only("12.5 km", "number"))
    assert not comparable(only("3 hulls", "number"), only("4 yards", "number"))
    assert comparable(only("3 hulls", "number"), only("11 hulls", "number"))


def test_an_altered_fact_looks_like_the_one_it_was_made_from() -> None:
    assert likeness(only("41.2%", "number"), only("14.2%", "number")) == 1.0
    assert likeness(only("$1.42 million", "number"), only("$1.42 billion", "number")) == 1.0
    assert likeness(only("8 March 2021", "date"), only("3 August 2021", "date")) == 1.0
    assert likeness(only("14.2%", "number"), only("3.9%", "number")) == 0.0
