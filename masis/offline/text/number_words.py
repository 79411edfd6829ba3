"""Reads numbers written in words: cardinals, ordinals, years and shares.

    read_cardinal(["two", "hundred", "and", "five", "cases"], 0)
    # NumberWords(value=205, after=4, scaled=True)

The offline roles use it for facts, and screening for sample sizes. Words must be lowercase, and a
hyphen may be a word of its own. Each function reads a limited number of words.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from masis.audit.text.comparison import NUMBER_WORDS

ORDINAL_WORDS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}
SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "mio": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "lakh": 10**5,
    "crore": 10**7,
}
"""Words that multiply the number before them."""
_LONGEST = 12
"""Maximum number of words per number, which keeps the scan linear in the length of the text."""
_PERIODS = frozenset(
    "quarter half century decade year season edition round floor stage phase chapter term".split()
)
"""Nouns after which "first" or "second" is surely an ordinal: "the second quarter"."""
# The denominators of shares in words: "two thirds".
_PARTS = {
    "half": 2,
    "third": 3,
    "thirds": 3,
    "quarter": 4,
    "quarters": 4,
    "fifth": 5,
    "fifths": 5,
    "tenth": 10,
}
_NUMERATORS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}
_GROUPS = {"dozen": 12, "score": 20}
"""Words for groups: "two dozen", "four score"."""
_LEADS = frozenset({"a", "an", "the"})
NUMERAL_STARTS = frozenset(
    {*NUMBER_WORDS, *ORDINAL_WORDS, *_NUMERATORS, "dozen", "half", "quarter", "an"}
)
"""Words that can start a number."""


class NumberWords(NamedTuple):
    """A whole number and the index after its last word.

    ``scaled`` is true if a word such as "hundred" is part of it.
    """

    value: int
    after: int
    scaled: bool


class QuantityWords(NamedTuple):
    """A number that may have a fraction, and the index after its last word.

    ``scaled`` is true if it's more than a plain cardinal: "two million", "two point five".
    """

    value: float
    after: int
    scaled: bool


def read_cardinal(
    words: Sequence[str],
    start: int,
    *,
    joined_after: Collection[str] = ("hundred",),
    bare_scales: Collection[str] = (),
) -> NumberWords | None:
    """Read a whole number such as "twenty-five million", "two hundred and five" or "dozen".

    Args:
        words: The words of a text in lowercase.
        start: The index of the number's first word.
        joined_after: Scales after which "and" continues a number. Only "hundred" by default, so
            that "between two million and five million" stays two numbers.
        bare_scales: Scales that count as a number without one before them ("a hundred patients").

    Returns:
        The number with the index after it, or None if no number starts there.

    """
    if start < len(words) and words[start] == "dozen":
        return NumberWords(12, start + 1, scaled=False)
    total, group, last, after, scaled = 0, 0, "", start, False
    for position in range(start, min(len(words), start + _LONGEST)):
        word = words[position]
        if (word == "-" and last) or (word == "and" and last in joined_after):
            continue
        if word in SCALES and (last or word in bare_scales):
            scale = SCALES[word]
            # "two thousand million" is a number, but "two million hundred" isn't.
            if not group and last in SCALES:
                if scale <= SCALES[last]:
                    break
                total *= scale
            else:
                group = (group if last else 1) * scale
                if scale > 100:
                    total, group = total + group, 0
            scaled = True
        elif word in NUMBER_WORDS and _may_follow(last, word):
            group += NUMBER_WORDS[word]
        else:
            break
        last, after = word, position + 1
    return NumberWords(total + group, after, scaled) if after > start else None


def _may_follow(last: str, word: str) -> bool:
    """Return whether the word can continue a number.

    It can at the start of the number, after a scale ("hundred"), or as a digit after a ten
    ("twenty three").
    """
    return not last or last in SCALES or (NUMBER_WORDS[last] >= 20 and 0 < NUMBER_WORDS[word] < 10)


def read_quantity(words: Sequence[str], start: int) -> QuantityWords | None:
    """Read a number that may have a fraction, or return None.

    Examples are "two and a half million", "half a million", "two dozen" and "a hundred". Plain
    "half" and "a quarter" return None, because they are shares (`read_share`).
    """
    position = start
    value: float | None = None
    scaled = False
    if part := _fraction_word(words, position):
        value, position = part
        position += position < len(words) and words[position] == "of"
        position += position < len(words) and words[position] in _LEADS
        if position >= len(words) or words[position] not in (*SCALES, *_GROUPS):
            return None
    elif words[position] in ("a", "an"):
        value, position = 1.0, position + 1
        if words[position : position + 2] == ["couple", "of"]:
            value, position, scaled = 2.0, position + 2, True
        elif position >= len(words) or words[position] not in (*SCALES, *_GROUPS):
            return None
        elif words[position] == "score" and words[position + 1 : position + 2] != ["of"]:
            return None  # a result: "a score" without "of"
    elif number := read_cardinal(words, position):
        value, position, scaled = number
        if words[position : position + 1] == ["point"] and (
            decimals := _decimals(words, position + 1)
        ):
            value, position, scaled = (
                float(f"{value}.{decimals}"),
                position + 1 + len(decimals),
                True,
            )
        elif words[position : position + 1] == ["and"] and (
            part := _fraction_word(words, position + 1)
        ):
            value, position, scaled = value + part[0], part[1], True
    if value is None:
        return None
    while position < len(words) and words[position] in (*SCALES, *_GROUPS):
        value, position, scaled = value * {**SCALES, **_GROUPS}[words[position]], position + 1, True
    if scaled and words[start] in ("a", "an"):  # "a hundred and twenty"
        rest = read_cardinal(words, position + (words[position : position + 1] == ["and"]))
        if rest and rest.value < value:
            value, position = value + rest.value, rest.after
    return QuantityWords(value, position, scaled)


def _fraction_word(words: Sequence[str], start: int) -> tuple[float, int] | None:
    """Return a fraction and the index after it, or None: "half", "a half", "three quarters"."""
    first, second = (*words[start : start + 2], "", "")[:2]
    if first in ("half", "quarter"):
        return 1 / _PARTS[first], start + 1
    if first in _NUMERATORS and second in _PARTS:
        return _NUMERATORS[first] / _PARTS[second], start + 2
    return None


def _decimals(words: Sequence[str], start: int) -> str:
    """Return the digits after "point", at most six: "5" in "two point five"."""
    digits = ""
    for word in words[start : start + 6]:
        if not 0 <= NUMBER_WORDS.get(word, -1) < 10:
            break
        digits += str(NUMBER_WORDS[word])
    return digits


def read_year(words: Sequence[str], start: int) -> tuple[int, int] | None:
    """Return a year in words and the index after it, or None.

    "nineteen eighty four" is (1984, start + 3), and "nineteen oh five" is (1905, start + 3).
    """
    century = NUMBER_WORDS.get(words[start], 0)
    if not 11 <= century <= 20:
        return None
    rest = [word for word in words[start + 1 : start + 4] if word != "-"]
    if (
        rest[:1] in (["oh"], ["o"])
        and 0 < NUMBER_WORDS.get(rest[1] if len(rest) > 1 else "", 0) < 10
    ):
        return 100 * century + NUMBER_WORDS[rest[1]], start + 3
    found = read_cardinal(words, start + 1)
    if found is None or found.scaled or not 10 <= found.value < 100:
        return None
    return 100 * century + int(found.value), found.after


_YEARS = range(1900, 2100)
"""Whole numbers that are years: "three in 2019" isn't a share."""


