"""The count-mean sketch (SPEC P5): unary encoding of a bucket instead of the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coin_bits, coins
from dalenius.local.columns import column_sums
from dalenius.local.randomisers.hadamard import put_numbers, read_numbers
from dalenius.local.randomisers.randomiser import Reports, Values, slices
from dalenius.local.randomisers.sketch import Sketch
from dalenius.local.randomisers.symmetric_unary import SymmetricUnary
from dalenius.local.randomisers.unary import padding, put_bits
from dalenius.local.tallies import Tally


@dataclass(frozen=True)
class CountMeanSketch(Sketch):
    """A uniform hash j, and `SymmetricUnary` over m buckets for the bucket of the value under it.

    Guarantee:
        The hash is drawn before the value is looked at. Given the hash, a report is one of `SymmetricUnary` over m
        buckets, so its ratio is ((1−f)/f)² ≤ e^ε.

    A report is the number of the hash in 1, 2 or 4 bytes, low byte first, then m bits as in unary encoding. A tally
    counts, for each hash and bucket, the reports with the bit set.

    References: see `Sketch`.

    >>> randomiser = CountMeanSketch(epsilon=4.0, size=1000)
    >>> randomiser.hashes, randomiser.width, randomiser.report_bytes
    (1024, 256, 34)
    """

    name: ClassVar[str] = "count-mean-sketch"

    @cached_property
    def response(self) -> SymmetricUnary:
        """What perturbs the bucket."""
        return SymmetricUnary(self.epsilon, self.width)

    @property
    def flip(self) -> int:
        """2³²·f."""
        return self.response.other

    @property
    def blind(self) -> Fraction:
        """f: the bit of another bucket is a flipped 0."""
        return chances.chance(self.flip)

    @cached_property
    def ratio(self) -> Fraction:
        """((1−f)/f)²."""
        return self.response.ratio

    @property
    def public_bytes(self) -> int:
        """Those of the hash."""
        return self.hash_bytes

    @property
    def report_bytes(self) -> int:
        """The hash and m bits."""
        return self.hash_bytes + self.response.report_bytes

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each form of the m bits, given the hash."""
        bucket = self.bucket(public, value)
        return {public + report: chance for report, chance in self.response.law(bucket).items()}

    def _encode(self, values: Values, reports: Reports) -> None:
        hashes = coins.uniform(self.hashes, len(values))
        rows = np.empty((len(values), self.response.report_bytes), np.uint8)
        coin_bits.fill(rows, self.flip, self.width)
        put_bits(rows, self.buckets(hashes, values), coins.coins(self.response.own, len(values)))
        put_numbers(reports[:, : self.hash_bytes], hashes)
        reports[:, self.hash_bytes :] = rows

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield 0, read_numbers(reports[:, : self.hash_bytes]) >= self.hashes, "names no hash"
        for byte, bad, problem in padding(reports[:, self.hash_bytes :], self.width):
            yield self.hash_bytes + byte, bad, problem

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        hashes = read_numbers(reports[:, : self.hash_bytes])
        order = np.argsort(hashes, kind="stable")
        ends = np.cumsum(np.bincount(hashes, minlength=self.hashes))
        rows = reports[order, self.hash_bytes :]
        for j in np.unique(hashes):
            counts[j] += column_sums(rows[ends[j - 1] if j else 0 : ends[j]])[: self.width]

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return slices(count, 2**19)  # many reports of each hash at once

    def supports(self, tally: Tally) -> NDArray[np.float64]:
        """The counts themselves."""
        return tally.counts.astype(np.float64)
