"""Where a text says what somebody quotes from it: to the letter, else as a careful copyist may have
changed it.

Judges quote from memory: they change blanks, the case of words, dashes and quote marks, leave out
citation markers and emphasis, and join two places with dots. What may differ is declared in
``comparison``; a quote that is found in none of these ways is not in the text, nor is one that
begins or ends within a figure. Linear in both lengths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from masis.audit.text.comparison import ComparisonForm, quotation_forms

Spans = tuple[tuple[int, int], ...]


class QuotePosition(NamedTuple):
    """Where a quote stands in a text: start included, end excluded."""

    start: int
    end: int


SHORT = 4
"""A quote of fewer characters must stand as a word of its own: ``he`` is not in ``the``."""
MIN_PIECE = 6
"""Characters of the form that each part of a quote shortened with dots must have, so as to say
something.
"""
MAX_GAP = 600
"""Characters that may lie between two parts of one quote."""
_LOOKS = 64
"""How many places are looked at for one where the quote is no part of a longer word."""

_QUOTE_MARKS = "\"'“”„‟‘’‚‛«»‹›「」『』`´"
_ELISION = re.compile(r"\s*(?:\[(?:\.{3}|…)\]|\((?:\.{3}|…)\)|\.{3,}|…)\s*")
_TRAILING = frozenset(" .,;:?" + _QUOTE_MARKS)
_SIGNS = "-−–"


def locate_quote(
    quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()
) -> QuotePosition | None:
    """The stretch of the text that the quote gives; None where it gives none.

    ``ignoring`` names stretches of the text (citation markers) that a quote may leave out. A quote
    of several parts joined by dots gives the stretch from the first to the last.
    """
    parts = located_parts(quote, text, ignoring)
    return QuotePosition(parts[0].start, parts[-1].end) if parts else None


def located_parts(
    quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()
) -> tuple[QuotePosition, ...]:
    """As ``located``, each part of a quote with dots for itself; empty where one of them is
    nowhere.
    """
    wanted = quote.strip()
    if not wanted or not text:
        return ()
    if (at := _find_needle(wanted, text, 0)) >= 0:
        return (QuotePosition(at, at + len(wanted)),)
    spans = tuple(sorted(ignoring))
    for candidate in dict.fromkeys([wanted, _trim_quote(wanted)]):
        for skipped in dict.fromkeys([(), spans]):
            for form in _cached_forms(text, skipped):
                if (found := _locate_whole(candidate, form)) is not None:
                    return (found,)
    return next(
        filter(None, (_locate_in_parts(wanted, form) for form in _cached_forms(text, spans))), ()
    )


def _trim_quote(quote: str) -> str:
    """Return a quote without the marks around it and the punctuation behind it; a sign in front of
    it stays.
    """
    begun = quote.lstrip(_QUOTE_MARKS + " ")
    end = len(begun)
    while end and (
        begun[end - 1] in _TRAILING
        or (begun[end - 1] == "!" and not begun[end - 2 : end - 1].isdigit())
    ):
        end -= 1
    return begun[:end]


def _locate_whole(quote: str, form: ComparisonForm) -> QuotePosition | None:
    for needle in _needles(quote):
        if (at := _find_needle(needle, form.text, 0)) >= 0:
            return QuotePosition(*form.span(at, at + len(needle)))
    return None


def _needles(quote: str) -> Iterator[str]:
    """Yield the form of a quote, then with a capital or a small first letter: a quotation may begin
    in a sentence.
    """
    needle = quotation_forms(quote)[0].text.strip()
    yield needle
    first = re.match(r"[^\W\d_]{3,}", needle)
    if first and (first.group().islower() or first.group().istitle()):
        yield needle[0].swapcase() + needle[1:]


def _locate_in_parts(quote: str, form: ComparisonForm) -> tuple[QuotePosition, ...]:
    pieces = [
        piece for part in _ELISION.split(quote) if (piece := next(_needles(_trim_quote(part))))
    ]
    if len(pieces) < 2 or any(len(piece) < MIN_PIECE for piece in pieces):
        return ()
    found: list[QuotePosition] = []
    after = 0
    for piece in pieces:
        at = _find_needle(piece, form.text, after)
        if at < 0 or (found and at - after > MAX_GAP):
            return ()
        after = at + len(piece)
        found.append(QuotePosition(*form.span(at, after)))
    return tuple(found)


def _find_needle(needle: str, text: str, after: int) -> int:
    """Where the needle stands, best where it is no part of a longer word; -1 if nowhere but in a
    longer figure.
    """
    first, at = -1, text.find(needle, after) if needle else -1
    for _ in range(_LOOKS):
        if at < 0:
            break
        end = at + len(needle)
        before = at > 0 and text[at - 1].isalnum() and text[at].isalnum()
        behind = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        if not _cuts_figure(text, at, end):
            if not (before or behind):
                return at
            first = at if first < 0 else first
        at = text.find(needle, at + 1)
    return first if len(needle) >= SHORT else -1


def _cuts_figure(text: str, start: int, end: int) -> bool:
    """Return whether a stretch begins or ends within a figure, and so gives another: 5 of .5, −5,
    15, 5³ or 5.5.
    """
    before, first, last, behind = (
        text[start - 1 : start],
        text[start],
        text[end - 1],
        text[end : end + 1],
    )
    if start and first.isdigit():
        earlier = text[start - 2 : start - 1] if start > 1 else ""
        if before.isdigit() or before == "." or (before == "," and earlier.isdigit()):
            return True
    negative = start > 0 and before in _SIGNS and (start == 1 or not text[start - 2].isalnum())
    if negative and (first.isdigit() or first in "$€£¥."):
        return True
    if behind and last.isalnum() and behind.isdigit() and not behind.isdecimal():
        return True  # a superscript or a subscript
    if behind and last.isdigit():
        return (
            behind.isdigit()
            or behind in "′″‴‰"
            or (behind in ".," and text[end + 1 : end + 2].isdigit())
        )
    return False


@lru_cache(maxsize=64)
def _cached_forms(text: str, skipped: Spans) -> tuple[ComparisonForm, ...]:
    """Return the forms of a text that is quoted from again and again."""
    return quotation_forms(text, skipped)
