"""Places in an answer as other tools count them: in characters, or in UTF-16 units as JavaScript
and Java do.

Both are the same up to the first character outside of the Basic Multilingual Plane, such as an
emoji: it is one character and two units. Which of the two a file counts in is read from what its
offsets cover.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class LabelSpan(NamedTuple):
    """A place in a text: ``start`` and ``end``, and ``words`` of which one is likely to be in what
    they cover.
    """

    start: int
    end: int
    words: tuple[str, ...] = ()


def to_character_spans(text: str, spans: Sequence[LabelSpan]) -> list[LabelSpan]:
    """Return the spans of one text counted in characters, converted where they count UTF-16 units.

    They do where more of them fit into the text like that, or where more cover their words, or
    begin and end at the edge of a word. A span that fits neither way is returned as it is.
    """
    if _has_only_bmp(text):
        return list(spans)
    index = _index_by_unit(text)
    converted = [_convert_span(index, each) for each in spans]
    as_units = [each or LabelSpan(-1, -1) for each in converted]
    if _score_spans(text, as_units) <= _score_spans(text, spans):
        return list(spans)
    return [each or given for each, given in zip(converted, spans, strict=True)]


def _convert_span(index: list[int | None], span: LabelSpan) -> LabelSpan | None:
    if not 0 <= span.start <= span.end < len(index):
        return None
    start, end = index[span.start], index[span.end]
    return None if start is None or end is None else span._replace(start=start, end=end)


def is_within(text: str, start: int, end: int) -> bool:
    """Return whether a place lies inside of a text."""
    return 0 <= start <= end <= len(text)


def find_quoted_place(
    text: str, quoted: str, start: int | None, end: int | None
) -> tuple[int, int] | None:
    """Return where a quoted part of a text stands, by its offsets or, where it stands there once,
    by its words.

    Label Studio writes a line break as a backslash and an ``n`` in a quoted part. Returns None
    where the place isn't certain.
    """
    forms = dict.fromkeys((quoted, quoted.replace("\\n", "\n")))
    if start is not None:
        given = LabelSpan(start, start + len(quoted) if end is None else end)
        units = None if _has_only_bmp(text) else _convert_span(_index_by_unit(text), given)
        for span in (given, units):
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
    return text.isascii() or max(text) <= "\uffff"


def _index_by_unit(text: str) -> list[int | None]:
    """Return the index of the character that begins at each UTF-16 unit; None inside of a
    character.
    """
    index: list[int | None] = []
    for place, char in enumerate(text):
        index += [place] if char <= "\uffff" else [place, None]
    return [*index, len(text)]


def _score_spans(text: str, spans: Sequence[LabelSpan]) -> tuple[int, int, int]:
    """Return how many spans lie inside of the text, how many of these cover their words, how many
    whole words.
    """
    inside = [each for each in spans if is_within(text, each.start, each.end)]
    rules: tuple[Callable[[LabelSpan], bool], ...] = (
        lambda each: any(word and word in text[each.start : each.end] for word in each.words),
        lambda each: _covers_whole_words(text, each),
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
