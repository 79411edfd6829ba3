"""Numbers written in words: cardinals, ordinals and shares.

    read_cardinal(["two", "hundred", "and", "five", "cases"], 0)   # NumberWords(value=205, after=4, scaled=True)

The offline roles read facts with it, screening reads sample sizes. Words are expected in lower case; a hyphen may be a
word of its own. Every function looks at a bounded number of words.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from masis.audit.text.comparison import NUMBER_WORDS

ORDINAL_WORDS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), 1
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
"""The most words a number is written in."""
_PERIODS = frozenset("quarter half century decade year season edition round floor stage phase chapter term".split())
"""What an ordinal in words tells apart: "the third quarter", not "the second"."""
_PARTS = {"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5, "fifths": 5, "tenth": 10}
_NUMERATORS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}
NUMERAL_STARTS = frozenset({*NUMBER_WORDS, *ORDINAL_WORDS, *_NUMERATORS, "dozen", "half", "quarter"})
"""Words at which a number may begin."""


class NumberWords(NamedTuple):
    """A whole number and the index after its last word; ``scaled`` where a word such as "hundred" is part of it."""

    value: int
    after: int
    scaled: bool


def read_cardinal(
    words: Sequence[str], start: int, *, joined_after: Collection[str] = ("hundred",), bare_scales: Collection[str] = ()
) -> NumberWords | None:
    """Read the whole number that begins at ``start``: "twenty-five million", "two hundred and five", "dozen".

    Args:
        words: The words of a text in lower case.
        start: The index at which the number has to begin.
        joined_after: Scales after which "and" continues a number. Only "hundred" by default, so that "between two
            million and five million" stays two numbers.
        bare_scales: Scales that count as a number without one before them ("a hundred patients").

    Returns:
        The number with its extent, or None where none begins there.

    """
    if start < len(words) and words[start] == "dozen":
        return NumberWords(12, start + 1, scaled=False)
    total, group, last, after, scaled = 0, 0, "", start, False
    for at in range(start, min(len(words), start + _LONGEST)):
        word = words[at]
        if (word == "-" and last) or (word == "and" and last in joined_after):
            continue
        if word in SCALES and (last or word in bare_scales):
            scale = SCALES[word]
            if not group and last in SCALES:  # "two thousand million"; "two million hundred" is no number
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
        last, after = word, at + 1
    return NumberWords(total + group, after, scaled) if after > start else None


def _may_follow(last: str, word: str) -> bool:
    """Return whether the word continues a number: after nothing, after a scale, or as a digit after a ten."""
    return not last or last in SCALES or (NUMBER_WORDS[last] >= 20 and 0 < NUMBER_WORDS[word] < 10)


def read_ordinal(words: Sequence[str], start: int) -> float | None:
    """Return the place in an order that a word names before what is counted so: "third quarter" -> 3."""
    value = ORDINAL_WORDS.get(words[start])
    following = words[start + 1] if start + 1 < len(words) else ""
    return float(value) if value is not None and following in _PERIODS else None


def read_share(words: Sequence[str], start: int) -> tuple[float, int] | None:
    """Return the share written in words, in percent, and where it ends: "two thirds of" -> (66.7, start + 2)."""
    first, second, third = (*words[start : start + 3], "", "")[:3]
    if first in ("half", "quarter") and second == "of":
        return 100.0 / _PARTS[first], start + 1
    if first in _NUMERATORS and second in _PARTS and third == "of":
        return 100.0 * _NUMERATORS[first] / _PARTS[second], start + 2
    return None
