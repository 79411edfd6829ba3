"""Quotes are found where the text says them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.audit.quotes import located, located_parts

TEXT = "Revenue **grew** by 12 % in 2020 [chunk_1]. It’s said – “well” – that A fell; the\n café opened in Łódź."
MARKER = (TEXT.index("[chunk_1]"), TEXT.index("[chunk_1]") + len("[chunk_1]"))


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("by 12 % in 2020", "by 12 % in 2020"),
        ("Revenue grew by 12% in 2020", "Revenue **grew** by 12 % in 2020"),
        ('It\'s said - "well" - that A fell', "It’s said – “well” – that A fell"),
        ('"IT\'S SAID"', "It’s said"),
        ("It’s said – well – that A", "It’s said – “well” – that A"),
        ("the cafe\u0301 opened", "the\n café opened"),
        ("the caf\u00e9\u200b opened!", "the\n café opened"),
        ("It's said ... opened in Łódź.", "It’s said – “well” – that A fell; the\n café opened in Łódź"),
        ("It's said […] opened in Łódź", "It’s said – “well” – that A fell; the\n café opened in Łódź"),
    ],
)
def test_a_careless_copy_is_found_where_the_text_says_it(quote: str, found: str) -> None:
    place = located(quote, TEXT)
    assert place is not None
    assert TEXT[place.start : place.end] == found


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "   ",
        "...",
        "Revenue fell",
        "grew by 13 %",
        "he",
        "e",
        "It's said ... no such thing",
        "opened ... Revenue grew",
        "grew ... 2020",
    ],
)
def test_what_the_text_does_not_say_is_not_found(quote: str) -> None:
    assert located(quote, TEXT) is None


def test_a_quote_may_leave_out_the_markers_that_are_named_and_no_others() -> None:
    quote = "in 2020. It’s said"
    assert located(quote, TEXT) is None
    place = located(quote, TEXT, [MARKER])
    assert place is not None
    assert TEXT[place.start : place.end] == "in 2020 [chunk_1]. It’s said"


def test_a_short_quote_is_the_word_and_not_a_part_of_another() -> None:
    place = located("he", "the other one said that he left")
    assert place is not None
    assert place.start == 24


def test_words_on_both_sides_of_a_marker_stay_two_words() -> None:
    assert located("ab", "a[1]b", [(1, 4)]) is None


def test_each_part_of_a_quote_with_dots_has_its_own_place() -> None:
    parts = located_parts("It’s said ... opened in Łódź", TEXT)
    assert [TEXT[start:end] for start, end in parts] == ["It’s said", "opened in Łódź"]


def test_parts_far_from_each_other_are_no_quote() -> None:
    assert located("the first part ... the second part", f"the first part{' x' * 1000} the second part") is None


@given(st.text(max_size=60), st.text(min_size=4, max_size=40), st.text(max_size=60))
def test_whatever_is_copied_to_the_letter_is_found(before: str, quote: str, behind: str) -> None:
    place = located(quote, before + quote + behind)
    if not quote.strip():
        assert place is None
    elif len(quote.strip()) >= 4:
        assert place is not None
        assert (before + quote + behind)[place.start : place.end] == quote.strip()


@given(st.text(max_size=80), st.text(max_size=80), st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80))))
def test_a_place_lies_within_the_text(quote: str, text: str, spans: list[tuple[int, int]]) -> None:
    ignoring = [(start, end) for start, end in spans if start < end <= len(text)]
    for start, end in located_parts(quote, text, ignoring):
        assert 0 <= start < end <= len(text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("a " * 50_000, "a " * 100_000 + "b"),
        ("x" * 99_999 + "y", "x" * 100_000),
        ("... " * 25_000, "a" * 100_000),
        ("(a+)+$ [x" * 12_000, "a" * 100_000),
        ("abcdefg...hijklmn..." * 5_000, "abcdefg hijklmn " * 6_000),
        ("ab" * 50_000, "ab" * 49_999),
    ],
)
def test_a_strange_quote_of_100_000_characters_does_not_stall_the_search(quote: str, text: str) -> None:
    located(quote, text, [(at, at + 1) for at in range(0, 40_000, 5)])


def test_a_blank_beside_a_quote_mark_is_no_difference() -> None:
    text = "They ask « why? » and go."
    place = located('They ask "why?" and go', text)
    assert place is not None
    assert (place.start, place.end) == (0, len(text) - 1)
