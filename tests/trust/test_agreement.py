"""Agreement figures equal published worked examples and reference implementations, degenerate ones included."""

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from masis.trust.agreement import (
    Counted,
    Patterns,
    agreement,
    cohen_kappa,
    exact_bounds,
    gwet_ac1,
    krippendorff_alpha,
    pairs,
    pairwise_agreement,
    share,
    span_f1,
)

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), example C; Gwet (Handbook of Inter-Rater Reliability,
# 4th ed., table 2.10) takes the same ratings of 12 units by 4 raters for AC1. 0: not rated.
FOUR_RATERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
).T


def table_of(first: np.ndarray, second: np.ndarray, k: int) -> np.ndarray:
    return np.bincount(first * k + second, minlength=k * k).astype(float).reshape(k, k)


def counted(ratings: np.ndarray, categories: int) -> tuple[Patterns, np.ndarray]:
    patterns = Patterns.of(ratings, categories)
    return patterns, np.bincount(patterns.member, minlength=len(patterns.counts)).astype(float)


def test_published_examples_of_several_raters() -> None:
    patterns, weights = counted(FOUR_RATERS - 1, 5)
    assert krippendorff_alpha(patterns, weights) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(patterns, weights, ordered=True) == pytest.approx(0.815, abs=5e-4)
    assert gwet_ac1(patterns, weights) == pytest.approx(0.77544, abs=5e-6)
    assert pairwise_agreement(patterns, weights) == pytest.approx(0.81818, abs=5e-6)


@pytest.mark.parametrize(
    ("table", "weights", "kappa"),
    [
        ([[20, 5], [10, 15]], "", 0.4),  # the worked example of most textbooks: 0.70 observed, 0.50 by chance
        ([[118, 5], [2, 0]], "", -0.0234),  # Gwet (2002): high agreement on a rare trait, and kappa below zero
        ([[45, 15], [25, 15]], "", 0.1304),  # two of the same agreement, 0.60, and other marginals (Feinstein &
        ([[25, 35], [5, 35]], "", 0.2593),  # Cicchetti's first paradox)
    ],
)
def test_published_examples_of_two_raters(table: list[list[int]], weights: str, kappa: float) -> None:
    assert cohen_kappa(np.array(table, dtype=float), weights) == pytest.approx(kappa, abs=5e-5)


def test_gwets_example_of_a_rare_trait() -> None:
    ratings = np.array([[0, 0]] * 118 + [[0, 1]] * 5 + [[1, 0]] * 2)
    assert gwet_ac1(*counted(ratings, 2)) == pytest.approx(0.9408, abs=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_any_ratings_give_what_the_libraries_give(seed: int) -> None:
    draws = np.random.default_rng(seed)
    ratings = draws.integers(0, 4, (60, 3))
    ratings[:, 1] = np.where(draws.random(60) < 0.7, ratings[:, 0], ratings[:, 1])
    for weights in ("", "linear", "quadratic"):
        table = table_of(ratings[:, 0], ratings[:, 1], 4)
        expected = cohen_kappa_score(ratings[:, 0], ratings[:, 1], weights=weights or None, labels=range(4))
        assert cohen_kappa(table, weights) == pytest.approx(expected)
    ratings[draws.random((60, 3)) < 0.2] = -1
    patterns, weighted = counted(ratings, 4)
    data = np.where(ratings < 0, np.nan, ratings).T
    for level, ordered in (("nominal", False), ("ordinal", True)):
        expected = krippendorff.alpha(data, level_of_measurement=level)
        assert krippendorff_alpha(patterns, weighted, ordered) == pytest.approx(expected)


def test_what_is_undefined_says_so_and_what_is_certain_is_one() -> None:
    same = agreement(np.zeros((80, 2), dtype=int), np.arange(80), ("approve", "reject"))
    assert same.raw.value == 1.0
    assert same.alpha.value is None
    assert "undefined" in same.alpha.why
    assert same.ac1.value == 1.0
    (pair,) = pairs(np.zeros((80, 2), dtype=int), ("ann", "bo"), np.arange(80), 2)
    assert pair.kappa.value is None
    none = agreement(np.full((3, 2), -1), np.arange(3), ("approve", "reject"))
    assert (none.units, none.raw.value) == (0, None)
    assert agreement(np.array([[0, 1], [1, 0]]), np.arange(2), ("a", "b")).alpha.value == pytest.approx(-0.5)


def test_an_interval_is_left_out_where_it_would_mislead() -> None:
    ratings = np.array([[0, 0], [1, 1], [0, 1]] * 10)
    few = agreement(ratings, np.arange(30), ("approve", "reject"))
    assert few.alpha.value is not None
    assert few.alpha.low is None
    many = agreement(np.tile(ratings, (4, 1)), np.arange(120), ("approve", "reject"))
    assert many.alpha.low is not None
    assert many.alpha.low < many.alpha.value < many.alpha.high
    assert "questions" in agreement(np.tile(ratings, (4, 1)), np.repeat(np.arange(30), 4), ("a", "b")).alpha.why


def test_units_of_one_question_count_for_less() -> None:
    hit = np.repeat([True, False, True, True, False, True] * 10, 5)
    alone, together = share(hit), share(hit, np.repeat(np.arange(60), 5))
    assert alone.value == together.value
    assert together.high - together.low > 1.8 * (alone.high - alone.low)
    counted_alone = Counted.of(hit.astype(int), np.arange(300), 2)
    counted_together = Counted.of(hit.astype(int), np.repeat(np.arange(60), 5), 2)
    mean = [each.estimate(lambda table: table[..., 1] / table.sum(-1)) for each in (counted_alone, counted_together)]
    assert mean[1].high - mean[1].low > 1.8 * (mean[0].high - mean[0].low)


def test_the_exact_interval_is_clopper_and_pearsons() -> None:
    assert exact_bounds(0, 149, 0.1) == pytest.approx((0.0, 0.0199), abs=1e-4)
    assert exact_bounds(5, 50) == pytest.approx((0.0333, 0.2181), abs=1e-4)  # Clopper & Pearson (1934), 10% of 50


def test_pairs_lead_to_what_they_differ_on() -> None:
    ratings = np.array([[0, 0, -1], [0, 1, 1], [1, 1, -1], [0, -1, 0], [3, 0, -1]])
    first, *others = pairs(ratings, ("ann", "bo", "cy"), np.arange(5), 3)
    assert (first.first, first.second, first.differ, first.raw.n) == ("ann", "bo", (1, 4), 4)
    assert (first.kappa.n, first.weighted.n, first.weighted.value) == (4, 3, pytest.approx(0.4))
    assert {(each.first, each.second) for each in others} == {("ann", "cy"), ("bo", "cy")}


def test_spans_are_compared_by_their_characters() -> None:
    assert span_f1({"a": [[(0, 10)], [(5, 15)]]}).value == pytest.approx(0.5)
    assert span_f1({"a": [[(0, 10)], [(0, 10)]], "b": [[(0, 5)], []]}).value == pytest.approx(20 / 25)
    assert span_f1({"a": [[], []]}).value is None
