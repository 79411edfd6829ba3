"""A threshold on the probability of fault whose risk is bounded by a test.

Risk is the share of faulty answers among those that a threshold accepts. A plan fixes thresholds
and a simple random sample of the answers that the loosest would accept; each is then tested with
the exact binomial test of "the risk is above the tolerance", strictest first, and testing ends at
the first that isn't rejected (fixed-sequence testing). Given how many of the sample lie under a
threshold, these are a simple random sample of what it accepts, so each test is valid, and since the
order is fixed beforehand so is the whole: the probability that an accepted threshold has a risk
above the tolerance is at most the plan's error, whatever the score is worth. A sample without
replacement varies less than the binomial, so the test errs on the safe side.

Why not conformal risk control: it bounds the risk on average over samples, not with a certainty,
which is what a lead has to answer for.

Nothing is computed before every drawn answer is settled, so looking early gains nothing. Drawing
again after a plan gave no guarantee would: plans for one auditor and rule therefore share the
error, and a later one states less certainty.
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
"""What became of a drawn answer. Escalated, seen with the machine's verdict and gone all count as
faulty.
"""

STEPS = 5
"""Thresholds of a plan at most: each costs nothing unless it fails, but few differ in what they
save.
"""


def draws_needed(tolerance: float, error: float, faulty: int = 0) -> int:
    """Return how many draws show a risk of at most ``tolerance`` when ``faulty`` of them are
    faulty.

    149 without a fault for 2% at 95% certainty. Raises InputError outside of 0 < tolerance, error <
    1.
    """
    if not (0 < tolerance < 1 and 0 < error < 1):
        raise InputError(
            "tolerance and error lie between 0 and 1", hint="Give 0.02 and 0.05 for 2% at 95%."
        )
    n = max(faulty + 1, math.ceil(math.log(error) / math.log(1 - tolerance)))
    while p_value(faulty, n, tolerance) > error:
        n += 1
    return n


def p_value(faulty: int, n: int, tolerance: float) -> float:
    """Return the probability of at most so many faulty answers among ``n`` if the risk were
    ``tolerance``.
    """
    if n == 0:
        return 1.0
    from scipy.special import bdtr

    return float(bdtr(faulty, n, tolerance))


def upper_bound(faulty: int, n: int, error: float) -> float:
    """Return the exact one-sided upper bound of the risk, at certainty ``1 - error``."""
    from scipy.special import betaincinv

    return 1.0 if faulty >= n else float(betaincinv(faulty + 1, n - faulty, 1 - error))


def least_tolerance(n: int, error: float) -> float:
    """Return the smallest whole percentage that ``n`` draws without a fault show, as a share."""
    return math.ceil(100 * upper_bound(0, n, error)) / 100


def thresholds_for(pool: Floats, draws: int, tolerance: float, error: float) -> tuple[float, ...]:
    """Return the thresholds to test, strictest first, from the probabilities of the pool alone.

    The loosest accepts the whole pool; the strictest expects a tenth more draws than a test without
    a fault needs.
    """
    least = min(1.0, 1.1 * draws_needed(tolerance, error) / draws)
    shares = np.linspace(least, 1.0, STEPS) if least < 1 else np.ones(1)
    ordered = np.sort(pool)
    found = [float(ordered[max(0, math.ceil(part * len(ordered)) - 1)]) for part in shares]
    return tuple(sorted(set(found)))


def expected_threshold(pool: Floats, tolerance: float) -> float:
    """Return the loosest threshold whose answers are expected to hold half the tolerance, by the
    score itself.

    A proposal for what to try: the test does not rest on it. 0 where not even the surest answers
    qualify.
    """
    ordered = np.sort(pool)
    fits = np.cumsum(ordered) / np.arange(1, len(ordered) + 1) <= tolerance / 2
    return float(ordered[np.flatnonzero(fits)[-1]]) if fits.any() else 0.0


class ThresholdTest(NamedTuple):
    """One threshold: how many draws it accepts, how many of them are faulty, the upper bound of its
    risk.
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
    """Test thresholds in order until the first that fails; those behind it don't hold, whatever
    their draws say.

    They were fixed before the decisions, strictest first. ``probability`` (of fault) and ``faulty``
    are of the drawn answers, ``tolerance`` is the share of faulty ones tolerated, ``error`` the
    probability of a wrong guarantee.
    """
    found: list[ThresholdTest] = []
    alive = True
    for threshold in thresholds:
        accepted = probability <= threshold
        n, faults = int(accepted.sum()), int(faulty[accepted].sum())
        p = p_value(faults, n, tolerance)
        alive = alive and p <= error
        found.append(ThresholdTest(threshold, n, faults, p, upper_bound(faults, n, error), alive))
    return found


def loosest_valid(tested: Sequence[ThresholdTest]) -> ThresholdTest | None:
    """Return the loosest threshold that holds; None where none does."""
    return next((each for each in reversed(tested) if each.holds), None)


ALARM_EVIDENCE = 20.0
"""Evidence against a guarantee from which it no longer holds: a false alarm, ever, at most once in
20 guarantees.
"""


def evidence_against(faulty: int, n: int, tolerance: float) -> float:
    """Return the evidence that the risk is above the tolerance: an e-value that may be looked at
    after every decision.

    The likelihood of the decisions averaged over all risks above the tolerance, by that at the
    tolerance. By Ville's inequality it ever reaches ``ALARM`` with probability 1 in ``ALARM`` at
    most while the risk is within it.
    """
    if not n:
        return 1.0
    from scipy.special import betainc, betaln

    above = float(betaln(faulty + 1, n - faulty + 1)) + math.log(
        max(1e-300, 1 - float(betainc(faulty + 1, n - faulty + 1, tolerance)))
    )
    at = faulty * math.log(tolerance) + (n - faulty) * math.log1p(-tolerance)
    return math.exp(min(700.0, above - math.log1p(-tolerance) - at))
