"""Duchi's randomiser of numbers (SPEC P7): one bit, more often 1 the larger the value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coins
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.randomisers.randomiser import Reports
from dalenius.local.tallies import Tally


@dataclass(frozen=True)
class Duchi(MeanRandomiser):
    """At place j of 0, …, K, reports 1 with chance (a + j·s)/2³², where a = (2³² − K·s)/2; else 0.

    Guarantee:
        The chance of a 1 goes from a/2³² to 1 − a/2³² in equal steps, so the ratio is (2³² + K·s)/(2³² − K·s), and s is
        the largest (even, where K is odd) integer for which that is at most e^ε.

    References:
        Duchi, Jordan & Wainwright (2018), "Minimax optimal procedures for locally private estimation", §3.1, in one
        dimension. There the estimate is ±(e^ε + 1)/(e^ε − 1) for values in [−1, 1], with variance
        ((e^ε + 1)/(e^ε − 1))² − x²; on the grid the chances are linear in j exactly, so it stays unbiased.

    A tally counts the ones.

    >>> duchi = Duchi(epsilon=1.0, low=0, high=10, step=1)
    >>> [round(float(duchi.chance_of(1, place)), 3) for place in (0, 5, 10)]
    [0.269, 0.5, 0.731]
    >>> sum(duchi.chance_of(code, 3) * duchi.estimate(code) for code in (0, 1))
    Fraction(3, 1)
    """

    name: ClassVar[str] = "duchi"

    @cached_property
    def slope(self) -> int:
        """The s by which the chance of a 1 grows with each place, in 2⁻³²."""
        unit = 1 + self.steps % 2
        most = (chances.ONE - 2) // (unit * self.steps)
        found = chances.largest(lambda each: self._ratio(unit * each), self.epsilon, 1, most)
        if found == most:
            raise chances.too_large(self.epsilon)
        return unit * found

    def _ratio(self, slope: int) -> Fraction:
        return Fraction(chances.ONE + self.steps * slope, chances.ONE - self.steps * slope)

    @property
    def least(self) -> int:
        """The a of the chance of a 1 at place 0."""
        return (chances.ONE - self.steps * self.slope) // 2

    @property
    def integers(self) -> Mapping[str, int]:
        """A and s."""
        return {"least": self.least, "slope": self.slope}

    @cached_property
    def ratio(self) -> Fraction:
        """(2³² + K·s)/(2³² − K·s)."""
        return self._ratio(self.slope)

    @property
    def codes(self) -> int:
        """0 and 1."""
        return 2

    def chance_of(self, code: int, place: int) -> Fraction:
        """(a + j·s)/2³² of a 1."""
        one = chances.chance(self.least + place * self.slope)
        return one if code else 1 - one

    def estimate(self, code: int) -> Fraction:
        """(2³²·code − a)/s."""
        return Fraction(chances.ONE * code - self.least, self.slope)

    def spread(self, place: int) -> Fraction:
        """P(1 − P)(2³²/s)² with P the chance of a 1."""
        one = self.chance_of(1, place)
        return one * (1 - one) * Fraction(chances.ONE, self.slope) ** 2

    def sums(self, tally: Tally) -> tuple[Fraction, Fraction]:
        """From the number of ones."""
        ones = int(tally.counts[0])
        zeros, one, zero = tally.reports - ones, self.estimate(1), self.estimate(0)
        return ones * one + zeros * zero, ones * one**2 + zeros * zero**2

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """The number of ones."""
        return (1,)

    def _codes_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return (coins.lanes(len(places)) < self.least + places * self.slope).astype(np.int64)

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        counts[0] += self._read(reports).sum()
