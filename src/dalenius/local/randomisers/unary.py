"""Unary encoding: one bit for each category, each flipped on its own. What its two variants share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.local import chances, coin_bits, coins
from dalenius.local.columns import column_sums
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values

_LARGEST_LISTED = 16


@dataclass(frozen=True)
class Unary(PureOracle):
    """Bit x of a report is 1 with chance p if x is the own value, and with chance q otherwise, all independent.

    Guarantee:
        Two values change two bits, so the ratio is p(1−q)/((1−p)q) for p > q. Both chances are integers over 2³²;
        the subclass says how they are chosen.

    A report has d bits, bit x%8 of byte x//8 for category x, and zeros up to the end of the last byte. A tally counts,
    for each category, the reports with its bit set.
    """

    @property
    @abstractmethod
    def own(self) -> int:
        """2³²·p."""

    @property
    @abstractmethod
    def other(self) -> int:
        """2³²·q."""

    @property
    def integers(self) -> Mapping[str, int]:
        """2³²p as `own`, 2³²q as `other`."""
        return {"own": self.own, "other": self.other}

    @cached_property
    def ratio(self) -> Fraction:
        """p(1−q)/((1−p)q)."""
        return chances.informative(ratio_of_bits(self.own, self.other), self.epsilon)

    @property
    def p(self) -> Fraction:
        """The chance of the own bit."""
        return chances.chance(self.own)

    @property
    def q(self) -> Fraction:
        """The chance of every other bit."""
        return chances.chance(self.other)

    @property
    def report_bytes(self) -> int:
        """⌈d/8⌉."""
        return -(-self.size // 8)

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each of the 2^d reports."""
        del public
        if self.size > _LARGEST_LISTED:
            raise InputError(
                "There are too many reports to list.",
                why=f"{self.size} bits have 2^{self.size} forms.",
                fix=f"Ask for a size of at most {_LARGEST_LISTED}.",
            )
        found = {}
        for row in product((0, 1), repeat=self.size):
            of_bits = (self.p if x == value else self.q for x in range(self.size))
            chance = Fraction(1)
            for bit, of_bit in zip(row, of_bits, strict=True):
                chance *= of_bit if bit else 1 - of_bit
            found[sum(bit << x for x, bit in enumerate(row)).to_bytes(self.report_bytes, "little")] = chance
        return found

    def _encode(self, values: Values, reports: Reports) -> None:
        coin_bits.fill(reports, self.other, self.size)
        put_bits(reports, values, coins.coins(self.own, len(values)))

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield from padding(reports, self.size)

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        counts += column_sums(reports)[: self.size]

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return iter([slice(0, count)])  # the adders cut blocks of their own


def ratio_of_bits(own: int, other: int) -> Fraction:
    """p(1−q)/((1−p)q) for p = own/2³², q = other/2³²."""
    return Fraction(own * (chances.ONE - other), (chances.ONE - own) * other)


def put_bits(reports: Reports, places: Values, set_: NDArray[np.bool_]) -> None:
    """Give one bit of each report a new value."""
    flat = reports.reshape(-1)
    at = np.arange(len(places), dtype=np.intp) * reports.shape[1]
    at += places >> np.uint32(3)
    shift = (places & np.uint32(7)).astype(np.uint8)
    flat[at] = (flat[at] & ~(np.uint8(1) << shift)) | (set_.view(np.uint8) << shift)


def padding(reports: Reports, size: int) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
    """The check that bits behind the last category are 0."""
    if size % 8:
        byte = reports.shape[1] - 1
        yield byte, reports[:, byte] >= 2 ** (size % 8), "has bits set behind the last category"
