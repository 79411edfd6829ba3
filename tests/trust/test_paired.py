"""Paired statistics equal published values and other implementations, and intervals cover."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, bootstrap

from masis.schema.comparison import LEAST_DECISIVE
from masis.trust.paired import (
    LEAST_QUESTIONS,
    MOST_RESAMPLED,
    OUTCOMES,
    Comparison,
    bootstrap_difference,
    compare_shares,
    fit_bradley_terry,
    is_too_few_to_tell,
    mcnemar,
    questions_needed,
    win_rates,
)


def test_mcnemar_equals_published_values() -> None:
    # Bentur et al. 2009, airway hyper-responsiveness, as in Fagerland et al. 2013, table 1 and 5
    exact, mid = mcnemar(1, 7)
    assert (round(exact, 3), round(mid, 3)) == (0.070, 0.039)


@pytest.mark.parametrize("counts", [(0, 0), (0, 3), (4, 4), (5, 1), (12, 31), (200, 260)])
def test_mcnemar_equals_a_sum_of_binomial_probabilities(counts: tuple[int, int]) -> None:
    b, c = counts
    chances = [comb(b + c, k) / 2 ** (b + c) for k in range(b + c + 1)]
    # the two-sided test adds up what is at most as likely as the observation
    at_most = sum(chance for chance in chances if chance <= chances[b] * (1 + 1e-9))
    as_likely = sum(chance for chance in chances if abs(chance / chances[b] - 1) <= 1e-9)
    assert mcnemar(b, c) == (
        pytest.approx(at_most),
        pytest.approx(at_most - as_likely / 2 if b + c else 1.0),
    )


def test_the_interval_of_a_difference_equals_the_published_one() -> None:
    # the same table of Bentur et al. (1, 1, 7, 12): Fagerland et al. 2014, table 6
    found = compare_shares(both=1, first_only=1, second_only=7, neither=12).difference
    assert found.value == pytest.approx(-6 / 21)
    assert found.low == pytest.approx(-0.507, abs=0.0005)
    assert found.high == pytest.approx(-0.026, abs=0.0005)


def test_a_difference_without_questions_has_no_value_and_says_so() -> None:
    found = compare_shares(0, 0, 0, 0)
    assert found.difference.value is None
    assert found.difference.why
    assert found.is_too_few_to_tell
    with pytest.raises(ValueError, match="negative"):
        compare_shares(1, -1, 0, 0)


def test_fewer_pairs_than_could_ever_differ_significantly_are_too_few_to_tell() -> None:
    assert mcnemar(0, LEAST_DECISIVE - 1)[0] > 0.05
    assert mcnemar(0, LEAST_DECISIVE)[0] < 0.05
    assert is_too_few_to_tell(LEAST_DECISIVE - 1)
    assert not is_too_few_to_tell(LEAST_DECISIVE)


def test_the_questions_needed_equal_published_sample_sizes() -> None:
    # Connor (1987, p. 209) as computed by powerandsamplesize.com: 0.45 against 0.05 differ in one
    # direction and the other, alpha 0.05, power 0.8
    assert questions_needed(0.4, 0.5) == 23
    # the same formula with the values of another example (0.2 against 0.1)
    assert questions_needed(0.1, 0.3) == 234


@pytest.mark.parametrize(("difference", "differing"), [(0.05, 0.1), (0.1, 1 / 3), (0.2, 0.25)])
def test_the_questions_needed_give_the_exact_test_almost_the_power(
    difference: float, differing: float
) -> None:
    needed = questions_needed(difference, differing)
    assert needed is not None
    toward = (differing + difference) / 2 / differing
    power = sum(
        binom.pmf(pairs, needed, differing)
        * sum(
            binom.pmf(wins, pairs, toward)
            for wins in range(pairs + 1)
            if mcnemar(wins, pairs - wins)[0] < 0.05
        )
        for pairs in range(needed + 1)
        if binom.pmf(pairs, needed, differing) > 1e-6
    )
    assert 0.72 < power < 0.84


def test_rare_differences_need_at_least_one_direction_and_none_need_an_answer_first() -> None:
    assert questions_needed(0.1, 0.02) == questions_needed(0.1, 0.1)
    assert questions_needed(0.1, 0.0) is None
    with pytest.raises(ValueError, match="between 0 and 1"):
        questions_needed(0.0, 0.3)


def test_a_bootstrap_of_means_is_a_little_wider_than_scipys() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.gamma(2, 1, 60), rng.gamma(2, 1.5, 60)
    found = bootstrap_difference(x, y)
    other = bootstrap(
        (x - y,), np.mean, n_resamples=4000, method="percentile", rng=1
    ).confidence_interval
    assert found.value == pytest.approx(float((x - y).mean()))
    assert found.low is not None
    assert found.high is not None
    assert 1.0 < (found.high - found.low) / (other.high - other.low) < 1.12


def test_a_bootstrap_of_rates_divides_the_sums() -> None:
    rng = np.random.default_rng(4)
    claims, others = rng.integers(1, 9, 50), rng.integers(1, 9, 50)
    issues, found_in_others = rng.binomial(claims, 0.4), rng.binomial(others, 0.2)
    found = bootstrap_difference(issues, found_in_others, claims, others)
    assert found.value == pytest.approx(
        issues.sum() / claims.sum() - found_in_others.sum() / others.sum()
    )
    assert found == bootstrap_difference(issues, found_in_others, claims, others)
    assert found != bootstrap_difference(issues, found_in_others, claims, others, seed=1)


def test_many_questions_give_the_same_interval_without_resampling() -> None:
    rng = np.random.default_rng(5)
    of = rng.integers(1, 9, MOST_RESAMPLED + 1)
    x, y = rng.binomial(of, 0.4), rng.binomial(of, 0.35)
    found = bootstrap_difference(x, y, of, of)
    resampled = bootstrap_difference(x[1:], y[1:], of[1:], of[1:])
    assert found.low == pytest.approx(resampled.low, abs=0.0015)
    assert found.high == pytest.approx(resampled.high, abs=0.0015)


@pytest.mark.parametrize(
    ("x", "y", "of", "has_value"),
    [
        ([], [], None, False),
        ([1.0] * 30, [2.0] * 30, None, True),
        (list(range(LEAST_QUESTIONS - 1)), [0.0] * (LEAST_QUESTIONS - 1), None, True),
        ([0.0] * 30, [0.0] * 30, [0] * 30, False),
    ],
)
def test_a_bootstrap_without_an_interval_says_why(
    x: list[float], y: list[float], of: list[int] | None, has_value: bool
) -> None:
    found = bootstrap_difference(x, y, of, of)
    assert (found.value is not None) == has_value
    assert found.low is None
    assert found.why


def test_values_of_other_questions_or_without_end_are_errors() -> None:
    with pytest.raises(ValueError, match="same questions"):
        bootstrap_difference([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        bootstrap_difference([float("nan")], [1.0])


# Preferences


def _draw_verdicts(
    strengths: dict[str, float],
    tie_log_rate: float,
    questions: int,
    seed: int,
    reviewers: int = 1,
) -> list[Comparison]:
    """Draw verdicts from Davidson's model; all reviewers of a question see the same pair."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(strengths, 2))
    drawn = []
    for question in range(questions):
        first, second = pairs[question % len(pairs)]
        a, b = strengths[first], strengths[second]
        weights = np.exp([a, b, (a + b) / 2 + tie_log_rate])
        drawn += [
            Comparison(
                first,
                second,
                OUTCOMES[rng.choice(3, p=weights / weights.sum())],
                str(question),
            )
            for _ in range(reviewers)
        ]
    return drawn


