"""The piecewise randomiser of numbers (SPEC P7): a number near the value, or now and then one from anywhere else."""

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

_FINE = 1024  # places of the window that there are at least: it then moves nearly as smoothly as over real numbers


@dataclass(frozen=True)
class Piecewise(MeanRandomiser):
    """Reports one of W + K·m codes: with chance a/2³² one of the W from j·m on, uniformly, else one of the others.

    Guarantee:
        Each code in the window has chance a/(2³²W), each other one (2³² − a)/(2³²K·m): the ratio is
        a·K·m/((2³² − a)W), and a is the largest integer for which that is at most e^ε. m is the least that moves the
        window over 1,024 codes or more, and W the least integer with W ≥ K·m·e^(−ε/2).

    References:
        Wang, Xiao, Yang, Zhao, Hui, Shin, Shin & Yu (2019), "Collecting and analyzing multidimensional data with local
        differential privacy", Algorithm 2: W and K·m stand in the proportion that is best for real numbers, and for
        values in [−1, 1] the variance tends to x²/(e^(ε/2) − 1) + (e^(ε/2) + 3)/(3(e^(ε/2) − 1)²).

    The mean of a uniform code of the window, and of one outside it, are linear in j, so the mean code is, and
    (code − mean at 0)/(mean at 1 − mean at 0) is unbiased exactly. A tally is the sum of codes and of their squares.

    >>> piecewise = Piecewise(epsilon=2.0, low=0, high=8, step=1)
    >>> piecewise.window, piecewise.codes
    (377, 1401)
    >>> sum(piecewise.chance_of(code, 3) * piecewise.estimate(code) for code in range(piecewise.codes))
    Fraction(3, 1)
    """

    name: ClassVar[str] = "piecewise"

    @property
    def stride(self) -> int:
        """The m by which the window moves with each place."""
        return -(-_FINE // self.steps)

    @property
    def reach(self) -> int:
        """K·m: how many codes are outside the window."""
        return self.stride * self.steps

    @cached_property
    def window(self) -> int:
        """W."""
        return chances.smallest(lambda width: Fraction(self.reach, width) ** 2, self.epsilon, 1, self.reach)

    @cached_property
    def near(self) -> int:
        """The a of the chance that the code is in the window."""
        a = chances.largest(self._ratio, self.epsilon, 1, chances.ONE - 1)
        if a == chances.ONE - 1:
            raise chances.too_large(self.epsilon)
        return a

    def _ratio(self, a: int) -> Fraction:
        return Fraction(a * self.reach, (chances.ONE - a) * self.window)

    @property
    def integers(self) -> Mapping[str, int]:
        """A, m and W."""
        return {"near": self.near, "stride": self.stride, "window": self.window}

    @cached_property
    def ratio(self) -> Fraction:
        """a·K·m/((2³² − a)W)."""
        return chances.informative(self._ratio(self.near), self.epsilon)

    @property
    def codes(self) -> int:
        """W + K·m."""
        return self.window + self.reach

    def chance_of(self, code: int, place: int) -> Fraction:
        """Inside the window or outside."""
        start = place * self.stride
        near = chances.chance(self.near)
        return near / self.window if start <= code < start + self.window else (1 - near) / self.reach

    def _moments(self, place: int) -> tuple[Fraction, Fraction]:
        """The mean of the code and of its square: a mixture of two uniform laws, by sums of i and i² over ranges."""
        start, near = place * self.stride, chances.chance(self.near)
        inside, everything = Fraction(near, self.window), Fraction(1 - near, self.reach)
        found = []
        for total in (_sum, _sum_of_squares):
            window = total(start + self.window) - total(start)
            found.append(inside * window + everything * (total(self.codes) - window))
        return found[0], found[1]

    @cached_property
    def _line(self) -> tuple[Fraction, Fraction]:
        """The mean code at place 0, and by how much it grows with each place."""
        first, second = self._moments(0)[0], self._moments(1)[0]
        return first, second - first

    def estimate(self, code: int) -> Fraction:
        """(code − mean at 0)/(mean at 1 − mean at 0)."""
        start, slope = self._line
        return (code - start) / slope

    def spread(self, place: int) -> Fraction:
        """The variance of the code, in places."""
        mean, square = self._moments(place)
        return (square - mean**2) / self._line[1] ** 2

    def sums(self, tally: Tally) -> tuple[Fraction, Fraction]:
        """From the sum of codes and of their squares."""
        start, slope = self._line
        codes, squares = (int(each) for each in tally.counts)
        number = tally.reports
        return (codes - number * start) / slope, (squares - 2 * start * codes + number * start**2) / slope**2

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """Two sums."""
        return (2,)

    def _codes_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        near = coins.coins(self.near, len(places))
        inside = coins.uniform(self.window, len(places)).astype(np.int64)
        outside = coins.uniform(self.reach, len(places)).astype(np.int64)  # both are drawn, whichever is taken
        start = places * self.stride
        outside += self.window * (outside >= start)  # the codes outside, numbered without a gap
        return np.where(near, start + inside, outside)

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        codes = self._read(reports)
        counts += codes.sum(), np.square(codes).sum()


def _sum(below: int) -> int:
    """0 + 1 + … up to below."""
    return below * (below - 1) // 2


def _sum_of_squares(below: int) -> int:
    """0² + 1² + … up to below."""
    return (below - 1) * below * (2 * below - 1) // 6
