"""Offsets in an answer as other tools count them.

They count characters, or UTF-16 units as JavaScript and Java do. Both are the same up to the first
character outside the Basic Multilingual Plane, such as an emoji, which is one character but two
units. The text that the offsets cover shows which of the two a file uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class LabelSpan(NamedTuple):
    """A span of a text; ``words`` are words of which one probably occurs in it."""

    start: int
    end: int
    words: tuple[str, ...] = ()


def to_character_spans(text: str, spans: Sequence[LabelSpan]) -> list[LabelSpan]:
    """Return the spans of one text counted in characters, converting UTF-16 units if necessary.

    They are converted if more of them then fit into the text, cover their words, or begin and end
    at word boundaries. A span that fits neither way is returned unchanged.
    """
    if _has_only_bmp(text):
        return list(spans)
    index = _index_by_unit(text)
    converted = [_convert_span(index, converted_span) for converted_span in spans]
    as_units = [converted_span or LabelSpan(-1, -1) for converted_span in converted]
    # Characters win a tie, because most tools count them.
    if _score_spans(text, as_units) <= _score_spans(text, spans):
        return list(spans)
    return [converted_span or span for converted_span, span in zip(converted, spans, strict=True)]


def _convert_span(index: list[int | None], span: LabelSpan) -> LabelSpan | None:
    if not 0 <= span.start <= span.end < len(index):
        return None
    start, end = index[span.start], index[span.end]
    return None if start is None or end is None else span._replace(start=start, end=end)


def is_within(text: str, start: int, end: int) -> bool:
    """Return whether a span is inside a text."""
    return 0 <= start <= end <= len(text)


def find_quoted_place(
    text: str, quoted: str, start: int | None, end: int | None
) -> tuple[int, int] | None:
    """Return the place of a quoted part of a text, or None if it isn't certain.

    The offsets are used if they match, else the only occurrence of the words. Label Studio writes a
    line break in a quoted part as a backslash and an ``n``.
    """
    forms = dict.fromkeys((quoted, quoted.replace("\\n", "\n")))
    if start is not None:
        as_given = LabelSpan(start, start + len(quoted) if end is None else end)
        converted = None if _has_only_bmp(text) else _convert_span(_index_by_unit(text), as_given)
        for span in (as_given, converted):
            if (
                span is not None
                and is_within(text, span.start, span.end)
                and text[span.start : span.end] in forms
            ):
                return span.start, span.end
    for form in forms:
        if form and text.count(form) == 1:
            at = text.index(form)
            return at, at + len(form)
    return None


def _has_only_bmp(text: str) -> bool:
    # isascii() is constant time.
    return text.isascii() or max(text) <= "\uffff"


def _index_by_unit(text: str) -> list[int | None]:
    """Return the index of the character that starts at each UTF-16 unit.

    It is None for the second unit of a character.
    """
    index: list[int | None] = []
    for place, char in enumerate(text):
        index += [place] if char <= "\uffff" else [place, None]
    return [*index, len(text)]


def _score_spans(text: str, spans: Sequence[LabelSpan]) -> tuple[int, int, int]:
    """Return how many spans are inside the text, cover their words, and cover whole words."""
    inside = [span for span in spans if is_within(text, span.start, span.end)]
    rules: tuple[Callable[[LabelSpan], bool], ...] = (
        lambda span: any(word and word in text[span.start : span.end] for word in span.words),
        lambda span: _covers_whole_words(text, span),
    )
    return len(inside), *(sum(map(rule, inside)) for rule in rules)  # type: ignore[return-value]


def _covers_whole_words(text: str, span: LabelSpan) -> bool:
    covered = text[span.start : span.end]
    if not covered or covered != covered.strip():
        return False
    before, after = text[max(span.start - 1, 0) : span.start], text[span.end : span.end + 1]
    return not (
        (before.isalnum() and covered[0].isalnum()) or (after.isalnum() and covered[-1].isalnum())
    )
