"""Fit the offline verifier's weights on the development halves: `masis/offline/inference/weights.json`.

    python -m tools.train_verifier.fit --data FOLDER            # cross-validate, fit, write the weights
    python -m tools.train_verifier.fit --data FOLDER --ablate   # each group of features off in turn

A linear model averaged with boosted trees over the features of `masis.offline.inference.features`; every set, and each
class of it, has a fixed share of the weight. Calibration and thresholds come from predictions for groups left out (five
folds by question or document). Deterministic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from masis.offline.inference.features import NAMES
from masis.offline.inference.support_classifier import REACH, WEIGHTS
from tools.train_verifier.data import EVALUATED, FILES, PAIRS, PAIRS_FILE
from tools.train_verifier.samples import SHARES, TRAINING_ONLY_SHARES, WORK, Array, Sample, code_digests

FEATURE_GROUPS: dict[str, tuple[str, ...]] = {
    "overlap in a window": ("cover_one", "cover_window", "cover_three", "exact_one", "exact_window", "idf_window",
                            "cover_window_low", "top_margin", "clause_min", "clause_min_low"),
    "overlap with everything": ("cover_all", "exact_all", "cover_all_low", "exact_all_low", "displaced"),
    "runs of words": ("run_share", "in_two", "in_three", "in_two_low", "pairs", "triples", "inverted", "substituted"),
    "absent words": ("absent", "absent_plain", "absent_specific", "absent_words", "absent_rare", "absent_named",
                     "absent_numeric", "absent_verbal", "absent_plain_words", "absent_polar"),
    "synonyms and prefixes": ("kin", "synonyms", "polar"),
    "names": ("names_window", "names_all", "names_missing", "names_displaced", "elsewhere_named"),
    "numbers": ("numbers_window", "numbers_all", "numbers_missing"),
    "antonyms and negation words": ("opposed", "denied", "undenied", "universal", "cues"),
    "conflicts of numbers and dates": ("s_number", "s_date"),
    "conflicts of direction": ("s_direction",),
    "cosine": ("cos_window", "cos_sentence", "cos_top", "cos_window_low"),
    "soft alignment": ("soft_mean", "soft_low", "soft_absent", "soft_mean_low", "soft_low_low"),
    "sizes": ("claim_words", "sentences", "passages", "documents"),
}  # fmt: skip
"""The features by what they come from: what the ablation switches off in turn."""
LEFT_OUT = WORK / "left_out.npy"
"""Where the probabilities of the development half by models that have not seen a row's group are stored."""
CALIBRATION_SHARES = {"HAGRID": 1.0, "WiCE": 1.0, "SummEdits": 1.0, "ExpertQA": 1.0, "Triples": 1.0, "PubMedQA": 0.5}
"""How much each set weighs in the calibration: claims in other words count as much as the rest."""
FOLDS = 5
REPEATS = 2
"""How often the groups are divided into folds again; predictions are averaged."""
DEPTH = 3
REGULARISATION = 0.002
"""`C` of the linear model: small, so that no single weight dominates."""


class LinearModel:
    """A logistic regression over standardised features, rounded as it is stored."""

    def __init__(self, features: Array, supported: Array, weights: Array) -> None:
        self.centre = np.round(np.average(features, axis=0, weights=weights), 6)
        spread = np.sqrt(np.average((features - self.centre) ** 2, axis=0, weights=weights))
        self.spread = np.round(np.where(spread > 1e-5, spread, 1.0), 6)
        model = LogisticRegression(C=REGULARISATION, max_iter=3000)  # type: ignore[no-untyped-call]
        model.fit(self._scaled(features), supported, sample_weight=weights)
        self.weights, self.base = np.round(model.coef_[0], 6), round(float(model.intercept_[0]), 6)

    def _scaled(self, features: Array) -> Array:
        return np.clip((features - self.centre) / self.spread, -REACH, REACH)

    def log_odds(self, features: Array) -> Array:
        """Return the log odds of support for each row."""
        result: Array = self._scaled(features) @ self.weights + self.base
        return result


def boosted_trees(features: Array, supported: Array, weights: Array) -> GradientBoostingClassifier:
    """Return the boosted trees, fitted."""
    trees = GradientBoostingClassifier(  # type: ignore[no-untyped-call]
        n_estimators=160,
        learning_rate=0.05,
        max_depth=DEPTH,
        min_samples_leaf=20,
        subsample=0.5,
        max_features=0.25,
        random_state=0,
    )
    trees.fit(features, supported, sample_weight=weights)
    return trees


