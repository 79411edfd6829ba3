"""Test a threshold on the probability of fault, so that the risk of what it accepts is bounded.

Risk is the share of faulty answers among those that a threshold accepts. A plan fixes thresholds
and draws a simple random sample of the answers that the loosest one would accept. Each threshold is
then tested with the exact binomial test of "the risk is above the tolerance", strictest first, and
testing ends at the first one that isn't rejected (fixed-sequence testing).

Given how many of the sample lie under a threshold, these are a simple random sample of the answers
that it accepts, so each test is valid. The order is fixed beforehand, so the whole procedure is
valid too: the probability that an accepted threshold has a risk above the tolerance is at most the
plan's error, however good or bad the score is. A sample without replacement varies less than the
binomial, so the test errs on the safe side.

Conformal risk control isn't used because it bounds the risk on average over samples. A lead needs a
bound that holds with a stated certainty.

Nothing is computed before every drawn answer is settled, so looking early gains nothing. Drawing
again after a failed plan would gain something, so all plans for one auditor and rule share the
error, and a later plan states less certainty.
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
"""The most thresholds that a plan tests. Each one costs nothing unless it fails, but more would
save little.
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
    n = max(faulty + 1, math.ceil(math.log(error) / math.log(1 - tolerance)))
    while p_value(faulty, n, tolerance) > error:
        n += 1
    return n


def p_value(faulty: int, n: int, tolerance: float) -> float:
    """Return the probability of at most ``faulty`` faulty answers among ``n`` if the risk were
    ``tolerance``.
    """
    if n == 0:
        return 1.0
    from scipy.special import bdtr

    return float(bdtr(faulty, n, tolerance))


def upper_bound(faulty: int, n: int, error: float) -> float:
    """Return the exact one-sided upper bound of the risk at certainty ``1 - error``."""
    from scipy.special import betaincinv

    return 1.0 if faulty >= n else float(betaincinv(faulty + 1, n - faulty, 1 - error))


def least_tolerance(n: int, error: float) -> float:
    """Return the smallest whole percentage that ``n`` draws without a fault can show, as a
    share.
    """
    return math.ceil(100 * upper_bound(0, n, error)) / 100


def thresholds_for(pool: Floats, draws: int, tolerance: float, error: float) -> tuple[float, ...]:
    """Return the thresholds to test, strictest first, from the probabilities of the pool alone.

    The loosest one accepts the whole pool. The strictest one expects a tenth more draws than a test
    without a fault needs.
    """
    least = min(1.0, 1.1 * draws_needed(tolerance, error) / draws)
    shares = np.linspace(least, 1.0, STEPS) if least < 1 else np.ones(1)
    ordered = np.sort(pool)
    thresholds = {float(ordered[max(0, math.ceil(part * len(ordered)) - 1)]) for part in shares}
    return tuple(sorted(thresholds))


def expected_threshold(pool: Floats, tolerance: float) -> float:
    """Return the loosest threshold whose answers are expected to hold half the tolerance, by the
    score itself.

    It's a suggestion of what to try; the test doesn't depend on it. It's 0 if even the surest
    answers don't qualify.
    """
    ordered = np.sort(pool)
    fits = np.cumsum(ordered) / np.arange(1, len(ordered) + 1) <= tolerance / 2
    return float(ordered[np.flatnonzero(fits)[-1]]) if fits.any() else 0.0


class ThresholdTest(NamedTuple):
    """The test of one threshold: how many draws it accepts, how many of them are faulty, and its
    risk's upper bound.
    """

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
    """Test thresholds in order until the first failure; the ones after it don't hold, whatever
    their draws say.

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
"""A guarantee no longer holds from this evidence on. At most 1 in 20 valid guarantees ever reaches
it.
"""


def evidence_against(faulty: int, n: int, tolerance: float) -> float:
    """Return the evidence that the risk is above the tolerance, an e-value that may be checked
    after every decision.

    It's the likelihood of the decisions averaged over all risks above the tolerance, divided by the
    likelihood at the tolerance. By Ville's inequality it reaches ``ALARM_EVIDENCE`` with a
    probability of at most 1 in ``ALARM_EVIDENCE`` while the risk is within the tolerance.
    """
    if not n:
        return 1.0
    from scipy.special import betainc, betaln

    above = float(betaln(faulty + 1, n - faulty + 1)) + math.log(
        max(1e-300, 1 - float(betainc(faulty + 1, n - faulty + 1, tolerance)))
    )
    at = faulty * math.log(tolerance) + (n - faulty) * math.log1p(-tolerance)
    return math.exp(min(700.0, above - math.log1p(-tolerance) - at))
