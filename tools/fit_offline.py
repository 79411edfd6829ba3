"""Fits the offline auditor's weights on the fit halves of the public sets and writes `masis/offline/weights.json`.

    python tools/fit_offline.py --data ../shared/data

Boosted trees over the measurements of `masis.offline.features`, one model for all sets, each set and each class of it
with
its settled share of the weight. Calibration and thresholds come from predictions for groups left out (five folds by
question or document). The halves reported by `masis bench` are never read here. Deterministic; a few minutes on one
core.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from masis.datasets.bench.rows import BenchRow, in_half
from masis.datasets.bench.tasks import TASKS, Task
from masis.offline.alignment import EvidenceIndex
from masis.offline.features import NAMES
from masis.offline.model import DENIED, WEIGHTS, denial, unfitted

FILES = {
    "HAGRID": "hagrid_claims.jsonl",
    "WiCE": "wice_claims.jsonl",
    "SummEdits": "summedits.jsonl",
    "ExpertQA": "expertqa_cases.jsonl",
    "Demo gold": "*.jsonl",
}
CASES = Path(__file__).parents[1] / "data" / "cases"
SHARES = {"HAGRID": 1.2, "WiCE": 1.0, "SummEdits": 2.0, "ExpertQA": 0.7, "Demo gold": 0.3}
"""How much each set weighs. SummEdits weighs more: its signal is faint, and the others keep theirs."""
FOLDS = 5
DRAWS = 3
DEPTH = 3
CONTRADICTED = 0.72
"""Strength from which a signal alone decides; set on the fit half of our own cases."""

Array = np.ndarray[Any, np.dtype[np.float64]]


class Sample:
    """The fit half of all sets as arrays: measurements, whether supported, set, group, weight."""

    def __init__(self, data: Path) -> None:
        """Read and measure the rows; takes a minute."""
        empty = unfitted(NAMES, CONTRADICTED)
        measured: list[list[float]] = []
        labels: list[int] = []
        sets: list[str] = []
        found_groups: list[str] = []
        for task in TASKS:
            folder = CASES if task.name == "Demo gold" else data
            for row, group in fit_rows(task, folder, FILES[task.name]):
                assessment = EvidenceIndex(row.evidence, empty).assess(row.claim)
                if assessment.features:
                    measured.append([round(assessment.features[name], 5) for name in NAMES])
                    labels.append(int(not row.positive))
                    sets.append(task.name)
                    found_groups.append(f"{task.name}:{group}")
        self.features, self.supported = np.array(measured), np.array(labels)
        self.sets, self.groups = np.array(sets), np.array(found_groups)
        self.weights = np.zeros(len(labels))
        for name, share in SHARES.items():
            for label in (0, 1):
                here = (self.sets == name) & (self.supported == label)
                self.weights[here] = share / max(1, here.sum())
        self.weights *= len(labels) / self.weights.sum()


def fit_rows(task: Task, folder: Path, pattern: str) -> list[tuple[BenchRow, str]]:
    """The rows of a set's files that belong to the fit half, each with its group."""
    lines = [line for path in sorted(folder.glob(pattern)) for line in path.read_text(encoding="utf-8").split("\n")]
    return in_half([row for line in lines if line.strip() for row in task.rows(json.loads(line))], "fit")


def boosted(features: Array, supported: Array, weights: Array) -> list[GradientBoostingClassifier]:
    """The model, fitted: a few boosted forests that differ only in their draws, to be averaged."""
    return [
        GradientBoostingClassifier(  # type: ignore[no-untyped-call]
            n_estimators=100,
            learning_rate=0.06,
            max_depth=DEPTH,
            min_samples_leaf=12,
            subsample=0.5,
            max_features=0.3,
            random_state=draw,
        ).fit(features, supported, sample_weight=weights)
        for draw in range(DRAWS)
    ]


def left_out(sample: Sample) -> Array:
    """Log odds of support for every row by a model that has not seen its group."""
    folds = np.array([int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS for group in sample.groups])
    odds = np.zeros(len(sample.supported))
    for fold in range(FOLDS):
        seen, unseen = folds != fold, folds == fold
        models = boosted(sample.features[seen], sample.supported[seen], sample.weights[seen])
        scores = [one.decision_function(sample.features[unseen]) for one in models]  # type: ignore[no-untyped-call]
        odds[unseen] = np.mean(scores, axis=0)
    return odds


