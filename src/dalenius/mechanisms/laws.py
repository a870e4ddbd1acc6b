"""The two laws of noise on the integers and the sums of two, with their tails.

Sampling is exact, in `dalenius.mechanisms.noise`. The tails here are floats, rounded so that a bound is
never too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from dalenius.mechanisms import noise
from dalenius.mechanisms.interface import probability

# Relative error allowed for a float tail; the sums below are good to about 1e-13.
MARGIN = 1e-9
# Up to this variance tails are summed term by term, past it they are bounded by the normal ones.
_SUMMED = 2**20
_APART = Fraction(1001, 1000)  # of two Laplace scales that are added: nearer ones cannot be told apart in doubles
_SMOOTH = 4  # from this variance on a discrete Gaussian adds to another as a normal law does
_UNSEEN = 1e-20  # chances that no sum of tails sees
_REACH = 40  # P(|X| > 40σ) < 1e-340: no double sees it


@dataclass(frozen=True)
class DiscreteLaplaceLaw:
    """P(k) = tanh(1/2b)·exp(−|k|/b) on the integers, b = ``scale``.

    >>> DiscreteLaplaceLaw(Fraction(10)).noise_error(0.95)
    30
    """

    scale: Fraction

    @cached_property
    def float_variance(self) -> float:
        """2e^(−1/b)/(1 − e^(−1/b))²."""
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    def draw(self, size: int | None = None) -> Any:
        """Exact draws: a Python int, or an array of ``size``."""
        return noise.discrete_laplace(self.scale) if size is None else noise.discrete_laplace(self.scale, size)

    def log_upper_tail(self, k: int) -> float:
        """ln P(X ≥ k) for k ≥ 1: −k/b − ln(1 + e^(−1/b))."""
        return -float(k / self.scale) - math.log1p(math.exp(-float(1 / self.scale)))

    def noise_error(self, confidence: float = 0.95) -> int:
        """The least k with P(|X| > k) ≤ 1 − confidence."""
        target = math.log1p(-probability(confidence, "confidence")) - math.log(2) - MARGIN
        # P(|X| > k) = 2·P(X ≥ k+1)
        return _least(lambda k: self.log_upper_tail(k + 1) <= target)


@dataclass(frozen=True)
class DiscreteGaussianLaw:
    """P(k) ∝ exp(−k²/2σ²) on the integers, σ² = ``variance``.

    >>> DiscreteGaussianLaw(Fraction(100)).noise_error(0.95)
    20
    """

    variance: Fraction

    @cached_property
    def float_variance(self) -> float:
        """σ²."""
        return float(self.variance)

    def draw(self, size: int | None = None) -> Any:
        """Exact draws: a Python int, or an array of ``size``."""
        if size is None:
            return noise.discrete_gaussian(variance=self.variance)
        return noise.discrete_gaussian(variance=self.variance, size=size)

    def upper_tail(self, k: int) -> float:
        """P(X ≥ k) for k ≥ 1, or slightly more.

        Up to σ² = 2²⁰ it is summed. Past it: the normaliser is at least σ√2π (Poisson summation), and each
        term is at most the integral over the unit interval around it where the density is convex (k > σ +
        ½, by Hermite–Hadamard), else over the unit interval before it (it decreases).
        """
        sigma = math.sqrt(self.variance)
        if self.variance <= _SUMMED:
            return _summed_tail(self.variance, k) * (1 + MARGIN)
        start = k - 0.5 if k - 0.5 >= sigma else k - 1.0
        return math.erfc(start / sigma / math.sqrt(2)) / 2 * (1 + MARGIN)

    def noise_error(self, confidence: float = 0.95) -> int:
        """The least k with P(|X| > k) ≤ 1 − confidence."""
        target = (1 - probability(confidence, "confidence")) / 2
        return _gaussian_error(self.variance, target)


Law: TypeAlias = DiscreteLaplaceLaw | DiscreteGaussianLaw


@dataclass(frozen=True)
class SummedLaw:
    """The law of two independent noises together, both Gaussian or both Laplace.

    It is neither of the two laws, and no guarantee is claimed for it; what is computed are its tails, for intervals.

    >>> part = DiscreteGaussianLaw(Fraction(100))
    >>> SummedLaw(part, part).noise_error(0.95), DiscreteGaussianLaw(Fraction(200)).noise_error(0.95)
    (28, 28)
    >>> SummedLaw(DiscreteLaplaceLaw(Fraction(100)), DiscreteLaplaceLaw(Fraction(1))).noise_error(0.95)
    300
    """

    first: Law
    second: Law

    @cached_property
    def float_variance(self) -> float:
        """That of both."""
        return self.first.float_variance + self.second.float_variance

    def __post_init__(self) -> None:
        if type(self.first) is not type(self.second):
            raise TypeError("Noises of two kinds are never added.")

    def draw(self, size: int | None = None) -> Any:
        """Exact draws: a Python int, or an array of ``size``."""
        return self.first.draw(size) + self.second.draw(size)

    def upper_tail(self, k: int) -> float:
        """P(X ≥ k) for k ≥ 1, or slightly more."""
        if isinstance(self.first, DiscreteLaplaceLaw) and isinstance(self.second, DiscreteLaplaceLaw):
            scales = self.first.scale, self.second.scale
            return _laplace_tail(min(scales), max(scales), k)
        if isinstance(self.first, DiscreteGaussianLaw) and isinstance(self.second, DiscreteGaussianLaw):
            variances = self.first.variance, self.second.variance
            return _gaussian_tail(min(variances), max(variances), k)
        raise TypeError("Noises of two kinds are never added.")

    def noise_error(self, confidence: float = 0.95) -> int:
        """The least k with P(|X| > k) ≤ 1 − confidence."""
        target = (1 - probability(confidence, "confidence")) / 2
        return _least(lambda k: self.upper_tail(k + 1) <= target)


def variance_of(law: Law | SummedLaw) -> float:
    """The variance of a law, which remembers it: every cell of a column has the same noise.

    >>> round(variance_of(DiscreteLaplaceLaw(Fraction(1))), 4)
    1.8413
    """
    return law.float_variance


def discrete_gaussian_delta(variance: Fraction, sensitivity: int, epsilon: float) -> float:
    """δ(ε) of discrete Gaussian noise on one integer of sensitivity Δ, or slightly more.

    δ = P(X > t) − e^ε·P(X > t + Δ) with t = εσ²/Δ − Δ/2 [Canonne, Kamath & Steinke (2020), Thm. 7]. As a
    sum without cancellation: δ = Σ_{x > t} g(x), g(x) = P(x)·(1 − exp(−(x−t)Δ/σ²)). Shifts below Δ give
    less: the likelihood ratio is monotone, so the best tests are thresholds, whose power grows with the
    shift.

    Past σ² = 2²⁰ the sum is bounded by ∫g + max g, since g is log-concave and so has one peak; ∫g is at
    most the δ(ε) of continuous noise, and max g ≤ P(t₊)/(1 + t₊/Δ) because max_v e^(−rv)(1−e^(−v)) ≤
    1/(1+r).

    >>> discrete_gaussian_delta(Fraction(400), 1, 1.0) < 1e-9
    True
    """
    from dalenius.accounting.conversions import gaussian_delta

    spread = float(variance)
    sigma = math.sqrt(spread)
    reach, half = epsilon * spread / sensitivity, sensitivity / 2
    # rounding moves it by at most 4·2⁻⁵³ of its parts; δ grows as it falls, and just below an integer it matters
    threshold = (reach - half) - 2.0**-50 * (reach + half)
    if variance <= _SUMMED:
        low = max(math.floor(threshold) + 1, -math.ceil(_REACH * sigma))
        x = np.arange(low, max(low, math.ceil(_REACH * sigma)) + 1, dtype=np.float64)
        terms = np.exp(-x * x / (2 * spread)) * -np.expm1(-np.maximum(x - threshold, 0.0) * sensitivity / spread)
        return float(terms.sum()) / _normaliser(variance) * (1 + MARGIN)
    start = max(0.0, threshold)
    peak = math.exp(-start * start / (2 * spread)) / (sigma * math.sqrt(2 * math.pi)) / (1 + start / sensitivity)
    return (gaussian_delta(sigma / sensitivity, epsilon) + peak) * (1 + MARGIN)


@lru_cache(maxsize=256)
def _normaliser(variance: Fraction) -> float:
    """Σ exp(−k²/2σ²) over the integers."""
    k = np.arange(1, math.ceil(_REACH * math.sqrt(variance)) + 2, dtype=np.float64)
    return 1 + 2 * float(np.exp(-k * k / (2 * float(variance))).sum())


def _summed_tail(variance: Fraction, k: int) -> float:
    last = math.ceil(_REACH * math.sqrt(variance)) + 1
    x = np.arange(k, max(k, last) + 1, dtype=np.float64)
    return float(np.exp(-x * x / (2 * float(variance))).sum()) / _normaliser(variance)


def _laplace_tail(small: Fraction, large: Fraction, k: int) -> float:
    """P(X + Y ≥ k) for discrete Laplace noises of two scales.

    With p = e^(−1/b) the generating function is (1−p)²/(1 + p² − p(z + 1/z)). In w = z + 1/z both have one pole, so by
    partial fractions the product is (V·F − v·f)/(V − v), F and f being the two and V and v twice the reciprocals of
    (1−p)²/p, their variances; so are the tails. Scales that are nearly equal are moved apart, upwards: the tail is then
    slightly more.
    """
    wide, narrow = DiscreteLaplaceLaw(max(large, small * _APART)), DiscreteLaplaceLaw(small)
    most, least = variance_of(wide), variance_of(narrow)
    parts = most * math.exp(wide.log_upper_tail(k)), least * math.exp(narrow.log_upper_tail(k))
    return (parts[0] - parts[1]) / (most - least) * (1 + MARGIN)


def _gaussian_tail(small: Fraction, large: Fraction, k: int) -> float:
    """P(X + Y ≥ k) for discrete Gaussian noises of two variances.

    P(X + Y = k) is proportional to exp(−k²/2(s + l)) times a theta function of variance v = sl/(s + l) at the point
    k·s/(s + l), which varies by less than 1 ± 3·exp(−2π²v) (Poisson summation). With s ≥ 4 that is below 1e-16: the
    tail is that of one discrete Gaussian of variance s + l. For a smaller s it is summed over X.
    """
    if small >= _SMOOTH:
        return DiscreteGaussianLaw(small + large).upper_tail(k) * (1 + MARGIN)
    rest = DiscreteGaussianLaw(large)
    reach = math.ceil(_REACH * math.sqrt(small)) + 1
    chances = [math.exp(-x * x / (2 * float(small))) / _normaliser(small) for x in range(reach + 1)]
    tails = (
        chances[abs(x)] * (rest.upper_tail(k - x) if k - x >= 1 else 1 - rest.upper_tail(1 - k + x))
        for x in range(-reach, reach + 1)
        if chances[abs(x)] > _UNSEEN
    )
    return sum(tails) * (1 + MARGIN)


@lru_cache(maxsize=4096)  # previews ask for the same ones again and again
def _gaussian_error(variance: Fraction, target: float) -> int:
    law = DiscreteGaussianLaw(variance)
    return _least(lambda k: law.upper_tail(k + 1) <= target)


def _least(holds: Callable[[int], bool]) -> int:
    """The least k ≥ 0 at which a monotone condition holds."""
    low, high = -1, 1
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
