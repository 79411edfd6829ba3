"""Estimates the probability that an answer is faulty from the audit's measurements.

A regularized logistic regression is fitted on a team's own decisions and evaluated on questions
that it hasn't seen. Fitting needs scikit-learn; using a fitted score needs only numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from masis.errors import InputError
from masis.schema.trust import FaultScore
from masis.trust.agreement import SEED, codes

Floats = NDArray[np.float64]

FEATURES = (
    "built_in",
    "doubt",
    "low_quality",
    "disagreement",
    "uncited",
    "invalid",
    "must_look",
    "not_certified",
)
"""The features of a run, from its columns in the store.

They are the built-in probability (as log odds), 1 - confidence, 1 - quality, the disagreement of
the judges, uncited sentences and invalid references (log of 1 + their number), and the tier.
"""

FITTED_ON = ("likely", "confidence", "quality", "disagreement", "uncited", "invalid", "tier")
"""The columns of runs that the features are computed from."""

LEAST_DECISIONS, LEAST_OF_EACH, FOLDS = 60, 15, 5
"""Minimum numbers of decisions, and of faulty and right answers, to fit a score on, and the number
of folds of the cross-validation.

They are chosen, not measured: each fold has at least three answers of either kind. Held-out
questions show whether a fitted score is better than the built-in order.
"""
LEAST_ORDERED = 20
"""Minimum number of decided answers for which orders are compared. With fewer, one answer moves a
curve by more than 5 points.
"""

STRENGTHS = (0.01, 0.1, 1.0)
"""The inverse regularization strengths to try; features are standardized."""


def features(columns: Mapping[str, ArrayLike]) -> Floats:
    """Return the features of runs, shape (runs, features), from their columns.

    An unknown value counts as the most doubtful one.
    """

    def numbers(name: str, unknown: float) -> Floats:
        values = np.array(
            [np.nan if value is None else value for value in np.ravel(columns[name]).tolist()],
            dtype=float,
        )
        return np.where(np.isnan(values), unknown, values)

    # Clipped, because the log odds of 0 and 1 are infinite.
    likely = np.clip(numbers("likely", 1.0), 1e-3, 1 - 1e-3)
    tier = np.ravel(np.asarray(columns["tier"], dtype=object))
    return np.column_stack(
        [
            np.log(likely / (1 - likely)),
            1 - numbers("confidence", 0.0),
            1 - numbers("quality", 0.0),
            np.clip(numbers("disagreement", 1.0), 0, 1),
            np.log1p(numbers("uncited", 0.0)),
            np.log1p(numbers("invalid", 0.0)),
            (tier == "must_look").astype(float),
            (tier == "not_certified").astype(float),
        ]
    )


def probabilities(score: FaultScore, columns: Mapping[str, ArrayLike]) -> Floats:
    """Return the probability of fault of each run: the fitted one, or the built-in in version 0."""
    if not score.version:
        return np.array(
            [1.0 if value is None else value for value in np.ravel(columns["likely"]).tolist()],
            dtype=float,
        )
    standard = (features(columns) - np.array(score.means)) / np.array(score.scales)
    return np.asarray(
        1 / (1 + np.exp(-(standard @ np.array(score.weights) + score.intercept))), dtype=float
    )


class FittedScore(NamedTuple):
    """A fitted score, and the probability of each decision from a model without its question."""

    score: FaultScore
    held_out: Floats


def fit(
    columns: Mapping[str, ArrayLike], faulty: ArrayLike, questions: Sequence[Any]
) -> FittedScore:
    """Fit a score on settled decisions, cross-validated by question.

    A question is never on both sides of a split, because answers to one question resemble each
    other.

    Args:
        columns: The columns ``FITTED_ON`` of the runs that were decided.
        faulty: Whether each answer is faulty.
        questions: The question of each answer.

    Raises:
        InputError: There are too few decisions, faulty or right answers, or questions.

    """
    truth, groups = np.asarray(faulty, dtype=bool), codes(np.asarray(questions))
    values = features(columns)
    least = min(int(truth.sum()), int((~truth).sum()))
    if (
        len(truth) < LEAST_DECISIONS
        or least < LEAST_OF_EACH
        or len(set(groups.tolist())) < 2 * FOLDS
    ):
        raise InputError(
            f"{len(truth)} settled decisions with {int(truth.sum())} faulty answers are too few for"
            " a score",
            hint=(
                f"You need {LEAST_DECISIONS} decisions on {2 * FOLDS} questions, at least"
                f" {LEAST_OF_EACH} of them faulty and as many right. Until then the built-in order"
                " is used."
            ),
        )
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold

    means, scales = values.mean(0), values.std(0)
    scales[scales < 1e-9] = 1.0  # A constant feature would be divided by 0.
    standard = (values - means) / scales
    splits = list(
        StratifiedGroupKFold(FOLDS, shuffle=True, random_state=SEED).split(standard, truth, groups)
    )

    def held_out(strength: float, values: Floats) -> Floats:
        predicted = np.empty(len(truth))
        for train, test in splits:
            model = LogisticRegression(C=strength, max_iter=1000)
            # Logistic regression can't be fitted on one class.
            if truth[train].all() or not truth[train].any():
                predicted[test] = truth[train].mean()
            else:
                predicted[test] = model.fit(values[train], truth[train]).predict_proba(
                    values[test]
                )[:, 1]
        return predicted

    tried = {strength: held_out(strength, standard) for strength in STRENGTHS}
    best = min(STRENGTHS, key=lambda strength: log_loss(truth, tried[strength]))
    model = LogisticRegression(C=best, max_iter=1000).fit(standard, truth)
    constant = np.full(len(truth), truth.mean())
    score = FaultScore(
        features=FEATURES,
        means=tuple(means.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(model.coef_[0].tolist()),
        intercept=float(model.intercept_[0]),
        decisions=len(truth),
        faulty=int(truth.sum()),
        questions=len(set(groups.tolist())),
        log_loss=float(log_loss(truth, tried[best])),
        # The built-in probability alone, fitted on the same folds, so that its calibration doesn't
        # count against it.
        built_in=float(log_loss(truth, held_out(1.0, standard[:, :1]))),
        baseline=float(log_loss(truth, constant)),
        auroc=float(roc_auc_score(truth, tried[best])),
        calibration_error=calibration_error(truth, tried[best]),
    )
    return FittedScore(score, tried[best])


class Reliability(NamedTuple):
    """Answers of similar probability: its mean, the share of faulty answers, and their number."""

    predicted: float
    observed: float
    n: int


MAX_BINS, LEAST_IN_BIN = 10, 10


def reliability(truth: NDArray[np.bool_], predicted: Floats) -> list[Reliability]:
    """Return the reliability curve over bins of about equal size."""
    return [
        Reliability(float(predicted[part].mean()), float(truth[part].mean()), len(part))
        for part in _bins(predicted)
    ]


def _bins(predicted: Floats) -> list[NDArray[np.int64]]:
    bins = max(1, min(MAX_BINS, len(predicted) // LEAST_IN_BIN))
    order = np.argsort(predicted, kind="stable")
    ordered = predicted[order]
    # Move each edge to the first of its equal predictions, so that these stay in one bin.
    edges = np.unique(
        np.searchsorted(ordered, ordered[(np.arange(1, bins) * len(predicted)) // bins])
    )
    return [part for part in np.split(order, edges) if len(part)]


def calibration_error(truth: NDArray[np.bool_], predicted: Floats) -> float:
    """Return the expected calibration error: the mean of |predicted - observed|, by bin size."""
    return _calibration_distance(_bins(predicted), truth, predicted)


def error_floor(predicted: Floats) -> float:
    """Return the 95th percentile of the calibration error of a perfect score on these answers.

    It is simulated: 100 times, each answer is faulty with its predicted probability.
    """
    draws, bins = np.random.default_rng(SEED), _bins(predicted)
    errors = [
        _calibration_distance(bins, draws.random(len(predicted)) < predicted, predicted)
        for _ in range(100)
    ]
    return float(np.percentile(errors, 95))


def _calibration_distance(
    bins: Sequence[NDArray[np.int64]], truth: NDArray[np.bool_], predicted: Floats
) -> float:
    apart = sum(abs(float(predicted[part].sum()) - float(truth[part].sum())) for part in bins)
    return apart / max(1, len(truth))


def yield_curve(truth: NDArray[np.bool_], order_by: Floats) -> list[tuple[float, float]]:
    """Return points (share of cases read, share of faults found), reading the highest values first.

    Ties are read in random order, so the curve is interpolated across them.
    """
    _, place = np.unique(-order_by, return_inverse=True)
    counts, faults = np.bincount(place).astype(float), np.bincount(place, truth.astype(float))
    read, found = (
        np.r_[0, np.cumsum(counts)] / len(truth),
        np.r_[0, np.cumsum(faults)] / max(1, truth.sum()),
    )
    at = np.linspace(0, 1, 51)
    return list(zip(at.tolist(), np.interp(at, read, found).tolist(), strict=True))
