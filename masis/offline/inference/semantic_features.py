"""Features from the sentence encoder: how near the evidence comes to a sentence of a claim, whatever its words.

The cosine of the sentence with runs of one to three neighbouring passages, and for each of its content words the cosine
of the nearest word in the three best runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from masis.offline.inference.encoder import Array, Encoder
from masis.offline.matching.overlap import Match

NAMES = ("cos_window", "cos_sentence", "cos_top", "soft_mean", "soft_low", "soft_absent")
MAX_WINDOWS = 3
MAX_WINDOW_PASSAGES = 3
CANDIDATE_PASSAGES = 8
"""Passages with the largest overlap that are encoded for a sentence, each with its neighbours."""
WIDTH_COST = 0.02
"""What each passage of a run must earn, so that a wide run does not win by a hair."""


class Run(NamedTuple):
    """A run of neighbouring passages as compared with a sentence; `score` is overlap plus cosine less its width."""

    score: float
    cosine: float
    first: int
    length: int

    @property
    def passages(self) -> range:
        """The indices of its passages."""
        return range(self.first, self.first + self.length)


def semantic_features(match: Match, encoder: Encoder) -> dict[str, float]:
    """Return the features of one sentence of a claim by `NAMES`, each 0..1 or a cosine; 0 without passages."""
    runs = _runs(match, encoder)
    if not runs:
        return dict.fromkeys(NAMES, 0.0)
    inside = sorted({i for run in _disjoint(runs) for i in run.passages})
    alignment = _alignment(match, encoder, inside)
    exact, _ = match.covered(inside)
    absent = [b for b in range(len(match.bits)) if not exact >> b & 1]
    single = sorted((run.cosine for run in runs if run.length == 1), reverse=True)
    return {
        "cos_window": max(run.cosine for run in runs),
        "cos_sentence": single[0],
        "cos_top": float(np.mean(single[:3])),
        "soft_mean": float(alignment.mean()),
        "soft_low": float(np.sort(alignment)[:3].mean()),
        "soft_absent": float((1 - alignment[absent]).sum() / len(alignment)) if absent else 0.0,
    }


def _candidates(match: Match) -> list[int]:
    """Return the passages with most overlap and their neighbours; all of them where there are few."""
    passages = match.passages
    usable = (
        range(len(passages))
        if match.allowed is None
        else [i for i, passage in enumerate(passages) if passage.document in match.allowed]
    )
    if len(usable) <= 3 * CANDIDATE_PASSAGES:
        return list(usable)
    best = sorted(match.score, key=lambda i: (-match.score[i], i))[:CANDIDATE_PASSAGES]
    best += list(usable[: CANDIDATE_PASSAGES - len(best)])
    near = {
        i
        for at in best
        for i in (at - 1, at, at + 1)
        if 0 <= i < len(passages) and passages[i].document == passages[at].document
    }
    return sorted(near)


def _runs(match: Match, encoder: Encoder) -> list[Run]:
    """Return every run of the candidates, best first."""
    passages = match.passages
    sums = {i: encoder.encode(passages[i].text, passages[i].words).total for i in _candidates(match)}
    if not sums:
        return []
    claim = encoder.encode(match.sentence.text, match.words).total
    spans: list[tuple[float, int, int]] = []
    vectors = []
    for first in sums:
        vector = np.zeros_like(claim)
        for length in range(1, MAX_WINDOW_PASSAGES + 1):
            last = first + length - 1
            if last not in sums or passages[last].document != passages[first].document:
                break
            # The sum over its passages: encoded jointly, runs rank no better.
            vector = vector + sums[last]
            covered = match.value(*match.covered(range(first, last + 1))) / match.total
            spans.append((covered, first, length))
            vectors.append(vector)
    stacked = np.stack(vectors)
    cosines = stacked @ claim / (np.linalg.norm(stacked, axis=1) + 1e-9) / (float(np.linalg.norm(claim)) + 1e-9)
    runs = [
        Run(covered + cosine - WIDTH_COST * length, cosine, first, length)
        for (covered, first, length), cosine in zip(spans, cosines.tolist(), strict=True)
    ]
    return sorted(runs, key=lambda run: (-run.score, run.first, run.length))


def _disjoint(runs: Sequence[Run]) -> list[Run]:
    """Return the best runs that share no passage."""
    chosen: list[Run] = []
    used: set[int] = set()
    for run in runs:
        if used.isdisjoint(run.passages):
            chosen.append(run)
            used.update(run.passages)
            if len(chosen) == MAX_WINDOWS:
                break
    return chosen


def _alignment(match: Match, encoder: Encoder, inside: Sequence[int]) -> Array:
    """Return for each content word of the claim the cosine of the nearest content word in these passages."""
    own = encoder.encode(match.sentence.text, match.words).words.astype(np.float32)
    theirs = np.concatenate([encoder.encode(match.passages[i].text, match.passages[i].words).words for i in inside])
    if not len(theirs):
        return np.zeros(len(own))
    nearest: Array = (own @ theirs.astype(np.float32).T).max(axis=1)
    return nearest
