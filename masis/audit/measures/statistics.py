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
