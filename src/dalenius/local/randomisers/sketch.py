"""What the count-mean sketch and its Hadamard variant share: a few public hashes, and estimates that allow for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local import chances
from dalenius.local.hashing import AffineHashes
from dalenius.local.randomisers.randomiser import FrequencyOracle, bytes_for, sized
from dalenius.local.tallies import Tally

_MOST_HASHES = 2**16
_MOST_WIDTH = 2**16
_MOST_CELLS = 2**24


@dataclass(frozen=True)
class Sketch(FrequencyOracle):
    """Everybody draws one of k public hashes into m buckets, and reports on the bucket of the value.

    A report supports a value or not. It supports the own one with chance p = 1 − f, where f is the chance of a flip;
    another one with the same chance if their buckets are the same, else with `blind`. Values share a bucket of a random
    hash with chance 1/m, so, over the hashes, q = blind + (p − blind)/m.

    Estimates:
        (C(x)/n − q)/(p − q) is unbiased over the hashes and the coins together, collisions debiased exactly. Given the
        hashes it is off by what others in the buckets of x weigh. Its variance for a fixed population is

            [π p(1−p) + (1−π)(q − r)]/(n(p−q)²)  +  Σ_{y≠x} π(y)²/(k(m−1)),

        with r = E μ² for the chance μ of support by another value given the hashes: μ = blind + (p−blind)A, A the part
        of the k hashes in which the two collide, E A = 1/m, E A² = (1/k + (1−1/k)/m)/m. The second term comes from
        collisions, and more reports do not lessen it. It is exact because the hashes of three values are independent.

    References:
        Apple Differential Privacy Team (2017), "Learning with privacy at scale", whose estimate this is.

    Attributes:
        hashes: k; 0 takes 2¹⁸/m, so that the collision part of a standard error is at most 0.2%.
        width: m, a power of two; 0 takes 256, where collisions add 1% to the variance of the coins.
        seed: Of the public hashes, below 2⁶⁴. Everybody in a survey needs the same; it protects nothing.
    """

    hashes: int = 0
    width: int = 0
    seed: int = 0

    def _settle(self) -> None:
        width = sized(self.width, "width", least=0, most=_MOST_WIDTH) or 256
        hashes = sized(self.hashes, "hashes", least=0, most=_MOST_HASHES) or max(1, 2**18 // width)
        if width < 2 or width & (width - 1) or hashes * width > _MOST_CELLS:
            raise InputError(
                "A sketch needs a width that is a power of two, and at most 2^24 cells.",
                why="Its buckets are lists of bits, and every cell is a counter.",
                fix="Choose a width such as 256, and fewer hashes.",
            )
        object.__setattr__(self, "width", width)
        object.__setattr__(self, "hashes", hashes)
        object.__setattr__(self, "seed", sized(self.seed, "seed", least=0, most=2**64 - 1))

    @property
    @abstractmethod
    def flip(self) -> int:
        """2³²·f."""

    @property
    @abstractmethod
    def blind(self) -> Fraction:
        """The chance that a report supports a value of another bucket."""

    @property
    def integers(self) -> Mapping[str, int]:
        """2³²f as `flip`."""
        return {"flip": self.flip}

    @property
    def p(self) -> Fraction:
        """1 − f."""
        return 1 - chances.chance(self.flip)

    @property
    def q(self) -> Fraction:
        """blind + (p − blind)/m."""
        return self.blind + (self.p - self.blind) / self.width

    @property
    def hash_bytes(self) -> int:
        """How many bytes hold the number of the hash."""
        return bytes_for(self.hashes - 1)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """A counter for each hash and bucket."""
        return (self.hashes, self.width)

    @cached_property
    def family(self) -> AffineHashes:
        """The public hashes."""
        return AffineHashes(self.seed, self.hashes, self.width)

    @cached_property
    def _table(self) -> NDArray[np.uint32] | None:
        """The bucket of each value (columns) under each hash (rows), where that fits; else they are worked out anew."""
        return self.family.table(self.size) if self.hashes * self.size <= _MOST_CELLS else None

    def buckets(self, hashes: NDArray[np.uint32], values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The bucket of each value under its hash."""
        return self.family.of(hashes, values) if self._table is None else self._table[hashes, values]

    def bucket(self, public: bytes, value: int) -> int:
        """That of one value; the public part of a report says which hash."""
        hashes = np.array([int.from_bytes(public, "little")], np.uint32)
        return int(self.buckets(hashes, np.array([value], np.uint32))[0])

    @abstractmethod
    def supports(self, tally: Tally) -> NDArray[np.float64]:
        """How many reports support what falls into each hash's bucket."""

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """(C/n − q)/(p − q)."""
        cells = self.supports(tally)
        support = np.zeros(self.size)
        at_once = max(1, _MOST_CELLS // self.size)
        for first in range(0, self.hashes, at_once):
            some = cells[first : first + at_once]
            table = self.family.table(self.size, first, first + at_once) if self._table is None else self._table
            for row, buckets in zip(some, table, strict=True):
                support += row[buckets]
        shares: NDArray[np.float64] = (support / tally.reports - float(self.q)) / float(self.p - self.q)
        return shares

    def variance(self, share: float | NDArray[np.float64], reports: int) -> Any:
        """The part of the coins; `collisions` is the other."""
        own, gap, seen = self.p * (1 - self.p), self.p - self.q, self.p - self.blind
        both = (Fraction(1, self.hashes) + (1 - Fraction(1, self.hashes)) / self.width) / self.width
        squared = self.blind**2 + 2 * self.blind * seen / self.width + seen**2 * both
        other = self.q - squared
        return (share * float(own) + (1 - share) * float(other)) / float(gap) ** 2 / reports

    def collisions(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_{y≠x} π(y)²/(k(m−1)) for each x."""
        squares = shares**2
        found: NDArray[np.float64] = (squares.sum() - squares) / (self.hashes * (self.width - 1))
        return found

    def variances(self, shares: NDArray[np.float64], reports: int) -> NDArray[np.float64]:
        """Of every estimate, collisions included."""
        return super().variances(shares, reports) + self.collisions(shares)
