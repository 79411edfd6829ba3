"""Headings at the start of a text of the evidence."""

from __future__ import annotations

import pytest

from masis.audit.text.headings import heading_end, is_heading


@pytest.mark.parametrize(
    "title",
    [
        "Lumo sofa, Stains.",
        "Windle Gas, Tariff Home 12 [1].",
        "Northern Rail: Delay compensation.",
        "Acme Bank - Terms and Conditions",
        "Refunds | Rules of 2024",
    ],
)
def test_a_title_in_parts_is_a_heading_although_it_ends_like_a_sentence(title: str) -> None:
    assert is_heading(title)
    assert heading_end(f"{title.rstrip('.')}. Use cold water.") == len(title.rstrip(".")) + 2


@pytest.mark.parametrize(
    "sentence",
    [
        "The bridge is old.",
        "In 1950, Ada built it.",
        "She sings, Tom sings.",
        "Note: It fell.",
        "After the fire, Halden burned.",
    ],
)
def test_a_sentence_with_a_comma_isnt_a_heading(sentence: str) -> None:
    assert not is_heading(sentence)
    assert heading_end(f"{sentence} Use cold water.") == 0


def test_the_body_of_a_text_starts_after_markdown_headings() -> None:
    assert heading_end("# Refunds\n\nYou get your money back.") == len("# Refunds\n\n")
    assert heading_end("Lumo sofa, Stains.") == 0  # without a body, the heading is the text
