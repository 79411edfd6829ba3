"""Tests thresholds on the probability of fault, so that the risk of accepted answers is bounded.

Risk is the share of faulty answers among those that a threshold accepts. A plan fixes thresholds
and draws a simple random sample of the answers that the loosest one would accept. Each threshold is
then tested with the exact binomial test of "the risk is above the tolerance", strictest first.
Testing ends at the first one that isn't rejected (fixed-sequence testing).

The part of the sample below a threshold is a simple random sample of the answers that this
threshold accepts, so each test is valid. The order is fixed in advance, so the whole procedure is
valid too: the probability that an accepted threshold has a risk above the tolerance is at most the
plan's error, no matter how good the score is. A sample without replacement varies less than the
binomial, so the test is conservative.

Conformal risk control isn't used, because it bounds the risk on average over samples. A lead needs
a bound that holds with a stated certainty.

The tests run only after all drawn answers are settled, so that results can't be picked early.
Drawing again after a failed plan would give it another chance, so all plans for one auditor and
rule share the error, and a later plan states less certainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from masis.errors import InputError

Floats = NDArray[np.float64]
Outcome = Literal["right", "faulty", "escalated", "open", "not_blind", "gone"]
"""The outcome of a drawn answer. Escalated, not blind and gone all count as faulty."""

STEPS = 5
"""Maximum number of thresholds that a plan tests. A threshold costs nothing unless it fails, but
more than these would save few reviews.
"""


def draws_needed(tolerance: float, error: float, faulty: int = 0) -> int:
    """Return how many draws show a risk of at most ``tolerance`` if ``faulty`` of them are faulty.

    For 2% at 95% certainty that's 149 draws without a fault.

    Raises:
        InputError: ``tolerance`` or ``error`` isn't between 0 and 1.

    """
    if not (0 < tolerance < 1 and 0 < error < 1):
        raise InputError(
            "tolerance and error must be between 0 and 1",
            hint="Use 0.02 and 0.05 for 2% at 95%.",
        )
    # Without a fault the p-value is (1 - tolerance) ** n, which gives the least n directly.
    n = max(faulty + 1, math.ceil(math.log(error) / math.log(1 - tolerance)))
    while p_value(faulty, n, tolerance) > error:
        n += 1
    return n


def p_value(faulty: int, n: int, tolerance: float) -> float:
    """Return the p-value of the exact binomial test of a risk above ``tolerance``.

    It is the probability of at most ``faulty`` faulty answers among ``n`` at that risk.
    """
    if n == 0:
        return 1.0
    from scipy.special import bdtr

    # ``bdtr`` is the binomial distribution function, without an import of ``scipy.stats``.
    return float(bdtr(faulty, n, tolerance))


def upper_bound(faulty: int, n: int, error: float) -> float:
    """Return the exact one-sided upper bound of the risk at certainty ``1 - error``."""
    from scipy.special import betaincinv

    # Clopper and Pearson's bound is a quantile of a beta distribution.
    return 1.0 if faulty >= n else float(betaincinv(faulty + 1, n - faulty, 1 - error))


def least_tolerance(n: int, error: float) -> float:
    """Return the smallest tolerance, rounded up to 1%, that ``n`` draws without a fault show."""
    return math.ceil(100 * upper_bound(0, n, error)) / 100


def thresholds_for(pool: Floats, draws: int, tolerance: float, error: float) -> tuple[float, ...]:
    """Return the thresholds to test, strictest first, from the probabilities of the pool alone.

    The loosest one accepts the whole pool. The strictest one is expected to accept a tenth more
    draws than a test without a fault needs.
    """
    least = min(1.0, 1.1 * draws_needed(tolerance, error) / draws)
    shares = np.linspace(least, 1.0, STEPS) if least < 1 else np.ones(1)
    ordered = np.sort(pool)
    thresholds = {float(ordered[max(0, math.ceil(part * len(ordered)) - 1)]) for part in shares}
    return tuple(sorted(thresholds))


def expected_threshold(pool: Floats, tolerance: float) -> float:
    """Return the loosest threshold whose mean probability is at most half of the tolerance.

    It's a suggestion for a plan, and the test doesn't depend on it. It's 0 if even the most certain
    answers don't qualify.
    """
    ordered = np.sort(pool)
    # The running mean of the sorted probabilities is the expected risk at each threshold.
    fits = np.cumsum(ordered) / np.arange(1, len(ordered) + 1) <= tolerance / 2
    return float(ordered[np.flatnonzero(fits)[-1]]) if fits.any() else 0.0


class ThresholdTest(NamedTuple):
    """The test of one threshold: its accepted draws, the faulty ones, and the bound of its risk."""

    threshold: float
    n: int
    faulty: int
    p: float
    upper: float
    holds: bool


def try_thresholds(
    thresholds: Sequence[float],
    probability: Floats,
    faulty: NDArray[np.bool_],
    tolerance: float,
    error: float,
) -> list[ThresholdTest]:
    """Test thresholds in order; after the first failure, the others don't hold either.

    Args:
        thresholds: Fixed before the decisions, strictest first.
        probability: The probability of fault of each drawn answer.
        faulty: Whether each drawn answer is faulty.
        tolerance: The share of faulty answers that is tolerated.
        error: The probability of a wrong guarantee.

    """
    tests: list[ThresholdTest] = []
    holds = True
    for threshold in thresholds:
        accepted = probability <= threshold
        n, faults = int(accepted.sum()), int(faulty[accepted].sum())
        p = p_value(faults, n, tolerance)
        holds = holds and p <= error
        tests.append(ThresholdTest(threshold, n, faults, p, upper_bound(faults, n, error), holds))
    return tests


def loosest_valid(tested: Sequence[ThresholdTest]) -> ThresholdTest | None:
    """Return the loosest threshold that holds, or None if none does."""
    return next((test for test in reversed(tested) if test.holds), None)


ALARM_EVIDENCE = 20.0
"""A guarantee ends when the evidence against it reaches this value. At most 1 in 20 valid
guarantees ever reach it.
"""


def evidence_against(faulty: int, n: int, tolerance: float) -> float:
    """Return the evidence (an e-value) that the risk is above the tolerance.

    Unlike a p-value, it may be checked after every decision.

    It's the likelihood of the decisions averaged over all risks above the tolerance, divided by the
    likelihood at the tolerance. By Ville's inequality it reaches ``ALARM_EVIDENCE`` with a
    probability of at most 1 in ``ALARM_EVIDENCE`` while the risk is within the tolerance.
    """
    if not n:
        return 1.0
    from scipy.special import betainc, betaln

    # The likelihood integrated over all risks above the tolerance is an incomplete beta function.
    # Logarithms avoid underflow, and 1e-300 and 700 are near the limits of a double.
    above = float(betaln(faulty + 1, n - faulty + 1)) + math.log(
        max(1e-300, 1 - float(betainc(faulty + 1, n - faulty + 1, tolerance)))
    )
    at = faulty * math.log(tolerance) + (n - faulty) * math.log1p(-tolerance)
    return math.exp(min(700.0, above - math.log1p(-tolerance) - at))
