"""Subset selection: a report is a set of categories of one fixed size, which holds the own one more often than not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coin_bits, coins
from dalenius.local.columns import column_sums
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values, sized, slices
from dalenius.local.randomisers.unary import padding, put_bits


@dataclass(frozen=True)
class SubsetSelection(PureOracle):
    """With chance p = a/2³² the own category and k − 1 uniform others, else k uniform others.

    Guarantee:
        A set with the own category has chance p/C(d−1, k−1), one without it (1−p)/C(d−1, k); the ratio is
        a(d−k)/((2³²−a)k), and a is the largest integer for which that is at most e^ε.

    Estimates:
        Another category is in the set with q = [p(k−1) + (1−p)k]/(d−1).

    References:
        Wang et al. (2016), "Mutual information optimally local private discrete distribution estimation"; Ye & Barg
        (2018), "Optimal schemes for discrete distribution estimation under locally differential privacy".

    A report has d bits, bit x%8 of byte x//8 for category x, exactly k of them set, and zeros up to the end of the last
    byte. A tally counts, for each category, the sets that hold it.

    Attributes:
        chosen: k, at most d/2; 0 takes the best one, about d/(e^ε + 1).

    >>> randomiser = SubsetSelection(epsilon=1.0, size=16)
    >>> randomiser.chosen, np.bitwise_count(randomiser.encode([3, 4, 5])).sum(axis=1).tolist()
    (4, [4, 4, 4])
    """

    chosen: int = 0
    name: ClassVar[str] = "subset-selection"

    def _settle(self) -> None:
        chosen = sized(self.chosen, "chosen", least=0, most=max(1, self.size // 2))
        object.__setattr__(self, "chosen", chosen or best_chosen(self.epsilon, self.size))

    @cached_property
    def held(self) -> int:
        """The a of the chance a/2³² that the set holds the own category."""
        fair = -(-chances.ONE * self.chosen // self.size)  # there the ratio is about 1
        a = chances.largest(self._ratio, self.epsilon, fair - 1, chances.ONE - 1)
        if a == chances.ONE - 1:
            raise chances.too_large(self.epsilon)
        return a

    def _ratio(self, a: int) -> Fraction:
        return Fraction(a * (self.size - self.chosen), (chances.ONE - a) * self.chosen)

    @property
    def integers(self) -> Mapping[str, int]:
        """a, as `held`."""
        return {"held": self.held}

    @cached_property
    def ratio(self) -> Fraction:
        """a(d−k)/((2³²−a)k)."""
        return chances.informative(self._ratio(self.held), self.epsilon)

    @property
    def p(self) -> Fraction:
        """a/2³²."""
        return chances.chance(self.held)

    @property
    def q(self) -> Fraction:
        """(k − p)/(d − 1), which is [p(k−1) + (1−p)k]/(d−1)."""
        return (self.chosen - self.p) / (self.size - 1)

    @property
    def report_bytes(self) -> int:
        """⌈d/8⌉."""
        return -(-self.size // 8)

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each of the C(d, k) sets."""
        del public
        inside = self.p / math.comb(self.size - 1, self.chosen - 1)
        outside = (1 - self.p) / math.comb(self.size - 1, self.chosen)
        return {
            sum(1 << x for x in found).to_bytes(self.report_bytes, "little"): inside if value in found else outside
            for found in combinations(range(self.size), self.chosen)
        }

    def _encode(self, values: Values, reports: Reports) -> None:
        held = coins.coins(self.held, len(values))
        self._others(values, self.chosen - held.astype(np.int64), reports)
        put_bits(reports, values, held)

    def _others(self, own: Values, wanted: NDArray[np.int64], rows: Reports) -> None:
        """Fill rows with uniform sets of so many categories other than the own one.

        Independent coins that happen to show w ones are a uniform set of w; one further uniform category at a time
        makes it a uniform set of w + 1. Rows with too many ones are drawn anew. No choice looks at which ones are set.
        """
        spread = math.sqrt(self.chosen * (1 - self.chosen / self.size))
        expected = max(0.0, self.chosen - 0.5 * spread - 1)  # so that most rows have too few
        chance = int(chances.ONE * (expected / self.size))
        rows[:] = 0
        todo = np.arange(len(rows))
        while chance and todo.size:
            drawn = np.empty((todo.size, rows.shape[1]), np.uint8)
            coin_bits.fill(drawn, chance, self.size)
            put_bits(drawn, own[todo], np.zeros(todo.size, np.bool_))
            fits = np.bitwise_count(drawn).sum(axis=1, dtype=np.int64) <= wanted[todo]
            rows[todo[fits]] = drawn[fits]
            todo = todo[~fits]
        missing = wanted - np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
        (todo,) = np.nonzero(missing)
        flat, bytes_ = rows.reshape(-1), rows.shape[1]
        while todo.size:
            place = coins.uniform(self.size, todo.size)
            at = todo * bytes_ + (place >> np.uint32(3))
            bit = np.uint8(1) << (place & np.uint32(7)).astype(np.uint8)
            free = (flat[at] & bit == 0) & (place != own[todo])
            flat[at[free]] |= bit[free]  # one place a row and round, so no two meet
            missing[todo[free]] -= 1
            todo = todo[missing[todo] > 0]

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield from padding(reports, self.size)
        yield 0, np.bitwise_count(reports).sum(axis=1, dtype=np.int64) != self.chosen, f"does not hold {self.chosen:,}"

    def _parts(self, count: int) -> Iterator[slice]:
        return slices(count, max(64, min(2**15, 2**20 // self.report_bytes)))  # many rows for each round

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        counts += column_sums(reports)[: self.size]

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return iter([slice(0, count)])  # the adders cut blocks of their own


def best_chosen(epsilon: float, size: int) -> int:
    """The k with the least mean variance over all categories, when each has the share 1/d.

    That is [p(1−p)/d + (1−1/d)q(1−q)]/(p−q)² with p = k·e^ε/(k·e^ε + d − k); one of the two integers next to
    d/(e^ε + 1) has the least.
    """
    shrunk = math.exp(-epsilon)

    def mean_variance(k: int) -> float:
        p = k / (k + (size - k) * shrunk)
        q = (k - p) / (size - 1)
        return (p * (1 - p) / size + (1 - 1 / size) * q * (1 - q)) / (p - q) ** 2

    near = int(size * shrunk / (1 + shrunk))
    return min({min(max(1, k), max(1, size // 2)) for k in (near - 1, near, near + 1, near + 2)}, key=mean_variance)
