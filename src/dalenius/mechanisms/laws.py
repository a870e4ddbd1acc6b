"""The two laws of noise on the integers, with their tails.

Sampling is exact, in `dalenius.mechanisms.noise`. The tails here are floats, rounded so that a bound is
never too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from dalenius.mechanisms import noise
from dalenius.mechanisms.inputs import probability

# Relative error allowed for a float tail; the sums below are good to about 1e-13.
MARGIN = 1e-9
# Up to this variance tails are summed term by term, past it they are bounded by the normal ones.
_SUMMED = 2**20
_REACH = 40  # P(|X| > 40σ) < 1e-340: no double sees it


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw:
    """P(k) = tanh(1/2b)·exp(−|k|/b) on the integers, b = ``scale``.

    >>> DiscreteLaplaceLaw(Fraction(10)).noise_error(0.95)
    30
    """

    scale: Fraction

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


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw:
    """P(k) ∝ exp(−k²/2σ²) on the integers, σ² = ``variance``.

    >>> DiscreteGaussianLaw(Fraction(100)).noise_error(0.95)
    20
    """

    variance: Fraction

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
        return _least(lambda k: self.upper_tail(k + 1) <= target)


Law: TypeAlias = DiscreteLaplaceLaw | DiscreteGaussianLaw


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


def _least(holds: Callable[[int], bool]) -> int:
    """The least k ≥ 0 at which a monotone condition holds."""
    low, high = -1, 1
    while not holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
