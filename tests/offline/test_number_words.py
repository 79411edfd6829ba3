"""Numbers in words: one reader for facts and sample sizes."""

import pytest

from masis.offline.text.number_words import NumberWords, read_cardinal, read_ordinal, read_share


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
