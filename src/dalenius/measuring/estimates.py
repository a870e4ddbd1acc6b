"""From noisy sums to released numbers with intervals.

Everything here is post-processing: it sees noisy integers and the laws of their noise, never data. An interval
covers the value that the clipped and rounded rows give, at the confidence asked; what clipping and rounding did to
the rows is not noise and is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from dalenius.mechanisms.laws import Law, SummedLaw

    Noise: TypeAlias = Law | SummedLaw
    # Σ c·noise as pairs of coefficient and law
    Combination: TypeAlias = Sequence[tuple[float, Noise]]

# Laplace scales nearer to each other than this are moved apart, upwards: the width grows by at most 0.2%.
_APART = 1.001


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released number.

    Attributes:
        value: The number; None when the noise leaves nothing to say.
        noise_error: Half-width at the confidence asked, from the noise alone.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float | int | None
    noise_error: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class NoisySum:
    """A noisy sum of integers, and the law of its noise."""

    value: int
    law: Noise


def level_parts(parts: Sequence[tuple[Noise, Sequence[int]]], bits: Sequence[int]) -> list[tuple[Noise, list[int]]]:
    """Noisy sums that are counted in different parts of a step (`measures`), all in the finest of these.

    Of noise that is counted in finer parts the deviation grows with them; on integers its law is then not quite that of
    a discrete one, by less than the least part.
    """
    finest = max(bits, default=0)
    return [
        (law, list(values)) if each == finest else (scale_law(law, finest - each), [v << finest - each for v in values])
        for (law, values), each in zip(parts, bits, strict=True)
    ]


@lru_cache(maxsize=1024)
def scale_law(law: Noise, bits: int) -> Noise:
    """The law of noise that is counted in 2^bits parts of what it was counted in."""
    from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, SummedLaw

    def scaled(one: Law) -> Law:
        if isinstance(one, DiscreteGaussianLaw):
            return DiscreteGaussianLaw(one.variance * 4**bits)
        return DiscreteLaplaceLaw(one.scale * 2**bits)

    return SummedLaw(scaled(law.first), scaled(law.second)) if isinstance(law, SummedLaw) else scaled(law)


def total(part: NoisySum, step: Fraction, confidence: float, shift: Fraction | int = 0, bits: int = 0) -> Estimate:
    """A sum: ``value``·step + shift, an int when step and shift are whole.

    Counted in 2^bits parts of a step it is rounded to whole ones. What is covered need not be whole, where somebody was
    scaled down: the width is that of the noise and half a step, in whole ones.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> total(NoisySum(1234, DiscreteGaussianLaw(Fraction(100))), Fraction(1, 2), 0.95)
    Estimate(value=617.0, noise_error=10.0, low=607.0, high=627.0)
    >>> total(NoisySum(1234 * 16 + 9, DiscreteGaussianLaw(Fraction(160**2))), Fraction(1), 0.95, bits=4)
    Estimate(value=1235, noise_error=21.0, low=1214.0, high=1256.0)
    """
    steps, width = part.value, _noise_error(part.law, confidence)
    if bits:
        half = 1 << bits >> 1
        steps, width = steps + half >> bits, -(-(width + half) >> bits)
    if step == 1 and shift == 0:  # most counts, and many of them
        return Estimate(steps, float(width), float(steps - width), float(steps + width))
    value, error = steps * step + shift, width * step
    whole = (step.denominator, Fraction(shift).denominator) == (1, 1)
    return Estimate(int(value) if whole else float(value), float(error), float(value - error), float(value + error))


def half_width(noise: Combination, confidence: float) -> float:
    """The w with P(|Σ c·noise| ≤ w) = ``confidence``.

    One part: the coefficient times its law's own, exact on the integers. Of several, a law that is a sum counts as its
    two. All Gaussian: normal. All Laplace, of scales b: P(|Σ| > t) = Σᵢ wᵢ·exp(−t/bᵢ) with wᵢ = Π_{j≠i} bᵢ²/(bᵢ² −
    bⱼ²), by partial fractions of the characteristic function Π 1/(1 + b²u²). Both kinds at once do not occur, and are
    taken as normal.

    >>> from dalenius.mechanisms.laws import DiscreteLaplaceLaw
    >>> law = DiscreteLaplaceLaw(Fraction(1000))
    >>> half_width([(2.0, law)], 0.95)
    5992.0
    >>> round(half_width([(2.0, law), (-1.0, law)], 0.95))
    6548
    """
    from dalenius.mechanisms.laws import DiscreteLaplaceLaw

    heard = [(abs(coefficient), law) for coefficient, law in noise if coefficient]
    if not heard:
        return 0.0
    if len(heard) == 1:
        coefficient, law = heard[0]
        return coefficient * _noise_error(law, confidence)
    single = [(coefficient, law) for coefficient, noise in heard for law in _parts(noise)]
    scales = [coefficient * float(law.scale) for coefficient, law in single if isinstance(law, DiscreteLaplaceLaw)]
    if len(scales) == len(single):
        return _laplace_width(scales, 1 - confidence)
    return normal_width(confidence) * deviation_of(heard)


def _parts(noise: Noise) -> tuple[Law, ...]:
    """The noises that are independent."""
    from dalenius.mechanisms.laws import SummedLaw

    return (noise.first, noise.second) if isinstance(noise, SummedLaw) else (noise,)


def noise_variance(law: Noise) -> float:
    """The variance of a law."""
    return law.float_variance


def ratio_ends(
    estimate: float, pivot: float, count: NoisySum, fixed: Combination, confidence: float
) -> tuple[float, float] | None:
    """The ends of {r : |estimate − r|·n ≤ width of the noise of fixed + (pivot − r)·n}, or None if it is unbounded.

    With u = r − pivot and width = z·deviation this is |û − u| ≤ z√(f² + u²k²), where f and k are the deviations of
    ``fixed`` and of n over n: a quadratic in u. For normal noise z is one number; for Laplace noise it varies a
    little with u and is taken first at the estimate, then at the end so found.
    """
    if count.value <= half_width([(1.0, count.law)], confidence):
        return None
    centre = estimate - pivot
    # Looked up once: this runs for every cell of an answer.
    fixed_variance, count_variance = deviation_of(fixed) ** 2, noise_variance(count.law)
    f, k = math.sqrt(fixed_variance) / count.value, math.sqrt(count_variance) / count.value
    normal = normal_width(confidence) if fixed_variance and _gaussian([*fixed, (1.0, count.law)]) else None

    def end(side: int) -> float | None:
        u = centre
        for _ in range(2 if normal is None else 1):
            if normal is None:
                deviation = math.sqrt(fixed_variance + u * u * count_variance)
                z = half_width([*fixed, (u, count.law)], confidence) / deviation if deviation else 0.0
            else:
                z = normal
            left = 1 - (z * k) ** 2
            if left <= 0:
                return None
            u = (centre + side * z * math.hypot(f * math.sqrt(left), centre * k)) / left
        return u + pivot

    low, high = end(-1), end(1)
    return None if low is None or high is None else (low, high)


def cut_between(value: float, ends: Sequence[float] | None, low: float, high: float) -> Estimate:
    """The estimate with its interval cut to the bounds; the bounds themselves where nothing is known.

    An interval that lies wholly outside them, as one in forty does where the value is at a bound, misses the value
    anyway: half of it, put to that bound, covers no less. So far outside that noise does not explain it, nothing is
    known.
    """
    half = 0.0 if ends is None else (ends[1] - ends[0]) / 2
    if ends is None or ends[1] < low - half or ends[0] > high + half:
        ends = (low, high)
    elif ends[1] < low or ends[0] > high:
        ends = (low, low + half) if ends[1] < low else (high - half, high)
    first, last = min(max(ends[0], low), value), max(min(ends[1], high), value)
    return Estimate(value, max(last - value, value - first), first, last)


def unknown_between(low: float, high: float) -> Estimate:
    """No number, but that it lies between its bounds."""
    return Estimate(None, (high - low) / 2, low, high)


def deviation_of(noise: Combination) -> float:
    """The standard deviation of Σ c·noise."""
    return math.sqrt(sum(coefficient * coefficient * noise_variance(law) for coefficient, law in noise))


def _gaussian(noise: Combination) -> bool:
    from dalenius.mechanisms.laws import DiscreteGaussianLaw

    return all(isinstance(law, DiscreteGaussianLaw) for _, each in noise for law in _parts(each))


@lru_cache(maxsize=64)
def normal_width(confidence: float) -> float:
    """The z with P(|N| ≤ z) = ``confidence`` for normal N."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _laplace_width(scales: Sequence[float], tail: float) -> float:
    """The t with P(|Σ| > t) = ``tail`` for independent Laplace noise of these scales, or at most 0.2% more."""
    unit = max(scales)
    b: list[float] = []
    for scale in sorted(scales):
        b.append(max(scale / unit, b[-1] * _APART) if b else scale / unit)
    weights = [math.prod(x * x / ((x - y) * (x + y)) for y in b if y != x) for x in b]
    # The logarithm of the tail is concave (Prékopa), so Newton's steps come down to the root from above.
    goal, t = math.log(tail), -math.log(tail)
    for _ in range(50):
        terms = [weight * math.exp(-t / x) for weight, x in zip(weights, b, strict=True)]
        chance = sum(terms)
        move = (math.log(chance) - goal) * chance / sum(term / x for term, x in zip(terms, b, strict=True))
        t += move
        if abs(move) <= 1e-9 * t:
            break
    return t * unit


@lru_cache(maxsize=1024)
def _noise_error(law: Noise, confidence: float) -> int:
    """As the law says; remembered, because every cell of a column has the same noise."""
    return law.noise_error(confidence)
