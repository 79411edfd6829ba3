"""Metrics of a binary prediction, each with a bootstrap interval over groups.

The positive class is "not supported". An abstention counts as wrong: it is predicted as the other
class, and ranked at the wrong end for AUROC. An undefined metric, such as AUROC with only one
class, is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from masis.audit.measures.statistics import interval

Array = np.ndarray[Any, np.dtype[Any]]


class Prediction(NamedTuple):
    """The prediction for a row.

    Attributes:
        truth: Whether the row is positive.
        predicted: The prediction, None for an abstention.
        score: How strongly "not supported" is predicted, 0 to 1.
        group: The group of the row.

    """

    truth: bool
    predicted: bool | None
    score: float
    group: str


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """The value of a metric with its 95% interval, to 4 decimals; None if it is undefined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, value: float | None, samples: Sequence[float]) -> MetricEstimate:
        """Return a value with the interval of its resamples."""
        if value is None or not samples:
            return cls(None if value is None else round(float(value), 4))
        low, high = interval(samples)
        return cls(round(float(value), 4), round(low, 4), round(high, 4))


class Resamples:
    """Draws of groups, shared by all metrics on the same rows.

    ``member`` is the group number of each row; each of ``weights`` has the number of draws of each
    group.
    """

    def __init__(self, groups: Sequence[str], bootstrap: int, seed: int) -> None:
        names, self.member = np.unique(np.array(groups), return_inverse=True)
        self.number, draws = len(names), np.random.default_rng(seed)
        self.weights = [
            # Counting the draws of each group is a resample of the rows as weights, without copying
            # rows.
            np.bincount(draws.integers(0, self.number, self.number), minlength=self.number)
            for _ in range(bootstrap)
        ]


METRICS = ("precision", "recall", "f1", "macro_f1", "balanced_accuracy", "auroc", "coverage")


def compute_metrics(
    rows: Sequence[Prediction], bootstrap: int, seed: int
) -> dict[str, MetricEstimate]:
    """Return the metrics of `METRICS`, with intervals from `bootstrap` resamples of the groups."""
    truth = np.array([row.truth for row in rows], dtype=bool)
    abstained = np.array([row.predicted is None for row in rows], dtype=bool)
    # An abstention is predicted as the wrong class, with a score beyond the wrong end of 0..1.
    predicted = np.array(
        [not row.truth if row.predicted is None else row.predicted for row in rows], dtype=bool
    )
    score = np.array(
        [(-1.0 if row.truth else 2.0) if row.predicted is None else row.score for row in rows],
        dtype=float,
    )
    measure = _ranking_measures(truth, predicted, abstained, score)
    # Weights of 1 give the metrics of the rows themselves.
    values = measure(np.ones(len(rows)))
    resamples = Resamples([row.group for row in rows], bootstrap, seed)
    samples: dict[str, list[float]] = {name: [] for name in METRICS}
    for weights in resamples.weights:
        for name, value in measure(weights[resamples.member].astype(float)).items():
            if value is not None:
                samples[name].append(value)
    return {name: MetricEstimate.of(values[name], samples[name]) for name in METRICS}


def _ranking_measures(
    truth: Array, predicted: Array, abstained: Array, score: Array
) -> Callable[[Array], Mapping[str, float | None]]:
    # The order doesn't depend on the weights, so it is computed once and a resample costs a few
    # sums.
    order = np.argsort(score, kind="stable")
    sorted_truth = truth[order]
    _, ties = np.unique(score[order], return_inverse=True)

    def measure(weights: Array) -> Mapping[str, float | None]:
        true_positives, false_positives = (
            float(weights[truth & predicted].sum()),
            float(weights[~truth & predicted].sum()),
        )
        false_negatives, true_negatives = (
            float(weights[truth & ~predicted].sum()),
            float(weights[~truth & ~predicted].sum()),
        )
        positive_f1, negative_f1 = (
            _f1(true_positives, false_positives, false_negatives),
            _f1(true_negatives, false_negatives, false_positives),
        )
        recall, specificity = (
            _share_or_none(true_positives, true_positives + false_negatives),
            _share_or_none(true_negatives, true_negatives + false_positives),
        )
        total = float(weights.sum())
        return {
            "precision": _share_or_none(true_positives, true_positives + false_positives),
            "recall": recall,
            "f1": positive_f1,
            "macro_f1": (positive_f1 + negative_f1) / 2,
            "balanced_accuracy": (
                None if recall is None or specificity is None else (recall + specificity) / 2
            ),
            "auroc": _auroc(weights[order], sorted_truth, ties),
            "coverage": _share_or_none(total - float(weights[abstained].sum()), total),
        }

    return measure


def _share_or_none(part: float, total: float) -> float | None:
    return part / total if total else None


def _f1(true_positives: float, false_positives: float, false_negatives: float) -> float:
    return (
        2 * true_positives / (2 * true_positives + false_positives + false_negatives)
        if true_positives
        else 0.0
    )


def _auroc(weights: Array, truth: Array, ties: Array) -> float | None:
    """Return the probability that a positive ranks above a negative; a tie counts half.

    Rows are sorted by score.
    """
    # Rows with the same score have the same number in ``ties`` and are counted together.
    positive = np.bincount(ties, weights * truth)
    negative = np.bincount(ties, weights * ~truth)
    pairs = float(positive.sum() * negative.sum())
    # The negatives with a lower score; those with the same score count half.
    lower_negatives = np.cumsum(negative) - negative
    return float((positive * (lower_negatives + negative / 2)).sum()) / pairs if pairs else None
