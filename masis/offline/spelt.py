"""Numbers written in words: cardinals, fractions, and how often."""

from collections.abc import Sequence

from masis.offline.text import NUMBER_WORDS, ORDINAL_WORDS, Token
from masis.offline.units import MAGNITUDES


def spelt_number(words: Sequence[Token], i: int) -> tuple[float | None, int]:
    """The number written in words at `i` and where it ends: "twenty-five million" -> (25e6, i + 3)."""
    lower = words[i].text.lower()
    if lower == "dozen":
        return 12.0, i + 1
    if lower not in NUMBER_WORDS:
        return None, i
    first, total, value, scaled = i, 0.0, 0.0, False
    while i < len(words):
        lower = words[i].text.lower()
        tens = i + 1 < len(words) and words[i + 1].text.lower() in NUMBER_WORDS
        joined = lower == "and" and tens and words[i - 1].text.lower() == "hundred"
        part = NUMBER_WORDS.get(lower)
        if part is not None and (i == first or value == 0 or value % 100 == 0 or (value % 10 == 0 and 1 <= part <= 9)):
            value, i = value + part, i + 1
        elif i > first and lower == "hundred":
            value, i, scaled = value * 100, i + 1, True
        elif i > first and len(lower) > 2 and lower in MAGNITUDES:
            total, value, i, scaled = total + value * MAGNITUDES[lower], 0.0, i + 1, True
        elif joined:
            i += 1
        else:
            break
    value += total
    if value == 1 and not scaled:  # "one" alone is a pronoun more often than a count
        return None, i
    return value, i


_PERIODS = frozenset("quarter half century decade year season edition round floor stage phase chapter term".split())
"""What an ordinal in words tells apart: "the third quarter", not "the second"."""


def spelt_ordinal(words: Sequence[Token], i: int) -> float | None:
    """The place in an order that a word names before what is counted so: "third quarter" -> 3."""
    value = ORDINAL_WORDS.get(words[i].text.lower())
    following = words[i + 1].text.lower() if i + 1 < len(words) else ""
    return float(value) if value is not None and following in _PERIODS else None


OFTEN = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
"""Words that count occasions, as "three times" does."""
_PARTS = {"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5, "fifths": 5, "tenth": 10}
_COUNTED = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}


NUMERAL_STARTS = frozenset({*NUMBER_WORDS, *ORDINAL_WORDS, *OFTEN, *_COUNTED, "dozen", "half", "quarter"})
"""Words at which a number may begin."""


def spelt_share(words: Sequence[Token], i: int) -> tuple[float | None, int]:
    """The share written in words at `i`, in percent, and where it ends: "two thirds of" -> (66.7, i + 2)."""
    lower = words[i].text.lower()
    following = words[i + 1].text.lower() if i + 1 < len(words) else ""
    if lower in ("half", "quarter") and following == "of":
        return 100.0 / _PARTS[lower], i + 1
    behind = words[i + 2].text.lower() if i + 2 < len(words) else ""
    if lower in _COUNTED and following in _PARTS and behind == "of":
        return 100.0 * _COUNTED[lower] / _PARTS[following], i + 2
    return None, i