def assign_folds(groups: Array, repeat: int = 0) -> Array:
    """Return the fold of each row: a group is never divided, and goes where a hash says."""
    return np.array([int(hashlib.sha256(f"{repeat}:{group}".encode()).hexdigest(), 16) % FOLDS for group in groups])


def left_out_log_odds(
    sample: Sample,
    columns: Array | None = None,
    *,
    repeats: int = 1,
    trees: bool = True,
    linear: bool = True,
) -> Array:
    """Return log odds for every row by models that have not seen its group.

    Args:
        sample: The rows.
        columns: The features to use, by number; all of them by default.
        repeats: How often to divide the groups into folds.
        trees: Whether the boosted trees take part.
        linear: Whether the linear model takes part.

    """
    features = sample.features if columns is None else sample.features[:, columns]
    log_odds = np.zeros(len(features))
    for repeat in range(repeats):
        folds = assign_folds(sample.groups, repeat)
        for fold in range(FOLDS):
            seen, unseen = folds != fold, folds == fold
            training = features[seen], sample.supported[seen], sample.weights[seen]
            predictions = []
            if linear:
                predictions.append(LinearModel(*training).log_odds(features[unseen]))
            if trees:
                fitted_trees = boosted_trees(*training)
                predictions.append(fitted_trees.decision_function(features[unseen]))  # type: ignore[no-untyped-call]
            log_odds[unseen] += np.mean(predictions, axis=0) / repeats
    return log_odds


def calibrate(sample: Sample, log_odds: Array) -> tuple[float, float]:
    """Return slope and intercept that turn log odds into probabilities (Platt scaling)."""
    weights = np.zeros(len(log_odds))
    for name, share in CALIBRATION_SHARES.items():
        members = (sample.sets == name) & ~sample.training_only
        weights[members] = share / members.sum()
    model = LogisticRegression(C=1e4)  # type: ignore[no-untyped-call]
    model.fit(log_odds[:, None], sample.supported, sample_weight=weights * len(log_odds))
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def auroc_by_set(sample: Sample, scores: Array) -> dict[str, float]:
    """Return the AUROC of each set that has both classes."""
    result = {}
    for name in EVALUATED:
        members = (sample.sets == name) & ~sample.training_only
        if len(set(sample.supported[members])) == 2:
            result[name] = round(float(roc_auc_score(sample.supported[members], scores[members])), 4)
    return result


def bands_of(sample: Sample, support: Array, confirm: float, accuse: float) -> Array:
    """Return `confirmed`, `accused` or `abstained` for each row, as the product decides."""
    vetoed = np.array([bool(codes) for codes in sample.vetoes])
    accused = sample.accused | (support <= accuse)
    confirmed = (support >= confirm) & ~vetoed & ~accused
    return np.where(accused, "accused", np.where(confirmed, "confirmed", "abstained"))


def bands_by_set(sample: Sample, support: Array, confirm: float, accuse: float) -> dict[str, dict[str, float | None]]:
    """Return for each set the shares of true and bad claims confirmed and accused, and of accusations right."""
    bands = bands_of(sample, support, confirm, accuse)
    result: dict[str, dict[str, float | None]] = {}
    for name in (*EVALUATED, *sorted(set(sample.sets[sample.training_only]))):
        for training_only in (False, True):
            members = (sample.sets == name) & (sample.training_only == training_only)
            if members.any():
                label = f"{name} (made)" if training_only else name
                result[label] = _bands(sample.supported[members] == 1, bands[members])
    return result


def _bands(good: Array, bands: Array) -> dict[str, float | None]:
    def share(members: Array, band: str) -> float | None:
        return round(float((bands[members] == band).mean()), 4) if members.any() else None

    accused = bands == "accused"
    return {
        "n": len(good),
        "bad": int((~good).sum()),
        "true confirmed": share(good, "confirmed"),
        "bad confirmed": share(~good, "confirmed"),
        "true accused": share(good, "accused"),
        "bad accused": share(~good, "accused"),
        "accusations": int(accused.sum()),
        "accusations right": round(float((~good)[accused].mean()), 4) if accused.any() else None,
    }


