"""k-ary randomized response (SPEC P1): the own category, or now and then a uniform one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coins
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values, bytes_for


@dataclass(frozen=True)
class KAry(PureOracle):
    """With chance b/2³² a category drawn uniformly from all d (the own one included), else the own one.

    Guarantee:
        The own category has chance (2³²−b)/2³² + b/(2³²d), any other b/(2³²d): the ratio is 1 + d(2³²−b)/b, and b is
        the least integer for which that is at most e^ε.

    References:
        Kairouz, Bonawitz & Ramage (2016), "Discrete distribution estimation under local privacy".

    A report is the category, in 1, 2 or 4 bytes, low byte first. A tally counts categories.

    >>> randomiser = KAry(epsilon=1.0, size=4)
    >>> randomiser.report_bytes, randomiser.encode([0, 1, 2, 3]).shape
    (1, (4, 1))
    >>> float(randomiser.ratio) <= 2.718281828459045, round(randomiser.actual_epsilon, 6)
    (True, 1.0)
    """

    name: ClassVar[str] = "k-ary"

    @cached_property
    def lie(self) -> int:
        """The b of the chance b/2³² with which a uniform category is reported."""
        b = chances.smallest(self._ratio, self.epsilon, 1, chances.ONE)
        if b == 1:  # e^ε asks for less than 2⁻³², or for just that
            raise chances.too_large(self.epsilon)
        return b

    def _ratio(self, b: int) -> Fraction:
        return 1 + Fraction(self.size * (chances.ONE - b), b)

    @property
    def integers(self) -> Mapping[str, int]:
        """b, as `lie`."""
        return {"lie": self.lie}

    @cached_property
    def ratio(self) -> Fraction:
        """1 + d(2³²−b)/b."""
        return chances.informative(self._ratio(self.lie), self.epsilon)

    @property
    def p(self) -> Fraction:
        """(2³²−b)/2³² + b/(2³²d)."""
        return 1 - chances.chance(self.lie) + self.q

    @property
    def q(self) -> Fraction:
        """b/(2³²d)."""
        return chances.chance(self.lie) / self.size

    @property
    def report_bytes(self) -> int:
        """1, 2 or 4."""
        return bytes_for(self.size - 1)

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each of the d reports."""
        del public
        return {
            int(report).to_bytes(self.report_bytes, "little"): self.p if report == value else self.q
            for report in range(self.size)
        }

    @property
    def _packed(self) -> np.dtype[np.unsignedinteger]:
        return np.dtype(f"<u{self.report_bytes}")

    def _encode(self, values: Values, reports: Reports) -> None:
        lies = coins.coins(self.lie, len(values))
        others = coins.uniform(self.size, len(values))  # drawn for the truthful too
        reports.view(self._packed)[:, 0] = np.where(lies, others, values)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        if self.size < 256**self.report_bytes:
            yield 0, reports.view(self._packed)[:, 0] >= self.size, "holds a category that is not in the domain"

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        counts += np.bincount(reports.view(self._packed)[:, 0], minlength=self.size)
