"""Whole numbers as abstracts write them: "1,204", "1 204", "forty-two", "two hundred and fifty-nine"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

TOKEN = re.compile(
    r"\d{1,3}(?:[,\u00a0\u2009\u202f ]\d{3})+(?![\d])(?!\.\d)"  # thousands, set apart by a comma or a space
    r"|\d+(?:[.,·]\d+)*"
    r"|[^\W\d_]+(?:['’][^\W\d_]+)*"
    r"|\S"
)
"""Numbers, words, and every other sign by itself. A hyphen is a sign of its own."""

_UNITS = {
    word: value
    for value, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen""".split()
    )
} | {"dozen": 12}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
WORDS = frozenset(_UNITS) | frozenset(_TENS) | frozenset(_SCALES)
LARGEST = 1_000_000_000
"""A greater number is no number of units studied."""
_LONGEST = 12
"""How many words a number is written in at most."""


class Token(NamedTuple):
    """A word, number or sign with its place; ``lower`` is what it is compared by."""

    lower: str
    start: int
    end: int


class Numeral(NamedTuple):
    """A whole number: its value, and the tokens it is written in, from ``first`` up to, not including, ``after``."""

    value: int
    first: int
    after: int


def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text, in order."""
    return tuple(Token(found.group().lower(), *found.span()) for found in TOKEN.finditer(text))


def numerals(tokens: Sequence[Token]) -> tuple[Numeral, ...]:
    """The whole numbers among the tokens, in order; decimals are left out."""
    found: list[Numeral] = []
    at = 0
    while at < len(tokens):
        lower = tokens[at].lower
        numeral = None
        if lower[0].isdecimal():
            numeral = _in_digits(lower, at)
        elif lower in WORDS:
            numeral = _in_words(tokens, at)
        if numeral is None:
            at += 1
            continue
        found.append(numeral)
        at = numeral.after
    return tuple(found)


def _in_digits(lower: str, at: int) -> Numeral | None:
    digits = re.sub(r"[,\s]", "", lower)
    if not digits.isascii() or not digits.isdigit() or len(digits) > len(str(LARGEST)):
        return None
    if "," in lower and len(lower.rsplit(",", 1)[1]) != 3:  # a decimal comma, or a list without blanks
        return None
    return Numeral(int(digits), at, at + 1)


def _in_words(tokens: Sequence[Token], at: int) -> Numeral | None:
    """The number in words that starts here: as many words as still make one number."""
    total, group, last, after = 0, 0, "", at
    for here in range(at, min(len(tokens), at + _LONGEST)):
        word = tokens[here].lower
        if word in ("and", "-") and last:
            continue
        if word not in WORDS or not _may_follow(last, word):
            break
        if word in _SCALES:
            scale = _SCALES[word]
            group = max(group, 1) * scale
            if scale > 100:
                total, group = total + group, 0
        else:
            group += _UNITS.get(word, 0) or _TENS.get(word, 0)
        last, after = word, here + 1
    value = total + group
    return Numeral(value, at, after) if after > at and value <= LARGEST else None


def _may_follow(last: str, word: str) -> bool:
    if not last:
        return True
    if word in _SCALES:
        return last not in ("dozen", "thousand", "million") or word != last
    if last in _SCALES:
        return True
    return last in _TENS and word in _UNITS and 0 < _UNITS[word] < 10
