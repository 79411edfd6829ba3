"""Words, stems and weights."""

import pytest

from masis.offline.text.lexicon import antonyms, synonym_keys
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


def test_the_word_lists_are_read_both_ways() -> None:
    assert stem("fall") in antonyms()[stem("rise")]
    assert stem("rise") in antonyms()[stem("fall")]
    assert set(synonym_keys()[stem("lawyer")]) & set(synonym_keys()[stem("attorney")])


@pytest.mark.parametrize("hostile", ["1." * 50_000, "1," * 50_000, "a" * 100_000, "a'" * 50_000, "é" * 100_000])
def test_hostile_text_is_read_in_linear_time(hostile: str) -> None:
    tokens(hostile)