def _verdicts(counts: dict[tuple[str, str], int]) -> list[Comparison]:
    return [
        Comparison(winner, loser, "first", f"{winner} {loser} {number}")
        for (winner, loser), count in counts.items()
        for number in range(count)
    ]


def test_strengths_equal_those_of_the_baseball_league_in_agrestis_textbook() -> None:
    # Agresti, Categorical Data Analysis, table 10.10: the American League of 1987. The strengths
    # there are relative to Baltimore.
    names = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
    won = (
        (0, 7, 9, 7, 7, 9, 11),
        (6, 0, 7, 5, 11, 9, 9),
        (4, 6, 0, 7, 7, 8, 12),
        (6, 8, 6, 0, 6, 7, 10),
        (6, 2, 6, 7, 0, 7, 12),
        (4, 4, 5, 6, 6, 0, 6),
        (2, 4, 1, 3, 1, 7, 0),
    )
    fitted = fit_bradley_terry(
        _verdicts(
            {(a, b): won[i][j] for i, a in enumerate(names) for j, b in enumerate(names) if i != j}
        )
    )
    found = {name: strength.value or 0.0 for name, strength in fitted.strengths}
    relative = [round(found[name] - found["Baltimore"], 2) for name in names[:-1]]
    assert relative == [1.58, 1.44, 1.29, 1.25, 1.11, 0.68]
    assert fitted.tie_log_rate is None
    assert [strength.system for strength in fitted.strengths] == list(names)


