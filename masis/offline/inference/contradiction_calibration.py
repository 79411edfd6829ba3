"""How likely a signal of contradiction is right, from its context: a small logistic model behind the rules.

The rules see words in places. Long passages, words around the two places that differ, and values that the evidence has
elsewhere make it likelier that a passage is about something else. A signal below the threshold is still shown but no
longer decides. Fitted by `tools/fit_offline.py` on claims known to be true and claims known to be altered.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.polarity import tentative

KINDS = ("number", "date", "name", "negation", "direction")
NAMES = (
    "strength",
    "covered",
    "margin",
    "near",
    "shared",
    "modal_passage",
    "modal_claim",
    "known",
    "passage_words",
    "evidence_length",
    "tentative",
    *(f"is_{kind}" for kind in KINDS),
)
FAINT = 0.6
"""The highest strength of a signal below the threshold."""
REACH = 4.0
"""How many standard deviations from the mean a measurement counts."""
_NEAR, _AROUND = 3, 4
_MODALS = frozenset("may might could should would can".split())


@dataclass(frozen=True, slots=True)
class ContradictionCalibration:
    """Fitted weights, one for each feature of `NAMES`; a signal counts from the probability `least` on."""

    centre: tuple[float, ...]
    spread: tuple[float, ...]
    weights: tuple[float, ...]
    base: float
    least: float

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> "ContradictionCalibration":
        """Read the calibration from the values of the weights file; raises KeyError where one is missing."""
        centre, spread, weights = (tuple(raw[name]) for name in ("centre", "spread", "weights"))
        return cls(centre, spread, weights, raw["base"], raw["least"])

    def probability(self, measured: Mapping[str, float]) -> float:
        """Return the probability, 0..1, that the claim contradicts the passage."""
        odds = self.base
        for name, centre, spread, weight in zip(NAMES, self.centre, self.spread, self.weights, strict=True):
            odds += weight * max(-REACH, min(REACH, (measured[name] - centre) / spread))
        return 1.0 / (1.0 + math.exp(-odds))

    def calibrate(self, signal: Signal, match: Match) -> Signal:
        """Return the signal, its strength limited to `FAINT` where it is too unlikely."""
        if signal.strength <= FAINT or signal.kind not in KINDS:
            return signal
        measured = signal_features(signal, match)
        if measured is None or self.probability(measured) >= self.least:
            return signal
        return signal.with_strength(FAINT)


def signal_features(signal: Signal, match: Match) -> dict[str, float] | None:
    """Return the features of a signal by `NAMES`; None where its passage isn't among those that share a word with the
    claim.
    """
    at = _place(signal, match)
    if at is None:
        return None
    passage, sentence = match.passages[at], match.sentence
    whole = (1 << len(match.bits)) - 1
    own = match.share(at, whole)
    start, end = signal.claim_span
    begin, finish = signal.evidence_start - passage.start, signal.evidence_end - passage.start
    mine = (*sentence.content_before(start, _NEAR), *sentence.content_after(end, _NEAR))
    theirs = {
        word.stem for word in (*passage.content_before(begin, _AROUND), *passage.content_after(finish, _AROUND))
    } | {word.stem for word in passage.content_words if begin <= word.start < finish}
    inside = [word.stem for word in sentence.content_words if word.start < end and start < word.end]
    features = {
        "strength": signal.strength,
        "covered": own,
        "margin": max((match.share(i, whole) for i in match.top), default=0.0) - own,
        "near": sum(word.stem in theirs for word in mine) / len(mine) if mine else 0.0,
        "shared": len(sentence.content & passage.content) / max(1, len(passage.content)),
        "modal_passage": _modals(passage.lowers),
        "modal_claim": _modals(sentence.lowers),
        "known": float(all(any(root in match.passages[i].positions for i in match.score) for root in inside)),
        "passage_words": math.log1p(len(passage.content)),
        "evidence_length": math.log1p(len(signal.evidence_text)),
        "tentative": float(tentative(passage.text)),
    }
    return features | {f"is_{kind}": float(signal.kind == kind) for kind in KINDS}


def _modals(words: list[str]) -> float:
    return float(sum(word in _MODALS for word in words))


def _place(signal: Signal, match: Match) -> int | None:
    def holds(passage: Passage) -> bool:
        return passage.evidence_id == signal.evidence_id and passage.start <= signal.evidence_start < passage.end

    return next((i for i in (*match.top, *match.score) if holds(match.passages[i])), None)
