"""Discrete Laplace noise, P(k) ∝ exp(−|k|/scale) on the integers; its candidates are what the Gaussian is made of too.

Candidates are two-sided geometric, cut into blocks. For a scale s, integers g ≥ 0 are written g = block·2^shift +
offset. If P(g) ∝ exp(−g/s), block and offset are independent: the block is geometric, ⌊−(s/2^shift)·ln U⌋, and the
offset has P ∝ exp(−offset/s) on 2^shift values, so that it is a uniform one kept with probability exp(−offset/s).
`shift` is the least with s/2^shift ≤ 16: small scales need no offset, and for the others more than 15/16 are kept.

The side is exact as well: g itself with probability 1/(1 + exp(−1/s)), else −1 − g.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.mechanisms.noise import _draws, _fast, bits
from dalenius.mechanisms.noise._fast import Flags, Floats, Integers
from dalenius.mechanisms.noise.bernoulli import LogisticCoin

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_INT64_SCALE = 2**52
"""Up to here noise is int64: |noise| ≥ 2⁶³ has probability below exp(−2000). Above, Python integers."""

_SEEN = 52  # bits of an offset that floats look at


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates before the coin that accepts them.

    Attributes:
        minus: −1 where the candidate is −1 − g, else 0.
        block: g // 2^shift, as whole floats.
        offset: The highest bits (at most 52) of g mod 2^shift.
        below: The bits under those, where shift is above 52.
    """

    minus: Integers
    block: Floats
    offset: Integers
    below: list[int] | None


class Blocks:
    """How integers of one scale are cut into blocks."""

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale
        self.shift = max(0, (-(-scale.numerator // (16 * scale.denominator)) - 1).bit_length())
        self.seen = min(self.shift, _SEEN)
        self.blocks_per_scale = scale / 2**self.shift
        self.side = LogisticCoin(1 / scale)
        self.wide = scale > LARGEST_INT64_SCALE
        self.acceptance = 1.0 if self.shift == 0 else 15 / 16

    def candidates(self, count: int) -> Candidates:
        """Candidates for `count` integers."""
        rows = bits.words(count * (3 if self.shift else 2)).reshape(-1, count)
        minus = self.side.flip(rows[0]).astype(np.int64)
        minus -= 1
        block = _fast.geometric(rows[1], self.blocks_per_scale)
        offset = np.zeros(0, np.int64)
        if self.shift:
            offset = (rows[2] >> np.uint64(64 - self.seen)).view(np.int64)
        unseen = self.shift - self.seen
        below = bits.integers(unseen, count) if unseen else None
        return Candidates(minus, block, offset, below)

    def fraction(self, drawn: Candidates) -> Floats:
        """offset/2^shift as floats: exact, or for shifts above 52 within 2⁻⁵²."""
        return drawn.offset * np.float64(2.0**-self.seen)

    def exact_offset(self, drawn: Candidates, i: int) -> int:
        """The whole offset of one candidate."""
        if not self.shift:
            return 0
        if drawn.below is None:
            return int(drawn.offset[i])
        return int(drawn.offset[i]) << (self.shift - self.seen) | drawn.below[i]

    def exact_magnitude(self, drawn: Candidates, i: int) -> int:
        """|value| of one candidate."""
        return (int(drawn.block[i]) << self.shift) + self.exact_offset(drawn, i) - int(drawn.minus[i])

    def values(self, drawn: Candidates, kept: Flags | None) -> NDArray[Any]:
        """The integers, those kept only; −1 − g is the bitwise complement of g."""
        if self.wide:
            whole = np.empty(len(drawn.minus), object)
            for i in range(len(whole)):
                g = (int(drawn.block[i]) << self.shift) + self.exact_offset(drawn, i)
                whole[i] = ~g if drawn.minus[i] else g
            return whole if kept is None else whole[kept]
        if len(drawn.block) and drawn.block.max() >= 2.0 ** (63 - self.shift):
            raise OverflowError("noise beyond int64, of probability below exp(−2000)")
        narrow = drawn.block.astype(np.int64)
        if self.shift:
            narrow <<= np.int64(self.shift)
            narrow |= drawn.offset
        narrow ^= drawn.minus
        return narrow if kept is None else narrow[kept]


class LaplaceSampler(_draws.Sampler):
    """The sampler for one scale."""

    def __init__(self, scale: Fraction) -> None:
        self._blocks = Blocks(scale)
        self._offset_rate = _fast.to_float(1 / self._blocks.blocks_per_scale)
        self.dtype = object if self._blocks.wide else np.int64
        self.acceptance = self._blocks.acceptance

    def batch(self, candidates: int) -> NDArray[Any]:
        """Two-sided geometric candidates, each kept with the probability that its offset asks for."""
        blocks = self._blocks
        drawn = blocks.candidates(candidates)
        if not blocks.shift:
            return blocks.values(drawn, None)
        exponent = blocks.fraction(drawn)
        exponent *= self._offset_rate
        kept = _fast.survive(bits.words(candidates), exponent, lambda i: blocks.exact_offset(drawn, i) / blocks.scale)
        return blocks.values(drawn, kept)


@lru_cache(maxsize=256, typed=True)
def _sampler(scale: Any) -> LaplaceSampler:
    return LaplaceSampler(_draws.rational(scale, "scale"))


@overload
def discrete_laplace(scale: float | Fraction, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: float | Fraction, size: int) -> NDArray[Any]: ...
def discrete_laplace(scale: float | Fraction, size: int | None = None) -> int | NDArray[Any]:
    """Discrete Laplace noise, also called two-sided geometric: P(k) = (1−α)/(1+α)·α^|k|, α = exp(−1/scale).

    Guarantee: the law is exact for the rational that `scale` is; draws are independent; work and time do not
    depend on the values drawn, but for an exact fallback of probability below 2⁻⁴⁰ per draw.

    Assumes: AES-256 in counter mode under a key from the operating system is indistinguishable from random;
    IEEE double arithmetic, rounding to nearest.

    References:
        Ghosh, Roughgarden, Sundararajan (2009), "Universally Utility-Maximizing Privacy Mechanisms"; the
        split into block and offset follows Canonne, Kamath, Steinke (2020), section 5.2. Proof:
        docs/explanation/exact-noise.md.

    Args:
        scale: Above 0; an int, a Fraction, or a float taken as the rational it is.
        size: How many; None for one `int`.

    Returns:
        An `int`, or an array of `size` integers: int64 up to scale 2⁵², above it Python integers (dtype
        object).

    Example:
        >>> noise = discrete_laplace(Fraction(7, 5), size=1000)
        >>> noise.dtype, bool(abs(noise.mean()) < 2)
        (dtype('int64'), True)
        >>> discrete_laplace(1e-300)
        0
    """
    sampler = _sampler(_draws.lookup_key(scale, "scale"))
    return int(_draws.draw_one(sampler)) if size is None else _draws.draw(sampler, size)
