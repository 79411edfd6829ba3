"""Which words of a claim occur in which passages: the overlap that every later judgement is based on.

Matches are stored as bit masks, one bit a content word of the claim, so that the coverage of a window of passages is
the union of its masks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest

from masis.offline.matching.passages import Passage
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.lexicon import loose_keys

LOOSE = 0.65
"""What a match by prefix or synonym counts, against 1 for the same stem."""
_TOP, _REACH = 5, 2


@dataclass
class Match:
    """A sentence of a claim matched with the passages.

    `bits` are the word indices behind the bits of the masks; `exact` and `loose` map passage index -> mask; `top` are
    the best passages, best first; `window` the run of up to three passages that together cover most. `allowed` are the
    documents whose passages count, None for all. What depends on the claim alone is shared with the matches that
    `within` makes of this one.
    """

    sentence: ParsedSentence
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
    value_cache: dict[tuple[int, int], float] = field(default_factory=dict)
    mask_cache: dict[tuple[int, int], int] = field(default_factory=dict)

    @cached_property
    def region(self) -> list[int]:
        """The passages that cover the claim best, and their neighbours in the same document."""
        best = self.score[self.top[0]] if self.top else 0.0
        wanted: dict[int, None] = {}
        for i in self.top[:3]:
            if self.score[i] < 0.5 * best:
                continue
            for k in range(max(0, i - _REACH), min(len(self.passages), i + _REACH + 1)):
                if self.passages[k].document == self.passages[i].document:
                    wanted[k] = None
        return list(wanted)

    def value(self, exact: int, loose: int = 0) -> float:
        """Return the weight of the words in the masks."""
        loose &= ~exact
        key = (exact, loose)
        total = self.value_cache.get(key)
        if total is None:
            total = self.value_cache[key] = self._sum(exact) + LOOSE * self._sum(loose)
        return total

    def _sum(self, mask: int) -> float:
        weights, total = self.weights, 0.0
        while mask:
            low = mask & -mask
            total += weights[low.bit_length() - 1]
            mask ^= low
        return total

    def covered(self, window: Sequence[int]) -> tuple[int, int]:
        """Return the masks of several passages together."""
        exact = loose = 0
        for i in window:
            exact |= self.exact.get(i, 0)
            loose |= self.loose.get(i, 0)
        return exact, loose

    def coverage(self, window: Sequence[int], without: int = 0) -> float:
        """Return the share of the claim's content that the window covers, 0..1; bits in `without` are left out of both
        sides.
        """
        exact, loose = self.covered(window)
        if not without:
            return self.value(exact, loose) / self.total
        rest = self.total - self.value(without)
        return self.value(exact & ~without, loose & ~without) / rest if rest > 0 else 0.0

    def mask(self, start: int, end: int) -> int:
        """Return the bits of the content words inside a span of the claim."""
        value_cache = self.mask_cache.get((start, end))
        if value_cache is None:
            words = self.sentence.words
            inside = [1 << b for b, i in enumerate(self.bits) if words[i].start < end and start < words[i].end]
            value_cache = self.mask_cache[start, end] = sum(inside)
        return value_cache

    def around(self, start: int, end: int, near: int) -> int:
        """Return the mask of the span and of the `near` content words on either side of it."""
        words, bits = self.sentence.words, self.bits
        first = next((b for b, i in enumerate(bits) if words[i].end > start), len(bits))
        last = first
        while last < len(bits) and words[bits[last]].start < end:
            last += 1
        return ((1 << min(len(bits), last + near)) - 1) & ~((1 << max(0, first - near)) - 1)

    def share(self, passage: int, mask: int) -> float:
        """Return the share of the words in the mask that the passage covers, 0..1."""
        whole = self.value(mask)
        if not whole:
            return 0.0
        return self.value(self.exact.get(passage, 0) & mask, self.loose.get(passage, 0) & mask) / whole


def match_sentence(
    sentence: ParsedSentence, passages: Sequence[Passage], exact: dict[str, list[int]], loose: dict[str, list[int]]
) -> Match:
    """Match the words of a sentence of a claim with all passages."""
    words = sentence.words
    bits = [i for i, word in enumerate(words) if word.weight > 0]
    weights = [words[i].weight for i in bits]
    match = Match(sentence, bits, weights, sum(weights), passages)
    for b, i in enumerate(bits):
        _count(match, 1 << b, weights[b], words[i].stem, exact, loose)
    return _ranked(match)


def restrict(whole: Match, allowed: frozenset[int]) -> Match:
    """Return the match with the passages of the `allowed` documents alone."""
    passages = whole.passages
    score = {i: s for i, s in whole.score.items() if passages[i].document in allowed}
    return _ranked(
        Match(
            whole.sentence,
            whole.bits,
            whole.weights,
            whole.total,
            passages,
            exact={i: m for i, m in whole.exact.items() if i in score},
            loose={i: m for i, m in whole.loose.items() if i in score},
            score=score,
            allowed=allowed,
            value_cache=whole.value_cache,
            mask_cache=whole.mask_cache,
        )
    )


def _ranked(match: Match) -> Match:
    score = match.score
    match.top = (
        nsmallest(_TOP, score, key=lambda i: (-score[i], i))
        if len(score) > 50
        else sorted(score, key=lambda i: (-score[i], i))[:_TOP]
    )
    match.window = _best_window(match)
    return match


def _count(
    match: Match, bit: int, weight: float, root: str, exact: dict[str, list[int]], loose: dict[str, list[int]]
) -> None:
    masks, score = match.exact, match.score
    for i in exact.get(root, ()):
        masks[i] = masks.get(i, 0) | bit
        score[i] = score.get(i, 0.0) + weight
    near = match.loose
    for key in loose_keys(root):
        for i in loose.get(key, ()):
            mask = near.get(i, 0)
            if not mask & bit and not masks.get(i, 0) & bit:
                near[i] = mask | bit
                score[i] = score.get(i, 0.0) + LOOSE * weight


def _best_window(match: Match) -> tuple[int, ...]:
    best: tuple[int, ...] = ()
    best_value = -1.0
    for i in match.top[:3]:
        for window in _neighbourhoods(match.passages, i):
            # A wider window must earn its width.
            value = match.value(*match.covered(window)) - 0.02 * match.total * len(window)
            if value > best_value:
                best, best_value = window, value
    return best


def _neighbourhoods(passages: Sequence[Passage], i: int) -> list[tuple[int, ...]]:
    """Return the passage alone, with its neighbours in the same document on either side, and with both."""
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
