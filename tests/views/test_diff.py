"""Word-level differences: nothing is lost, what a reader calls one change is one, and no text takes minutes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.views.diff import word_changes


def sides(before: str, after: str) -> tuple[str, str]:
    changes = word_changes(before, after)
    left = "".join(change.text for change in changes if change.kind != "in")
    right = "".join(change.text for change in changes if change.kind != "out")
    return left, right


@given(st.text(alphabet="ab .,[]1\n\u6587"), st.text(alphabet="ab .,[]1\n\u6587"))
def test_both_texts_can_be_put_together_again(before: str, after: str) -> None:
    assert sides(before, after) == (before, after)
    assert all(change.text for change in word_changes(before, after))


def test_a_changed_figure_is_one_change_with_its_sign() -> None:
    changes = word_changes("Revenue grew by 41.2% in 2023 [chunk_99].", "Revenue grew by 14.2% in 2023 [chunk_2].")
    assert [(change.kind, change.text.strip()) for change in changes if change.kind != "same"] == [
        ("out", "41.2%"),
        ("in", "14.2%"),
        ("out", "[chunk_99]"),
        ("in", "[chunk_2]"),
    ]


def test_the_same_text_has_no_changes() -> None:
    assert [change.kind for change in word_changes("Nothing new here.", "Nothing new here.")] == ["same"]
    assert word_changes("", "") == []


def test_neighbouring_changes_with_only_a_comma_between_are_one() -> None:
    changes = word_changes("It is grey, narrow and old.", "It is blue, wide and old.")
    assert [change.text.strip() for change in changes if change.kind != "same"] == ["grey, narrow", "blue, wide"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b " * 12_500, "b a " * 12_500),
        ("x" * 100_000, "y" * 100_000),
        (" " * 100_000, "\n" * 100_000),
        ("[" * 50_000 + "]" * 50_000, "[" * 50_000),
        (" ".join(map(str, range(20_000))), " ".join(map(str, reversed(range(20_000))))),
        ("the cat sat. " * 8_000, "the cat stood. " * 7_000),
    ],
)
def test_long_texts_take_no_longer_than_a_page_may(before: str, after: str) -> None:
    assert sides(before, after) == (before, after)


def test_a_few_edits_in_a_long_text_are_found_where_they_are() -> None:
    chooser = random.Random(7)
    words = [f"{chooser.choice(('the', 'a', 'of', 'in'))} word{chooser.randrange(3_000)}" for _ in range(8_000)]
    edited = [*words[:4_000], "newly", *words[4_001:]]
    changes = [change for change in word_changes(" ".join(words), " ".join(edited)) if change.kind != "same"]
    assert [change.text.strip() for change in changes] == [words[4_000], "newly"]
