"""Percentiles and confidence intervals, computed the same way everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def percentile(values: ArrayLike, percent: int) -> float:
    """Return the nearest-rank percentile.

    That is the smallest value that at least this percentage of the values don't exceed.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    # -(-a // b) divides integers and rounds up, without the error of a float.
    return float(ordered[max(0, -(-len(ordered) * percent // 100) - 1)])


def interval(estimates: ArrayLike) -> tuple[float, float]:
    """Return the 95% interval of resampled estimates.

    Its ends are their 2.5th and 97.5th percentiles, interpolated.
    """
    low, high = np.percentile(np.asarray(estimates, dtype=float), (2.5, 97.5))
    return float(low), float(high)


def exact_bounds(hits: float, total: float, error: float = 0.05) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval.

    It covers the true share at least ``1 - error`` of the time.
    """
    from scipy.special import betaincinv

    low = float(betaincinv(hits, total - hits + 1, error / 2)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, total - hits, 1 - error / 2)) if hits < total else 1.0
    return low, high


def wilson_bounds(hits: int, of: int) -> tuple[float, float]:
    """Return the 95% Wilson score interval of a share (Wilson 1927); 0 to 1 if ``of`` is 0.

    It needs no special functions, so hundreds of shares can be shown at once, and stays within 0
    and 1 for small counts, where the normal interval doesn't.
    """
    if of == 0:
        return 0.0, 1.0
    z = 1.959963984540054  # the 97.5th percentile of the normal distribution
    share, spread = hits / of, z * z / of
    center = (share + spread / 2) / (1 + spread)
    half = z * ((share * (1 - share) + spread / 4) / of) ** 0.5 / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)
