"""Simulate reviewed sets to check the error rate of guarantees and the coverage of intervals.

In a simulation the truth is known, so a wrong guarantee can be counted. ``tools/trust_figures.py``
draws the plots of docs/trust.md from it; ``make soak`` runs it at full length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from masis.trust.agreement import (
    AgreementEstimate,
    Patterns,
    UnitCounts,
    cohen_kappa,
    gwet_ac1,
    krippendorff_alpha,
    share,
)
from masis.trust.guarantee import Floats, loosest_valid, thresholds_for, try_thresholds

POOL = 3000


class Kind(NamedTuple):
    """A kind of reviewed set: share of faulty answers, separation by the score, size of the sample.

    ``separation`` is the distance between the mean log odds of faulty and correct answers, in
    standard deviations. At 0 the score has no information.
    """

    prevalence: float
    separation: float
    draws: int


KINDS = tuple(
    Kind(prevalence, separation, draws)
    for prevalence in (0.01, 0.02, 0.022, 0.08, 0.3)
    for separation in (0.0, 1.0, 3.0)
    for draws in (149, 300, 800)
)


class Promise(NamedTuple):
    """The number of sets, of guarantees and of wrong guarantees, and the mean share accepted."""

    sets: int
    given: int
    wrong: int
    accepted: float


def guarantees(
    kind: Kind,
    sets: int,
    *,
    tolerance: float = 0.02,
    error: float = 0.05,
    plans: int = 1,
    seed: int = 0,
) -> Promise:
    """Simulate plans on fresh pools and compare each guarantee with the true share of faults.

    With several ``plans``, the lead checks after every decision, drops a plan as soon as it can't
    succeed and starts another on fresh draws, until one gives a guarantee. ``error`` is the stated
    probability of error over all plans; each plan gets an equal part of it (in the product,
    ``SamplePlan.spent`` tracks this).
    """
    draws = np.random.default_rng(
        [seed, int(kind.prevalence * 1e4), int(kind.separation * 10), kind.draws]
    )
    guaranteed = wrong = 0
    accepted = 0.0
    for _ in range(sets):
        truth, probability = _pool(kind, draws)
        cuts = (
            _guarantee(kind, truth, probability, tolerance, error / plans, draws)
            for _ in range(plans)
        )
        cut = next((threshold for threshold in cuts if threshold is not None), None)
        if cut is not None:
            is_accepted = probability <= cut
            guaranteed += 1
            accepted += float(is_accepted.mean())
            wrong += bool(truth[is_accepted].mean() > tolerance)
    return Promise(sets, guaranteed, wrong, accepted / sets)


def _pool(kind: Kind, draws: np.random.Generator) -> tuple[np.ndarray, Floats]:
    """Return which answers of a pool are faulty, and the score's probability for each."""
    truth = draws.random(POOL) < kind.prevalence
    odds = draws.normal(size=POOL) + kind.separation * truth
    return truth, np.asarray(1 / (1 + np.exp(-odds)), dtype=float)


def _guarantee(
    kind: Kind,
    truth: np.ndarray,
    probability: Floats,
    tolerance: float,
    error: float,
    draws: np.random.Generator,
) -> float | None:
    cuts = thresholds_for(probability, kind.draws, tolerance, error)
    drawn = draws.choice(POOL, size=kind.draws, replace=False)
    found = loosest_valid(try_thresholds(cuts, probability[drawn], truth[drawn], tolerance, error))
    return found.threshold if found else None


# --- intervals ---


class Coverage(NamedTuple):
    """How often an interval was shown, and which share of those contained the true value."""

    figure: str
    prevalence: float
    units: int
    shown: int
    covered: float


def coverage(
    units: int, prevalence: float, sets: int, *, agree: float = 0.7, seed: int = 0
) -> list[Coverage]:
    """Measure how often the intervals of kappa, alpha, AC1 and a share contain the true value.

    Simulates two reviewers. Each sees the truth with probability ``agree`` and otherwise guesses
    according to the prevalence. Counts only sets in which the interval is shown.
    """
    draws = np.random.default_rng([seed, units, int(prevalence * 1e4)])
    shares = np.array([1 - prevalence, prevalence])
    joint = _joint(shares, agree)
    figures: dict[str, Callable[[np.ndarray], AgreementEstimate]] = {
        "kappa": (
            lambda ratings: _unit_counts(ratings, 4, ratings[:, 0] * 2 + ratings[:, 1]).estimate(
                lambda table: cohen_kappa(table.reshape(*table.shape[:-1], 2, 2))
            )
        ),
        "alpha": lambda ratings: _pattern_estimate(ratings, krippendorff_alpha),
        "AC1": lambda ratings: _pattern_estimate(ratings, gwet_ac1),
        "share": lambda ratings: share(ratings[:, 0] == 1),
    }
    truths = _true_values(joint)
    shown = dict.fromkeys(figures, 0)
    covered = dict.fromkeys(figures, 0)
    for _ in range(sets):
        cells = draws.choice(4, size=units, p=joint.ravel())
        ratings = np.column_stack([cells // 2, cells % 2])
        for name, figure in figures.items():
            found = figure(ratings)
            if found.low is not None and found.high is not None:
                shown[name] += 1
                covered[name] += found.low <= truths[name] <= found.high
    return [
        Coverage(
            name,
            prevalence,
            units,
            shown[name],
            covered[name] / shown[name] if shown[name] else float("nan"),
        )
        for name in figures
    ]


def _joint(shares: np.ndarray, agree: float) -> np.ndarray:
    """Return the joint probabilities of the two reviewers' verdicts."""
    both = np.zeros((2, 2))
    for truth in (0, 1):
        seen = agree * np.eye(2)[truth] + (1 - agree) * shares
        both += shares[truth] * np.outer(seen, seen)
    return both


def _true_values(joint: np.ndarray) -> dict[str, float]:
    counts = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    weights = np.array([joint[0, 0], joint[0, 1] + joint[1, 0], joint[1, 1]])
    patterns = Patterns(counts, np.zeros(0, dtype=np.int64))
    many = 1e9  # alpha corrects for the number of ratings, so its true value is the limit
    return {
        "kappa": float(cohen_kappa(joint)),
        "alpha": float(krippendorff_alpha(patterns, weights * many)),
        "AC1": float(gwet_ac1(patterns, weights)),
        "share": float(joint.sum(1)[1]),
    }


def _unit_counts(ratings: np.ndarray, size: int, cells: np.ndarray) -> UnitCounts:
    return UnitCounts.of(ratings, cells, np.arange(len(cells)), size)


def _pattern_estimate(
    ratings: np.ndarray, figure: Callable[[Patterns, Floats], Floats]
) -> AgreementEstimate:
    patterns = Patterns.of(ratings, 2)
    return _unit_counts(ratings, len(patterns.counts), patterns.member).estimate(
        lambda table: figure(patterns, table)
    )


def monte_carlo_bound(stated: float, sets: int) -> float:
    """Return the 99th percentile of the share of wrong guarantees at a true rate of ``stated``."""
    from scipy.special import bdtrik

    return float(np.ceil(bdtrik(0.99, sets, stated))) / sets
