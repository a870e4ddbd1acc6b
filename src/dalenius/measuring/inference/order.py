"""Answers in order: cumulative counts never fall, and sorted ones do not either.

The nearest numbers in order are found by pooling adjacent violators. The truth is in order, a convex set, so all of
them together are no farther from it than before. Of a single answer that is not so: each keeps the interval that it
had, made wide enough for where it is now (`intervals.widen`).
"""

from __future__ import annotations

import numpy as np

from dalenius.measuring.strategies.factors import Array


def in_order(values: Array, variances: Array | None = None, *, falling: bool = False) -> Array:
    """The nearest numbers that never fall (or never rise), where each counts by one over its variance.

    >>> in_order(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    from scipy.optimize import isotonic_regression

    weights = None if variances is None else 1 / np.maximum(np.asarray(variances, dtype=float), 1e-300)
    if weights is not None:
        weights = weights / weights.max()
    found = isotonic_regression(np.asarray(values, dtype=float), weights=weights, increasing=not falling)
    return np.asarray(found.x, dtype=float)