def calibration(sample: Sample, odds: Array) -> tuple[float, float]:
    """Slope and intercept that turn log odds into probabilities (Platt)."""
    fitted = LogisticRegression(C=1e3).fit(  # type: ignore[no-untyped-call]
        odds[:, None], sample.supported, sample_weight=sample.weights
    )
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def denied(sample: Sample, support: Array) -> Array:
    """The support after contradictions, by the rule of `masis.offline.model`."""
    strongest = np.array([denial(dict(zip(NAMES, row, strict=True))) for row in sample.features])
    return np.where(strongest >= CONTRADICTED, support * (1 - DENIED * strongest), support)


def threshold(sample: Sample, support: Array) -> float:
    """The support from which a claim counts as supported: the best mean of macro-F1 and balanced accuracy over the
    sets.
    """
    candidates = np.round(np.arange(0.35, 0.66, 0.01), 2)

    def quality(cut: float) -> float:
        total = 0.0
        for name in SHARES:
            here = sample.sets == name
            total += f1_score(sample.supported[here], support[here] >= cut, average="macro")
            total += balanced_accuracy_score(sample.supported[here], support[here] >= cut)
        return total

    smooth = [np.mean([quality(float(c) + d) for d in (-0.02, -0.01, 0.0, 0.01, 0.02)]) for c in candidates]
    return float(candidates[int(np.argmax(smooth))])


def exported(models: list[GradientBoostingClassifier]) -> dict[str, Any]:
    """The fitted trees, filled up to one depth, as arrays; leaves scaled by learning rate and averaging."""
    features, thresholds, leaves = [], [], []
    for model in models:
        for (estimator,) in model.estimators_:
            feature, threshold, leaf = _complete(estimator.tree_)
            features.append(feature)
            thresholds.append(threshold)
            leaves.append([round(value * model.learning_rate / len(models), 6) for value in leaf])
    prior = float(models[0].init_.class_prior_[1])
    return {
        "base": round(float(np.log(prior / (1 - prior))), 6),
        "feature": features,
        "threshold": thresholds,
        "leaves": leaves,
    }


def _complete(tree: Any) -> tuple[list[int], list[float], list[float]]:
    # A branch that ends early asks a question whose answers lead to the same leaf.
    inner = 2**DEPTH - 1
    feature, threshold, node = [0] * inner, [0.0] * inner, [0] * (2 * inner + 1)
    for k in range(inner):
        here = node[k]
        if tree.children_left[here] < 0:
            node[2 * k + 1] = node[2 * k + 2] = here
        else:
            feature[k], threshold[k] = int(tree.feature[here]), round(float(tree.threshold[here]), 6)
            node[2 * k + 1], node[2 * k + 2] = int(tree.children_left[here]), int(tree.children_right[here])
    return feature, threshold, [float(tree.value[here, 0, 0]) for here in node[inner:]]


def report(sample: Sample, support: Array, cut: float) -> dict[str, dict[str, float]]:
    """Figures on the groups left out, by set."""
    figures = {}
    for name in SHARES:
        here = sample.sets == name
        truth, said = sample.supported[here], support[here]
        figures[name] = {
            "n": int(here.sum()),
            "auroc": round(float(roc_auc_score(truth, said)), 3),
            "macro_f1": round(float(f1_score(truth, said >= cut, average="macro")), 3),
            "balanced_accuracy": round(float(balanced_accuracy_score(truth, said >= cut)), 3),
        }
    return figures


def main() -> int:
    """Fit, print the cross-validated figures, write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the public sets")
    parser.add_argument(
        "--out", type=Path, default=WEIGHTS, help="where to write the weights (default: beside the code)"
    )
    chosen = parser.parse_args()
    sample = Sample(chosen.data)
    odds = left_out(sample)
    slope, intercept = calibration(sample, odds)
    support = denied(sample, 1 / (1 + np.exp(-(slope * odds + intercept))))
    cut = threshold(sample, support)
    figures = report(sample, support, cut)
    weights = {
        "version": "1",
        "provenance": {
            "files": FILES,
            "shares": SHARES,
            "split": "masis.datasets.bench.rows.half_of, fit half",
            "cross_validated": figures,
        },
        "features": list(NAMES),
        "calibration": {"slope": round(slope, 5), "intercept": round(intercept, 5)},
        "thresholds": {"supported": cut, "partial": round(cut * 0.55, 3), "contradicted": CONTRADICTED},
        **exported(boosted(sample.features, sample.supported, sample.weights)),
    }
    chosen.out.write_text(json.dumps(weights, separators=(",", ":")) + "\n", encoding="utf-8")
    for name, values in figures.items():
        print(name, values)
    print(f"threshold {cut}, calibration {slope:.3f} {intercept:.3f}, written to {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
