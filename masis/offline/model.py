"""From measurements to a probability of support: boosted trees or a linear model, fitted by `tools/fit_offline.py`.

The weights are plain JSON beside this file, with what they were fitted on; evaluating them takes some thirty
microseconds with numpy, where a loop in Python takes a millisecond.
"""

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
DENIED = 0.6
"""How much of the support a contradiction of full strength takes away."""
_SIGNALS = ("s_number", "s_date", "s_name", "s_negation", "s_direction")


def denial(features: Mapping[str, float]) -> float:
    """The strength of the strongest contradiction among the measurements, 0..1 (overstated quantifiers don't count)."""
    return max(features[name] for name in _SIGNALS)


@dataclass(frozen=True, slots=True)
class Model:
    """Fitted weights: `names` in the order of the feature vector, trees whose leaves add up to log odds, thresholds
    of the verdicts.

    The trees are complete and of one depth, laid out as arrays of one row a tree: node `k` asks whether
    `values[feature[k]]` is
    above `threshold[k]` and goes on to node `2k + 1` or `2k + 2`; what follows the last question is an index into
    `leaves`.
    """

    version: str
    names: tuple[str, ...]
    base: float
    feature: Array
    threshold: Array
    leaves: Array
    slope: float
    intercept: float
    supported: float
    partial: float
    contradicted: float

    def support(self, features: Mapping[str, float]) -> float:
        """The calibrated probability, 0..1, that the evidence bears the claim."""
        odds = self.base + self._leaves(np.array([features[name] for name in self.names]))
        plain = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, self.slope * odds + self.intercept))))
        denied = denial(features)
        return plain * (1.0 - DENIED * denied) if denied >= self.contradicted else plain

    def _leaves(self, values: Array) -> float:
        trees, inner = self.feature.shape
        if not inner:
            return 0.0
        rows = np.arange(trees)
        node = np.zeros(trees, dtype=np.int64)
        while node[0] < inner:
            node = 2 * node + 1 + (values[self.feature[rows, node]] > self.threshold[rows, node])
        return float(self.leaves[rows, node - inner].sum())


@cache
def load(path: Path = WEIGHTS) -> Model:
    """The weights in the file; raises KeyError or ValueError where it isn't one of `tools/fit_offline.py`."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Model(
        version=raw["version"],
        names=tuple(raw["features"]),
        base=raw["base"],
        feature=np.array(raw["feature"], dtype=np.int64),
        threshold=np.array(raw["threshold"], dtype=np.float64),
        leaves=np.array(raw["leaves"], dtype=np.float64),
        slope=raw["calibration"]["slope"],
        intercept=raw["calibration"]["intercept"],
        **raw["thresholds"],
    )


def unfitted(names: tuple[str, ...], contradicted: float) -> Model:
    """A model without trees, for measuring before there are weights."""
    nothing = np.zeros((0, 0))
    return Model("unfitted", names, 0.0, nothing.astype(np.int64), nothing, nothing, 1.0, 0.0, 0.5, 0.3, contradicted)
