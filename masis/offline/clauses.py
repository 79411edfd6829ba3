"""The clauses of a sentence, as bit masks over its content words: what is asserted together is compared together."""

from collections.abc import Sequence

from masis.offline.text import Token

_MARKS = frozenset(",;:()–—")
_WORDS = frozenset("and but which who while whereas because although that including with whose where since".split())
LEAST = 2.0
"""The least weight a clause must have to stand alone."""


def clauses(text: str, words: Sequence[Token]) -> list[int]:
    """The masks of the clauses of a sentence in order; one too light to stand alone joins its neighbour."""
    masks: list[int] = []
    mask, weight, b, last = 0, 0.0, 0, -1
    for i, word in enumerate(words):
        if word.weight <= 0:
            continue
        if weight >= LEAST and _breaks(text, words, last, i):
            masks.append(mask)
            mask, weight = 0, 0.0
        mask |= 1 << b
        weight += word.weight
        b, last = b + 1, i
    if mask and weight < 1.0 and masks:
        masks[-1] |= mask
    elif mask:
        masks.append(mask)
    return masks


def _breaks(text: str, words: Sequence[Token], left: int, right: int) -> bool:
    between = text[words[left].end : words[right].start]
    if not between.isspace() and any(mark in _MARKS for mark in between):
        return True
    return right - left > 1 and any(words[k].text in _WORDS for k in range(left + 1, right))
