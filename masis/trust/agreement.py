"""Agreement coefficients and intervals, computed from counted tables.

Units (cases, claims) are counted by cell first, so that a bootstrap resamples a few hundred counts
instead of 100,000 rows, and every coefficient works on a stack of tables at once. Libraries work on
one table at a time, which is why the coefficients are implemented here. The tests compare them with
scikit-learn, krippendorff and published examples, including degenerate ones.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from masis.audit.measures.statistics import exact_bounds
from masis.schema.wording import count_noun

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RESAMPLES, SEED = 1000, 0
"""Used by every bootstrap, so that the same decisions give the same figures."""
MOST_PAIRS = 60
MOST_UNDEFINED = 0.02
"""An interval is shown if the coefficient is undefined in at most this share of resamples."""
LEAST_CLUSTERS, LEAST_RARE, LEAST_DIFFERING = 50, 40, 15
"""A bootstrap interval needs this many questions, ratings outside the most frequent category, and
units on which raters differ.

They were chosen by simulation (``benchmarks/trust_simulation.py``, docs/trust.md). With fewer, the
interval covers the truth in less than 92% of the simulations at some prevalence, mostly because
rare ratings are missing from the sample altogether.
"""


class AgreementEstimate(NamedTuple):
    """A figure with its 95% interval and the number of units, ``n``, that it is computed from.

    ``value`` is None if the figure is undefined. ``low`` and ``high`` are None if there are too few
    units for a reliable interval. ``why`` gives the reason in words.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    why: str = ""


def share(hit: ArrayLike, clusters: ArrayLike | None = None) -> AgreementEstimate:
    """Return a share with its exact (Clopper-Pearson) interval.

    ``clusters`` holds the question of each unit. Units of one question resemble each other, so with
    ``clusters`` the number of units is divided by the design effect (at least 1), which widens the
    interval.
    """
    has = np.asarray(hit, dtype=float)
    of = len(has)
    if not of:
        return AgreementEstimate(None, why="no decision")
    effective = of if clusters is None else of / _design_effect(has, codes(clusters))
    mean = float(has.mean())
    return AgreementEstimate(mean, *exact_bounds(mean * effective, effective), of)


def _design_effect(hit: Floats, member: Ints) -> float:
    """Return the design effect: a share's variance over its variance with independent units."""
    count, mean = int(member.max()) + 1, float(hit.mean())
    if count == len(hit) or count < 2 or mean in (0.0, 1.0):
        # Without variation the data don't show whether the units of a question resemble each other,
        # so each question counts as one unit, the most cautious assumption.
        return len(hit) / count
    # The variance between questions (of the ratio estimator of a cluster sample), over that of a
    # simple random sample, p(1 - p) / n.
    residual = np.bincount(member, hit - mean)
    variance = count / (count - 1) * float((residual**2).sum()) / len(hit) ** 2
    return max(1.0, variance / (mean * (1 - mean) / len(hit)))


# From units to counted tables


