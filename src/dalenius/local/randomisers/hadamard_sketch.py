"""The Hadamard count-mean sketch (SPEC P5): one sign of the bucket's code word, so a report is a few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import chances, coins
from dalenius.local.randomisers.hadamard import put_numbers, read_numbers, transform
from dalenius.local.randomisers.randomiser import Reports, Values, bytes_for, slices
from dalenius.local.randomisers.randomized_response import RandomizedResponse
from dalenius.local.randomisers.sketch import Sketch
from dalenius.local.tallies import Tally


@dataclass(frozen=True)
class HadamardSketch(Sketch):
    """A uniform hash j, a uniform row l of the m×m Hadamard matrix, and its sign at the bucket by randomized response.

    Guarantee:
        Hash and row are drawn before the value is looked at. Given both, a report is one of `RandomizedResponse`, so
        its ratio is (1−f)/f ≤ e^ε.

    A report is the number of the hash in 1, 2 or 4 bytes, then 2l plus the sign's bit (1 for −1) in 1, 2 or 4, both low
    byte first. A report supports the buckets whose sign in row l is the one reported. A tally adds up the signs of each
    hash and row; the transform of a hash's row gives (supporting − others) for each bucket.

    References: see `Sketch`.

    >>> randomiser = HadamardSketch(epsilon=4.0, size=1000)
    >>> randomiser.hashes, randomiser.width, randomiser.report_bytes
    (1024, 256, 4)
    """

    name: ClassVar[str] = "hadamard-sketch"

    @cached_property
    def response(self) -> RandomizedResponse:
        """What perturbs the sign."""
        return RandomizedResponse(self.epsilon)

    @property
    def flip(self) -> int:
        """2³²·f."""
        return chances.ONE - self.response.truth

    @property
    def blind(self) -> Fraction:
        """½: rows of two buckets agree in half of the columns."""
        return Fraction(1, 2)

    @cached_property
    def ratio(self) -> Fraction:
        """(1−f)/f."""
        return self.response.ratio

    @property
    def public_bytes(self) -> int:
        """Those of the hash: what follows mixes the row with the sign."""
        return self.hash_bytes

    @property
    def report_bytes(self) -> int:
        """The hash, and the row with its sign."""
        return self.hash_bytes + bytes_for(2 * self.width - 1)

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each row and sign, given the hash."""
        bucket = self.bucket(public, value)
        sign_bytes = self.report_bytes - self.hash_bytes
        return {
            public + (2 * row + bit).to_bytes(sign_bytes, "little"): (
                self.response.p if bit == (row & bucket).bit_count() % 2 else self.response.q
            )
            / self.width
            for row in range(self.width)
            for bit in range(2)
        }

    def _encode(self, values: Values, reports: Reports) -> None:
        hashes = coins.uniform(self.hashes, len(values))
        rows = coins.uniform(self.width, len(values))
        signs = np.bitwise_count(rows & self.buckets(hashes, values)) & np.uint8(1)
        signs ^= coins.coins(self.flip, len(values)).view(np.uint8)
        put_numbers(reports[:, : self.hash_bytes], hashes)
        put_numbers(reports[:, self.hash_bytes :], rows << np.uint32(1) | signs)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        yield 0, read_numbers(reports[:, : self.hash_bytes]) >= self.hashes, "names no hash"
        signed = read_numbers(reports[:, self.hash_bytes :])
        yield self.hash_bytes, signed >= 2 * self.width, "names no row"

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        hashes = read_numbers(reports[:, : self.hash_bytes])
        signed = read_numbers(reports[:, self.hash_bytes :])
        cells = hashes * np.uint32(2 * self.width) + signed
        found = np.bincount(cells, minlength=2 * counts.size).reshape(self.hashes, self.width, 2)
        counts += found[:, :, 0] - found[:, :, 1]

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return slices(count, 2**20)

    def supports(self, tally: Tally) -> NDArray[np.float64]:
        """Half of a hash's reports, and half of the transform of its signs.

        Supporting + others = the hash's reports, which only their total over all hashes needs: each gets n/k of it.
        """
        found: NDArray[np.float64] = (transform(tally.counts) + tally.reports / self.hashes) / 2
        return found
