"""Which words of a claim which passages hold: the measured overlap that every later judgement starts from.

Matches are kept as bit masks, one bit a content word of the claim, so that the coverage of a window of passages is
the union of its masks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import pairwise

from masis.offline.evidence import Passage, loose_keys
from masis.offline.modality import Modal, modes
from masis.offline.stretches import Stretch, segments, stretches
from masis.offline.text import Token

LOOSE = 0.65
"""What a match by prefix or synonym counts, against 1 for the same stem."""
_TOP = 5


@dataclass
class Match:
    """A part of a claim laid beside the passages.

    `bits` are the word indices behind the bits of the masks; `exact` and `loose` map passage index -> mask; `top` are
    the
    best passages, best first; `window` the run of up to three passages that together cover most.
    """

    words: Sequence[Token]
    bits: list[int]
    weights: list[float]
    total: float
    passages: Sequence[Passage]
    exact: dict[int, int] = field(default_factory=dict)
    loose: dict[int, int] = field(default_factory=dict)
    score: dict[int, float] = field(default_factory=dict)
    top: list[int] = field(default_factory=list)
    window: tuple[int, ...] = ()
    allowed: frozenset[int] | None = None
    ranked: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    known: dict[tuple[int, int], float] = field(default_factory=dict)
    text: str = ""

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """What the claim says of one subject after the other."""
        return stretches(self.text, self.words)

    @cached_property
    def segments(self) -> list[int]:
        """The number of the segment each word stands in."""
        return segments(self.text, self.words)

    @cached_property
    def modes(self) -> tuple[Modal, ...]:
        """What the claim grants, forbids, demands or waives."""
        return modes(self.text, self.words, self.stretches)

    def value(self, exact: int, loose: int = 0) -> float:
        """The weight of the words in the masks."""
        loose &= ~exact
        key = (exact, loose)
        total = self.known.get(key)
        if total is None:
            total = self.known[key] = self._sum(exact) + LOOSE * self._sum(loose)
        return total

    def _sum(self, mask: int) -> float:
        weights, total = self.weights, 0.0
        while mask:
            low = mask & -mask
            total += weights[low.bit_length() - 1]
            mask ^= low
        return total

    def covered(self, window: Sequence[int]) -> tuple[int, int]:
        """The masks of several passages together."""
        exact = loose = 0
        for i in window:
            exact |= self.exact.get(i, 0)
            loose |= self.loose.get(i, 0)
        return exact, loose

    def coverage(self, window: Sequence[int], without: int = 0) -> float:
        """The share of the claim's content that the window covers, 0..1; bits in `without` are left out of both
        sides.
        """
        exact, loose = self.covered(window)
        if not without:
            return self.value(exact, loose) / self.total
        rest = self.total - self.value(without)
        return self.value(exact & ~without, loose & ~without) / rest if rest > 0 else 0.0

    def mask(self, start: int, end: int) -> int:
        """The bits of the content words inside a span of the claim."""
        return sum(1 << b for b, i in enumerate(self.bits) if self.words[i].start < end and start < self.words[i].end)


def match(
    words: Sequence[Token],
    passages: Sequence[Passage],
    exact: dict[str, list[int]],
    loose: dict[str, list[int]],
    allowed: frozenset[int] | None = None,
    text: str = "",
) -> Match:
    """Lay the words of a claim beside the passages (only those in the `allowed` documents, if given)."""
    bits = [i for i, word in enumerate(words) if word.weight > 0]
    weights = [words[i].weight for i in bits]
    found = Match(words, bits, weights, sum(weights), passages, allowed=allowed, text=text)
    for b, i in enumerate(bits):
        _count(found, 1 << b, weights[b], words[i].stem, exact, loose)
    if allowed is not None:
        found.score = {i: s for i, s in found.score.items() if passages[i].document in allowed}
        found.exact = {i: m for i, m in found.exact.items() if i in found.score}
        found.loose = {i: m for i, m in found.loose.items() if i in found.score}
    score = found.score
    found.top = (
        nsmallest(_TOP, score, key=lambda i: (-score[i], i))
        if len(score) > 50
        else sorted(score, key=lambda i: (-score[i], i))[:_TOP]
    )
    found.window = _best_window(found)
    return found


def _count(
    found: Match, bit: int, weight: float, root: str, exact: dict[str, list[int]], loose: dict[str, list[int]]
) -> None:
    masks, score = found.exact, found.score
    for i in exact.get(root, ()):
        masks[i] = masks.get(i, 0) | bit
        score[i] = score.get(i, 0.0) + weight
    near = found.loose
    for key in loose_keys(root):
        for i in loose.get(key, ()):
            mask = near.get(i, 0)
            if not mask & bit and not masks.get(i, 0) & bit:
                near[i] = mask | bit
                score[i] = score.get(i, 0.0) + LOOSE * weight


def _best_window(found: Match) -> tuple[int, ...]:
    best: tuple[int, ...] = ()
    best_value = -1.0
    for i in found.top[:3]:
        for window in neighbourhoods(found.passages, i):
            # A wider window must earn its width.
            value = found.value(*found.covered(window)) - 0.02 * found.total * len(window)
            if value > best_value:
                best, best_value = window, value
    return best


def neighbourhoods(passages: Sequence[Passage], i: int) -> list[tuple[int, ...]]:
    """The passage alone, with its neighbours in the same document on either side, and with both."""
    document = passages[i].document
    before = i > 0 and passages[i - 1].document == document
    after = i + 1 < len(passages) and passages[i + 1].document == document
    windows: list[tuple[int, ...]] = [(i,)]
    if before:
        windows.append((i - 1, i))
    if after:
        windows.append((i, i + 1))
    if before and after:
        windows.append((i - 1, i, i + 1))
    return windows


def runs(words: Sequence[Token], passages: Sequence[Passage]) -> tuple[int, int, int]:
    """Of the claim's words beside these passages: the longest common run, words in a run of two or more, words in one
    of three.
    """
    longest = in_two = in_three = 0
    best_here = [0] * len(words)
    for passage in passages:
        positions = passage.positions
        previous: dict[int, int] = {}
        for i, word in enumerate(words):
            current = {p: previous.get(p - 1, 0) + 1 for p in positions.get(word.stem, ())}
            if current:
                best_here[i] = max(best_here[i], max(current.values()))
            previous = current
    covered_two, covered_three = [False] * len(words), [False] * len(words)
    for i, length in enumerate(best_here):
        longest = max(longest, length)
        if length >= 2:
            covered_two[i] = covered_two[i - 1] = True
        if length >= 3:
            covered_three[i] = covered_three[i - 1] = covered_three[i - 2] = True
    in_two, in_three = sum(covered_two), sum(covered_three)
    return longest, in_two, in_three


def inversions(words: Sequence[Token], passage: Passage) -> float:
    """Share of neighbouring matched words whose order the passage reverses, 0..1."""
    places = [
        positions[0]
        for word in words
        if word.weight > 0 and len(positions := passage.positions.get(word.stem, [])) == 1
    ]
    pairs = list(pairwise(places))
    return sum(a > b for a, b in pairs) / len(pairs) if pairs else 0.0
