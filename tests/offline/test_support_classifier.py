"""The fitted model: trees and a line averaged, measurements held within reach."""

import json
import math
from pathlib import Path

import pytest

from masis.offline.inference.features import NAMES
from masis.offline.inference.support_classifier import REACH, WEIGHTS, load_classifier

SIGNALS = ("s_number", "s_date", "s_direction")


def written(path: Path) -> Path:
    """Weights of one tree of depth one and a line, both over the first of the measurements."""
    plain = [0.0] * (1 + len(SIGNALS))
    weights = {
        "version": "test",
        "features": ["cover", *SIGNALS],
        "base": 0.0,
        "feature": [[0]],
        "threshold": [[0.5]],
        "leaves": [[-1.0, 3.0]],
        "linear": {"centre": plain, "spread": [1.0] * len(plain), "weights": [1.0, *plain[1:]], "base": 0.0},
        "calibration": {"slope": 1.0, "intercept": 0.0},
        "thresholds": {"confirm": 0.8, "accuse": 0.1},
    }
    path.write_text(json.dumps(weights), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("cover", "odds"), [(0.2, (-1.0 + 0.2) / 2), (0.8, (3.0 + 0.8) / 2), (99.0, (3.0 + REACH) / 2)]
)
def test_support_averages_trees_and_line(tmp_path: Path, cover: float, odds: float) -> None:
    model = load_classifier(written(tmp_path / "w.json"))
    support = model.support({"cover": cover, **dict.fromkeys(SIGNALS, 0.0)})
    assert support == pytest.approx(1 / (1 + math.exp(-odds)))


def test_the_weights_in_use_know_the_measurements_in_use() -> None:
    model = load_classifier(WEIGHTS)
    assert model.names == NAMES
    assert model.linear.shape == model.centre.shape == model.spread.shape == (len(NAMES),)
    assert 0 < model.accuse < 0.5 < model.confirm < 1
