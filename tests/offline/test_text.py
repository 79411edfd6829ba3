"""Words, stems and weights."""

from __future__ import annotations

import pytest

from masis.offline.text.lexicon import synonym_keys
from masis.offline.text.number_words import NumberWords, read_cardinal, read_ordinal, read_share
from masis.offline.text.tokens import stem, tokens, weight


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("acquired", "acquires"),
        ("located", "location"),
        ("rose", "rise"),
        ("studies", "study"),
        ("Niño", "nino"),
        ("twelve", "12"),
        ("1,200.50", "1200.5"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_decimals_stay_whole_and_offsets_point_at_the_text() -> None:
    text = "The dose is 0.002 mg, i.e. 1,200.5 in all."
    words = tokens(text)
    assert "0.002" in [word.text for word in words]
    assert all(text[word.start : word.end] == word.text for word in words)


def test_numbers_weigh_more_than_words_and_function_words_nothing() -> None:
    assert weight("67") > weight("Paris") > weight("capital") > weight("include") > weight("the") == 0


def test_words_of_one_meaning_share_a_group() -> None:
    assert set(synonym_keys()[stem("lawyer")]) & set(synonym_keys()[stem("attorney")])


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("forty - two patients", 42, 3),
        ("two hundred and fifty nine", 259, 5),
        ("three hundred thousand", 300_000, 3),
        ("two thousand million", 2_000_000_000, 3),
        ("two million and five million", 2_000_000, 2),
        ("ten five year plans", 10, 1),
        ("dozen eggs", 12, 1),
        ("zero million", 0, 2),
    ],
)
def test_as_many_words_are_read_as_make_one_number(text: str, value: int, words: int) -> None:
    found = read_cardinal(text.split(), 0)
    assert found is not None
    assert (found.value, found.after) == (value, words)


def test_a_scale_alone_counts_only_where_the_caller_says_so() -> None:
    assert read_cardinal(["hundred", "patients"], 0) is None
    assert read_cardinal(["hundred", "patients"], 0, bare_scales={"hundred"}) == NumberWords(100, 1, scaled=True)


def test_shares_and_ordinals_need_what_they_count() -> None:
    share = read_share("two thirds of voters".split(), 0)
    assert share is not None
    assert (round(share[0], 1), share[1]) == (66.7, 2)
    assert read_share("two thirds majority".split(), 0) is None
    assert read_ordinal("third quarter".split(), 0) == 3.0
    assert read_ordinal("third person".split(), 0) is None