def test_strengths_with_ties_equal_a_general_optimizer() -> None:
    truth = {"a": 0.7, "b": 0.1, "c": -0.2, "d": -0.6}
    comparisons = _draw_verdicts(truth, -0.8, 240, seed=1)
    index = {name: number for number, name in enumerate(truth)}

    def loss(parameters: np.ndarray) -> float:
        strengths, ties = parameters[:4] - parameters[:4].mean(), parameters[4]
        total = 0.0
        for row in comparisons:
            a, b = strengths[index[row.first]], strengths[index[row.second]]
            powers = np.array([a, b, ties + (a + b) / 2])
            total -= powers[OUTCOMES.index(row.outcome)] - np.log(np.exp(powers).sum())
        return total

    best = minimize(loss, np.zeros(5), method="BFGS").x
    fitted = fit_bradley_terry(comparisons)
    found = {name: strength.value for name, strength in fitted.strengths}
    for name, number in index.items():
        assert found[name] == pytest.approx(best[number] - best[:4].mean(), abs=1e-3)
    assert fitted.tie_log_rate == pytest.approx(best[4], abs=1e-3)


def test_two_systems_have_the_log_odds_of_their_wins() -> None:
    fitted = fit_bradley_terry(_verdicts({("a", "b"): 30, ("b", "a"): 10}))
    (first, strength), (_, other) = fitted.strengths
    assert first == "a"
    assert (strength.value or 0.0) - (other.value or 0.0) == pytest.approx(np.log(3))


def test_the_sides_of_a_comparison_dont_matter() -> None:
    comparisons = _draw_verdicts({"a": 0.5, "b": 0.0, "c": -0.5}, -1.0, 90, seed=2)
    turned = {"first": "second", "second": "first", "tie": "tie"}
    swapped = [
        Comparison(row.second, row.first, turned[row.outcome], row.question)  # type: ignore[arg-type]
        for row in comparisons
    ]
    assert win_rates(swapped) == win_rates(comparisons)
    for (name, found), (other_name, other) in zip(
        fit_bradley_terry(comparisons).strengths, fit_bradley_terry(swapped).strengths, strict=True
    ):
        assert name == other_name
        assert found.value == pytest.approx(other.value)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "no two systems"),
        ({("a", "b"): 3, ("b", "a"): 2, ("c", "d"): 2, ("d", "c"): 2}, "a, b and the others"),
        ({("a", "b"): 5, ("a", "c"): 4, ("b", "c"): 1, ("c", "b"): 2}, "a won every comparison"),
        ({("a", "c"): 5, ("b", "c"): 4, ("a", "b"): 1, ("b", "a"): 2}, "a, b won every comparison"),
    ],
)
def test_systems_without_finite_strengths_get_a_reason(
    counts: dict[tuple[str, str], int], words: str
) -> None:
    fitted = fit_bradley_terry(_verdicts(counts))
    assert fitted.strengths == ()
    assert words in fitted.why


def test_a_system_that_wins_all_but_a_tie_has_a_finite_strength() -> None:
    rows = _verdicts({("a", "b"): 5})
    assert fit_bradley_terry([*rows, Comparison("b", "a", "tie", "tied")]).strengths


def test_a_system_against_itself_is_an_error() -> None:
    with pytest.raises(ValueError, match="itself"):
        fit_bradley_terry([Comparison("a", "a", "tie", "q")])


