"""Keyed hashes, specified to the bit.

**Places in a domain** are hashed by multiply-shift. For lanes of w bits (32 or 64) and a key (a, b) of two uniform
integers of w bits,

    state(x) = (a·x + b) mod 2ʷ,      h(x) = ⌊ ⌊state(x)/2^(w/2)⌋ · g / 2^(w/2) ⌋      for 0 ≤ x < 2^(w/2).

The upper w/2 bits of the states of two different x are independent and uniform over the key (Dietzfelbinger 1996,
Theorem 3: it holds for the upper w − w/2 + 1 bits). So h(x) and h(x′) are independent, and bucket y has chance
`weights[y]`/2^(w/2): not quite 1/g where g is no power of two, which is why estimates use the exact weights. Domains of
up to 2¹⁶ values use w = 32, larger ones w = 64.

A bucket is an interval of states, and state(x + 1) = state(x) + a: one walk along the domain takes an addition and a
comparison for each value.

**Sketches** share a few hashes among all who report. These are affine maps of bits: h(x) = b ⊕ (⊕ of c_i over the
bits i that are 1 in x), with b and c_0, …, c_31 uniform below a power of two. They come from a public seed: hash j
reads SHAKE-256 over the seed and j, 8 bytes each, low byte first; of its output every 4 bytes, low byte first, give b
and then the c_i, cut to their lowest bits.

**Texts of an open vocabulary** become fingerprints: the first 8 bytes, low byte first, of BLAKE2b with a key of at most
64 bytes and digest size 8 over the UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.mechanisms.noise import bits

Lanes = NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True)
class MultiplyShift:
    """The family of hashes of {0, …, size − 1} into g buckets.

    Guarantee:
        Over a uniform key, h(x) and h(x′) are independent for x ≠ x′, and P(h(x) = y) = weights[y]/2^(w/2) exactly.

    References:
        Dietzfelbinger (1996), "Universal hashing and k-wise independent random variables via integer arithmetic
        without primes".

    >>> family = MultiplyShift(size=10, buckets=3)
    >>> family.width, family.weights.tolist()
    (32, [21846, 21845, 21845])
    >>> key = np.array([[2654435769, 12345]], np.uint32)
    >>> [int(family.bucket(key[:, 0], key[:, 1], np.array([x], np.uint32))[0]) for x in range(5)]
    [0, 1, 0, 2, 1]
    """

    size: int
    buckets: int

    @property
    def width(self) -> int:
        """w: 32 for up to 2¹⁶ values, else 64."""
        return 32 if self.size <= 2**16 else 64

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of keys and states in memory; in reports they stand low byte first."""
        return np.dtype(np.uint32 if self.width == 32 else np.uint64)

    @cached_property
    def starts(self) -> Lanes:
        """The first state of each bucket: ⌈y·2^(w/2)/g⌉·2^(w/2)."""
        half = self.width // 2
        return np.array([-(-(y << half) // self.buckets) << half for y in range(self.buckets)], self.dtype)

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """How many of the 2^(w/2) upper halves fall into each bucket."""
        half = self.width // 2
        ends = [-(-(y << half) // self.buckets) for y in range(self.buckets + 1)]
        return np.array([end - start for start, end in pairwise(ends)], np.int64)

    @cached_property
    def spans(self) -> Lanes:
        """How many states each bucket has."""
        spans: Lanes = self.weights.astype(self.dtype) << self.dtype.type(self.width // 2)
        return spans

    def keys(self, count: int) -> Lanes:
        """Uniform keys (a, b), one row each."""
        return bits.words(-(-count * self.width // 32)).view(self.dtype)[: 2 * count].reshape(count, 2)

    def bucket(self, a: Lanes, b: Lanes, x: Lanes) -> Lanes:
        """h(x) for each key and value."""
        half = self.dtype.type(self.width // 2)
        state: Lanes = a * x.astype(self.dtype)
        state += b
        state >>= half
        state *= self.dtype.type(self.buckets)
        state >>= half
        return state

    def holding(self, a: Lanes, b: Lanes, bucket: Lanes, counts: NDArray[np.int64]) -> None:
        """Add to counts[x], for every x, how many of the keys send x to their bucket."""
        state = b - self.starts[bucket]
        spans = self.spans[bucket]
        inside = np.empty(len(a), np.bool_)
        for x in range(self.size):
            np.less(state, spans, out=inside)
            counts[x] += np.count_nonzero(inside)
            state += a


@dataclass(frozen=True)
class AffineHashes:
    """Hashes h_0, …, h_{count−1} of {0, …, 2³² − 1} into m buckets, m a power of two, from a public seed.

    Guarantee:
        Over uniform b and c_i, the hashes of three different values are independent and uniform: two differences of
        three different values are linearly independent over GF(2), so the map takes them to independent uniform
        buckets. For a seed this holds as far as SHAKE-256 looks random.

    References:
        Carter & Wegman (1979), "Universal classes of hash functions", H₃.

    >>> AffineHashes(seed=7, count=2, buckets=8).table(5).tolist()
    [[0, 0, 5, 5, 3], [2, 0, 5, 7, 6]]
    """

    seed: int
    count: int
    buckets: int

    @cached_property
    def _parts(self) -> NDArray[np.uint32]:
        """The b and then the c_i of each hash."""
        parts = np.empty((self.count, 33), np.uint32)
        for j in range(self.count):
            stream = hashlib.shake_256(self.seed.to_bytes(8, "little") + j.to_bytes(8, "little")).digest(4 * 33)
            parts[j] = np.frombuffer(stream, "<u4")
        parts &= np.uint32(self.buckets - 1)
        return parts

    def of(self, hashes: NDArray[np.uint32], values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """h_j(x) of pairs (j, x)."""
        found: NDArray[np.uint32] = self._parts[hashes, 0]
        for bit in range(int(values.max(initial=0)).bit_length()):
            found ^= self._parts[hashes, 1 + bit] * (values >> np.uint32(bit) & np.uint32(1))
        return found

    def table(self, size: int, first: int = 0, last: int | None = None) -> NDArray[np.uint32]:
        """h_j(x) for every hash j, or for those from first up to last (rows), and x < size (columns)."""
        parts = self._parts[first:last]
        found = parts[:, :1]
        for bit in range((size - 1).bit_length()):
            found = np.concatenate([found, found ^ parts[:, 1 + bit, None]], axis=1)[:, :size]
        return found


def fingerprints(texts: Iterable[str], key: bytes = b"") -> NDArray[np.uint64]:
    """64 bits of each text, by keyed BLAKE2b.

    >>> [hex(int(found)) for found in fingerprints(["dalenius"], b"survey")]
    ['0x1185f7f5cfdded97']
    """
    blake = hashlib.blake2b
    try:
        digests = b"".join(blake(text.encode(), digest_size=8, key=key).digest() for text in texts)
    except UnicodeEncodeError:
        raise InputError(
            "A text has half of a surrogate pair in it.",
            why="It has no UTF-8 bytes, so devices could not agree on its hash.",
            fix="Correct the text.",
        ) from None
    return np.frombuffer(digests, "<u8").astype(np.uint64)
