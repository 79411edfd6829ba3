"""Statistics of paired comparisons: two systems on the same questions, or side by side.

Two systems that answer the same questions are compared question by question, because the
differences between questions are larger than those between systems and cancel within a pair.

| figure | method | source |
|---|---|---|
| p-value of a difference of shares | exact and mid-p McNemar | Fagerland et al. 2013 |
| its interval | square-and-add of Wilson intervals ("method 10") | Newcombe 1998 |
| questions needed to show a difference | normal approximation | Connor 1987 |
| interval of a difference of means | bootstrap, expanded percentiles | Hesterberg 2015 |
| win rate | share with its exact interval, ties half, by question | ``agreement.share`` |
| strengths of several systems | Bradley-Terry with Davidson's ties | Davidson 1970 |

``tests/trust/test_paired.py`` compares them with published values and independent implementations,
and simulates how often the intervals cover the truth. scipy is imported on use.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from masis.audit.measures.statistics import wilson_bounds
from masis.schema.comparison import LEAST_DECISIVE
from masis.schema.wording import count_noun
from masis.trust.agreement import RESAMPLES, SEED, AgreementEstimate, codes, share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Outcome = Literal["first", "second", "tie"]
"""What a comparison says: one of the two is better, or neither."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
LEAST_QUESTIONS = 20
"""A bootstrap interval needs this many questions; with fewer, resamples repeat too few values."""
MOST_RESAMPLED = 2_000
"""With more questions the normal interval is shown: it's the same to a percent of its width, and
resampling 100,000 questions takes seconds."""
_Z = 1.959963984540054  # the 97.5th percentile of the normal distribution


def is_too_few_to_tell(decisive: int) -> bool:
    """Return whether so few pairs differ that no result could show which system is better.

    This is the only rule for the words "too few to tell".
    """
    return decisive < LEAST_DECISIVE


# Two shares on the same questions


class PairedShares(NamedTuple):
    """The difference of two shares on the same questions.

    Attributes:
        both: Questions on which both systems succeed.
        first_only: Questions on which only the first succeeds.
        second_only: Questions on which only the second succeeds.
        neither: Questions on which neither succeeds.
        difference: The first share minus the second, with its 95% interval.
        p_exact: The two-sided p-value of the exact McNemar test.
        p_mid: Its mid-p version, which is less conservative.

    """

    both: int
    first_only: int
    second_only: int
    neither: int
    difference: AgreementEstimate
    p_exact: float
    p_mid: float

    @property
    def is_too_few_to_tell(self) -> bool:
        """Whether too few questions differ to tell which system is better."""
        return is_too_few_to_tell(self.first_only + self.second_only)


def compare_shares(both: int, first_only: int, second_only: int, neither: int) -> PairedShares:
    """Compare two shares on the same questions, from the counts of the four combinations.

    Raises:
        ValueError: If a count is negative.

    """
    if min(both, first_only, second_only, neither) < 0:
        msg = "a count is negative"
        raise ValueError(msg)
    return PairedShares(
        both,
        first_only,
        second_only,
        neither,
        _newcombe_difference(both, first_only, second_only, neither),
        *mcnemar(first_only, second_only),
    )


def mcnemar(first_only: int, second_only: int) -> tuple[float, float]:
    """Return the two-sided exact and mid-p values of McNemar's test; 1 if no pair differs."""
    from scipy.special import bdtr

    differing, smaller = first_only + second_only, min(first_only, second_only)
    if differing == 0:
        return 1.0, 1.0
    point = comb(differing, smaller) / 2**differing
    tail = float(bdtr(smaller, differing, 0.5))
    if first_only == second_only:
        return 1.0, 1.0 - point / 2
    # Half the probability of the observed result counts, in both tails.
    return min(1.0, 2 * tail), 2 * tail - point


def _newcombe_difference(a: int, b: int, c: int, d: int) -> AgreementEstimate:
    """Return (b - c) / n with Newcombe's interval (1998, method 10)."""
    n = a + b + c + d
    if n == 0:
        return AgreementEstimate(None, why="no question that both answered")
    first, second = (a + b) / n, (a + c) / n
    (low_1, high_1), (low_2, high_2) = wilson_bounds(a + b, n), wilson_bounds(a + c, n)
    # The correlation of the two results. Newcombe lowers a positive one by half a unit, because it
    # would make the interval too narrow for small counts.
    margins = float(a + b) * float(c + d) * float(a + c) * float(b + d)
    product = a * d - b * c
    corrected = max(product - n / 2, 0.0) if product > 0 else float(product)
    phi = corrected / margins**0.5 if margins else 0.0
    down_1, up_1, down_2, up_2 = first - low_1, high_1 - first, second - low_2, high_2 - second
    difference = first - second
    low = difference - max(0.0, down_1**2 - 2 * phi * down_1 * up_2 + up_2**2) ** 0.5
    high = difference + max(0.0, up_1**2 - 2 * phi * up_1 * down_2 + down_2**2) ** 0.5
    return AgreementEstimate(difference, max(-1.0, low), min(1.0, high), n)