@dataclass(frozen=True)
class UnitCounts:
    """Units counted by cell, and the data for a bootstrap over their questions.

    ``table`` holds the number of units per cell. ``rare`` counts the ratings outside the most
    frequent category and ``differing`` the units on which raters differ. If either number is small,
    an interval is unreliable.
    """

    table: Floats
    cells: Ints
    clusters: Ints
    rare: int
    differing: int

    @classmethod
    def of(cls, ratings: Ints, cells: Ints, clusters: ArrayLike, size: int) -> UnitCounts:
        """Count units from their ratings, their cells (0 to ``size`` - 1) and their questions."""
        used = np.bincount(ratings[ratings >= 0])
        highest = ratings.max(1, initial=-1)
        # Raters differ on a unit if one of its ratings is below the highest; -1 means no rating.
        differing = int(((ratings >= 0) & (ratings != highest[:, None])).any(1).sum())
        rare = int(used.sum() - used.max(initial=0))
        table = np.bincount(cells, minlength=size).astype(float)
        return cls(table, cells, codes(clusters), rare, differing)

    @cached_property
    def resamples(self) -> Floats:
        """Tables of resamples of the questions, shape (``RESAMPLES``, cells).

        Questions with the same counts are drawn together by one multinomial draw. Even many
        questions have only a few distinct counts.
        """
        # Whole questions are resampled, not units, because units of one question are dependent.
        size, order = len(self.table), np.lexsort((self.cells, self.clusters))
        starts = np.flatnonzero(np.r_[True, np.diff(self.clusters[order]) > 0])
        lengths = np.diff(np.r_[starts, len(order)])
        kinds: list[Floats] = []
        counts: list[int] = []
        # Questions with the same number of units form a matrix, whose distinct rows are the kinds.
        # Cells are sorted within a question, so that equal counts have equal rows.
        for length in np.unique(lengths):
            rows = self.cells[order][starts[lengths == length][:, None] + np.arange(length)]
            unique, count = np.unique(rows, axis=0, return_counts=True)
            kinds += [np.bincount(row, minlength=size).astype(float) for row in unique]
            counts += count.tolist()
        weights = np.array(counts, dtype=float)
        generator = np.random.default_rng(SEED)
        drawn = generator.multinomial(int(weights.sum()), weights / weights.sum(), size=RESAMPLES)
        return np.asarray(drawn.astype(float) @ np.array(kinds), dtype=float)

    def estimate(self, statistic: Callable[[Floats], Floats]) -> AgreementEstimate:
        """Return a statistic with its interval.

        Args:
            statistic: Maps tables of shape (..., cells) to values, NaN where it's undefined.

        """
        n = len(self.cells)
        if not n:
            return AgreementEstimate(None, why="no decision")
        value = float(statistic(self.table))
        if np.isnan(value):
            return AgreementEstimate(None, n=n, why="can't be computed: all verdicts are alike")
        questions = int(self.clusters.max()) + 1
        if questions < LEAST_CLUSTERS:
            why = f"no interval: {count_noun(questions, 'question')}, {LEAST_CLUSTERS} needed"
            return AgreementEstimate(value, n=n, why=why)
        if self.rare < LEAST_RARE:
            return AgreementEstimate(
                value,
                n=n,
                why=f"no interval: {self.rare:,} ratings other than the most frequent one,"
                f" {LEAST_RARE} needed",
            )
        if self.differing < LEAST_DIFFERING:
            why = f"no interval: raters differ on {self.differing:,}, {LEAST_DIFFERING} needed"
            return AgreementEstimate(value, n=n, why=why)
        values = statistic(self.resamples)
        if np.isnan(values).mean() > MOST_UNDEFINED:
            return AgreementEstimate(value, n=n, why="no interval: undefined in many resamples")
        low, high = np.nanpercentile(values, (2.5, 97.5))
        # An interval of width 0 would claim a certainty that the sample can't give.
        if low == high:
            return AgreementEstimate(
                value, n=n, why="no interval: it is the same in every resample"
            )
        return AgreementEstimate(value, float(low), float(high), n)


def codes(names: ArrayLike) -> Ints:
    """Number the distinct values from 0, without gaps."""
    # imported on use, because pandas takes 0.4 s, which short commands would wait for
    import pandas as pd

    return pd.factorize(np.asarray(names).ravel())[0].astype(np.int64)


# Two raters: tables of shape (..., k, k)


