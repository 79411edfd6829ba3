"""Finds markers that a revision or an edit damaged: empty, unclosed or cut in half."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from masis.audit.markers.styles import Brackets, alternatives, style_table


@cache
def _empty_pattern(brackets: Brackets) -> re.Pattern[str]:
    # "[]", "【 】": a marker that lost its content.
    return re.compile(
        "|".join(
            rf"{re.escape(opening)}\s{{0,50}}{re.escape(closing)}" for opening, closing in brackets
        )
    )


@cache
def _unclosed_pattern(brackets: Brackets) -> re.Pattern[str]:
    # "[chunk_1 [2]": an opening bracket that doesn't close before the next one or the line end.
    opening = alternatives(opening for opening, _ in brackets)
    bracket = alternatives(bracket for pair in brackets for bracket in pair)
    return re.compile(rf"(?:{opening})((?:(?!{bracket})[^\n]){{0,300}})(?={opening}|\n|\Z)")


@cache
def _parts_of_closings(closings: tuple[str, ...]) -> tuple[str, ...]:
    # "}" of "}}": the rest of a closing bracket of several characters, the longest rest first.
    parts = {closing[:length] for closing in closings for length in range(1, len(closing))}
    return tuple(sorted(parts, key=len, reverse=True))


_STOPS_AFTER_ID = ".:!?"


def _without_half_closing(word: str) -> str:
    """Return a word without stops and a half-lost closing bracket: ``3`` for ``3}.``."""
    word = word.rstrip(_STOPS_AFTER_ID)
    parts = _parts_of_closings(style_table().closing_brackets)
    part = next(filter(word.endswith, parts), "")
    return word.removesuffix(part).rstrip(_STOPS_AFTER_ID)


def count_empty_markers(text: str) -> int:
    """Return the number of empty pairs of brackets."""
    return len(_empty_pattern(style_table().brackets).findall(text))


def count_unclosed_markers(text: str, ids: Iterable[str]) -> int:
    """Return the number of brackets that open a citation and never close.

    A bracket at the very end of the text counts if it could begin an id.
    """
    known_ids = set(ids)
    count = 0
    for match in _unclosed_pattern(style_table().brackets).finditer(text):
        content = match[1].strip()
        first_word = _without_half_closing(re.split(r"[\s,;]", content, maxsplit=1)[0])
        at_end = match.end() == len(text) and any(
            known_id.startswith(content) for known_id in known_ids
        )
        count += first_word in known_ids or at_end
    return count


def half_bracketed_ids(text: str, ids: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the ids next to half a pair of brackets, as in ``[c1]c2]``.

    Each result is a position and the text of the id with its bracket. Ids in complete markers are
    found too; the caller must exclude them.
    """
    any_id = alternatives(ids)
    if not any_id:
        return
    table = style_table()
    opening, closing = alternatives(table.opening_brackets), alternatives(table.closing_brackets)
    pattern = (
        rf"(?:{opening})\s*(?P<open>{any_id})(?!\w)"
        rf"|(?<!\w)(?P<close>{any_id})\s*(?:{closing})"
    )
    for match in re.finditer(pattern, text):
        yield match.start(match.lastgroup or 0), match.group()
