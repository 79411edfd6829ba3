"""How close the evidence comes to a sentence of a claim, in words and in meaning: an order for the queue, no verdict.

Half of it is the share of the claim's content that the nearest run of passages has, half the cosine of the sentence
encoder with the nearest run; names and figures that no evidence has take away up to a quarter.
"""

from __future__ import annotations

import numpy as np

from masis.offline.inference.encoder import Encoder
from masis.offline.matching.overlap import Match

LONGEST_RUN = 3
"""Neighbouring passages that are compared together."""
CANDIDATES = 8
"""Passages with the largest overlap that are encoded for a sentence, each with its neighbours."""
NAMED = 1.3
"""Weight from which a word is a name or a figure."""
_NAMED_SHARE = 0.25


def closeness(match: Match, encoder: Encoder) -> float:
    """Return how close the passages come to a sentence, 0..1."""
    named = [word for word, weight in match.weights.items() if weight >= NAMED]
    found = match.coverage(match.hits, named) if named else 1.0
    near = 0.5 * match.coverage(match.window) + 0.5 * max(0.0, cosine(match, encoder))
    return min(1.0, near * (1 - _NAMED_SHARE * (1 - found)))


def cosine(match: Match, encoder: Encoder) -> float:
    """Return the cosine of the sentence with the nearest run of up to three neighbouring passages; 0 without any."""
    passages = match.passages
    sums = {i: encoder.encode(passages[i].text) for i in _candidates(match)}
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
    cosines = stacked @ claim / (np.linalg.norm(stacked, axis=1) + 1e-9) / (float(np.linalg.norm(claim)) + 1e-9)
    return float(cosines.max())


def _candidates(match: Match) -> list[int]:
    """Return the passages with most overlap and their neighbours in order; all of them where there are few."""
    passages = match.passages
    usable = [i for i, passage in enumerate(passages) if match.allowed is None or passage.document in match.allowed]
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