def read_odds(words: Sequence[str], start: int) -> tuple[float, int] | None:
    """Return a ratio in percent and the index after it, or None.

    "one in five" is (20.0, start + 3). Digits are read too ("1 in 5"). "three in 2019" and "one in
    five years" aren't ratios.
    """
    some, position = _small_number(words, start)
    if not some or words[position : position + 1] not in (["in"], ["out"]):
        return None
    position += 2 if words[position : position + 2] == ["out", "of"] else 1
    position += words[position : position + 1] == ["every"]
    whole, after = _small_number(words, position)
    following = words[after] if after < len(words) else ""
    if (
        not some < whole
        or whole in _YEARS
        or following.startswith(_TIME_UNITS)
        or following in SCALES
    ):
        return None
    return 100.0 * some / whole, after


# Prefixes of units of time, which show a frequency: "one in five years".
_TIME_UNITS = ("second", "minute", "hour", "day", "week", "month", "year", "decade")


def _small_number(words: Sequence[str], start: int) -> tuple[int, int]:
    """Return a whole number in words or digits and the index after it, or 0 and ``start``."""
    word = words[start] if start < len(words) else ""
    if word.isascii() and word.replace(",", "").isdecimal() and len(word) < 8:
        return int(word.replace(",", "")), start + 1
    number = read_cardinal(words, start + (word == "a"), bare_scales=("hundred", "thousand"))
    return (int(number.value), number.after) if number else (0, start)


def read_ordinal(words: Sequence[str], start: int) -> float | None:
    """Return the value of an ordinal, or None: "third" -> 3, "twenty first" -> 21.

    "second" counts only before a noun such as "quarter" or after a word such as "the", because it
    may be the unit of time. "first" counts only before such a noun, because it often means "at the
    beginning". After a numerator ("two thirds"), an ordinal is part of a share.
    """
    word = words[start]
    following = words[start + 1] if start + 1 < len(words) else ""
    before = words[start - 1] if start else ""
    tens = NUMBER_WORDS.get(word, 0)
    if tens >= 20 and following in ORDINAL_WORDS and ORDINAL_WORDS[following] < 10:
        return float(tens + ORDINAL_WORDS[following])
    value = ORDINAL_WORDS.get(word)
    if value is None or NUMBER_WORDS.get(before, 0) >= 1 or before in _NUMERATORS:
        return None
    if following in _PERIODS:
        return float(value)
    return float(value) if value > 1 and before in ("the", "its", "their", "his", "her") else None


def read_share(words: Sequence[str], start: int) -> tuple[float, int] | None:
    """Return a share in percent and the index after it: "two thirds of" -> (66.7, start + 2).

    None if no share starts there.
    """
    first, second, third = (*words[start : start + 3], "", "")[:3]
    if first in ("half", "quarter") and second in ("of", "the"):
        return 100.0 / _PARTS[first], start + 1
    if first in _NUMERATORS and second in _PARTS and third == "of":
        return 100.0 * _NUMERATORS[first] / _PARTS[second], start + 2
    return None
