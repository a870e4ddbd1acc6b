"""Numbers modulo a Mersenne prime 2^q − 1, many at a time.

An array of such numbers is a numpy array of uint64, each below the prime. 2^61 − 1 is the field of sums and products,
2^31 − 1 holds half as much, and the tiny ones (7, 31, 127) are there so that tests can count every value.

2^q ≡ 1, so a number is reduced by adding its high bits to its low ones, and a power of two is a rotation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalenius.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.joint.streams import Stream

    Array = NDArray[np.uint64]

_BLOCK = 1 << 14
"""Numbers worked on at a time: the dozen arrays between stay in the fast cache."""
_SMALL = 7
"""Weights whose sizes add up to this or less cannot overflow a word before the reduction: 7·(2^61 − 1) < 2^64."""
_EXPONENTS = (3, 5, 7, 31, 61)


@dataclass(frozen=True)
class Mersenne:
    """The prime field of 2^`exponent` − 1.

    >>> field = Mersenne(61)
    >>> a = field.array([-1, 5])
    >>> [int(each) for each in field.signed(field.multiply(a, a))]
    [1, 25]
    """

    exponent: int = 61
    code: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.exponent not in _EXPONENTS:
            raise InputError(
                f"2^{self.exponent} − 1 is not offered.", why="It is not a prime that fits.", fix="Take 61 or 31."
            )

    @property
    def name(self) -> str:
        """As frames tell it."""
        return f"2^{self.exponent}-1"

    @property
    def order(self) -> int:
        """The prime."""
        return (1 << self.exponent) - 1

    @cached_property
    def _mask(self) -> np.uint64:
        return np.uint64(self.order)

    @cached_property
    def _shift(self) -> np.uint64:
        return np.uint64(self.exponent)

    @cached_property
    def wire(self) -> np.dtype[np.uint64] | np.dtype[np.uint32] | np.dtype[np.uint8]:
        """How one number travels."""
        if self.exponent > 32:
            return np.dtype("<u8")
        return np.dtype("<u4") if self.exponent > 8 else np.dtype("u1")

    # --- in and out

    def array(self, values: object) -> Array:
        """Whole numbers, negative ones too, as numbers of the field.

        Raises:
            InputError: One is not a whole number, or does not fit.
        """
        found = np.asarray(values)
        if found.dtype.kind == "b":
            found = found.astype(np.uint64)
        if found.dtype.kind not in "iu" and found.size:
            raise InputError("Only whole numbers can be shared.", why="A field has no others.", fix="Scale and round.")
        half = self.order // 2
        if found.size and (int(found.max()) > self.order - 1 or int(found.min()) < -half):
            raise InputError(
                "A number is too large to be shared.",
                why=f"It must lie between −{half} and {self.order - 1}.",
                fix="Use smaller bounds, or a coarser step.",
            )
        signed = found.astype(np.int64)
        return np.where(signed < 0, signed + np.int64(self.order), signed).astype(np.uint64)

    def signed(self, values: Array) -> NDArray[np.int64]:
        """The numbers above half of the prime are negative ones."""
        found = values.astype(np.int64)
        return np.where(found > self.order // 2, found - np.int64(self.order), found)

    def pack(self, values: Array) -> bytes | memoryview:
        """The bytes that travel."""
        return np.ascontiguousarray(values, self.wire).data.cast("B") if values.size else b""

    def unpack(self, data: bytes | bytearray | memoryview, shape: tuple[int, ...]) -> Array:
        """The numbers in such bytes.

        Raises:
            ValueError: They are not as many, or one is none of the field.
        """
        found = np.frombuffer(data, self.wire).reshape(shape)
        if found.size and int(found.max()) >= self.order:
            raise ValueError("a number is outside the field")
        return found.astype(np.uint64, copy=False)

    def size(self, shape: tuple[int, ...]) -> int:
        """So many bytes travel."""
        return math.prod(shape) * self.wire.itemsize

    def require(self, bound: int) -> None:
        """Refuses a computation whose numbers may be as large as this, above or below zero, and so wrap around.

        Raises:
            InputError: They may reach half of the prime.
        """
        if bound > self.order // 2:
            raise InputError(
                f"Sums may reach {bound:.3g}.",
                why=f"Joint computations hold whole numbers up to {self.order // 2:.3g}, and larger ones would come out"
                " wrong.",
                fix="Use smaller bounds, or a coarser step.",
            )

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """Zeros."""
        return np.zeros(shape, np.uint64)

    def random(self, stream: Stream, shape: tuple[int, ...]) -> Array:
        """Uniform numbers from a stream: of each drawn word `exponent` bits count, and 2^q − 1 is drawn again."""
        count = math.prod(shape)
        drawn = stream.words(count, self.wire).astype(np.uint64, copy=False)
        drawn &= self._mask
        bad = np.flatnonzero(drawn == self._mask) if drawn.max(initial=0) == self._mask else drawn[:0]
        while bad.size:
            again = stream.words(bad.size, self.wire).astype(np.uint64) & self._mask
            drawn[bad] = again
            bad = bad[again == self._mask]
        return drawn.reshape(shape)

    # --- arithmetic

    def _fold(self, values: Array) -> Array:
        """Reduces words of any size, in place: high bits to low ones, then the prime is taken away once."""
        high = values >> self._shift
        values &= self._mask
        values += high
        # 2^64 is now at most 2^61 + 7, or 2^34; a tiny prime, which is for tests, takes many steps
        for _ in range({61: 0, 31: 1}.get(self.exponent, 64 // self.exponent)):
            np.right_shift(values, self._shift, out=high)
            values &= self._mask
            values += high
        # below twice the prime: take it away, and put it back where that went below zero
        np.subtract(values, self._mask, out=high)
        np.minimum(values, high, out=values)
        return values

    def add(self, a: Array, b: Array) -> Array:
        """a + b."""
        total = a + b
        np.minimum(total, total - self._mask, out=total)
        return total

    def subtract(self, a: Array, b: Array) -> Array:
        """a − b."""
        total = a - b  # below zero it wraps to a huge word
        np.minimum(total, total + self._mask, out=total)
        return total

    def negative(self, a: Array) -> Array:
        """−a."""
        return self.subtract(np.zeros(1, np.uint64), a)

    def total(self, values: Array) -> Array:
        """The sum over the first axis."""
        low = (values & np.uint64(0x7FFFFFFF)).sum(axis=0, dtype=np.uint64)
        high = (values >> np.uint64(31)).sum(axis=0, dtype=np.uint64)  # exact for 2^33 numbers and more
        return self.combine((1, 1 << 31), (self._fold(np.atleast_1d(low)), self._fold(np.atleast_1d(high)))).reshape(
            values.shape[1:]
        )

    def multiply(self, a: Array, b: Array) -> Array:
        """a · b, number by number; shapes are broadcast."""
        if a.shape != b.shape:
            a, b = np.broadcast_arrays(a, b)
        out = np.empty(a.shape, np.uint64)
        flat = out.reshape(-1)
        left, right = a.reshape(-1), b.reshape(-1)
        for at in range(0, flat.size, _BLOCK):
            here = slice(at, at + _BLOCK)
            if self.exponent < 32:
                flat[here] = self._fold(left[here] * right[here])
            else:
                _Halves(left[here]).times(_Halves(right[here])).fold_into(flat[here], self)
        return out

    def dot(self, a: Array, b: Array) -> Array:
        """Σ a·b over the first axis."""
        return self.total(self.multiply(a, b))

    def combine(self, weights: Sequence[int], arrays: Sequence[Array]) -> Array:
        """Σ wᵢ·aᵢ with public weights."""
        return self.combine_all((weights,), arrays)[0]

    def combine_all(self, rows: Sequence[Sequence[int]], arrays: Sequence[Array]) -> list[Array]:
        """Several sums Σ wᵢ·aᵢ of the same arrays, each with its own weights."""
        shape = arrays[0].shape
        flats = [each.reshape(-1) for each in arrays]
        outs = [np.empty(flats[0].size, np.uint64) for _ in rows]
        plans = [_weights(row, self) for row in rows]
        for at in range(0, flats[0].size, _BLOCK):
            here = slice(at, at + _BLOCK)
            parts = [each[here] for each in flats]
            halves: list[_Halves] | None = None
            for (small, factor), row, out in zip(plans, rows, outs, strict=True):
                if small is not None:
                    self._small(small, factor, parts, out[here])
                elif self.exponent < 32:
                    self._modest(row, parts, out[here])
                else:
                    halves = halves or [_Halves(each) for each in parts]
                    _weighted(row, halves, self).fold_into(out[here], self)
        return [each.reshape(shape) for each in outs]

    def _small(self, weights: Sequence[int], factor: int, parts: Sequence[Array], out: Array) -> None:
        out[...] = 0
        below = 0
        for weight, part in zip(weights, parts, strict=True):
            if weight > 0:
                out += part if weight == 1 else part * np.uint64(weight)
            elif weight < 0:
                below -= weight
                out -= part if weight == -1 else part * np.uint64(-weight)
        if below:
            out += np.uint64(below * self.order)
        self._fold(out)
        if factor > 0:  # a power of two: a rotation to the left
            high = out >> np.uint64(self.exponent - factor)
            out <<= np.uint64(factor)
            out &= self._mask
            out |= high

    def _modest(self, row: Sequence[int], parts: Sequence[Array], out: Array) -> None:
        out[...] = 0
        for weight, part in zip(row, parts, strict=True):
            out += self._fold(part * np.uint64(weight % self.order))
        self._fold(out)

    # --- single numbers, for weights

    def first(self, values: Array) -> tuple[int, int]:
        """Where the first number other than zero stands."""
        return int(np.flatnonzero(values)[0]), 0

    def element(self, values: Array, place: tuple[int, int]) -> int:
        """The number that stands there."""
        return int(values.reshape(-1)[place[0]])

    def scalar_add(self, a: int, b: int) -> int:
        """a + b."""
        return (a + b) % self.order

    def scalar_subtract(self, a: int, b: int) -> int:
        """a − b."""
        return (a - b) % self.order

    def scalar_multiply(self, a: int, b: int) -> int:
        """a · b."""
        return a * b % self.order

    def scalar_inverse(self, a: int) -> int:
        """1/a."""
        return pow(a, -1, self.order)


class _Halves:
    """Numbers below 2^61 as high·2^31 + low."""

    __slots__ = ("high", "low")

    def __init__(self, values: Array) -> None:
        self.high = values >> np.uint64(31)
        self.low = values & np.uint64(0x7FFFFFFF)

    def times(self, other: _Halves) -> _Wide:
        # high·high < 2^60, each cross term < 2^61, low·low < 2^62
        middle = self.high * other.low
        middle += self.low * other.high
        return _Wide(self.high * other.high, middle, self.low * other.low)


class _Wide:
    """top·2^62 + middle·2^31 + bottom."""

    __slots__ = ("bottom", "middle", "top")

    def __init__(self, top: Array, middle: Array, bottom: Array) -> None:
        self.top = top
        self.middle = middle
        self.bottom = bottom

    def fold_into(self, out: Array, field: Mersenne) -> None:
        # top < 2^60, middle < 2^64, bottom < 2^63: 2·top + (middle >> 30) + (its low 30 bits) << 31 + bottom < 2^64
        total, middle = self.top, self.middle
        total += total
        total += middle >> np.uint64(30)
        middle &= np.uint64((1 << 30) - 1)
        middle <<= np.uint64(31)
        total += middle
        total += self.bottom
        out[...] = field._fold(total)  # noqa: SLF001 - of this module


def _weighted(row: Sequence[int], parts: Sequence[_Halves], field: Mersenne) -> _Wide:
    """Σ wᵢ·aᵢ before its reduction."""
    result: _Wide | None = None
    for at, (weight, part) in enumerate(zip(row, parts, strict=True)):
        w = weight % field.order
        high, low = np.uint64(w >> 31), np.uint64(w & 0x7FFFFFFF)
        middle = part.high * low
        middle += part.low * high
        here = _Wide(part.high * high, middle, part.low * low)
        if result is None:
            result = here
            continue
        result = _merge(result, here)
        if at % 4 == 3:  # four tops of 2^60 and their carries: make room for four more
            result.top = (result.top & np.uint64(field.order)) + (result.top >> np.uint64(61))
    assert result is not None  # noqa: S101 - there is at least one array
    return result


def _merge(a: _Wide, b: _Wide) -> _Wide:
    """The sum of two, kept within the bounds that `fold_into` needs."""
    # bottoms below 2^62 + 2^62; then its bits above 2^31 move to the middle
    a.bottom += b.bottom
    a.middle += b.middle
    a.middle += a.bottom >> np.uint64(31)
    a.bottom &= np.uint64(0x7FFFFFFF)
    # the middle's bits above 2^31 move to the top: middle < 2^62 + 2^62 + 2^33
    a.top += b.top
    a.top += a.middle >> np.uint64(31)
    a.middle &= np.uint64(0x7FFFFFFF)
    return a


def _weights(row: Sequence[int], field: Mersenne) -> tuple[tuple[int, ...] | None, int]:
    """The weights as tiny whole numbers times a power of two, if that is what they are: (numbers, power)."""
    for power in (0, field.exponent - 1, field.exponent - 2, field.exponent - 3, *range(1, field.exponent - 3)):
        undo = pow(2, field.exponent - power, field.order)
        tried = [weight * undo % field.order for weight in row]
        small = tuple(each if each <= field.order // 2 else each - field.order for each in tried)
        if sum(map(abs, small)) <= _SMALL:
            return small, power
    return None, 0


BIG = Mersenne(61)
"""The field of sums and products: whole numbers up to 10^18."""
SHORT = Mersenne(31)
"""Half the bytes, for whole numbers up to 10^9."""
