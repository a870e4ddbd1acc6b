"""Randomized response (SPEC P1): one yes or no, told truly more often than not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local import chances, coins
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values


@dataclass(frozen=True)
class RandomizedResponse(PureOracle):
    """The truth with chance p = a/2³² > ½, its opposite otherwise.

    Guarantee:
        The ratio is a/(2³²−a), and a is the largest integer for which that is at most e^ε.

    References:
        Warner (1965). For a *drawn* population the variance has π(1−π)/n besides (erratum 2).

    A report is a byte, 0 or 1. A tally counts both.

    >>> randomiser = RandomizedResponse(epsilon=1.0986122886681098)  # ln 3
    >>> float(randomiser.p), randomiser.variance(0.5, 1000)
    (0.75, 0.00075)
    """

    size: int = 2
    name: ClassVar[str] = "randomized-response"

    def _settle(self) -> None:
        if self.size != 2:
            raise InputError(
                "Randomized response is for two values.",
                why="It answers yes or no.",
                fix="Use k-ary for more.",
            )

    @cached_property
    def truth(self) -> int:
        """The a of the chance a/2³² with which the truth is told."""
        a = chances.largest(_ratio, self.epsilon, chances.ONE // 2, chances.ONE - 1)
        if a == chances.ONE - 1:
            raise chances.too_large(self.epsilon)
        return a

    @property
    def integers(self) -> Mapping[str, int]:
        """a, as `truth`."""
        return {"truth": self.truth}

    @cached_property
    def ratio(self) -> Fraction:
        """a/(2³²−a)."""
        return chances.informative(_ratio(self.truth), self.epsilon)

    @property
    def p(self) -> Fraction:
        """a/2³²."""
        return chances.chance(self.truth)

    @property
    def q(self) -> Fraction:
        """1 − p."""
        return 1 - self.p

    @property
    def report_bytes(self) -> int:
        """One."""
        return 1

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of both reports."""
        del public
        return {bytes([report]): self.p if report == value else self.q for report in range(2)}

    def _encode(self, values: Values, reports: Reports) -> None:
        np.not_equal(coins.coins(chances.ONE - self.truth, len(values)), values, out=reports[:, 0], casting="unsafe")

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield 0, reports[:, 0] > 1, "is neither 0 nor 1"

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        counts += np.bincount(reports[:, 0], minlength=2)


def _ratio(a: int) -> Fraction:
    return Fraction(a, chances.ONE - a)
