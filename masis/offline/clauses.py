"""The clauses of a claim, as bit masks over its content words: what is asserted together is compared together."""

from collections.abc import Sequence
from heapq import nsmallest

from masis.offline.matching import Match
from masis.offline.text import Token

_MARKS = frozenset(",;:()–—")
_WORDS = frozenset("and but which who while whereas because although that including with whose where since".split())
_COMPARED, _KEPT = 8, 4
LEAST = 2.0
"""The least weight a clause must have to stand alone."""


def clauses(text: str, found: Match) -> list[int]:
    """The masks of the claim's clauses in order; one too light to stand alone joins its neighbour."""
    masks: list[int] = []
    mask, weight = 0, 0.0
    for b, i in enumerate(found.bits):
        if weight >= LEAST and _breaks(text, found.words, found.bits[b - 1], i):
            masks.append(mask)
            mask, weight = 0, 0.0
        mask |= 1 << b
        weight += found.weights[b]
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


def around(found: Match, start: int, end: int, near: int) -> int:
    """The mask of the span and of the `near` content words on either side of it."""
    first = next((b for b, i in enumerate(found.bits) if found.words[i].end > start), len(found.bits))
    last = first
    while last < len(found.bits) and found.words[found.bits[last]].start < end:
        last += 1
    return ((1 << min(len(found.bits), last + near)) - 1) & ~((1 << max(0, first - near)) - 1)


def share(found: Match, passage: int, mask: int) -> float:
    """The share of the words in the mask that the passage covers, 0..1."""
    whole = found.value(mask)
    if not whole:
        return 0.0
    return found.value(found.exact.get(passage, 0) & mask, found.loose.get(passage, 0) & mask) / whole


def best_passages(found: Match, mask: int) -> list[tuple[float, int]]:
    """The few passages that cover most of the mask, with their shares, best first."""
    if mask not in found.ranked:
        found.ranked[mask] = _ranked(found, mask)
    return found.ranked[mask]


def _ranked(found: Match, mask: int) -> list[tuple[float, int]]:
    exact, loose = found.exact, found.loose
    least = 2 if mask.bit_count() > 2 else 1
    near = [
        (count, i) for i in found.score if (count := ((exact.get(i, 0) | loose.get(i, 0)) & mask).bit_count()) >= least
    ]
    if len(near) > _COMPARED:
        near = nsmallest(_COMPARED, near, key=lambda pair: (-pair[0], -found.score[pair[1]], pair[1]))
    return sorted(((share(found, i, mask), i) for _, i in near), key=lambda pair: (-pair[0], pair[1]))[:_KEPT]
