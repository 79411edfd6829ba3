"""The bound of a data set's share of wrong labels: exact, and wrong no more often than stated."""

from __future__ import annotations

import random

import pytest
from scipy.stats import beta, binom, hypergeom

from masis.errors import InputError
from masis.trust.relabelling import (
    FINITE_UP_TO,
    assert_in_range,
    bound_wrong,
    draw_sample,
    is_within,
    sample_needed,
)

ERROR = 0.05


@pytest.mark.parametrize(("labels", "n", "wrong"), [(50, 39, 0), (1000, 120, 2), (5000, 300, 7)])
def test_the_bound_is_the_largest_share_that_the_sample_does_not_reject(
    labels: int, n: int, wrong: int
) -> None:
    found = bound_wrong(wrong, n, labels, ERROR)
    most = round(found.bound * labels)
    assert hypergeom(labels, most, n).cdf(wrong) > ERROR
    assert hypergeom(labels, most + 1, n).cdf(wrong) <= ERROR
    assert found.method == "hypergeometric"


def test_a_large_data_set_has_clopper_and_pearsons_bound() -> None:
    found = bound_wrong(2, 300, FINITE_UP_TO + 1, ERROR)
    assert found.method == "binomial"
    assert found.bound == pytest.approx(beta.ppf(1 - ERROR, 3, 298))
    finite = bound_wrong(2, 300, FINITE_UP_TO, ERROR)
    assert finite.bound <= found.bound


@pytest.mark.parametrize("labels", [50, 200, 1000, 5000, 20_000])
@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_a_smaller_sample_than_stated_would_not_show_the_rate(labels: int, wrong: int) -> None:
    needed = sample_needed(labels, 0.1, ERROR, wrong)
    assert needed is not None
    assert is_within(bound_wrong(wrong, needed, labels, ERROR).bound, 0.1)
    assert not is_within(bound_wrong(wrong, needed - 1, labels, ERROR).bound, 0.1)


def test_relabelling_everything_shows_the_share_itself() -> None:
    assert bound_wrong(3, 100, 100, ERROR).bound == 0.03
    # Of 99 draws, only 4 in 100 would miss a fourth wrong label.
    assert sample_needed(100, 0.03, ERROR, 3) == 99
    assert sample_needed(100, 0.03, ERROR, 4) is None
    # 0.29 * 100 is 28.999999999999996 as a float
    assert sample_needed(100, 0.29, ERROR, 29) is not None


def test_the_same_seed_draws_the_same_labels() -> None:
    labels = [str(number) for number in range(100)]
    assert draw_sample(labels, 10, 7) == draw_sample(labels, 10, 7)
    assert draw_sample(labels, 10, 7) != draw_sample(labels, 10, 8)
    assert len(set(draw_sample(labels, 100, 7))) == 100


@pytest.mark.parametrize(("rate", "level"), [(0, 0.95), (0.6, 0.95), (0.03, 1), (0.03, 0.4)])
def test_a_rate_or_level_out_of_range_is_refused(rate: float, level: float) -> None:
    with pytest.raises(InputError):
        assert_in_range(rate, level)


@pytest.mark.timeout(3600)
@pytest.mark.soak(smoke=120, full=4000)
def test_guarantees_of_data_sets_are_wrong_no_more_often_than_stated(rounds: int) -> None:
    """Data sets of 50 to 5,000 labels with 0 to 10% wrong ones, each sampled many times."""
    trials = 0
    for labels in (50, 200, 1000, 5000):
        ids = list(map(str, range(labels)))
        for percent in range(11):
            bad = set(ids[: round(labels * percent / 100)])
            true_share = len(bad) / labels
            for rate, expected in ((0.02, 0), (0.05, 1), (0.09, 3)):
                n = sample_needed(labels, rate, ERROR, expected)
                if n is None:
                    continue
                trials += 1
                exceeded = given = 0
                for seed in range(rounds):
                    drawn = draw_sample(ids, n, 1_000_000 * trials + seed)
                    bound = bound_wrong(len(bad.intersection(drawn)), n, labels, ERROR).bound
                    exceeded += true_share > bound
                    given += is_within(bound, rate)
                # Chance alone exceeds this limit in one of about 100,000 trials.
                limit = binom.ppf(1 - 1e-5, rounds, ERROR)
                assert exceeded <= limit, (labels, percent, n, exceeded)
                if true_share > rate:
                    assert given <= limit, (labels, percent, rate, given)
                if percent == 0:
                    assert given == rounds
    assert trials > 100


def test_the_simulation_would_notice_a_bound_that_is_too_low() -> None:
    draws = random.Random(1)
    too_low = sum(sum(draws.random() < 0.05 for _ in range(100)) / 100 < 0.05 for _ in range(400))
    assert too_low > binom.ppf(1 - 1e-5, 400, ERROR)
