"""From features to a probability of support: boosted trees and a linear model, fitted by `tools/train_verifier`.

The weights are plain JSON beside this file, with what they were fitted on; evaluating them takes some thirty
microseconds with numpy, where a loop in Python takes a millisecond.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS = Path(__file__).parent / "weights.json"

Array = np.ndarray[Any, np.dtype[Any]]
REACH = 4.0
"""How many standard deviations from the mean a measurement counts in the linear model."""


@dataclass(frozen=True, slots=True)
class SupportClassifier:
    """Fitted weights: `names` in the order of the feature vector, trees whose leaves add up to log odds, a linear model
    to average them with, thresholds of the verdicts.

    The trees are complete and of one depth, laid out as arrays of one row a tree: node `k` asks whether
    `values[feature[k]]` is above `threshold[k]` and goes on to node `2k + 1` or `2k + 2`; what follows the last
    question is an index into `leaves`. The linear model sees each measurement as `(value - centre) / spread`, held
    within `REACH`: it is steady where the trees follow the few claims they were fitted on. From the probability
    `confirm` on a claim is supported unless a check objects, up to `accuse` it is unsupported, between them the
    verifier abstains.
    """

    version: str
    names: tuple[str, ...]
    base: float
    feature: Array
    threshold: Array
    leaves: Array
    centre: Array
    spread: Array
    linear: Array
    linear_base: float
    slope: float
    intercept: float
    confirm: float
    accuse: float

    def support(self, features: Mapping[str, float]) -> float:
        """Return the calibrated probability, 0..1, that the evidence supports the claim."""
        values = np.array([features[name] for name in self.names])
        odds = (self.base + self._leaves(values) + self._linear(values)) / 2
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.slope * odds + self.intercept))))

    def _linear(self, values: Array) -> float:
        scaled = np.clip((values - self.centre) / self.spread, -REACH, REACH)
        return self.linear_base + float(scaled @ self.linear)

    def _leaves(self, values: Array) -> float:
        trees, inner = self.feature.shape
        if not inner:
            return 0.0
        above = (values[self.feature] > self.threshold).ravel()  # every question asked at once, then followed
        first = np.arange(0, trees * inner, inner)
        node = np.zeros(trees, dtype=np.int64)
        for _ in range(inner.bit_length()):
            node = 2 * node + 1 + above[first + node]
        return float(self.leaves[np.arange(trees), node - inner].sum())


@cache
def load_classifier(path: Path = WEIGHTS) -> SupportClassifier:
    """Return the weights in the file; raises KeyError or ValueError where it isn't one of `tools/train_verifier`."""
    written = path.read_bytes()
    raw = json.loads(written)
    return SupportClassifier(
        # The file names the encoder it was fitted with, so that its digest stands for both.
        version=f"{raw['version']}-{hashlib.sha256(written).hexdigest()[:12]}",
        names=tuple(raw["features"]),
        base=raw["base"],
        feature=np.array(raw["feature"], dtype=np.int64),
        threshold=np.array(raw["threshold"], dtype=np.float64),
        leaves=np.array(raw["leaves"], dtype=np.float64),
        centre=np.array(raw["linear"]["centre"], dtype=np.float64),
        spread=np.array(raw["linear"]["spread"], dtype=np.float64),
        linear=np.array(raw["linear"]["weights"], dtype=np.float64),
        linear_base=raw["linear"]["base"],
        slope=raw["calibration"]["slope"],
        intercept=raw["calibration"]["intercept"],
        **raw["thresholds"],
    )


def unfitted(names: tuple[str, ...], confirm: float = 1.0, accuse: float = 0.0) -> SupportClassifier:
    """Return a model without trees, for measuring before there are weights."""
    nothing, flat = np.zeros((0, 0)), np.zeros(len(names))
    trees, line = (0.0, nothing.astype(np.int64), nothing, nothing), (flat, flat + 1, flat, 0.0)
    return SupportClassifier("unfitted", names, *trees, *line, 1.0, 0.0, confirm, accuse)
