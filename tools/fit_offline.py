"""Fits the offline auditor's weights on the fit halves of the public sets and writes
`masis/offline/inference/weights.json`.

    python tools/fit_offline.py --data ../shared/data

Boosted trees averaged with a linear model, over the measurements of `masis.offline.inference.features`: one model
for all sets,
each set and each class of it with its settled share of the weight. Calibration and threshold come from predictions for
groups left out (five folds by question or document, dealt three times). The halves reported by `masis bench` are never
read here. Deterministic; a few minutes on one core.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from masis.bench.rows import BenchRow, in_half
from masis.bench.tasks import TASKS, Task
from masis.offline.inference.contradiction_calibration import ContradictionCalibration
from masis.offline.inference.features import NAMES
from masis.offline.inference.support_classifier import DENIED, REACH, WEIGHTS, contradiction_strength, unfitted
from masis.offline.matching.evidence_index import EvidenceIndex

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import fit_contradiction_calibration

FILES = {
    "HAGRID": "hagrid_claims.jsonl",
    "WiCE": "wice_claims.jsonl",
    "SummEdits": "summedits.jsonl",
    "ExpertQA": "expertqa_cases.jsonl",
    "Demo gold": "*.jsonl",
}
WICE_TRAINING = "wice_unsupported_tokens.jsonl"
CASES = Path(__file__).parents[1] / "data" / "cases"
SHARES = {"HAGRID": 1.2, "WiCE": 1.0, "SummEdits": 2.0, "ExpertQA": 0.7, "Demo gold": 0.3}
"""How much each set weighs. SummEdits weighs more: its signal is faint, and the others keep theirs."""
MADE = 0.5
"""What a made row weighs, against one of HAGRID that is not supported."""
FOLDS = 5
CUTS = 3
"""How often the groups are dealt into folds again; what is left out is predicted each time, and averaged."""
DRAWS = 3
DEPTH = 3
HOLD = 0.001
"""How loosely the linear model is held (C): its weights are small, and none leads."""
RESAMPLES = 200
PLATEAU = 0.005
"""Thresholds whose quality is this near the best are as good as it: their middle is taken, far from either edge."""
CONTRADICTED = 0.72
"""Strength from which a signal alone decides; set on the fit half of our own cases."""
EMPTY = unfitted(NAMES, CONTRADICTED)

Array = np.ndarray[Any, np.dtype[np.float64]]


class Sample:
    """The fit half of all sets as arrays: measurements, whether supported, set, group, weight.

    Behind the labelled rows stand those of `made`: they are learned from, and never judged by.
    """

    def __init__(self, data: Path) -> None:
        """Read and measure the rows; takes a minute."""
        measured: list[list[float]] = []
        labels: list[int] = []
        sets: list[str] = []
        found_groups: list[str] = []
        rows = [
            (task.name, row, group)
            for task in TASKS
            for row, group in fit_rows(task, CASES if task.name == "Demo gold" else data, FILES[task.name])
        ]
        self.calibration = fit_contradiction_calibration.fit([(name, row) for name, row, _ in rows], data, EMPTY)
        empty = unfitted(NAMES, CONTRADICTED, ContradictionCalibration.read(self.calibration))
        for name, row, group in [*rows, *(("made", row, group) for row, group in made(rows, data))]:
            assessment = EvidenceIndex(row.evidence, empty).assess(row.claim)
            if assessment.features:
                measured.append([round(assessment.features[key], 5) for key in NAMES])
                labels.append(int(not row.positive))
                sets.append(name)
                found_groups.append(group if name == "made" else f"{name}:{group}")
        self.features, self.supported = np.array(measured), np.array(labels)
        self.sets, self.groups = np.array(sets), np.array(found_groups)
        self.settled = self._settled()
        self.weights = self._with_made(self.settled)

    def _settled(self) -> Array:
        """The weights of the labelled rows; made rows have none."""
        weights = np.zeros(len(self.supported))
        for name, share in SHARES.items():
            for label in (0, 1):
                here = (self.sets == name) & (self.supported == label)
                weights[here] = share / max(1, here.sum())
        weights *= len(weights) / weights.sum()
        return weights

    def _with_made(self, settled: Array) -> Array:
        """The weights to fit with; supported claims get as much again as made rows add, so that the balance stays."""
        weights, extra = settled.copy(), self.sets == "made"
        hagrid = self.sets == "HAGRID"
        weights[extra] = MADE * settled[hagrid & (self.supported == 0)].mean()
        supported_rows = hagrid & (self.supported == 1)
        weights[supported_rows] *= 1 + weights[extra].sum() / weights[supported_rows].sum()
        return weights


def made(rows: Sequence[tuple[str, BenchRow, str]], data: Path) -> Iterator[tuple[BenchRow, str]]:
    """Further claims that what they are held against does not bear, each with the group it belongs to.

    HAGRID: supported claims beside passages that other claims to the same question cite. WiCE: supported claims beside
    the page without its supporting sentences; and the sub-claims of its training part in which words are marked as
    unsupported, as far as they share nothing with the report half.
    """
    cited: dict[str, dict[str, None]] = {}
    for name, row, _ in rows:
        if name == "HAGRID":
            cited.setdefault(row.keys[0], {}).update(dict.fromkeys(text for _, text in row.evidence))
    for name, row, group in rows:
        if name == "HAGRID" and not row.positive:
            others = sorted(cited[row.keys[0]].keys() - {text for _, text in row.evidence})
            for text in others[:2]:
                yield row._replace(evidence=(("1", text),), positive=True), f"{name}:{group}"
    yield from _wice_made({row.id: (row, group) for name, row, group in rows if name == "WiCE"}, data)


def _wice_made(pages: dict[str, tuple[BenchRow, str]], data: Path) -> Iterator[tuple[BenchRow, str]]:
    task = next(task for task in TASKS if task.name == "WiCE")
    whole = [json.loads(line) for line in (data / FILES["WiCE"]).read_text(encoding="utf-8").splitlines()]
    for raw in whole:
        row, group = pages.get(raw["meta"]["id"], (None, ""))
        if row is not None and not row.positive:
            bearing = {number for one in raw["supporting_sentences"] for number in one}
            rest = "\n\n".join(text for number, text in enumerate(raw["evidence"]) if number not in bearing)
            yield row._replace(evidence=(("document", rest),), positive=True), f"WiCE:{group}"
    known = [row for raw in whole for row in task.rows(raw)]
    training = (data / WICE_TRAINING).read_text(encoding="utf-8").splitlines()
    marked = [row for line in training for row in task.rows(json.loads(line))]
    # Half of this file too, and nothing that shares a page or an article with what is reported.
    places = {row.id for row in known}
    reported = {key for row, _ in in_half(known, "report") for key in row.keys}
    for row, group in in_half([*known, *marked], "fit"):
        if row.id not in places and reported.isdisjoint(row.keys):
            yield row, f"WiCE:{group}"


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


class Line:
    """The linear model, fitted: measurements brought to one scale, and their weights."""

    def __init__(self, features: Array, supported: Array, weights: Array) -> None:
        """Fit it; a measurement that never varies gets no weight."""
        self.centre = np.round(np.average(features, axis=0, weights=weights), 6)
        spread = np.sqrt(np.average((features - self.centre) ** 2, axis=0, weights=weights))
        self.spread = np.round(np.where(spread > 1e-5, spread, 1.0), 6)
        fitted = LogisticRegression(C=HOLD, max_iter=2000).fit(  # type: ignore[no-untyped-call]
            self._held(features), supported, sample_weight=weights
        )
        self.weights, self.base = np.round(fitted.coef_[0], 6), round(float(fitted.intercept_[0]), 6)

    def _held(self, features: Array) -> Array:
        held: Array = np.clip((features - self.centre) / self.spread, -REACH, REACH)
        return held

    def odds(self, features: Array) -> Array:
        """Log odds of support."""
        found: Array = self._held(features) @ self.weights + self.base
        return found

    def exported(self) -> dict[str, Any]:
        """Plain values, as `masis.offline.inference.support_classifier` reads them."""
        return {
            "centre": self.centre.tolist(),
            "spread": self.spread.tolist(),
            "weights": self.weights.tolist(),
            "base": self.base,
        }


def dealt(groups: Array, cut: int) -> Array:
    """The fold of each row: a group goes whole into one, by a hash."""
    return np.array([int(hashlib.sha256(f"{cut}:{group}".encode()).hexdigest(), 16) % FOLDS for group in groups])


def left_out(sample: Sample) -> Array:
    """Log odds of support for every row by models that have not seen its group."""
    odds = np.zeros(len(sample.supported))
    for cut in range(CUTS):
        folds = dealt(sample.groups, cut)
        for fold in range(FOLDS):
            seen, unseen = folds != fold, folds == fold
            known = sample.features[seen], sample.supported[seen], sample.weights[seen]
            trees = [one.decision_function(sample.features[unseen]) for one in boosted(*known)]  # type: ignore[no-untyped-call]
            odds[unseen] += (np.mean(trees, axis=0) + Line(*known).odds(sample.features[unseen])) / 2 / CUTS
    return odds


def calibration(sample: Sample, odds: Array) -> tuple[float, float]:
    """Slope and intercept that turn log odds into probabilities (Platt)."""
    fitted = LogisticRegression(C=1e3).fit(  # type: ignore[no-untyped-call]
        odds[:, None], sample.supported, sample_weight=sample.settled
    )
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def denied(sample: Sample, support: Array) -> Array:
    """The support after contradictions, by the rule of `masis.offline.inference.support_classifier`."""
    strongest = np.array([contradiction_strength(dict(zip(NAMES, row, strict=True))) for row in sample.features])
    return np.where(strongest >= CONTRADICTED, support * (1 - DENIED * strongest), support)


def threshold(sample: Sample, support: Array) -> float:
    """The support from which a claim counts as supported: the middle of the thresholds that do about as well as the
    best.

    Quality is macro-F1, averaged over the sets and over resamples of their groups.
    """
    candidates = np.round(np.arange(0.35, 0.66, 0.01), 2)
    draws = np.random.default_rng(0)
    quality = np.zeros(len(candidates))
    for name in SHARES:
        here = sample.sets == name
        truth, said = sample.supported[here] == 1, support[here][:, None] >= candidates[None, :]
        groups, member = np.unique(sample.groups[here], return_inverse=True)
        for _ in range(RESAMPLES):
            often = np.bincount(draws.integers(0, len(groups), len(groups)), minlength=len(groups))[member]
            hit, missed = often[truth] @ said[truth], often[truth] @ ~said[truth]
            alarm, quiet = often[~truth] @ said[~truth], often[~truth] @ ~said[~truth]
            quality += hit / (2 * hit + alarm + missed) + quiet / (2 * quiet + alarm + missed)
    good = candidates[quality >= quality.max() - PLATEAU * RESAMPLES * len(SHARES)]
    return round(float(np.median(good)), 2)


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
        "version": "3",
        "provenance": {
            "files": FILES | {"WiCE training": WICE_TRAINING, "PubMedQA": fit_contradiction_calibration.PUBMEDQA},
            "shares": SHARES,
            "split": "masis.bench.rows.half_of, fit half",
            "cross_validated": figures,
        },
        "features": list(NAMES),
        "calibration": {"slope": round(slope, 5), "intercept": round(intercept, 5)},
        "thresholds": {"supported": cut, "partial": round(cut * 0.55, 3), "contradicted": CONTRADICTED},
        "sureness": sample.calibration,
        "linear": Line(sample.features, sample.supported, sample.weights).exported(),
        **exported(boosted(sample.features, sample.supported, sample.weights)),
    }
    chosen.out.write_text(json.dumps(weights, separators=(",", ":")) + "\n", encoding="utf-8")
    for name, values in figures.items():
        print(name, values)
    print(f"threshold {cut}, calibration {slope:.3f} {intercept:.3f}, written to {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