def test_a_win_rate_counts_ties_half_and_widens_for_several_verdicts_on_a_question() -> None:
    alone = [Comparison("a", "b", "first", str(number)) for number in range(30)]
    alone += [Comparison("a", "b", "second", f"l{number}") for number in range(8)]
    alone += [Comparison("b", "a", "tie", f"t{number}") for number in range(10)]
    (found,) = win_rates(alone)
    assert (found.wins, found.losses, found.ties) == (30, 8, 10)
    assert found.rate.value == pytest.approx(35 / 48)
    assert found.p_exact == mcnemar(30, 8)[0]
    # The same verdicts by three reviewers hold no more information than those of one.
    (repeated,) = win_rates(alone * 3)
    width = (found.rate.high or 0) - (found.rate.low or 0)
    assert (repeated.rate.high or 0) - (repeated.rate.low or 0) == pytest.approx(width, rel=0.25)


def test_strengths_of_repeated_verdicts_are_no_more_certain() -> None:
    comparisons = _draw_verdicts({"a": 0.5, "b": 0.0, "c": -0.5}, -1.0, 150, seed=6)
    once, thrice = fit_bradley_terry(comparisons), fit_bradley_terry(comparisons * 3)
    for (_, found), (_, repeated) in zip(once.strengths, thrice.strengths, strict=True):
        width = (found.high or 0) - (found.low or 0)
        assert (repeated.high or 0) - (repeated.low or 0) == pytest.approx(width, rel=0.15)


# Coverage


def _is_covered(low: float | None, truth: float, high: float | None) -> bool:
    return low is not None and high is not None and low <= truth <= high


LEAST_COVERAGE = 0.93
"""95% intervals cover in at least this share of simulations; the soak's error is 0.5%."""


def _assert_covers(hits: int, of: int) -> None:
    error = (0.95 * 0.05 / of) ** 0.5
    assert hits / of >= LEAST_COVERAGE - 3 * error, f"{hits} of {of}"


@pytest.mark.soak(smoke=150, full=4_000)
@pytest.mark.parametrize("questions", [30, 120])
@pytest.mark.parametrize(
    "chances", [(0.5, 0.2, 0.1, 0.2), (0.85, 0.08, 0.03, 0.04), (0.2, 0.3, 0.3, 0.2)]
)
def test_intervals_of_differences_of_shares_cover(
    rounds: int, questions: int, chances: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for counts in rng.multinomial(questions, chances, size=rounds):
        found = compare_shares(*map(int, counts)).difference
        hits += _is_covered(found.low, chances[1] - chances[2], found.high)
    _assert_covers(hits, rounds)


@pytest.mark.soak(smoke=100, full=2_000)
@pytest.mark.parametrize("questions", [LEAST_QUESTIONS, 100])
def test_bootstrap_intervals_of_means_and_rates_cover(rounds: int, questions: int) -> None:
    rng = np.random.default_rng(12)
    means = rates = 0
    for _ in range(rounds):
        shared = rng.normal(0, 2, questions)
        x, y = shared + rng.normal(0.3, 1, questions), shared + rng.normal(0, 1, questions)
        found = bootstrap_difference(x, y)
        means += _is_covered(found.low, 0.3, found.high)
        of_x, of_y = rng.integers(3, 10, questions), rng.integers(3, 10, questions)
        found = bootstrap_difference(rng.binomial(of_x, 0.5), rng.binomial(of_y, 0.3), of_x, of_y)
        rates += _is_covered(found.low, 0.2, found.high)
    _assert_covers(means, rounds)
    _assert_covers(rates, rounds)


@pytest.mark.soak(smoke=60, full=2_000)
@pytest.mark.parametrize("reviewers", [1, 3])
def test_intervals_of_preferences_cover(rounds: int, reviewers: int) -> None:
    truth, ties = {"a": 0.8, "b": 0.0, "c": -0.8}, -0.7
    weights = np.exp([0.8, 0.0, 0.4 + ties])
    rate = float((weights[0] + weights[2] / 2) / weights.sum())
    strengths = of = rates = 0
    for seed in range(rounds):
        comparisons = _draw_verdicts(truth, ties, 150, seed, reviewers)
        for name, found in fit_bradley_terry(comparisons).strengths:
            strengths += _is_covered(found.low, truth[name], found.high)
            of += 1
        found = win_rates(comparisons)[0].rate
        rates += _is_covered(found.low, rate, found.high)
    # The intervals of one simulation depend on each other, so that its rounds count, not they.
    _assert_covers(round(strengths / 3), of // 3)
    _assert_covers(rates, rounds)
