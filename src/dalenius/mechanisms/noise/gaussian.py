"""Discrete Gaussian noise: P(k) ∝ exp(−k²/2σ²) on the integers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.errors import InputError
from dalenius.mechanisms.noise import _draws, _fast, bits
from dalenius.mechanisms.noise.laplace import Blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.mechanisms.noise._fast import Floats


class GaussianSampler(_draws.Sampler):
    """The sampler for one variance parameter σ².

    Candidates are discrete Laplace of an integer scale t and are kept with probability exp(−(|y| −
    σ²/t)²/2σ²). Any t gives the right law; the integer nearest to σ is nearly the fastest. The coin of the
    offset inside its block and this one are thrown as one: the exponents add.
    """

    def __init__(self, variance: Fraction) -> None:
        root = math.isqrt(math.floor(variance))
        t = max(1, root if variance <= Fraction(2 * root + 1, 2) ** 2 else root + 1)
        self._blocks = Blocks(Fraction(t))
        self._variance = variance
        self._centre = variance / t
        block = 2**self._blocks.shift
        self._one = 2.0**-self._blocks.shift if self._blocks.shift < 1000 else 0.0
        self._centre_in_blocks = _fast.to_float(self._centre / block)
        self._steepness = math.sqrt(_fast.to_float(block**2 / (2 * variance)))
        self._offset_rate = _fast.to_float(1 / self._blocks.blocks_per_scale)
        self.dtype = object if self._blocks.wide else np.int64
        self.acceptance = self._acceptance(t)

    def _acceptance(self, t: int) -> float:
        """Slightly below exp(−σ²/2t²)·Σ exp(−k²/2σ²)/Σ exp(−|k|/t), times the offset's share.

        The first sum is at least max(1, σ√2π), by Poisson summation; the second is 1/tanh(1/2t).
        """
        ratio = _fast.to_float(self._variance / t**2)
        half = _fast.to_float(Fraction(1, 2 * t))
        mass = max(half, math.sqrt(ratio * math.pi / 2)) * math.tanh(half) / half
        x = self._offset_rate
        offset = (1 - math.exp(-x)) / x if self._blocks.shift else 1.0
        return 0.999 * mass * math.exp(-ratio / 2) * offset

    def batch(self, candidates: int) -> NDArray[Any]:
        """Discrete Laplace candidates y, each kept with the probability above."""
        blocks = self._blocks
        drawn = blocks.candidates(candidates)
        magnitude: Floats = drawn.minus * np.float64(-self._one)  # |y| in blocks
        if blocks.shift:
            offset = blocks.fraction(drawn)
            magnitude += drawn.block + offset
            offset *= self._offset_rate
        else:
            magnitude += drawn.block
        magnitude -= self._centre_in_blocks
        magnitude *= self._steepness
        with np.errstate(over="ignore"):
            magnitude *= magnitude
        if blocks.shift:
            magnitude += offset
        kept = _fast.survive(bits.words(candidates), magnitude, lambda i: self._exact_exponent(drawn, i))
        return blocks.values(drawn, kept)

    def _exact_exponent(self, drawn: Any, i: int) -> Fraction:
        distance = self._blocks.exact_magnitude(drawn, i) - self._centre
        offset = Fraction(self._blocks.exact_offset(drawn, i)) / self._blocks.scale
        return offset + distance * distance / (2 * self._variance)


@lru_cache(maxsize=256, typed=True)
def _by_sigma(sigma: Any) -> GaussianSampler:
    return GaussianSampler(_draws.rational(sigma, "sigma") ** 2)


@lru_cache(maxsize=256, typed=True)
def _by_variance(variance: Any) -> GaussianSampler:
    return GaussianSampler(_draws.rational(variance, "variance"))


@overload
def discrete_gaussian(
    sigma: float | Fraction | None = None, size: None = None, *, variance: float | Fraction | None = None
) -> int: ...
@overload
def discrete_gaussian(
    sigma: float | Fraction | None = None, *, size: int, variance: float | Fraction | None = None
) -> NDArray[Any]: ...
@overload
def discrete_gaussian(
    sigma: float | Fraction | None, size: int, *, variance: float | Fraction | None = None
) -> NDArray[Any]: ...
def discrete_gaussian(
    sigma: float | Fraction | None = None,
    size: int | None = None,
    *,
    variance: float | Fraction | None = None,
) -> int | NDArray[Any]:
    """Discrete Gaussian noise: P(k) = exp(−k²/2σ²)/Σ exp(−j²/2σ²).

    Guarantee: the law is exact for the rational that `sigma`, or σ² = `variance`, is; draws are independent;
    work and time do not depend on the values drawn, but for an exact fallback of probability below 2⁻⁴⁰ per
    draw.

    Assumes: as `discrete_laplace`.

    References:
        Canonne, Kamath, Steinke (2020), "The Discrete Gaussian for Differential Privacy", algorithm 3 and
        theorem 4 (Δ²/2σ²-zCDP). Proof of this sampler: docs/explanation/exact-noise.md.

    Args:
        sigma: Above 0; an int, a Fraction, or a float taken as the rational it is.
        size: How many; None for one `int`.
        variance: σ², in place of `sigma`: an exact rational σ² needs no square root.

    Returns:
        An `int`, or an array of `size` integers: int64 up to σ = 2⁵², above it Python integers (dtype
        object).

    Example:
        >>> noise = discrete_gaussian(variance=Fraction(41, 2), size=1000)
        >>> noise.dtype, bool(abs(noise.mean()) < 2)
        (dtype('int64'), True)
        >>> discrete_gaussian(1e-300)
        0
    """
    if (sigma is None) == (variance is None):
        raise InputError(
            "Give sigma or variance, one of the two.",
            why="Each alone says how wide the noise is.",
            fix="Leave one of them out.",
        )
    if variance is None:
        sampler = _by_sigma(_draws.lookup_key(sigma, "sigma"))
    else:
        sampler = _by_variance(_draws.lookup_key(variance, "variance"))
    return int(_draws.draw_one(sampler)) if size is None else _draws.draw(sampler, size)
