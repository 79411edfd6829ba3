"""Matches the words of a claim with the passages, and measures how close the passages are.

The word overlap is the basis of all later checks. The closeness only orders the queue and isn't a
verdict. Half of it is the share of the claim's content in the nearest run of passages, and half is
the cosine of the sentence encoder with the nearest run. Names and figures that are missing from the
evidence reduce it by up to a quarter.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

import numpy as np

from masis.offline.inference.encoder import SentenceEncoder
from masis.offline.matching.passages import EvidencePassage, ParsedSentence
from masis.offline.text.tokens import loose_keys

LOOSE = 0.65
"""How much a match by prefix or synonym counts; a match of the same stem counts 1."""
# How many passages `Match.top` has, and how many neighbors on either side `Match.region` adds.
_TOP, _NEIGHBORS = 5, 2
_WIDTH_COST = 0.02
"""The share of the claim that another passage must add to be worth a wider window."""
LONGEST_RUN = 3
"""Maximum number of neighboring passages that are compared together."""
CANDIDATES = 8
"""How many passages, those with most overlap, are encoded for a sentence besides neighbors."""
NAMED = 1.3
"""The lowest weight of a name or figure (see `tokens.weight`)."""
_MISSING_NAMES_COST = 0.25
"""The largest share of the closeness that missing names and figures remove."""


@dataclass
class Match:
    """A sentence of a claim, matched with the passages.

    Attributes:
        sentence: The sentence.
        weights: The weight of each content word, by the word's index in the sentence.
        passages: All passages of the evidence.
        hits: For each passage, by its index, the content words that it has: 1 for the same stem,
            `LOOSE` for a related one.
        allowed: The indices of the chunks whose passages count, or None for all.

    """

    sentence: ParsedSentence
    weights: dict[int, float]
    passages: Sequence[EvidencePassage]
    hits: dict[int, dict[int, float]]
    allowed: frozenset[int] | None = None

    @cached_property
    def total(self) -> float:
        """The sum of the weights of all content words."""
        return sum(self.weights.values())

    @cached_property
    def score(self) -> dict[int, float]:
        """The weight of the claim's words that each passage has, by the passage's index."""
        weights = self.weights
        return {
            i: sum(weights[word] * factor for word, factor in words.items())
            for i, words in self.hits.items()
        }

    @cached_property
    def top(self) -> list[int]:
        """The indices of the passages that have most of the claim, the best first."""
        return nsmallest(_TOP, self.score, key=lambda i: (-self.score[i], i))

    @cached_property
    def window(self) -> tuple[int, ...]:
        """The run of up to three neighboring passages that together have most of the claim."""
        windows = [window for i in self.top[:3] for window in _runs_around(self.passages, i)]
        return max(
            windows,
            key=lambda window: self.coverage(window) - _WIDTH_COST * len(window),
            default=(),
        )

    @cached_property
    def region(self) -> list[int]:
        """The passages that have most of the claim, with their neighbors in the same chunk."""
        best = self.score[self.top[0]] if self.top else 0.0
        near = (
            k
            for i in self.top[:3]
            if self.score[i] >= 0.5 * best
            for k in range(max(0, i - _NEIGHBORS), min(len(self.passages), i + _NEIGHBORS + 1))
            if self.passages[k].document == self.passages[i].document
        )
        return list(dict.fromkeys(near))

    def joint_hits(self, window: Iterable[int]) -> dict[int, float]:
        """Return the words that at least one of these passages has, with the factors of `hits`."""
        together: dict[int, float] = {}
        for i in window:
            for word, factor in self.hits.get(i, {}).items():
                together[word] = max(together.get(word, 0.0), factor)
        return together

    def coverage(self, window: Iterable[int], words: Collection[int] | None = None) -> float:
        """Return the weighted share of the claim that these passages have together, from 0 to 1.

        If ``words`` is given, only these words of the claim count.
        """
        wanted = self.weights.keys() if words is None else words
        whole = self.total if words is None else sum(self.weights[word] for word in words)
        if not whole:
            return 0.0
        return (
            sum(
                self.weights[word] * factor
                for word, factor in self.joint_hits(window).items()
                if word in wanted
            )
            / whole
        )

    def around(self, start: int, end: int, near: int) -> set[int]:
        """Return the indices of `near` content words on either side of a span of the claim."""
        words = self.sentence.words
        before = [i for i in self.weights if words[i].end <= start]
        after = [i for i in self.weights if words[i].start >= end]
        return {*before[-near:], *after[:near]}


def match_sentence(
    sentence: ParsedSentence,
    passages: Sequence[EvidencePassage],
    exact: dict[str, list[int]],
    loose: dict[str, list[int]],
) -> Match:
    """Match a sentence of a claim with all passages.

    ``exact`` and ``loose`` map stems and looser keys to the indices of the passages that have them.
    """
    weights = {at: word.weight for at, word in enumerate(sentence.words) if word.weight > 0}
    hits: dict[int, dict[int, float]] = {}
    for at in weights:
        root = sentence.words[at].stem
        for key in loose_keys(root):
            for i in loose.get(key, ()):
                hits.setdefault(i, {})[at] = LOOSE
        for i in exact.get(root, ()):
            hits.setdefault(i, {})[at] = 1.0
    return Match(sentence, weights, passages, hits)


def restrict(whole: Match, allowed: frozenset[int]) -> Match:
    """Return the match with the passages of the `allowed` chunks only."""
    hits = {i: words for i, words in whole.hits.items() if whole.passages[i].document in allowed}
    return Match(whole.sentence, whole.weights, whole.passages, hits, allowed)


def _runs_around(passages: Sequence[EvidencePassage], i: int) -> list[tuple[int, ...]]:
    """Return the runs around a passage within its chunk.

    They are the passage alone, with the passage before, with the passage after, and with both.
    """
    first = max(0, i - 1)
    near = [
        at
        for at, passage in enumerate(passages[first : i + 2], first)
        if passage.document == passages[i].document
    ]
    runs = [(i,), (i - 1, i), (i, i + 1), (i - 1, i, i + 1)]
    return [run for run in runs if set(run).issubset(near)]


def closeness(match: Match, encoder: SentenceEncoder) -> float:
    """Return how close the passages are to a sentence, from 0 to 1."""
    named = [word for word, weight in match.weights.items() if weight >= NAMED]
    found = match.coverage(match.hits, named) if named else 1.0
    near = 0.5 * match.coverage(match.window) + 0.5 * max(0.0, cosine(match, encoder))
    return min(1.0, near * (1 - _MISSING_NAMES_COST * (1 - found)))


def cosine(match: Match, encoder: SentenceEncoder) -> float:
    """Return the cosine of the sentence with the nearest run of up to three neighboring passages.

    It's 0 if there are no passages.
    """
    passages = match.passages
    sums = {i: encoder.encode(passages[i].text) for i in _candidate_passages(match)}
    runs = []
    for first in sums:
        vector = np.zeros_like(sums[first])
        for i in range(first, first + LONGEST_RUN):
            if i not in sums or passages[i].document != passages[first].document:
                break
            # A run's vector is the sum of its passages' vectors, which are cached. Encoding the
            # joined text of each run ranked no better.
            vector = vector + sums[i]
            runs.append(vector)
    if not runs:
        return 0.0
    claim = encoder.encode(match.sentence.text)
    stacked = np.stack(runs)
    cosines = (
        stacked
        @ claim
        / (np.linalg.norm(stacked, axis=1) + 1e-9)
        / (float(np.linalg.norm(claim)) + 1e-9)
    )
    return float(cosines.max())


def _candidate_passages(match: Match) -> list[int]:
    """Return the passages with most overlap and their neighbors, or all if there are few.

    The number of passages to encode is limited so that the cost doesn't grow with the evidence.
    """
    passages = match.passages
    usable = [
        i
        for i, passage in enumerate(passages)
        if match.allowed is None or passage.document in match.allowed
    ]
    if len(usable) <= 3 * CANDIDATES:
        return usable
    best = sorted(match.score, key=lambda i: (-match.score[i], i))[:CANDIDATES]
    best += usable[: CANDIDATES - len(best)]
    near = {
        i
        for at in best
        for i in (at - 1, at, at + 1)
        if 0 <= i < len(passages) and passages[i].document == passages[at].document
    }
    return sorted(near)
