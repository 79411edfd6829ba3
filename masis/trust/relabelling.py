"""Bounds the share of wrong labels in a data set by a relabelled random sample.

A plan fixes the largest tolerated share of wrong labels (the rate) and the confidence level, and
draws a simple random sample without replacement. Another person labels each drawn answer again,
blind. A label is wrong if the second person's differs (``is_wrong``). The guarantee holds if the
exact one-sided upper bound of the share of wrong labels, at that level, is at most the rate.

The number of wrong labels in a sample without replacement has a hypergeometric distribution. Up to
``FINITE_UP_TO`` labels the bound is computed from it, in whole numbers, so it has no rounding
error, and a small data set needs fewer labels than the binomial would ask for. In a larger one the
two hardly differ, and Clopper and Pearson's binomial bound is used (``guarantee.upper_bound``). A
sample without replacement varies less than the binomial, so that bound is conservative.

Both bounds count a second person's mistakes as wrong labels, so they err on the safe side unless
both people make the same mistake.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.errors import InputError
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision, Verdict
from masis.schema.trust import GuaranteeMethod
from masis.trust import guarantee

FINITE_UP_TO = 10_000
"""The largest data set whose bound is computed from the hypergeometric distribution."""

LARGEST_RATE = 0.5
"""The largest share of wrong labels that a guarantee can state."""


class LabelBound(NamedTuple):
    """The bound of the share of wrong labels, from ``wrong`` of ``n`` relabelled ones."""

    n: int
    wrong: int
    bound: float
    method: GuaranteeMethod


def method_for(labels: int) -> GuaranteeMethod:
    """Return the distribution that the bound for a data set of this size is computed from."""
    return "hypergeometric" if labels <= FINITE_UP_TO else "binomial"


def assert_in_range(rate: float, level: float) -> None:
    """Check the rate and the level of a guarantee.

    Args:
        rate: The largest tolerated share of wrong labels, above 0 and at most ``LARGEST_RATE``.
        level: The confidence level, from 0.5 to below 1.

    Raises:
        InputError: One of them is out of range.

    """
    if not 0 < rate <= LARGEST_RATE:
        raise InputError(
            f"{rate:.4g} isn't a share of wrong labels that a guarantee can state",
            hint=f"Use a share above 0 and up to {LARGEST_RATE}, such as 0.03 for 3%.",
            field="rate",
        )
    if not 0.5 <= level < 1:
        raise InputError(
            f"{level:.4g} isn't a confidence level",
            hint="Use a level from 0.5 to below 1, such as 0.95 for 95%.",
            field="level",
        )


def bound_wrong(wrong: int, n: int, labels: int, error: float) -> LabelBound:
    """Return the upper bound of the share of wrong labels at the level ``1 - error``.

    Args:
        wrong: The number of relabelled labels that turned out wrong.
        n: The number of relabelled labels.
        labels: The number of labels in the data set.
        error: The probability that the true share is above the bound.

    """
    method = method_for(labels)
    if method == "binomial":
        return LabelBound(n, wrong, guarantee.upper_bound(wrong, n, error), method)
    return LabelBound(n, wrong, _most_wrong(wrong, n, labels, error) / labels, method)


def is_within(bound: float, rate: float) -> bool:
    """Return whether a bound is within the rate, apart from rounding of the two numbers."""
    return bound <= rate + 1e-12


def sample_needed(labels: int, rate: float, error: float, wrong: int = 0) -> int | None:
    """Return how many labels have to be relabelled if ``wrong`` of them turn out wrong.

    For 3% at 95% in 1,000 labels that's 91 without a wrong one; the binomial would need 99.

    Args:
        labels: The number of labels in the data set.
        rate: The largest tolerated share of wrong labels.
        error: The probability of a wrong guarantee.
        wrong: The expected number of wrong labels in the sample.

    Returns:
        The size of the sample, or None if even relabelling all labels can't show the rate.

    """
    tolerated = _count_tolerated(labels, rate)
    if wrong > tolerated:
        return None
    if method_for(labels) == "binomial":
        needed = guarantee.draws_needed(rate, error, wrong)
        return needed if needed <= labels else None
    # The bound falls as the sample grows, so the smallest sufficient sample is found by bisection.
    low, high = wrong + 1, labels
    while low < high:
        middle = (low + high) // 2
        if _most_wrong(wrong, middle, labels, error) <= tolerated:
            high = middle
        else:
            low = middle + 1
    return low


def draw_sample(labels: Sequence[str], n: int, seed: int) -> tuple[str, ...]:
    """Draw ``n`` of the labels without replacement, in the order of the data set.

    The same data set, number and seed give the same sample, so anyone can repeat the draw.
    """
    drawn = set(random.Random(f"relabel:{seed}").sample(range(len(labels)), n))
    return tuple(label for place, label in enumerate(labels) if place in drawn)


def _count_tolerated(labels: int, rate: float) -> int:
    """Return the largest number of wrong labels within the rate.

    Rounded first, because 0.29 * 100 is 28.999999999999996 as a float.
    """
    return math.floor(round(rate * labels, 9))


@lru_cache(maxsize=4096)
def _most_wrong(wrong: int, n: int, labels: int, error: float) -> int:
    """Return the largest number of wrong labels that the sample doesn't reject at ``error``."""
    low, high = wrong, labels - (n - wrong)
    while low < high:
        middle = (low + high + 1) // 2
        if _probability_of_at_most(wrong, n, labels, middle) > error:
            low = middle
        else:
            high = middle - 1
    return low


def _probability_of_at_most(wrong: int, n: int, labels: int, wrong_labels: int) -> float:
    """Return the probability of at most ``wrong`` wrong ones among ``n`` drawn labels.

    ``wrong_labels`` of all ``labels`` are wrong. The terms of the hypergeometric distribution are
    whole numbers until the last division, which Python rounds correctly.
    """
    right = labels - wrong_labels
    first = max(0, n - right)
    term = math.comb(wrong_labels, first) * math.comb(right, n - first)
    total = 0
    for drawn in range(first, min(wrong, n, wrong_labels) + 1):
        total += term
        # The next term from this one: C(M, i+1) C(R, n-i-1) = C(M, i) C(R, n-i) * ratio
        term = term * (wrong_labels - drawn) * (n - drawn)
        term //= (drawn + 1) * (right - n + drawn + 1)
    return total / math.comb(labels, n)


# What counts as a wrong label


def is_wrong(label: Decision, again: Decision) -> bool:
    """Return whether a label is wrong, judged by another person's decision on the same answer.

    It is wrong if the class of the verdict differs: sound (approved), faulty (overridden or
    rejected) or escalated. It is also wrong if both people labeled the same words, or reported
    issues on them, and their labels differ. Words that only one of them labeled don't count, and
    neither does the wording of a correction or a reason.
    """
    if _verdict_class(label.verdict) != _verdict_class(again.verdict):
        return True
    first, second = _labels_by_place(label.labels), _labels_by_place(again.labels)
    return any(first[place] != second[place] for place in first.keys() & second.keys())


def _verdict_class(verdict: Verdict | None) -> str:
    return "faulty" if verdict in ("override", "reject") else str(verdict)


def _labels_by_place(
    labels: Iterable[TargetLabel],
) -> dict[tuple[str, int | None, int | None], set[str]]:
    by_place: dict[tuple[str, int | None, int | None], set[str]] = {}
    for label in labels:
        by_place.setdefault((label.target, label.start, label.end), set()).add(label.label)
    return by_place
