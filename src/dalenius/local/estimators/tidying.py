"""Shares that are shares: none below 0, and 1 in all. Post-processing, so it costs no privacy.

Tidied shares are no longer unbiased: they are closer to the truth as a whole, and the small ones among them come out
too large. Sums over many values, and tests of a single value, want the raw estimates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

Floats = NDArray[np.float64]


def to_simplex(shares: Floats) -> Floats:
    """The nearest shares (least squares) that are at least 0 and add up to 1.

    They are max(share − δ, 0) for the one δ with which they add up to 1. "Norm-sub", which sets negative shares to 0,
    takes the same from each of the others, and repeats, ends at the same shares.

    References:
        Duchi, Shalev-Shwartz, Singer & Chandra (2008), "Efficient projections onto the l1-ball", figure 1; Wang et al.
        (2020), "Locally differentially private frequency estimation with consistency", on norm-sub.

    >>> to_simplex(np.array([0.7, 0.5, -0.1])).round(9).tolist()
    [0.6, 0.4, 0.0]
    """
    finite(shares)
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])  # the largest share is always kept
    tidied: Floats = np.maximum(shares - excess[kept], 0.0)
    return tidied


def non_negative(shares: Floats) -> Floats:
    """Negative shares set to 0, the others as they are: best for single frequent values.

    >>> non_negative(np.array([0.7, -0.1])).tolist()
    [0.7, 0.0]
    """
    finite(shares)
    tidied: Floats = np.maximum(shares, 0.0)
    return tidied


def finite(shares: Floats) -> None:
    """Refuses what no estimator gives: an empty list, or numbers that are none."""
    if shares.ndim != 1 or not shares.size or not np.isfinite(shares).all():
        raise InputError(
            "These are no estimated shares.",
            why="Every value needs one finite number.",
            fix="Give the estimates as they are.",
        )
