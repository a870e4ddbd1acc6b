"""Means of numbers, and shares of bits: unbiased, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local.estimators.frequencies import quantile
from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.tallies import Tally

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mean:
    """The estimated mean of those who reported.

    Assumes:
        Everybody followed the randomiser. The interval takes the sum of many independent reports as normal. Its
        standard error is the reports' own spread: it also holds for the larger population that these people were
        drawn from at random, and is a little too wide for themselves alone. It is never below the closed form's least.

    Attributes:
        value: Unbiased; with few reports it may lie outside the grid.
        error: Its standard error.
        reports: How many there were.
    """

    value: float
    error: float
    reports: int

    def margin(self, level: float = 0.95) -> float:
        """The half-width: the mean lies within it with this confidence."""
        return quantile(level, 1) * self.error


@dataclass(frozen=True, eq=False)
class BitShares:
    """The estimated share of people who have each bit.

    Assumes:
        Everybody followed the randomiser. Intervals take the sum of many independent reports as normal; the variance is
        the closed form, for these people alone.

    Attributes:
        shares: Unbiased; single ones may lie outside [0, 1].
        error: The standard error of each, the same for all.
        reports: How many there were.
    """

    shares: Floats
    error: float
    reports: int

    def margin(self, level: float = 0.95) -> float:
        """The half-width: each share lies within it with this confidence."""
        return quantile(level, 1) * self.error

    def band(self, level: float = 0.95) -> float:
        """The half-width within which all shares lie at once with this confidence."""
        return quantile(level, self.shares.size) * self.error


def mean(tally: Tally) -> Mean:
    """The mean that a tally of a randomiser of numbers tells.

    >>> from dalenius.local.randomisers.hybrid import Hybrid
    >>> hybrid = Hybrid(epsilon=3.0, low=0, high=100, step=1)
    >>> found = mean(hybrid.fold(hybrid.encode([10] * 3000 + [60] * 3000)))
    >>> abs(found.value - 35) < found.margin(1 - 1e-9)
    True
    """
    randomiser = tally.randomiser
    if not isinstance(randomiser, MeanRandomiser):
        raise InputError(
            f"Reports of {randomiser.name} are not about a number.",
            why="Means are estimated from randomisers of numbers.",
            fix="Use the estimator of this randomiser.",
        )
    if tally.reports < 2:
        raise InputError("There are too few reports.", why="A spread takes two.", fix="Collect reports first.")
    total, squares = randomiser.sums(tally)
    place = total / tally.reports
    variance = (squares / tally.reports - place**2) / (tally.reports - 1)
    value = randomiser.low + float(place) * randomiser.step
    error = math.sqrt(variance) * randomiser.step
    # Where nearly all reports are alike, as near the ends of the grid, their own spread says too little, or nothing.
    return Mean(value, max(error, math.sqrt(randomiser.least_variance(tally.reports))), tally.reports)


def bit_shares(tally: Tally) -> BitShares:
    """The shares that a tally of bit vectors tells.

    >>> vector = BitVector(epsilon=3.0, size=2)
    >>> found = bit_shares(vector.fold(vector.encode([[1, 0]] * 4000)))
    >>> bool((abs(found.shares - [1, 0]) < found.band(1 - 1e-9)).all())
    True
    """
    randomiser = tally.randomiser
    if not isinstance(randomiser, BitVector):
        raise InputError(
            f"Reports of {randomiser.name} are no bit vectors.",
            why="Each randomiser's reports mean something else.",
            fix="Use the estimator of this randomiser.",
        )
    if not tally.reports:
        raise InputError("There are no reports.", why="Nothing has no shares.", fix="Collect reports first.")
    shares = randomiser.shares(tally.counts, tally.reports)
    return BitShares(shares, math.sqrt(randomiser.variance(tally.reports)), tally.reports)
