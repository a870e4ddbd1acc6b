"""Discrete Laplace noise: P(k) ∝ exp(−|k|/scale) on the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.mechanisms.noise import _batches, _fast, _parameters, bits
from dalenius.mechanisms.noise._blocks import Blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DiscreteLaplace(_batches.Sampler):
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
def _sampler(scale: Any) -> DiscreteLaplace:
    return DiscreteLaplace(_parameters.rational(scale, "scale"))


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
    known = scale if type(scale) in {int, float, Fraction} else _parameters.rational(scale, "scale")
    sampler = _sampler(known)
    return int(_batches.draw_one(sampler)) if size is None else _batches.draw(sampler, size)
