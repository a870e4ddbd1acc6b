"""Systematic rounding: whole numbers that add up, each less than one away from what was asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def systematic(expected: NDArray[np.float64], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers in proportion to ``expected`` that add up to ``total``, each rounded up or down.

    One uniform number decides all of them, so the mean of each is just what was asked (systematic sampling).

    >>> found = systematic(np.array([0.5, 0.25, 0.25]), 10, np.random.default_rng(0))
    >>> int(found.sum()), int(found[0])
    (10, 5)
    """
    running = np.cumsum(np.maximum(expected, 0.0))
    if not len(running) or running[-1] <= 0:
        running = np.arange(1.0, len(expected) + 1)
    ends = np.floor(running * (total / running[-1]) + rng.random()).astype(np.int64)
    ends[-1] = total
    found: NDArray[np.int64] = np.diff(np.minimum(ends, total), prepend=0)
    return found
