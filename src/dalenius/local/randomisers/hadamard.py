"""Hadamard response: local hashing whose estimates take one fast Walsh–Hadamard transform, however large the domain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.local import coins
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.randomiser import PureOracle, Reports, Values, bytes_for, sized, slices
from dalenius.local.tallies import Tally

_MOST_ROWS = 10
_LARGEST_SIZE = 2**22  # K integers are transformed in memory


@dataclass(frozen=True)
class Hadamard(PureOracle):
    """A few signs of a random code word of the value, told by k-ary response over their 2^t patterns.

    With K = 2^k ≥ d, everybody draws a key s of k + t − 1 bits. Its windows r_j = ⌊s/2^j⌋ mod K, j < t, choose rows of
    the K×K Hadamard matrix, and the pattern of x is (⟨r_0, x⟩, …, ⟨r_{t−1}, x⟩), each the parity of r_j AND x. With
    t = 1 this is the Hadamard response with one bit; more signs tell more where ε is large.

    Guarantee:
        The key is drawn before the value is looked at. Given the key, a report is one of `KAry` over 2^t patterns, so
        its ratio is that of `KAry`.

    Estimates:
        A report supports the values whose pattern under its key is the one reported: the own one with p of `KAry`,
        another one with q = 2^(−t) exactly, because two values have the same pattern iff the Toeplitz matrix of s maps
        their difference to 0, which has chance 2^(−t). t has the least variance by the closed form.

    References:
        Acharya, Sun & Zhang (2019), "Hadamard response", for t = 1; Cormode, Maddock & Maple (2021), "Frequency
        estimation under local differential privacy", for several coefficients; Mansour, Nisan & Tiwari (1993) for
        Toeplitz matrices as hashes.

    A report is the key in ⌈(k+t−1)/8⌉ bytes, then the pattern in 1 or 2, both low byte first; bit j of the pattern is
    ⟨r_j, x⟩. A tally F has K integers: with [pattern(x) = z] = 2^(−t)·Σ_S (−1)^(⟨r_S, x⟩ + z_S) over the subsets S of
    the t rows, where r_S and z_S are the XOR of those in S, each report adds (−1)^z_S to F[r_S] for every S, and the
    counts of support are 2^(−t) times the transform of F.

    Attributes:
        rows: t; 0 takes the best one.

    >>> randomiser = Hadamard(epsilon=1.0, size=1000)
    >>> randomiser.rows, randomiser.report_bytes
    (2, 3)
    """

    rows: int = 0
    name: ClassVar[str] = "hadamard"

    def _settle(self) -> None:
        sized(self.size, "size", least=2, most=_LARGEST_SIZE)
        rows = sized(self.rows, "rows", least=0, most=_MOST_ROWS) or best_rows(self.epsilon, self.size)
        object.__setattr__(self, "rows", rows)

    @property
    def bits(self) -> int:
        """The k of K = 2^k ≥ d."""
        return (self.size - 1).bit_length()

    @property
    def key_bits(self) -> int:
        """The k + t − 1 bits of a key."""
        return self.bits + self.rows - 1

    @cached_property
    def response(self) -> KAry:
        """What perturbs the pattern."""
        return KAry(self.epsilon, 2**self.rows)

    @property
    def integers(self) -> Mapping[str, int]:
        """The chance of a uniform pattern as `lie`, k as `bits`."""
        return {"lie": self.response.lie, "bits": self.bits}

    @cached_property
    def ratio(self) -> Fraction:
        """That of k-ary randomized response over the patterns."""
        return self.response.ratio

    @cached_property
    def p(self) -> Fraction:
        """That of k-ary randomized response."""
        return self.response.p

    @property
    def q(self) -> Fraction:
        """2^(−t)."""
        return Fraction(1, 2**self.rows)

    @property
    def public_bytes(self) -> int:
        """Those of the key."""
        return -(-self.key_bits // 8)

    @property
    def report_bytes(self) -> int:
        """The key and the pattern."""
        return self.public_bytes + bytes_for(2**self.rows - 1)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """K."""
        return (2**self.bits,)

    def law(self, value: int, public: bytes = b"") -> dict[bytes, Fraction]:
        """Of each pattern, given the key."""
        key = np.array([int.from_bytes(public, "little")], np.uint32)
        pattern = int(self._patterns(key, np.array([value], np.uint32))[0])
        return {public + report: chance for report, chance in self.response.law(pattern).items()}

    def _patterns(self, keys: NDArray[np.uint32], values: Values) -> NDArray[np.uint32]:
        found = np.zeros(len(keys), np.uint32)
        for j in range(self.rows):
            parity = np.bitwise_count((keys >> np.uint32(j)) & values) & np.uint8(1)
            found |= parity.astype(np.uint32) << np.uint32(j)
        return found  # values are below K, so the AND cuts the window

    def _encode(self, values: Values, reports: Reports) -> None:
        keys = coins.lanes(len(values)) >> np.uint32(32 - self.key_bits)
        lies = coins.coins(self.response.lie, len(values))
        others = coins.uniform(2**self.rows, len(values))
        patterns = np.where(lies, others, self._patterns(keys, values))
        put_numbers(reports[:, : self.public_bytes], keys)
        put_numbers(reports[:, self.public_bytes :], patterns)

    def _check(self, reports: Reports) -> Iterator[tuple[int, NDArray[np.bool_], str]]:
        for first, end, width in ((0, self.public_bytes, self.key_bits), (self.public_bytes, None, self.rows)):
            part = reports[:, first:end]
            if width % 8 or 8 * part.shape[1] > width:
                last = (width - 1) // 8
                over = part[:, last] >= 2 ** (width - 8 * last)
                for byte in range(last + 1, part.shape[1]):
                    over |= part[:, byte] > 0
                yield first + last, over, "has bits set behind its key or pattern"

    def _fold(self, reports: Reports, counts: NDArray[np.int64]) -> None:
        keys = read_numbers(reports[:, : self.public_bytes])
        patterns = read_numbers(reports[:, self.public_bytes :])
        # In Gray code each subset of rows differs from the one before in one row. The sign is the lowest bit.
        windows = [
            ((keys >> np.uint32(j)) & np.uint32(2**self.bits - 1)) << np.uint32(1)
            | (patterns >> np.uint32(j)) & np.uint32(1)
            for j in range(self.rows)
        ]
        at = np.zeros(len(reports), np.uint32)
        signed = np.zeros(2 * len(counts), np.int64)
        signed[0] = len(reports)  # the empty subset
        for step in range(1, 2**self.rows):
            at ^= windows[(step & -step).bit_length() - 1]
            signed += np.bincount(at, minlength=len(signed))
        counts += signed[0::2]
        counts -= signed[1::2]

    def _fold_parts(self, count: int) -> Iterator[slice]:
        return slices(count, max(2**16, min(2**20, 2**self.bits)))

    def shares(self, tally: Tally) -> NDArray[np.float64]:
        """(C/n − q)/(p − q) with C from the transform of the tally."""
        supports = transform(tally.counts)[: self.size] / 2**self.rows
        shares: NDArray[np.float64] = (supports / tally.reports - float(self.q)) / float(self.p - self.q)
        return shares


def transform(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The Walsh–Hadamard transform along the last axis: Σ_y (−1)^⟨x, y⟩·values[y], exactly, in K·log₂K additions.

    >>> transform(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    found: NDArray[np.int64] = values.astype(np.int64, copy=True)
    half = 1
    while half < values.shape[-1]:
        pairs = found.reshape(-1, 2, half)
        low = pairs[:, 0] + pairs[:, 1]
        np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
        pairs[:, 0] = low
        half *= 2
    return found


def best_rows(epsilon: float, size: int) -> int:
    """The t with the least mean variance over all values, when each has the share 1/size."""
    grown = math.exp(min(epsilon, 30.0))

    def mean_variance(rows: int) -> float:
        patterns = float(2**rows)
        p, q = grown / (grown + patterns - 1), 1 / patterns
        return (p * (1 - p) / size + (1 - 1 / size) * q * (1 - q)) / (p - q) ** 2

    return min(range(1, _MOST_ROWS + 1), key=mean_variance)


def put_numbers(columns: Reports, numbers: NDArray[Any]) -> None:
    """Numbers as bytes, low byte first."""
    for byte in range(columns.shape[1]):
        columns[:, byte] = (numbers >> np.uint32(8 * byte)).astype(np.uint8)


def read_numbers(columns: Reports) -> NDArray[np.uint32]:
    """The numbers that bytes stand for, low byte first."""
    numbers = columns[:, 0].astype(np.uint32)
    for byte in range(1, columns.shape[1]):
        numbers |= columns[:, byte].astype(np.uint32) << np.uint32(8 * byte)
    return numbers