POWER = 0.8
"""The usual probability with which a difference of the expected size is to be shown."""
_Z_POWER = 0.8416212335729143  # the 80th percentile of the normal distribution


def questions_needed(difference: float, differing: float) -> int | None:
    """Return about how many questions show a difference of two shares with a power of 80%.

    McNemar's test at the level 0.05, two-sided, by Connor's formula (1987). The exact test needs a
    few more questions.

    Args:
        difference: The difference to show, above 0 and at most 1.
        differing: The share of questions on which one system succeeds and the other doesn't. It's
            at least the difference, so a smaller observed share is raised to it.

    Returns:
        None if no question differed, because then nothing says how often questions differ.

    Raises:
        ValueError: If a share isn't between 0 and 1, or the difference is 0.

    """
    if not 0 < difference <= 1 or not 0 <= differing <= 1:
        msg = "a share isn't between 0 and 1"
        raise ValueError(msg)
    if not differing:
        return None
    differing = max(differing, difference)
    spread: float = _Z * differing**0.5 + _Z_POWER * (differing - difference**2) ** 0.5
    return ceil((spread / difference) ** 2)


# Means and rates on the same questions


def bootstrap_difference(
    first: ArrayLike,
    second: ArrayLike,
    first_of: ArrayLike | None = None,
    second_of: ArrayLike | None = None,
    *,
    seed: int = SEED,
) -> AgreementEstimate:
    """Return the difference of two means or rates with a 95% interval, by resampling questions.

    Args:
        first: A value for each question: of the first system, or the numerator of its rate.
        second: The same for the second system, in the same order.
        first_of: The denominator of the first system's rate for each question, as in issues per
            claim; None for a mean.
        second_of: The same for the second system.
        seed: The seed of the resamples, so that the same data give the same interval.

    Returns:
        The first mean or rate minus the second. ``why`` says why a figure or interval is missing.

    Raises:
        ValueError: If the arguments differ in length or hold a value that isn't finite.

    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    x_of = np.ones_like(x) if first_of is None else np.asarray(first_of, dtype=float)
    y_of = np.ones_like(y) if second_of is None else np.asarray(second_of, dtype=float)
    if not len(x) == len(y) == len(x_of) == len(y_of):
        msg = "the systems need values for the same questions"
        raise ValueError(msg)
    table = np.stack([x, x_of, y, y_of], axis=1)
    if not np.isfinite(table).all():
        msg = "a value isn't finite"
        raise ValueError(msg)
    n = len(x)
    if not n:
        return AgreementEstimate(None, why="no question that both answered")
    if not x_of.sum() or not y_of.sum():
        return AgreementEstimate(None, n=n, why="a rate without a base")
    value = float(x.sum() / x_of.sum() - y.sum() / y_of.sum())
    if n < LEAST_QUESTIONS:
        why = f"no interval: {count_noun(n, 'question')}, {LEAST_QUESTIONS} needed"
        return AgreementEstimate(value, n=n, why=why)
    bounds = _normal_bounds(table, value) if n > MOST_RESAMPLED else _resample_bounds(table, seed)
    if bounds is None or bounds[0] == bounds[1]:
        return AgreementEstimate(value, n=n, why="no interval: it's the same in every resample")
    return AgreementEstimate(value, *bounds, n)


def _resample_bounds(table: Floats, seed: int) -> tuple[float, float] | None:
    """Return expanded percentiles of the resampled difference.

    Plain percentiles are too narrow for small samples: they use the normal quantile and divide by n
    instead of n - 1. Hesterberg (2015) takes more extreme percentiles, which undo both.
    """
    from scipy.special import ndtr, stdtrit

    n = len(table)
    drawn = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n))
    sums = np.stack([column[drawn].sum(1) for column in table.T], axis=1)
    sums = sums[(sums[:, 1] > 0) & (sums[:, 3] > 0)]
    if not len(sums):
        return None
    values = sums[:, 0] / sums[:, 1] - sums[:, 2] / sums[:, 3]
    tail = float(ndtr(-((n / (n - 1)) ** 0.5) * float(stdtrit(n - 1, 0.975))))
    low, high = np.percentile(values, (100 * tail, 100 * (1 - tail)))
    return float(low), float(high)


def _normal_bounds(table: Floats, value: float) -> tuple[float, float]:
    """Return the normal interval of a difference of ratios, linearized (the delta method)."""
    n = len(table)
    x, x_of, y, y_of = table.T
    influence = (x - x.sum() / x_of.sum() * x_of) / x_of.mean()
    influence = influence - (y - y.sum() / y_of.sum() * y_of) / y_of.mean()
    error = _Z * float(influence.std(ddof=1)) / n**0.5
    return value - error, value + error


# Preferences between two answers


class Comparison(NamedTuple):
    """One verdict between the answers of two systems to a question."""

    first: str
    second: str
    outcome: Outcome
    question: str


class WinRate(NamedTuple):
    """How often people prefer the first system to the second.

    Attributes:
        first: The first system.
        second: The second system.
        wins: Verdicts for the first.
        losses: Verdicts for the second.
        ties: Verdicts for neither.
        rate: Wins and half the ties, over all verdicts, with its 95% interval. Verdicts on one
            question depend on each other, which widens it.
        p_exact: The two-sided p-value of the sign test (which is McNemar's) on wins and losses.

    """

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    rate: AgreementEstimate
    p_exact: float

    @property
    def is_too_few_to_tell(self) -> bool:
        """Whether too few verdicts name a winner to tell which system is better."""
        return is_too_few_to_tell(self.wins + self.losses)


def win_rates(comparisons: Sequence[Comparison]) -> list[WinRate]:
    """Return the win rate of each pair of systems that were compared, in the order of names."""
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in map(_in_order_of_names, comparisons):
        by_pair.setdefault((comparison.first, comparison.second), []).append(comparison)
    return [_win_rate(*pair, by_pair[pair]) for pair in sorted(by_pair)]


def _in_order_of_names(comparison: Comparison) -> Comparison:
    if comparison.first <= comparison.second:
        return comparison
    swapped: dict[Outcome, Outcome] = {"first": "second", "second": "first", "tie": "tie"}
    return Comparison(
        comparison.second, comparison.first, swapped[comparison.outcome], comparison.question
    )


def _win_rate(first: str, second: str, comparisons: Sequence[Comparison]) -> WinRate:
    points = {"first": 1.0, "tie": 0.5, "second": 0.0}
    outcomes = [comparison.outcome for comparison in comparisons]
    wins, losses, ties = (outcomes.count(outcome) for outcome in OUTCOMES)
    rate = share(
        [points[outcome] for outcome in outcomes],
        [comparison.question for comparison in comparisons],
    )
    return WinRate(first, second, wins, losses, ties, rate, mcnemar(wins, losses)[0])


# Strengths of several systems


class Strength(NamedTuple):
    """A system's log strength against the mean of all systems, with its 95% interval.

    The odds that it's preferred to another system are e to the power of the difference of the two.
    """

    system: str
    log_strength: AgreementEstimate


class BradleyTerry(NamedTuple):
    """The strengths of systems, strongest first; empty if they can't be estimated.

    Attributes:
        strengths: One for each system.
        tie_log_rate: The logarithm of Davidson's parameter for ties; None without ties.
        why: Why there are no strengths; "" if there are.

    """

    strengths: tuple[Strength, ...]
    tie_log_rate: float | None = None
    why: str = ""


def fit_bradley_terry(comparisons: Sequence[Comparison]) -> BradleyTerry:
    """Fit the strengths of systems to preferences, by maximum likelihood.

    Ties follow Davidson's model (1970), in which their probability is proportional to the geometric
    mean of both strengths. Counting a tie as half a win and half a loss instead would treat it as
    a coin toss, and give intervals wider than the data.

    Verdicts on one question depend on each other (several reviewers, or one answer in several
    pairs), so that an interval uses the larger of two errors: that of the model, and the sandwich
    estimate by question.

    Args:
        comparisons: The verdicts, in any order. Those of a system with itself are an error.

    Returns:
        No strengths, and the reason, if no finite strengths fit best (Ford 1957): if the systems
        fall into groups that weren't compared with each other, or that never lost or tied against
        the rest.

    Raises:
        ValueError: If a system is compared with itself.

    """
    if any(comparison.first == comparison.second for comparison in comparisons):
        msg = "a system is compared with itself"
        raise ValueError(msg)
    systems = sorted({name for row in comparisons for name in (row.first, row.second)})
    if len(systems) < 2:
        return BradleyTerry((), why="no two systems were compared")
    number = {name: index for index, name in enumerate(systems)}
    rows = np.array(
        [(number[c.first], number[c.second], OUTCOMES.index(c.outcome)) for c in comparisons]
    )
    if why := _why_unidentified(rows, systems):
        return BradleyTerry((), why=why)
    questions = codes([comparison.question for comparison in comparisons])
    estimate, errors = _fit(rows, questions, len(systems))
    half = _Z * errors
    counts = np.bincount(rows[:, :2].ravel(), minlength=len(systems))
    strengths = [
        Strength(
            name,
            AgreementEstimate(
                float(estimate[index]),
                float(estimate[index] - half[index]),
                float(estimate[index] + half[index]),
                int(counts[index]),
            ),
        )
        for index, name in enumerate(systems)
    ]
    strengths.sort(key=lambda strength: -(strength.log_strength.value or 0.0))
    ties = float(estimate[-1]) if len(estimate) > len(systems) else None
    return BradleyTerry(tuple(strengths), ties)


def _why_unidentified(rows: Ints, systems: Sequence[str]) -> str:
    """Return why no finite strengths fit best, "" if they do."""
    first, second, outcome = rows.T
    beats = np.eye(len(systems), dtype=bool)
    # A tie is an edge in both directions.
    beats[first[outcome != 1], second[outcome != 1]] = True
    beats[second[outcome != 0], first[outcome != 0]] = True
    together = _reach(beats | beats.T)[0]
    if not together.all():
        apart = ", ".join(name for name, is_in in zip(systems, together, strict=True) if is_in)
        return f"not all systems can be compared: {apart} and the others share no comparison"
    reaches = _reach(beats)
    if reaches.all():
        return ""
    # A system that only its equals beat, by a chain of wins, belongs to a group that never lost to
    # the rest or tied with it.
    top = next(
        index for index in range(len(systems)) if (reaches[index] >= reaches[:, index]).all()
    )
    names = [name for name, is_in in zip(systems, reaches[:, top], strict=True) if is_in]
    return f"{', '.join(names)} won every comparison with the others: the lead has no upper end"


def _reach(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes reach which by any number of edges; each node has an edge to itself."""
    for _ in range(len(edges).bit_length()):
        edges = edges @ edges  # twice as many edges
    return edges


def _fit(rows: Ints, questions: Ints, size: int) -> tuple[Floats, Floats]:
    """Return the log strengths (mean 0), then Davidson's parameter if there are ties.

    The second value holds their standard errors. The model is a multinomial logit: the features of
    an outcome are the log strengths that it adds up.
    """
    pairs, pair_of = np.unique(rows[:, :2], axis=0, return_inverse=True)
    pair_of = pair_of.ravel()
    outcomes = 3 if (rows[:, 2] == 2).any() else 2
    features = np.zeros((len(pairs), outcomes, size + outcomes - 2))
    index = np.arange(len(pairs))
    features[index, 0, pairs[:, 0]] = 1.0
    features[index, 1, pairs[:, 1]] = 1.0
    if outcomes == 3:
        features[index, 2, pairs[:, 0]] = features[index, 2, pairs[:, 1]] = 0.5
        features[index, 2, size] = 1.0
    counts = np.zeros((len(pairs), outcomes))
    np.add.at(counts, (pair_of, rows[:, 2]), 1.0)
    estimate = np.zeros(features.shape[2])
    for _ in range(100):
        expected, information, gradient = _derivatives(features, counts, estimate)
        if np.abs(gradient).max() < 1e-9 * len(rows):
            break
        # The strengths are fixed up to a constant, so the information is singular.
        step = np.linalg.pinv(information, hermitian=True) @ gradient
        # The likelihood is concave; halving keeps a Newton step from overshooting.
        before = _log_likelihood(features, counts, estimate)
        while _log_likelihood(features, counts, estimate + step) < before - 1e-12 * abs(before):
            step = step / 2
        estimate = estimate + step
    estimate[:size] -= estimate[:size].mean()
    inverse = np.linalg.pinv(information, hermitian=True)
    scores = features[pair_of, rows[:, 2]] - expected[pair_of]
    by_question = np.zeros((int(questions.max()) + 1, features.shape[2]))
    np.add.at(by_question, questions, scores)
    groups = len(by_question)
    robust = inverse @ (by_question.T @ by_question) @ inverse * groups / max(1, groups - 1)
    return estimate, np.sqrt(np.maximum(np.diag(robust), np.diag(inverse)))


def _probabilities(features: Floats, estimate: Floats) -> Floats:
    scores = features @ estimate
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True), dtype=float)


def _log_likelihood(features: Floats, counts: Floats, estimate: Floats) -> float:
    return float((counts * np.log(_probabilities(features, estimate))).sum())


def _derivatives(
    features: Floats, counts: Floats, estimate: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return each pair's expected features, the information, and the gradient."""
    chance, totals = _probabilities(features, estimate), counts.sum(1)
    expected = np.einsum("po,pof->pf", chance, features)
    centered = features - expected[:, None, :]
    information = np.einsum("p,po,pof,pog->fg", totals, chance, centered, centered, optimize=True)
    gradient = np.einsum("po,pof->f", counts, centered)
    return expected, information, gradient
