"""Each category's share of those who reported: unbiased estimates, intervals, and a band around all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local.randomisers.randomiser import FrequencyOracle
from dalenius.local.tallies import Tally

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Estimated shares of a fixed population: of those who reported, not of a larger one they were drawn from.

    Assumes:
        Everybody followed the randomiser. Intervals take the sum of independent reports as normal. They are those of
        the score test (Wilson): a share is inside if the estimate is plausible under the closed-form variance at *that*
        share, not at the estimated one, which few reports may put far too low. The longer side stands for both.
        With fewer than some hundred reports the band of the count-mean sketch is too narrow: collisions are not normal.

    References:
        Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Attributes:
        oracle: The randomiser whose actual chances the estimates use.
        reports: How many there were.
        shares: Unbiased; single ones may lie outside [0, 1].
    """

    oracle: FrequencyOracle
    reports: int
    shares: Floats

    @cached_property
    def counts(self) -> Floats:
        """The shares as numbers of people."""
        return self.shares * self.reports

    @cached_property
    def errors(self) -> Floats:
        """The standard error of each share."""
        return np.sqrt(self.oracle.variances(np.clip(self.shares, 0.0, 1.0), self.reports))

    def margins(self, level: float = 0.95) -> Floats:
        """Half-widths: each share lies within its own with this confidence."""
        return self._reach(quantile(level, 1))

    def band(self, level: float = 0.95) -> Floats:
        """Half-widths within which *all* shares lie at once with this confidence, by Bonferroni.

        Each of the d intervals misses with chance (1 − level)/d at most, so any of them misses with 1 − level at most,
        however the estimates depend on one another.
        """
        return self._reach(quantile(level, len(self.shares)))

    def _reach(self, wide: float) -> Floats:
        """The x with x² = wide²·(variance at the estimate + x·its change with the share)."""
        change = abs(float(self.oracle.variance(1.0, self.reports)) - float(self.oracle.variance(0.0, self.reports)))
        reach: Floats = (wide**2 * change + np.sqrt((wide**2 * change) ** 2 + 4 * (wide * self.errors) ** 2)) / 2
        return reach


def estimate(tally: Tally) -> Frequencies:
    """The shares that a tally of a frequency oracle tells.

    >>> from dalenius.local.randomisers.k_ary import KAry
    >>> oracle = KAry(epsilon=4.0, size=3)
    >>> found = estimate(oracle.fold(oracle.encode([0] * 6000 + [1] * 3000)))
    >>> bool((abs(found.shares - [2 / 3, 1 / 3, 0]) < found.band(1 - 1e-9)).all())
    True
    """
    oracle = tally.randomiser
    if not isinstance(oracle, FrequencyOracle):
        raise InputError(
            f"Reports of {oracle.name} have no categories to count.",
            why="Shares are estimated from randomisers of categories.",
            fix="Use the estimator of this randomiser.",
        )
    if not tally.reports:
        raise InputError("There are no reports.", why="Nothing has no shares.", fix="Collect reports first.")
    return Frequencies(oracle, tally.reports, oracle.shares(tally))


def quantile(level: float, at_once: int) -> float:
    """How many standard errors a two-sided interval reaches, when so many are to hold at once.

    >>> round(quantile(0.95, 1), 4), round(quantile(0.95, 1000), 4)
    (1.96, 4.0556)
    """
    if not 0 < level < 1:
        raise InputError("The confidence level must lie between 0 and 1.", why="It is a chance.", fix="0.95 is usual.")
    return -NormalDist().inv_cdf((1 - level) / (2 * at_once))
