"""Percentiles and intervals, computed in one way everywhere."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def percentile(values: ArrayLike, percent: int) -> float:
    """Return the smallest value that so many percent of the values don't exceed: one that occurred (nearest rank)."""
    ordered = np.sort(np.asarray(values, dtype=float))
    return float(ordered[max(0, -(-len(ordered) * percent // 100) - 1)])


def interval(estimates: ArrayLike) -> tuple[float, float]:
    """Return the 95% interval of estimates from resamples: their 2.5th and 97.5th percentile, interpolated."""
    low, high = np.percentile(np.asarray(estimates, dtype=float), (2.5, 97.5))
    return float(low), float(high)


def share_interval(hits: int, of: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson's score interval), from a random sample of ``of`` with ``hits`` hits.

    Raises ValueError where the sample is empty.
    """
    if of < 1:
        raise ValueError("an empty sample says nothing")
    share, spread = hits / of, _Z * _Z / of
    middle = share + spread / 2
    reach = _Z * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (middle - reach) / (1 + spread)), min(1.0, (middle + reach) / (1 + spread))


_Z = 1.959963984540054
"""97.5th percentile of the normal distribution."""
