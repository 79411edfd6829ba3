"""Finds a quote in a text: exactly, or with the changes that a careful copyist makes.

Judges quote from memory: they change spaces, case, dashes and quote marks, leave out citation
markers and emphasis, and join two passages with dots. ``comparison`` declares the differences that
are allowed. A quote that isn't found in any of these ways isn't in the text, nor is one that begins
or ends inside a figure. The search is linear in both lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from masis.audit.text.comparison import ComparisonForm, quotation_forms

Spans = tuple[tuple[int, int], ...]


class QuotePosition(NamedTuple):
    """The position of a quote in a text: start included, end excluded."""

    start: int
    end: int


SHORT = 4
"""A shorter quote must be a word of its own: ``he`` is not in ``the``."""
MIN_PIECE = 6
"""The number of characters that each part of a quote with dots must have to be meaningful."""
MAX_GAP = 600
"""Maximum number of characters between two parts of a quote."""
_MAX_TRIES = 64
"""Maximum number of matches tried to find one that isn't part of a longer word."""

_QUOTE_MARKS = "\"'“”„‟‘’‚‛«»‹›「」『』`´"
# "...", "…", "[...]" or "(…)" in place of words that the quote leaves out.
_ELISION = re.compile(r"\s*(?:\[(?:\.{3}|…)\]|\((?:\.{3}|…)\)|\.{3,}|…)\s*")
_TRAILING = frozenset(" .,;:?" + _QUOTE_MARKS)
_SIGNS = "-−–"


def locate_quote(
    quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()
) -> QuotePosition | None:
    """Return the position of the quote in the text, or None if it isn't there.

    A quote may leave out the ``ignoring`` spans of the text (citation markers). For a quote of
    several parts joined by dots, the position spans from the first to the last.
    """
    parts = located_parts(quote, text, ignoring)
    return QuotePosition(parts[0].start, parts[-1].end) if parts else None


def located_parts(
    quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()
) -> tuple[QuotePosition, ...]:
    """Return the position of each part of a quote with dots.

    The result is empty if one of the parts isn't in the text.
    """
    stripped = quote.strip()
    if not stripped or not text:
        return ()
    if (start := _find_needle(stripped, text, 0)) >= 0:
        return (QuotePosition(start, start + len(stripped)),)
    spans = tuple(sorted(ignoring))
    for candidate in dict.fromkeys([stripped, _trim_quote(stripped)]):
        for skipped in dict.fromkeys([(), spans]):
            for form in _cached_forms(text, skipped):
                if (position := _locate_whole(candidate, form)) is not None:
                    return (position,)
    return next(
        filter(None, (_locate_in_parts(stripped, form) for form in _cached_forms(text, spans))), ()
    )


def _trim_quote(quote: str) -> str:
    """Return a quote without marks around it and punctuation after it; a sign before it stays."""
    without_opening = quote.lstrip(_QUOTE_MARKS + " ")
    end = len(without_opening)
    while end and (
        without_opening[end - 1] in _TRAILING
        or (without_opening[end - 1] == "!" and not without_opening[end - 2 : end - 1].isdigit())
    ):
        end -= 1
    return without_opening[:end]


def _locate_whole(quote: str, form: ComparisonForm) -> QuotePosition | None:
    for needle in _needles(quote):
        if (start := _find_needle(needle, form.text, 0)) >= 0:
            return QuotePosition(*form.span(start, start + len(needle)))
    return None


def _needles(quote: str) -> Iterator[str]:
    """Yield the form of a quote, then the form with the case of its first letter swapped.

    A quote may begin inside a sentence of the text.
    """
    needle = quotation_forms(quote)[0].text.strip()
    yield needle
    # A shorter word may be a unit or a code, and its case is then part of it.
    first = re.match(r"[^\W\d_]{3,}", needle)
    if first and (first.group().islower() or first.group().istitle()):
        yield needle[0].swapcase() + needle[1:]


def _locate_in_parts(quote: str, form: ComparisonForm) -> tuple[QuotePosition, ...]:
    pieces = [
        piece for part in _ELISION.split(quote) if (piece := next(_needles(_trim_quote(part))))
    ]
    if len(pieces) < 2 or any(len(piece) < MIN_PIECE for piece in pieces):
        return ()
    positions: list[QuotePosition] = []
    search_from = 0
    for piece in pieces:
        start = _find_needle(piece, form.text, search_from)
        if start < 0 or (positions and start - search_from > MAX_GAP):
            return ()
        search_from = start + len(piece)
        positions.append(QuotePosition(*form.span(start, search_from)))
    return tuple(positions)


def _find_needle(needle: str, text: str, search_from: int) -> int:
    """Return the position of the needle, preferably where it isn't part of a longer word.

    The result is -1 if it occurs nowhere or only inside longer figures.
    """
    first_match, position = -1, text.find(needle, search_from) if needle else -1
    for _ in range(_MAX_TRIES):
        if position < 0:
            break
        end = position + len(needle)
        continues_word = position > 0 and text[position - 1].isalnum() and text[position].isalnum()
        continues_after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        if not _is_inside_figure(text, position, end):
            if not (continues_word or continues_after):
                return position
            first_match = position if first_match < 0 else first_match
        position = text.find(needle, position + 1)
    return first_match if len(needle) >= SHORT else -1


def _is_inside_figure(text: str, start: int, end: int) -> bool:
    """Return whether a span begins or ends inside a figure, which changes the figure.

    An example is ``5`` in ``.5``, ``−5``, ``15``, ``5³`` or ``5.5``.
    """
    before, first, last, after = (
        text[start - 1 : start],
        text[start],
        text[end - 1],
        text[end : end + 1],
    )
    if start and first.isdigit():
        second_before = text[start - 2 : start - 1] if start > 1 else ""
        if before.isdigit() or before == "." or (before == "," and second_before.isdigit()):
            return True
    is_negative = start > 0 and before in _SIGNS and (start == 1 or not text[start - 2].isalnum())
    if is_negative and (first.isdigit() or first in "$€£¥."):
        return True
    if after and last.isalnum() and after.isdigit() and not after.isdecimal():
        return True  # a superscript or a subscript
    if after and last.isdigit():
        return (
            after.isdigit()
            or after in "′″‴‰"
            or (after in ".," and text[end + 1 : end + 2].isdigit())
        )
    return False


@lru_cache(maxsize=64)
def _cached_forms(text: str, skipped: Spans) -> tuple[ComparisonForm, ...]:
    """Return the forms of a text, cached because it is quoted from many times."""
    return quotation_forms(text, skipped)
