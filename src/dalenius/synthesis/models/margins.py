"""Noisy one-way tables made into shares, and how many rows there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.measurer import Measured

Shares = NDArray[np.float64]


def total_rows(measured: Sequence[Measured]) -> float:
    """How many rows there are: every table says it, with a variance of cells·σ²; at least 1."""
    weights = np.array([1 / (each.variance * each.view.cells) for each in measured])
    sums = np.array([each.values.sum() for each in measured])
    return max(1.0, float((weights * sums).sum() / weights.sum()))


def on_simplex(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest numbers, in squares, that are not negative and add up to ``total``: all less some constant, cut at 0.

    Duchi et al., Efficient projections onto the ℓ1-ball (2008), Fig. 1.

    >>> on_simplex(np.array([5.0, 3.0, -4.0]), 10).tolist()
    [6.0, 4.0, 0.0]
    """
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(descending > excess)[-1])
    found: NDArray[np.float64] = np.maximum(values - excess[last], 0.0)
    return found
