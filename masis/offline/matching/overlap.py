"""Which words of a claim occur in which passages, and how close these come to it.

The overlap is what every later judgement is based on; the closeness orders the queue and is no
verdict. Half of it is the share of the claim's content that the nearest run of passages has, half
the cosine of the sentence encoder with the nearest run; names and figures that no evidence has take
away up to a quarter.
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
"""What a match by prefix or synonym counts, against 1 for the same stem."""
_TOP, _REACH = 5, 2
_WIDTH_COST = 0.02
"""The share of the claim that a passage must add before it widens a window."""
LONGEST_RUN = 3
"""Neighbouring passages that are compared together."""
CANDIDATES = 8
"""Passages with the largest overlap that are encoded for a sentence, each with its neighbours."""
NAMED = 1.3
"""Weight from which a word is a name or a figure."""
_NAMED_SHARE = 0.25


@dataclass
class Match:
    """A sentence of a claim matched with the passages.

    `weights` are those of its content words, by their index; `hits` says for each passage which of
    these words it has, with 1 for the same stem and `LOOSE` for a related one. `allowed` are the
    documents whose passages count, None for all.
    """

    sentence: ParsedSentence
    weights: dict[int, float]
    passages: Sequence[EvidencePassage]
    hits: dict[int, dict[int, float]]
    allowed: frozenset[int] | None = None

    @cached_property
    def total(self) -> float:
        """The weight of all content words."""
        return sum(self.weights.values())

    @cached_property
    def score(self) -> dict[int, float]:
        """The weight of the words that each passage has."""
        weights = self.weights
        return {
            i: sum(weights[word] * factor for word, factor in words.items())
            for i, words in self.hits.items()
        }

    @cached_property
    def top(self) -> list[int]:
        """The passages that have most of the claim, the best first."""
        return nsmallest(_TOP, self.score, key=lambda i: (-self.score[i], i))

    @cached_property
    def window(self) -> tuple[int, ...]:
        """The run of up to three neighbouring passages that together have most."""
        windows = [window for i in self.top[:3] for window in _neighbourhoods(self.passages, i)]
        return max(
            windows,
            key=lambda window: self.coverage(window) - _WIDTH_COST * len(window),
            default=(),
        )

    @cached_property
    def region(self) -> list[int]:
        """The passages that have most, and their neighbours in the same document."""
        best = self.score[self.top[0]] if self.top else 0.0
        near = (
            k
            for i in self.top[:3]
            if self.score[i] >= 0.5 * best
            for k in range(max(0, i - _REACH), min(len(self.passages), i + _REACH + 1))
            if self.passages[k].document == self.passages[i].document
        )
        return list(dict.fromkeys(near))

    def joint_hits(self, window: Iterable[int]) -> dict[int, float]:
        """Return the words that these passages have together, as in `hits`."""
        together: dict[int, float] = {}
        for i in window:
            for word, factor in self.hits.get(i, {}).items():
                together[word] = max(together.get(word, 0.0), factor)
        return together

    def coverage(self, window: Iterable[int], words: Collection[int] | None = None) -> float:
        """Return the share of the claim's content, or of some of its words, that these passages
        have, 0..1.
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
        """Return the `near` content words on either side of a span of the claim."""
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
    """Match the words of a sentence of a claim with all passages, by the postings of these."""
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
    """Return the match with the passages of the `allowed` documents alone."""
    hits = {i: words for i, words in whole.hits.items() if whole.passages[i].document in allowed}
    return Match(whole.sentence, whole.weights, whole.passages, hits, allowed)


def _neighbourhoods(passages: Sequence[EvidencePassage], i: int) -> list[tuple[int, ...]]:
    """Return the passage alone, with its neighbours in the same document on either side, and with
    both.
    """
    first = max(0, i - 1)
    near = [
        at
        for at, each in enumerate(passages[first : i + 2], first)
        if each.document == passages[i].document
    ]
    runs = [(i,), (i - 1, i), (i, i + 1), (i - 1, i, i + 1)]
    return [run for run in runs if set(run).issubset(near)]


def closeness(match: Match, encoder: SentenceEncoder) -> float:
    """Return how close the passages come to a sentence, 0..1."""
    named = [word for word, weight in match.weights.items() if weight >= NAMED]
    found = match.coverage(match.hits, named) if named else 1.0
    near = 0.5 * match.coverage(match.window) + 0.5 * max(0.0, cosine(match, encoder))
    return min(1.0, near * (1 - _NAMED_SHARE * (1 - found)))


def cosine(match: Match, encoder: SentenceEncoder) -> float:
    """Return the cosine of the sentence with the nearest run of up to three neighbouring passages;
    0 without any.
    """
    passages = match.passages
    sums = {i: encoder.encode(passages[i].text) for i in _candidate_passages(match)}
    runs = []
    for first in sums:
        vector = np.zeros_like(sums[first])
        for i in range(first, first + LONGEST_RUN):
            if i not in sums or passages[i].document != passages[first].document:
                break
            # The sum over its passages: encoded jointly, runs rank no better.
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
    """Return the passages with most overlap and their neighbours in order; all of them where there
    are few.
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
