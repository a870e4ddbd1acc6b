"""How far apart two distributions, samples or intervals are (SPEC, X2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from dalenius.audit.metrics.checks import chances, numbers, same_length
from dalenius.errors import InputError


def wasserstein(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    first_weights: npt.ArrayLike | None = None,
    second_weights: npt.ArrayLike | None = None,
) -> float:
    """The earth mover's distance of two samples, in their own units: ∫|F − G|.

    >>> wasserstein([0, 1, 3], [5, 6, 8])
    5.0
    """
    weights = [None if each is None else chances(each, "weights") for each in (first_weights, second_weights)]
    return float(stats.wasserstein_distance(numbers(first, "first"), numbers(second, "second"), weights[0], weights[1]))


def kullback_leibler(first: npt.ArrayLike, second: npt.ArrayLike, base: float | None = None) -> float:
    """Σ p·log(p/q) over the same bins, natural by default; infinite where q is 0 and p is not.

    >>> round(kullback_leibler([0.5, 0.5], [0.9, 0.1]), 4), kullback_leibler([1, 1], [1, 0])
    (0.5108, inf)
    """
    one, other = chances(first, "first"), chances(second, "second")
    same_length(one, other)
    return abs(float(stats.entropy(one, other, base=base)))


def total_variation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """½·Σ|p − q| over the same bins: the most by which any event's chance differs.

    >>> total_variation([0.5, 0.5], [0.75, 0.25])
    0.25
    """
    one, other = chances(first, "first"), chances(second, "second")
    same_length(one, other)
    return float(np.abs(one - other).sum() / 2)


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """How much two intervals cover of each other: the mean of the shares of each that lies in both; 1 if equal.

    Karr, Kohnen, Oganian, Reiter & Sanil (2006). Intervals that do not meet have 0.

    >>> interval_overlap((0, 10), (5, 15)), interval_overlap((0, 1), (2, 3)), interval_overlap((1, 1), (0, 2))
    (0.5, 0.0, 0.5)
    """
    ends = [numbers(each, "interval", least=2) for each in (first, second)]
    if any(len(each) != 2 or each[0] > each[1] for each in ends):
        raise InputError("An interval has two ends, in order.", why="Low comes first.", fix="Give (low, high).")
    low, high = max(each[0] for each in ends), min(each[1] for each in ends)
    if low > high:
        return 0.0
    # a point that lies in the other interval is covered whole
    shares = [(high - low) / (each[1] - each[0]) if each[1] > each[0] else 1.0 for each in ends]
    return float(sum(shares) / 2)
