"""Where a text says what somebody quotes from it: to the letter, else as a careful copyist may have changed it.

Judges quote from memory: they change blanks, case, dashes and quote marks, leave out citation markers and emphasis, and
join two places with dots. A quote that is found in none of these ways is not in the text. Linear in both lengths.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

Spans = tuple[tuple[int, int], ...]


class Located(NamedTuple):
    """Where a quote stands in a text: start included, end excluded."""

    start: int
    end: int


SHORT = 4
"""A quote of fewer characters must stand as a word of its own: ``he`` is not in ``the``."""
PIECE_LEAST = 6
"""Characters (folded) that each part of a quote shortened with dots must have, so as to say something."""
GAP_MOST = 600
"""Characters that may lie between two parts of one quote."""
_LOOKS = 64
"""How many places are looked at for one where the quote is no part of a longer word."""

_QUOTE_MARKS = "\"'“”„‟‘’‚‛«»‹›「」『』`´"
_DASHES = "‐‑‒–—―−﹣－"
_ELISION = re.compile(r"\s*(?:\[(?:\.{3}|…)\]|\((?:\.{3}|…)\)|\.{3,}|…)\s*")
_CLOSE_UP = frozenset(".,;:!?)]}%")
_TRAILING = " .,;:!?"


def located(quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()) -> Located | None:
    """The stretch of the text that the quote gives; None where it gives none.

    ``ignoring`` names stretches of the text (citation markers) that a quote may leave out. A quote of several parts
    joined by dots gives the stretch from the first to the last.
    """
    parts = located_parts(quote, text, ignoring)
    return Located(parts[0].start, parts[-1].end) if parts else None


def located_parts(quote: str, text: str, ignoring: Iterable[tuple[int, int]] = ()) -> tuple[Located, ...]:
    """As ``located``, each part of a quote with dots for itself; empty where one of them is nowhere."""
    wanted = quote.strip()
    if not wanted or not text:
        return ()
    if (at := _find(wanted, text, 0)) >= 0:
        return (Located(at, at + len(wanted)),)
    spans = tuple(sorted(ignoring))
    for candidate in dict.fromkeys([wanted, wanted.strip(_QUOTE_MARKS + _TRAILING)]):
        for skipped in dict.fromkeys([(), spans]):
            if (found := _whole(candidate, _folded(text, skipped))) is not None:
                return (found,)
    return _in_parts(wanted, _folded(text, spans))


class _Folded(NamedTuple):
    """A text in the form in which quotes are compared; ``origin`` gives each character's place in the text."""

    text: str
    origin: Sequence[int]

    def span(self, start: int, end: int) -> Located:
        return Located(self.origin[start], self.origin[end - 1] + 1)


def _whole(quote: str, folded: _Folded) -> Located | None:
    needle = _fold_text(quote, ()).text.strip()
    at = _find(needle, folded.text, 0)
    return folded.span(at, at + len(needle)) if at >= 0 else None


def _in_parts(quote: str, folded: _Folded) -> tuple[Located, ...]:
    parts = (_fold_text(part.strip(_QUOTE_MARKS + _TRAILING), ()).text.strip() for part in _ELISION.split(quote))
    pieces = list(filter(None, parts))
    if len(pieces) < 2 or any(len(piece) < PIECE_LEAST for piece in pieces):
        return ()
    found: list[Located] = []
    after = 0
    for piece in pieces:
        at = _find(piece, folded.text, after)
        if at < 0 or (found and at - after > GAP_MOST):
            return ()
        after = at + len(piece)
        found.append(folded.span(at, after))
    return tuple(found)


def _find(needle: str, text: str, after: int) -> int:
    """Where the needle stands, best where it is no part of a longer word; -1 if nowhere."""
    first = at = text.find(needle, after) if needle else -1
    for _ in range(_LOOKS):
        if at < 0:
            break
        end = at + len(needle)
        before = at > 0 and text[at - 1].isalnum() and text[at].isalnum()
        behind = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        if not (before or behind):
            return at
        at = text.find(needle, at + 1)
    return first if len(needle) >= SHORT else -1


@lru_cache(maxsize=64)
def _folded(text: str, skipped: Spans) -> _Folded:
    """The form of a text that is quoted from again and again."""
    return _fold_text(text, skipped)


def _fold_text(text: str, skipped: Spans) -> _Folded:
    out: list[str] = []
    origin = array("I")
    for at, char in _kept(text, skipped):
        for folded in _fold(char):
            if folded == " " and (not out or out[-1] == " "):
                continue
            if folded in _CLOSE_UP and out and out[-1] == " ":
                out.pop()
                origin.pop()
            out.append(folded)
            origin.append(at)
    return _Folded("".join(out), origin)


def _kept(text: str, skipped: Spans) -> Iterable[tuple[int, str]]:
    at = 0
    for start, end in skipped:
        yield from enumerate(text[at:start], at)
        if start > at:
            yield start - 1, " "  # words on both sides of a marker stay two words
        at = max(at, end)
    yield from enumerate(text[at:], at)


@lru_cache(maxsize=4096)
def _fold(char: str) -> str:
    """What a character counts as: nothing for what can't be seen or only sets off."""
    if char.isspace():
        return " "
    if char in "*`" or char in _QUOTE_MARKS or unicodedata.category(char) in ("Cf", "Cc"):
        return ""
    if char in _DASHES:
        return "-"
    return unicodedata.normalize("NFKD", char).casefold()
