"""The checkable facts of a text (`extraction`), and how two of them compare.

They may agree, contradict each other, or look like one altered into the other.

"67 million" differs from "67", "5 May 2021" agrees with "May 2021" and "2021-05-05", "3 years" with "36 months"; a
percentage never contradicts a length.
"""

import re
from functools import lru_cache

from masis.offline.parsing.extraction import Day, Fact, FactKind, extract

__all__ = ["Day", "Fact", "FactKind", "agree", "comparable", "compared", "extract", "likeness"]

_KINDRED = ({"duration", "months"}, {"celsius", "fahrenheit"})
"""Dimensions in which the same numeral with another unit is another value of the same thing."""


def comparable(claim: Fact, other: Fact) -> bool:
    """Return whether the two could contradict each other: same kind and dimension; bare numbers must count the same
    noun.
    """
    if claim.kind != other.kind:
        return False
    if claim.dimension != other.dimension:
        return {claim.dimension, other.dimension} in _KINDRED and _same_numeral(claim, other)
    if claim.kind == "date":
        a, b = _as_day(claim), _as_day(other)
        return any(x and y for x, y in zip(a, b, strict=True))
    if claim.dimension == "ordinal":
        return claim.head == other.head != ""
    if claim.kind == "number" and not claim.dimension:
        same = bool(claim.head) and claim.head == other.head
        return same or (claim.digits > 0 and other.digits > 0) or likeness(claim, other) >= 0.8
    return True


def likeness(claim: Fact, other: Fact) -> float:
    """Return how much two different facts look like one altered into the other, 0..1: digits exchanged, another
    magnitude, one part of a date changed.
    """
    if claim.kind == "date":
        return _like_dates(_as_day(claim), _as_day(other))
    mine, theirs = _digits(claim.text), _digits(other.text)
    if claim.value == other.value:
        return 0.0
    if len(mine) > 1 and sorted(mine) == sorted(theirs):
        return 1.0
    if claim.dimension and other.dimension and _same_numeral(claim, other):
        return 0.8
    if not mine or not theirs:
        return 0.0
    if abs(len(mine) - len(theirs)) == 1 and _one_more(*sorted((mine, theirs), key=len)):
        return 0.5
    if len(mine) == len(theirs) > 1 and sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1:
        return 0.8 if len(mine) > 3 else 0.5
    return 0.0


def _same_numeral(claim: Fact, other: Fact) -> bool:
    # "23 days" and "23 weeks", "two weeks" and "two months".
    return claim.text.lower().split()[0] == other.text.lower().split()[0] and len(claim.text.split()) > 1


def _one_more(short: str, long: str) -> bool:
    return any(long[:k] + long[k + 1 :] == short for k in range(len(long)))


def compared(text: str, fact: Fact) -> bool:
    """Return whether the fact only labels a figure of comparison: the year in "1,912 million (2022: 1,704 million)"."""
    before, after = text[max(0, fact.start - 2) : fact.start].strip(), text[fact.end : fact.end + 2].strip()
    return fact.kind == "date" and before[-1:] in ("(", ";", ",") and after[:1] == ":"


def _like_dates(a: Day, b: Day) -> float:
    if a.day and b.day and (a.month, a.day) == (b.day, b.month):
        return 1.0
    both_stated = [(x, y) for x, y in zip(a, b, strict=True) if x and y]
    same = sum(x == y for x, y in both_stated)
    if len(both_stated) >= 2:
        return 0.8 if same == len(both_stated) - 1 else 0.3 * same
    left, right = str(a.year), str(b.year)
    return 0.8 if sorted(left) == sorted(right) else 0.4 * (sum(x != y for x, y in zip(left, right, strict=False)) == 1)


@lru_cache(maxsize=16384)
def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def agree(claim: Fact, other: Fact) -> bool:
    """Return whether `other` agrees with `claim`: equal in base units, or rounded to the claim's digits; dates as far
    as both go.
    """
    if claim.kind != other.kind:
        return False
    if claim.kind == "date":
        both_stated = [(a, b) for a, b in zip(_as_day(claim), _as_day(other), strict=True) if a and b]
        return bool(both_stated) and all(a == b for a, b in both_stated)
    if claim.dimension != other.dimension and claim.dimension and other.dimension:
        return False
    mine, theirs = claim.value, other.value
    assert isinstance(mine, float)
    assert isinstance(theirs, float)
    apart = abs(mine - theirs)
    if apart <= _ROUNDING * max(abs(mine), abs(theirs)):
        return True
    if claim.dimension == "percent" and not (claim.text[-1] == other.text[-1] == "%"):
        return apart <= ABOUT_SHARE and _worded(claim, other)
    return other.digits > claim.digits and mine >= 10 and apart <= 0.5 * 10.0**-claim.digits


ABOUT_SHARE = 2.0
"""How many points a share in words may be off: "a third" for 34%."""
_ROUNDING = 1e-6


def number(fact: Fact) -> float:
    """Return the value of a fact that is a number."""
    assert isinstance(fact.value, float)
    return fact.value


def reach(value: float) -> float:
    """Return how far apart from this number one that agrees with it can be."""
    return ABOUT_SHARE + 2 * _ROUNDING * abs(value)


def _worded(*facts: Fact) -> bool:
    return any(not any(character.isdigit() for character in fact.text) for fact in facts)


def _as_day(fact: Fact) -> Day:
    assert isinstance(fact.value, Day)
    return fact.value
