"""Rows of coins packed eight to a byte, at a quarter of a random byte a coin.

Eight independent coins of chance a/2³² make a byte v with chance P(v) = aʲ(2³²−a)⁸⁻ʲ/2²⁵⁶, j its number of ones.
Written in base 2¹⁶ each P(v) has 16 digits, and bytes are drawn digit by digit (Knuth & Yao): of the 2¹⁶ values of
the first 16 random bits, `digit₁(v)` stand for v, in a table; the few left over are spread by 16 more bits over the
second digits, and so on. After 16 digits nothing is left, so the law is exact, and at least 99.6% of the bytes need
the table alone.

References:
    Knuth & Yao (1976), "The complexity of nonuniform random number generation".
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dalenius.local.chances import ONE
from dalenius.mechanisms.noise import bits

_DIGITS = 16  # of 16 bits each: 256 bits in all
_AT_ONCE = 2**17  # bytes drawn together: their random bits and they themselves stay in the cache


class _Bytes:
    """The law of a byte of eight coins of chance a/2³²."""

    def __init__(self, a: int) -> None:
        chances = [a ** v.bit_count() * (ONE - a) ** (8 - v.bit_count()) for v in range(256)]
        digits = [[p >> 16 * (_DIGITS - 1 - level) & 0xFFFF for p in chances] for level in range(_DIGITS)]
        digits[0] = [p >> 16 * (_DIGITS - 1) for p in chances]  # a first digit of 2¹⁶ is a certainty
        self.filled = sum(digits[0])
        self.table = np.zeros(2**16, np.uint8)
        self.table[: self.filled] = np.repeat(np.arange(256, dtype=np.uint8), digits[0])
        self.later = [np.array(list(accumulate(level)), np.int64) for level in digits[1:]]

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Draw a few bytes."""
        first = bits.words(-(-len(out) // 4)).view(np.uint16)[: len(out)]
        np.take(self.table, first, out=out, mode="clip")
        if self.filled == 2**16:
            return
        (open_,) = np.nonzero(first >= np.uint16(self.filled))
        left = first[open_].astype(np.int64) - self.filled  # uniform below the number of values left over
        for bounds in self.later:
            if not open_.size:
                return
            left = left << 16 | bits.words(-(-open_.size // 4)).view(np.uint16)[: open_.size]
            found = np.searchsorted(bounds, left, side="right")
            settled = found < 256
            out[open_[settled]] = found[settled]
            open_, left = open_[~settled], left[~settled] - bounds[-1]


@lru_cache(maxsize=64)
def _bytes_of(a: int) -> _Bytes:
    return _Bytes(a)


def fill(out: NDArray[np.uint8], chance: int, width: int) -> None:
    """Fill rows of packed coins: bit x%8 of byte x//8 is coin x, for x < width; the bits from there on are 0.

    >>> rows = np.empty((2, 2), np.uint8)
    >>> fill(rows, 2**32, 11)
    >>> rows.tolist()
    [[255, 7], [255, 7]]
    """
    law, flat = _bytes_of(chance), out.reshape(-1)
    for at in range(0, len(flat), _AT_ONCE):
        law.fill(flat[at : at + _AT_ONCE])
    if width % 8:
        out[:, -1] &= np.uint8(2 ** (width % 8) - 1)
