"""Offline verifier: does the evidence support a claim, and how certain is that?

A calibrated screen that needs neither a network nor a GPU. Each claim is compared with the evidence in four ways:

1. word overlap with the best windows of the evidence (a window is one to three neighbouring sentences);
2. cosine similarity and soft word alignment, from the token vectors of a small sentence encoder (int8 ONNX);
3. deterministic checks of numbers, dates and units;
4. a small classifier over these features (a linear model averaged with boosted trees), calibrated to the
   probability that the evidence supports the claim.

Two thresholds cut the probability into three bands: ``confirmed``, ``not_confirmed`` (an abstention, never an
accusation) and ``accused``. A claim is confirmed only if no check vetoes it.

    verifier = Verifier.load(Path("encoder"))
    for judgement in verifier.verify(["The firm grew by 21% in 2021."], [("1", "The firm grew by 12% in 2021.")]):
        print(judgement.verdict, judgement.support, judgement.reasons)

Results depend on nothing but the claim and the evidence. Scores of the int8 encoder differ slightly between CPUs, so
tests should leave a margin.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tools.train_verifier.encoder import Array, Encoder
from tools.train_verifier.features import FEATURE_NAMES, ClaimFeatures, EvidenceIndex, FeatureExtractor, Window
from tools.train_verifier.text import Lexicon

Band = Literal["confirmed", "not_confirmed", "accused"]
Verdict = Literal["supported", "unverifiable", "unsupported", "contradicted"]
WEIGHTS = Path(__file__).parent / "weights.json"
CLIP = 4.0
"""Standard deviations from the mean to which the linear model clips a feature."""
CACHED_INDEXES = 64


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted weights: a linear model and boosted trees whose log odds are averaged, a calibration, two thresholds.

    Trees are complete and of one depth: node ``k`` asks whether ``values[feature[k]] > threshold[k]`` and goes on to
    node ``2k + 1`` or ``2k + 2``.
    """

    version: str
    centre: Array
    spread: Array
    linear: Array
    linear_base: float
    tree_base: float
    feature: Array
    threshold: Array
    leaves: Array
    slope: float
    intercept: float
    confirm: float
    accuse: float
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = WEIGHTS) -> Model:
        """Read the weights in a file written by ``fit.py``.

        Raises:
            ValueError: The weights were fitted on other features than the code has.

        """
        raw = json.loads(path.read_text(encoding="utf-8"))
        if tuple(raw["features"]) != FEATURE_NAMES:
            raise ValueError(f"{path} was fitted on other features than those of features.py: fit it again.")
        linear, trees = raw["linear"], raw["trees"]
        return cls(
            version=raw["version"],
            centre=np.array(linear["centre"]),
            spread=np.array(linear["spread"]),
            linear=np.array(linear["weights"]),
            linear_base=linear["base"],
            tree_base=trees["base"],
            feature=np.array(trees["feature"], dtype=np.int64),
            threshold=np.array(trees["threshold"]),
            leaves=np.array(trees["leaves"]),
            slope=raw["calibration"]["slope"],
            intercept=raw["calibration"]["intercept"],
            confirm=raw["thresholds"]["confirm"],
            accuse=raw["thresholds"]["accuse"],
            provenance=raw.get("provenance", {}),
        )

    def support(self, features: Array) -> float:
        """Return the calibrated probability, 0..1, that the evidence supports the claim."""
        log_odds = self.slope * self.log_odds(features[None])[0] + self.intercept
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, float(log_odds)))))

    def log_odds(self, features: Array) -> Array:
        """Return the uncalibrated log odds of support, one for each row of features."""
        scaled = np.clip((features - self.centre) / self.spread, -CLIP, CLIP)
        linear = scaled @ self.linear + self.linear_base
        if not len(self.feature):
            return np.asarray(linear)
        trees, inner_nodes = self.feature.shape
        node = np.zeros((len(features), trees), dtype=np.int64)
        every_tree = np.arange(trees)
        for _ in range(int(inner_nodes).bit_length()):
            tested = self.feature[every_tree, node]
            above = np.take_along_axis(features, tested, axis=1) > self.threshold[every_tree, node]
            node = 2 * node + 1 + above
        leaves = self.leaves[every_tree, node - inner_nodes].sum(axis=1) + self.tree_base
        return np.asarray((linear + leaves) / 2)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for one claim.

    Attributes:
        support: Calibrated probability that the evidence supports the claim; None where nothing could be checked.
        band: ``confirmed``, ``not_confirmed`` (an abstention) or ``accused``.
        verdict: ``supported``, ``unverifiable``, ``unsupported`` or ``contradicted``.
        windows: At most three spans of evidence, the closest first.
        reasons: Codes of what decided: ``high_support``, ``low_support``, ``number_absent``, ``date_absent``,
            ``unit_differs``, ``name_absent``, ``antonym``, ``negation``, ``strength``, ``order``,
            ``between_thresholds``, ``no_evidence``, ``nothing_asserted``.

    """

    support: float | None
    band: Band
    verdict: Verdict
    windows: tuple[Window, ...] = ()
    reasons: tuple[str, ...] = ()


class Verifier:
    """Judges claims against evidence, and caches the judgements."""

    def __init__(self, encoder: Encoder, model: Model, lexicon: Lexicon, cache_size: int = 20000) -> None:
        self.encoder, self.model, self.lexicon = encoder, model, lexicon
        self._indexes: OrderedDict[tuple[tuple[str, str], ...], EvidenceIndex] = OrderedDict()
        self._judgements: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], Judgement] = OrderedDict()
        self._cache_size = cache_size

    @classmethod
    def load(cls, encoder: Path, weights: Path = WEIGHTS) -> Verifier:
        """Load a verifier.

        Args:
            encoder: The folder with `model.onnx` and `tokenizer.json`, as `export.py` writes it.
            weights: The file that `fit.py` writes.

        """
        return cls(Encoder.load(encoder), Model.read(weights), Lexicon.load())

    def index(self, evidence: Sequence[tuple[str, str]]) -> EvidenceIndex:
        """Return the index of the evidence, from the cache where possible."""
        key = tuple(evidence)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = EvidenceIndex(key, self.lexicon)
            if len(self._indexes) > CACHED_INDEXES:
                self._indexes.popitem(last=False)
        return index

    def verify(self, claims: Sequence[str], evidence: Sequence[tuple[str, str]]) -> list[Judgement]:
        """Judge each claim, in order.

        Args:
            claims: Claims without citation markers; one to a few sentences each.
            evidence: Pairs of id and text.

        """
        key = tuple(evidence)
        extractor = FeatureExtractor(self.index(key), self.encoder)
        judgements = []
        for claim in claims:
            judgement = self._judgements.get((claim, key))
            if judgement is None:
                judgement = self.judge(extractor.extract(claim), bool(extractor.index.sentences))
                self._judgements[claim, key] = judgement
                if len(self._judgements) > self._cache_size:
                    self._judgements.popitem(last=False)
            judgements.append(judgement)
        return judgements

    def judge(self, claim: ClaimFeatures | None, has_evidence: bool = True) -> Judgement:
        """Return the judgement that follows from the features of a claim."""
        if claim is None:
            reason = "nothing_asserted" if has_evidence else "no_evidence"
            return Judgement(None, "not_confirmed", "unverifiable", (), (reason,))
        support = self.model.support(claim.features)
        band, verdict, reasons = decide(support, claim, self.model.confirm, self.model.accuse)
        return Judgement(round(support, 4), band, verdict, claim.windows, reasons)


def decide(
    support: float, claim: ClaimFeatures, confirm: float, accuse: float
) -> tuple[Band, Verdict, tuple[str, ...]]:
    """Return the band, verdict and reasons that follow from a probability and what the checks found."""
    if claim.accusations:
        return "accused", "contradicted", claim.accusations
    if support <= accuse:
        return "accused", "unsupported", ("low_support",)
    if support >= confirm:
        if claim.vetoes:
            return "not_confirmed", "unverifiable", claim.vetoes
        return "confirmed", "supported", ("high_support",)
    return "not_confirmed", "unverifiable", ("between_thresholds",)
