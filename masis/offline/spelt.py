"""Numbers written in words."""

from collections.abc import Sequence

from masis.offline.text import NUMBER_WORDS, Token
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
