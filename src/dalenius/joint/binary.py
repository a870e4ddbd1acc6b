"""The field with 2^k elements, 64 of them to a word.

An element of GF(2^k) is a polynomial of degree below k over bits. An array holds one *plane* of bits for each
coefficient: shape (k, …, words), where bit j of a word belongs to the j-th of its 64 elements. So a word-wise XOR adds
64 elements, and a product is a handful of ANDs. Bits are the elements 0 and 1: their sum is XOR, their product AND.

Shares of bits need a field with more elements than there are parties, and no more: GF(4) for three, GF(8) for up to
seven, GF(16) for up to fifteen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dalenius.joint.streams import Stream

    Array = NDArray[np.uint64]

_MODULI = {2: 0b111, 3: 0b1011, 4: 0b10011}
_WORD = np.dtype("<u8")
_BLOCK = 1 << 12
"""Words of a plane that are worked on at a time, so that all planes stay in the fast cache."""


@dataclass(frozen=True)
class Binary:
    """GF(2^`degree`), in planes of bits.

    >>> field = Binary(2)
    >>> field.scalar_multiply(2, 3), field.scalar_inverse(2)
    (1, 3)
    """

    degree: int
    code: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.degree not in _MODULI:
            raise InputError(
                f"GF(2^{self.degree}) is not offered.", why="Its modulus is missing.", fix="Take 2, 3 or 4."
            )

    @staticmethod
    def holding(parties: int) -> Binary:
        """The smallest that has a point for each of so many parties besides 0."""
        return Binary(max(2, parties.bit_length()))

    @property
    def name(self) -> str:
        """As frames tell it."""
        return f"GF(2^{self.degree})"

    @property
    def order(self) -> int:
        """How many elements there are."""
        return 1 << self.degree

    def pack(self, values: Array) -> bytes | memoryview:
        """The bytes that travel."""
        return np.ascontiguousarray(values, _WORD).data.cast("B") if values.size else b""

    def unpack(self, data: bytes | bytearray | memoryview, shape: tuple[int, ...]) -> Array:
        """The elements in such bytes.

        Raises:
            ValueError: They are not as many.
        """
        return np.frombuffer(data, _WORD).reshape(shape)

    def size(self, shape: tuple[int, ...]) -> int:
        """So many bytes travel."""
        return math.prod(shape) * _WORD.itemsize

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Zeros."""
        return np.zeros(shape, np.uint64)

    def random(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        """Uniform elements from a stream."""
        return stream.words(math.prod(shape), _WORD).reshape(shape)

    def from_bits(self, rows: Array) -> Array:
        """Bits as elements: the other planes are zero."""
        found = np.zeros((self.degree, *rows.shape), np.uint64)
        found[0] = rows
        return found

    # --- arithmetic

    def add(self, a: Array, b: Array) -> Array:
        """a + b."""
        return a ^ b

    def subtract(self, a: Array, b: Array) -> Array:
        """a − b, which is a + b."""
        return a ^ b

    def negative(self, a: Array) -> Array:
        """−a, which is a."""
        return a

    def total(self, values: Array) -> Array:
        """The sum over the axis after the planes."""
        found: Array = np.bitwise_xor.reduce(values, axis=1)
        return found

    def multiply(self, a: Array, b: Array) -> Array:
        """a · b, element by element; shapes are broadcast."""
        k = self.degree
        if a.shape != b.shape:
            a, b = np.broadcast_arrays(a, b)
        out = np.empty(a.shape, np.uint64)
        left, right, flat = a.reshape(k, -1), b.reshape(k, -1), out.reshape(k, -1)
        for at in range(0, flat.shape[1], _BLOCK):
            here = slice(at, at + _BLOCK)
            self._multiply(left[:, here], right[:, here], flat[:, here])
        return out

    def _multiply(self, a: Array, b: Array, out: Array) -> None:
        k = self.degree
        sums: list[Array | None] = [None] * (2 * k - 1)
        spare = np.empty(a.shape[1], np.uint64)
        for i in range(k):
            for j in range(k):
                sum_ = sums[i + j]
                if sum_ is None:
                    sums[i + j] = a[i] & b[j]
                else:
                    np.bitwise_and(a[i], b[j], out=spare)
                    sum_ ^= spare
        found = [each for each in sums if each is not None]
        for at in range(2 * k - 2, k - 1, -1):  # x^at = x^(at−k)·(modulus − x^k)
            for low in range(k):
                if _MODULI[k] >> low & 1:
                    found[at - k + low] ^= found[at]
        for at in range(k):
            out[at] = found[at]

    def dot(self, a: Array, b: Array) -> Array:
        """Σ a·b over the axis after the planes."""
        return self.total(self.multiply(a, b))

    def combine(self, weights: Sequence[int], arrays: Sequence[Array]) -> Array:
        """Σ wᵢ·aᵢ with public weights."""
        return self.combine_all((weights,), arrays)[0]

    def combine_all(self, rows: Sequence[Sequence[int]], arrays: Sequence[Array]) -> list[Array]:
        """Several sums Σ wᵢ·aᵢ of the same arrays, each with its own weights."""
        k = self.degree
        outs = [np.empty(arrays[0].shape, np.uint64) for _ in rows]
        flats = [each.reshape(k, -1) for each in arrays]
        targets = [each.reshape(k, -1) for each in outs]
        # for each plane of each sum: which planes of which arrays it is the sum of
        plans = [
            [
                [(at, column) for at, weight in enumerate(weights) for column in self._matrices[weight][plane]]
                for plane in range(k)
            ]
            for weights in rows
        ]
        for at in range(0, flats[0].shape[1], _BLOCK):
            here = slice(at, at + _BLOCK)
            for plan, target in zip(plans, targets, strict=True):
                for plane, terms in enumerate(plan):
                    _xor([flats[which][column, here] for which, column in terms], target[plane, here])
        return outs

    @cached_property
    def _matrices(self) -> list[list[list[int]]]:
        """For each element w and each plane of w·a: the planes of a that it is the sum of."""
        found = []
        for weight in range(self.order):
            images = [self.scalar_multiply(weight, 1 << column) for column in range(self.degree)]
            found.append([[at for at, image in enumerate(images) if image >> row & 1] for row in range(self.degree)])
        return found

    # --- single elements, for weights

    def first(self, values: Array) -> tuple[int, int]:
        """Where the first element other than zero stands: which word, and which bit of it."""
        any_plane = np.bitwise_or.reduce(values, axis=0).reshape(-1)
        word = int(np.flatnonzero(any_plane)[0])
        bits = int(any_plane[word])
        return word, (bits & -bits).bit_length() - 1

    def element(self, values: Array, place: tuple[int, int]) -> int:
        """The element that stands there."""
        word, bit = place
        planes = values.reshape(self.degree, -1)
        return sum((int(planes[at, word]) >> bit & 1) << at for at in range(self.degree))

    def scalar_add(self, a: int, b: int) -> int:
        """a + b."""
        return a ^ b

    def scalar_subtract(self, a: int, b: int) -> int:
        """a − b."""
        return a ^ b

    def scalar_multiply(self, a: int, b: int) -> int:
        """a · b."""
        product = 0
        for bit in range(self.degree):
            if b >> bit & 1:
                product ^= a << bit
        for bit in range(2 * self.degree - 2, self.degree - 1, -1):
            if product >> bit & 1:
                product ^= _MODULI[self.degree] << (bit - self.degree)
        return product

    def scalar_inverse(self, a: int) -> int:
        """1/a."""
        return next(each for each in range(1, self.order) if self.scalar_multiply(a, each) == 1)


def _xor(terms: Sequence[Array], out: Array) -> None:
    if not terms:
        out[...] = 0
        return
    first, *rest = terms
    if not rest:
        out[...] = first
        return
    np.bitwise_xor(first, rest[0], out=out)
    for each in rest[1:]:
        out ^= each


def words_for(count: int) -> int:
    """So many words hold that many bits."""
    return -(-count // 64)


def pack_bits(bits: NDArray[np.bool_]) -> Array:
    """A row of bits as words."""
    data = np.zeros(8 * words_for(bits.size), np.uint8)
    packed = np.packbits(bits, bitorder="little")
    data[: packed.size] = packed
    return data.view(_WORD)


def unpack_bits(words: Array, count: int) -> NDArray[np.uint8]:
    """The first `count` bits of a row of words."""
    return np.unpackbits(np.ascontiguousarray(words, _WORD).view(np.uint8), count=count, bitorder="little")


def transpose_bits(numbers: Array) -> Array:
    """Row i of the result holds bit i of every number: shape (64, words).

    Sixty-four numbers are a square of bits, which is turned over by swapping ever smaller squares of it
    (Warren, Hacker's Delight, 7–3).

    >>> [int(row[0]) for row in transpose_bits(np.array([1, 3], np.uint64))[:2]]
    [3, 2]
    """
    words = words_for(numbers.size)
    padded = np.zeros(64 * words, np.uint64)
    padded[: numbers.size] = numbers
    squares = np.ascontiguousarray(padded.reshape(words, 64).T)
    width = 32
    mask = (1 << 32) - 1
    while width:
        low = np.uint64(mask)
        shift = np.uint64(width)
        view = squares.reshape(32 // width, 2, width, words)
        top, bottom = view[:, 0], view[:, 1]
        swapped = ((top >> shift) ^ bottom) & low
        bottom ^= swapped
        top ^= swapped << shift
        width >>= 1
        mask ^= mask << width
    return squares