def tree_arrays(model: GradientBoostingClassifier) -> dict[str, Any]:
    """Return the fitted trees as arrays, filled up to one depth; leaves are scaled by the learning rate."""
    features, thresholds, leaves = [], [], []
    inner_nodes = 2**DEPTH - 1
    for (estimator,) in model.estimators_:
        tree = estimator.tree_
        feature, threshold, node = [0] * inner_nodes, [0.0] * inner_nodes, [0] * (2 * inner_nodes + 1)
        for k in range(inner_nodes):
            here = node[k]
            if tree.children_left[here] < 0:  # a leaf above the full depth: both branches lead to it
                node[2 * k + 1] = node[2 * k + 2] = here
            else:
                feature[k], threshold[k] = int(tree.feature[here]), float(tree.threshold[here])
                node[2 * k + 1], node[2 * k + 2] = int(tree.children_left[here]), int(tree.children_right[here])
        features.append(feature)
        thresholds.append([round(value, 7) for value in threshold])
        leaves.append([round(float(tree.value[leaf, 0, 0]) * model.learning_rate, 6) for leaf in node[inner_nodes:]])
    prior = float(model.init_.class_prior_[1])
    base = round(float(np.log(prior / (1 - prior))), 6)
    return {"base": base, "feature": features, "threshold": thresholds, "leaves": leaves}


def ablate(sample: Sample) -> None:
    """Print the change of AUROC with each group of features off in turn."""
    everything = auroc_by_set(sample, left_out_log_odds(sample))
    print(f"{'all':36s}", everything)
    print(f"{'linear model only':36s}", auroc_by_set(sample, left_out_log_odds(sample, trees=False)))
    print(f"{'trees only':36s}", auroc_by_set(sample, left_out_log_odds(sample, linear=False)), flush=True)
    for name, members in FEATURE_GROUPS.items():
        columns = np.array([number for number, feature in enumerate(NAMES) if feature not in members])
        scores = auroc_by_set(sample, left_out_log_odds(sample, columns))
        changes = {set_name: round(score - everything[set_name], 4) for set_name, score in scores.items()}
        print(f"{'without ' + name:36s}", changes, flush=True)


def fit(sample: Sample, confirm: float, accuse: float) -> dict[str, Any]:
    """Return the weights and the cross-validated figures; store the left-out probabilities for `report.py`."""
    log_odds = left_out_log_odds(sample, repeats=REPEATS)
    slope, intercept = calibrate(sample, log_odds)
    support = 1 / (1 + np.exp(-(slope * log_odds + intercept)))
    LEFT_OUT.parent.mkdir(parents=True, exist_ok=True)
    np.save(LEFT_OUT, support)
    training = sample.features, sample.supported, sample.weights
    linear, trees = LinearModel(*training), boosted_trees(*training)
    arrays = tree_arrays(trees)
    return {
        "version": "4",
        "provenance": {
            "split": "masis.bench.rows.half_of, fit half",
            "rows": len(sample.rows),
            "shares": SHARES,
            "made": TRAINING_ONLY_SHARES,
            "pairs": {source: count for source, (_, count) in PAIRS.items()},
            "cross_validated": {
                "auroc": auroc_by_set(sample, log_odds),
                "bands": bands_by_set(sample, support, confirm, accuse),
            },
        },
        "features": list(NAMES),
        "calibration": {"slope": round(slope, 5), "intercept": round(intercept, 5)},
        "thresholds": {"confirm": confirm, "accuse": accuse},
        "linear": {
            "centre": linear.centre.tolist(),
            "spread": linear.spread.tolist(),
            "weights": linear.weights.tolist(),
            "base": linear.base,
        },
        **arrays,
    }


def input_digests(data: Path) -> dict[str, dict[str, str]]:
    """Return the sha256 of everything the weights depend on."""
    inputs = {name: hashlib.sha256((data / name).read_bytes()).hexdigest() for name in (*FILES, PAIRS_FILE)}
    return {"inputs_sha256": inputs, "code_sha256": code_digests()}


def main() -> None:
    """Fit, print the cross-validated figures, write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the labelled sets")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help=f"default: {WEIGHTS}")
    parser.add_argument("--confirm", type=float, default=0.7, help="probability from which a claim is confirmed")
    parser.add_argument("--accuse", type=float, default=0.12, help="probability up to which a claim is accused")
    parser.add_argument("--ablate", action="store_true", help="print the ablation and write nothing")
    options = parser.parse_args()
    # scikit-learn warns of its own coming changes.
    warnings.filterwarnings("ignore", category=FutureWarning)
    sample = Sample(options.data, "fit")
    if options.ablate:
        ablate(sample)
        return
    weights = fit(sample, options.confirm, options.accuse)
    weights["provenance"] |= input_digests(options.data)
    options.out.write_text(json.dumps(weights, separators=(",", ":")) + "\n", encoding="utf-8")
    figures = weights["provenance"]["cross_validated"]
    print(figures["auroc"], weights["calibration"])
    for name, values in figures["bands"].items():
        print(f"{name:18s}", values)


if __name__ == "__main__":
    main()