def cohen_kappa(tables: Floats, weights: str = "") -> Floats:
    """Return Cohen's kappa of tables of shape (..., k, k).

    Args:
        tables: Counts by the categories of the first and the second rater.
        weights: "linear" or "quadratic" for weighted kappa of ordered categories, "" for plain
            kappa.

    Returns:
        The coefficients; NaN if both raters used one and the same category, so that chance alone
        gives full agreement.

    """
    k = tables.shape[-1]
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    penalty = {"": (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}[
        weights
    ]
    total = tables.sum((-2, -1))
    # The expected penalty if both raters rated independently: the product of their marginals.
    by_chance = np.einsum("...i,...j,ij->...", tables.sum(-1), tables.sum(-2), penalty)
    return 1 - _ratio((tables * penalty).sum((-2, -1)) * total, by_chance)


# Any number of raters: counts of categories by unit, as patterns


class Patterns(NamedTuple):
    """Units with equal ratings, counted together as patterns.

    ``counts`` has a row per pattern and a column per category, and ``member`` holds the pattern of
    each unit.
    """

    counts: Floats
    member: Ints

    @classmethod
    def of(cls, ratings: Ints, categories: int) -> Patterns:
        """Count ratings of shape (units, raters), -1 for a missing rating."""
        counts = np.stack([(ratings == category).sum(1) for category in range(categories)], axis=1)
        # Encode each row of counts as one number, because np.unique over rows sorts them, which
        # takes ten times as long.
        keys = counts @ ((ratings.shape[1] + 1) ** np.arange(categories, dtype=np.int64))
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        return cls(
            counts[first].astype(float).reshape(-1, categories), member.astype(np.int64).ravel()
        )


def krippendorff_alpha(patterns: Patterns, weights: Floats, ordered: bool = False) -> Floats:
    """Return Krippendorff's alpha of tables of pattern counts, shape (..., patterns).

    It is NaN if all ratings are equal. With ``ordered`` the distance is ordinal, otherwise nominal.
    Units with fewer than two ratings don't count.
    """
    counts = patterns.counts
    rated = counts.sum(1)
    # The coincidence matrix of a unit: its ordered pairs of ratings, without those of a rating with
    # itself, divided by the number of its ratings minus one.
    pairs = np.einsum("pi,pj->pij", counts, counts) - np.einsum(
        "pi,ij->pij", counts, np.eye(counts.shape[1])
    )
    pairs = np.where(rated[:, None, None] > 1, pairs / np.maximum(rated - 1, 1)[:, None, None], 0.0)
    coincidences = np.tensordot(weights, pairs, 1)
    totals = coincidences.sum(-1)
    distance = 1.0 - np.eye(counts.shape[1])
    if ordered:
        # The ordinal distance of two categories is the number of ratings between their middles.
        middle = np.cumsum(totals, -1) - totals / 2
        distance = (middle[..., None, :] - middle[..., :, None]) ** 2
    expected = (totals[..., :, None] * totals[..., None, :] * distance).sum((-2, -1))
    observed = (coincidences * distance).sum((-2, -1))
    return 1 - _ratio((totals.sum(-1) - 1) * observed, expected)


def gwet_ac1(patterns: Patterns, weights: Floats) -> Floats:
    """Return Gwet's AC1 of tables of pattern counts.

    Unlike kappa and alpha, it stays high if raters agree and one category is rare.
    """
    counts = patterns.counts
    rated = counts.sum(1)
    observed = pairwise_agreement(patterns, weights)
    # The mean share of each category over the units, from which AC1 derives chance agreement.
    shares = (
        weights
        @ (counts / np.maximum(rated, 1)[:, None])
        / (weights @ (rated > 0).astype(float))[..., None]
    )
    k = counts.shape[1]
    chance = (shares * (1 - shares)).sum(-1) / (k - 1)
    return _ratio(observed - chance, 1 - chance)


def pairwise_agreement(patterns: Patterns, weights: Floats) -> Floats:
    """Return the mean over units of the share of pairs of ratings that agree."""
    counts = patterns.counts
    rated = counts.sum(1)
    agreeing = (counts * (counts - 1)).sum(1) / np.maximum(rated * (rated - 1), 1)
    return _ratio(weights @ (agreeing * (rated > 1)), weights @ (rated > 1).astype(float))


def _ratio(part: Any, whole: Any) -> Floats:
    """Return the quotients, with NaN instead of a warning where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        return np.where(np.asarray(whole) == 0, np.nan, np.asarray(part) / np.asarray(whole))


# Reports


class ReviewerAgreement(NamedTuple):
    """The agreement of reviewers on units that at least two of them rated.

    ``prevalence`` is the share of each category among their ratings.
    """

    units: int
    prevalence: dict[str, float]
    raw: AgreementEstimate
    alpha: AgreementEstimate
    ordinal_alpha: AgreementEstimate
    ac1: AgreementEstimate


def measure_agreement(
    ratings: Ints, clusters: ArrayLike, categories: Sequence[str]
) -> ReviewerAgreement:
    """Measure the agreement of any number of raters; ratings may be missing.

    Args:
        ratings: A row per unit and a column per rater: the number of the category, in order from
            best to worst, -1 for none.
        clusters: The questions of the units.
        categories: The names of the categories.

    """
    shared = (ratings >= 0).sum(1) > 1
    ratings, questions = ratings[shared], np.asarray(clusters)[shared]
    used = np.bincount(ratings[ratings >= 0], minlength=len(categories))
    patterns = Patterns.of(ratings, len(categories))
    counted = UnitCounts.of(ratings, patterns.member, questions, len(patterns.counts))
    return ReviewerAgreement(
        len(ratings),
        dict(zip(categories, (used / max(1, used.sum())).tolist(), strict=True)),
        # With exactly two ratings per unit, raw agreement is a share, so it gets an exact interval.
        (
            share(
                ratings.max(1) == np.where(ratings < 0, len(categories), ratings).min(1), questions
            )
            if len(ratings) and ((ratings >= 0).sum(1) == 2).all()
            else counted.estimate(lambda weights: pairwise_agreement(patterns, weights))
        ),
        counted.estimate(lambda weights: krippendorff_alpha(patterns, weights)),
        counted.estimate(lambda weights: krippendorff_alpha(patterns, weights, ordered=True)),
        counted.estimate(lambda weights: gwet_ac1(patterns, weights)),
    )


class Pair(NamedTuple):
    """The agreement of two reviewers.

    ``differ`` holds the numbers of the units on which their verdicts differ. ``apart`` holds those
    with the same verdict but different corrections, or verdicts about different answers.
    ``verdicts`` counts the units by the numbers of both verdicts.
    """

    first: str
    second: str
    raw: AgreementEstimate
    kappa: AgreementEstimate
    weighted: AgreementEstimate
    differ: tuple[int, ...]
    apart: tuple[int, ...] = ()
    verdicts: Mapping[tuple[int, ...], int] = {}

    @property
    def same(self) -> int:
        """The number of units on which both gave the same verdict."""
        return self.raw.n - len(self.differ)


def reviewer_pairs(
    ratings: Ints,
    raters: Sequence[str],
    clusters: ArrayLike,
    ordered: int,
    answers: Ints | None = None,
) -> list[Pair]:
    """Return the pairs of reviewers who rated the same units, most units first.

    At most ``MOST_PAIRS`` are returned.

    Args:
        ratings: As for ``measure_agreement``.
        raters: The names of the columns.
        clusters: The questions of the units.
        ordered: Categories from this number on have no order, so weighted kappa leaves them out.
        answers: The number of the answer that each rating leaves, in the shape of ``ratings``, -1
            if unknown.

    """
    rated, questions = ratings >= 0, codes(clusters)
    # One matrix product counts the shared units of all pairs.
    together = rated.T.astype(float) @ rated
    shared = [
        (float(together[a, b]), a, b) for a in range(len(raters)) for b in range(a + 1, len(raters))
    ]
    most = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])[:MOST_PAIRS]
    answers = np.full_like(ratings, -1) if answers is None else answers
    return [
        _pair(ratings[:, [a, b]], (raters[a], raters[b]), questions, ordered, answers[:, [a, b]])
        for _, a, b in most
    ]


def _pair(
    ratings: Ints, names: tuple[str, str], questions: Ints, ordered: int, answers: Ints
) -> Pair:
    both = np.flatnonzero((ratings >= 0).all(1))
    same = ratings[both, 0] == ratings[both, 1]
    apart = same & (answers[both] >= 0).all(1) & (answers[both, 0] != answers[both, 1])

    def kappa(units: Ints, weights: str) -> AgreementEstimate:
        rated = ratings[units]
        k = int(rated.max(initial=0)) + 1
        counted = UnitCounts.of(rated, rated[:, 0] * k + rated[:, 1], questions[units], k * k)
        return counted.estimate(
            lambda tables: cohen_kappa(tables.reshape(*tables.shape[:-1], k, k), weights)
        )

    return Pair(
        *names,
        share(same, questions[both]),
        kappa(both, ""),
        kappa(both[(ratings[both] < ordered).all(1)], "linear"),
        tuple(both[~same].tolist()),
        tuple(both[apart].tolist()),
        Counter(map(tuple, ratings[both].tolist())),
    )


Span = tuple[int, int]


def span_f1(marked: Mapping[str, Sequence[Sequence[Span]]]) -> AgreementEstimate:
    """Return how far reviewers mark the same words, as F1 over characters of all pairs.

    ``marked`` holds the spans that each reviewer of an answer marked, end excluded. The result is
    undefined if no words are marked.
    """
    rows: list[tuple[float, float]] = []
    for reviewers in marked.values():
        sets = [{at for start, end in spans for at in range(start, end)} for spans in reviewers]
        both = list(combinations(sets, 2))
        rows.append(
            (2.0 * sum(len(a & b) for a, b in both), float(sum(len(a) + len(b) for a, b in both)))
        )
    table = np.array([row for row in rows if row[1]], dtype=float).reshape(-1, 2)
    if not len(table):
        return AgreementEstimate(None, n=len(rows), why="undefined: no words are marked")
    value = float(table[:, 0].sum() / table[:, 1].sum())
    if len(table) < LEAST_CLUSTERS:
        return AgreementEstimate(
            value,
            n=len(table),
            why=f"no interval: {count_noun(len(table), 'answer')} with marks,"
            f" {LEAST_CLUSTERS} needed",
        )
    drawn = np.random.default_rng(SEED).multinomial(
        len(table), np.full(len(table), 1 / len(table)), size=RESAMPLES
    )
    low, high = np.percentile((drawn @ table[:, 0]) / (drawn @ table[:, 1]), (2.5, 97.5))
    return AgreementEstimate(value, float(low), float(high), len(table))
