"""From measurements to a probability of support: boosted trees or a linear model, fitted by `tools/fit_offline.py`.

The weights are plain JSON beside this file, with what they were fitted on; evaluating them needs nothing but Python.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights.json"

Node = tuple[int, float, int, int]
"""Feature index, threshold, the node where the value is at most the threshold, the node where it is more; a leaf has feature -1
and its value in place of the threshold."""


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted weights: `names` in the order of the feature vector, trees whose leaves add up to log odds, thresholds of the verdicts."""

    version: str
    names: tuple[str, ...]
    base: float
    trees: tuple[tuple[Node, ...], ...]
    slope: float
    intercept: float
    supported: float
    partial: float
    contradicted: float

    def support(self, features: Mapping[str, float]) -> float:
        """The calibrated probability, 0..1, that the evidence bears the claim."""
        values = [features[name] for name in self.names]
        odds = self.base
        for tree in self.trees:
            feature, threshold, left, right = tree[0]
            while feature >= 0:
                feature, threshold, left, right = tree[left if values[feature] <= threshold else right]
            odds += threshold
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.slope * odds + self.intercept))))


@cache
def load(path: Path = WEIGHTS) -> Model:
    """The weights in the file, checked for shape; raises ValueError where they don't fit this version of the features."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    trees = tuple(
        tuple((int(node[0]), float(node[1]), int(node[2]), int(node[3])) for node in tree) for tree in raw["trees"]
    )
    return Model(
        version=raw["version"], names=tuple(raw["features"]), base=raw["base"], trees=trees, slope=raw["calibration"]["slope"],
        intercept=raw["calibration"]["intercept"], **raw["thresholds"],
    )  # fmt: skip
