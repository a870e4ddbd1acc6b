"""The hybrid randomiser of numbers (SPEC P7): piecewise or Duchi's, by a coin that does not look at the value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coins
from dalenius.local.randomisers.duchi import Duchi
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.randomisers.piecewise import Piecewise
from dalenius.local.randomisers.randomiser import Reports
from dalenius.local.tallies import Tally

_ALWAYS_DUCHI = 0.61  # ε up to which the piecewise randomiser never helps


@dataclass(frozen=True)
class Hybrid(MeanRandomiser):
    """With chance b/2³² Duchi's report, else the piecewise one: its variance hardly depends on the value.

    Guarantee:
        The coin is the same for every value, and the report says how it fell: the ratio is the larger of the two. b is
        the least integer with b ≥ 2³²·e^(−ε/2), and 2³² (always Duchi's) for ε ≤ 0.61.

    References:
        Wang et al. (2019), §III-C: with this b the terms in x² of the two variances cancel.

    Codes 0 and 1 are Duchi's, and 2 + c is the piecewise code c. A tally is the number of Duchi's reports and of ones
    among them, and the sum of the piecewise codes and of their squares.

    >>> hybrid = Hybrid(epsilon=2.0, low=-1, high=1, step=0.25)
    >>> sum(hybrid.chance_of(code, 3) * hybrid.estimate(code) for code in range(hybrid.codes))
    Fraction(3, 1)
    >>> Hybrid(epsilon=0.5, low=-1, high=1, step=0.25).codes
    2
    """

    name: ClassVar[str] = "hybrid"

    @cached_property
    def bit(self) -> Duchi:
        """Of the one half."""
        return Duchi(self.epsilon, self.low, self.high, self.step)

    @cached_property
    def number(self) -> Piecewise:
        """Of the other."""
        return Piecewise(self.epsilon, self.low, self.high, self.step)

    @cached_property
    def bits(self) -> int:
        """The b of the chance of Duchi's report."""
        if self.epsilon <= _ALWAYS_DUCHI:
            return chances.ONE
        return chances.smallest(lambda b: Fraction(chances.ONE, b) ** 2, self.epsilon, 1, chances.ONE)

    @property
    def _mixed(self) -> bool:
        return self.bits < chances.ONE

    @property
    def integers(self) -> Mapping[str, int]:
        """B, and those of both."""
        more = {f"piecewise_{name}": each for name, each in self.number.integers.items()} if self._mixed else {}
        return {"bits": self.bits} | {f"duchi_{name}": each for name, each in self.bit.integers.items()} | more

    @cached_property
    def ratio(self) -> Fraction:
        """The larger of the two."""
        return max(self.bit.ratio, self.number.ratio) if self._mixed else self.bit.ratio

    @property
    def codes(self) -> int:
        """Two, and the piecewise ones."""
        return 2 + (self.number.codes if self._mixed else 0)

    def chance_of(self, code: int, place: int) -> Fraction:
        """Of either kind."""
        bit = chances.chance(self.bits)
        return bit * self.bit.chance_of(code, place) if code < 2 else (1 - bit) * self.number.chance_of(code - 2, place)

    def estimate(self, code: int) -> Fraction:
        """Each kind's own: both are unbiased."""
        return self.bit.estimate(code) if code < 2 else self.number.estimate(code - 2)

    def spread(self, place: int) -> Fraction:
        """b/2³² of the one and the rest of the other, since their means are equal."""
        bit = chances.chance(self.bits)
        return bit * self.bit.spread(place) + ((1 - bit) * self.number.spread(place) if self._mixed else 0)

    def sums(self, tally: Tally) -> tuple[Fraction, Fraction]:
        """Those of both kinds together."""
        bits = int(tally.counts[0])
        first = self.bit.sums(Tally(self.bit, bits, tally.counts[1:2]))
        if not self._mixed:
            return first
        second = self.number.sums(Tally(self.number, tally.reports - bits, tally.counts[2:]))
        return first[0] + second[0], first[1] + second[1]

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """Two counts and two sums."""
        return (4,)

    def _codes_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        bits = self.bit._codes_of(places)  # noqa: SLF001 (one randomiser made of two)
        if not self._mixed:
            return bits
        numbers = self.number._codes_of(places)  # noqa: SLF001 (both are drawn, whichever is taken)
        return np.where(coins.coins(self.bits, len(places)), bits, 2 + numbers)

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        codes = self._read(reports)
        numbers = codes[codes >= 2] - 2
        counts += (codes < 2).sum(), (codes == 1).sum(), numbers.sum(), np.square(numbers).sum()
