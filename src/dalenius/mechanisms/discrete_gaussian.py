"""Discrete Gaussian noise (SPEC M4, M12 in L2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.interface import (
    IntArray,
    Noisy,
    Vector,
    add,
    count,
    integers,
    of_dimension,
    probability,
    rational,
    settle,
)
from dalenius.mechanisms.laws import DiscreteGaussianLaw

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real

_BITS = 24  # variances are rounded up to so many bits past the leading one


@dataclass(frozen=True)
class DiscreteGaussian:
    """Adds noise P(k) ∝ exp(−k²/2σ²) on the integers to each coordinate.

    Guarantee:
        ρ-zCDP with ρ = Δ2²/2σ², for vectors of any length. Both σ² (``variance``) and Δ2² are exact, so ρ is.

    Assumes:
        ``squared_sensitivity`` bounds Σ_j (v_j(D) − v_j(D′))² over neighbours; it is an integer because the
        v_j are. The length of the vector, ``dimension``, is public.

    References:
        Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy (2020), Thm. 4 and
        (vectors) Thm. 14.

    >>> mechanism = DiscreteGaussian(variance=50, squared_sensitivity=4, dimension=3)
    >>> mechanism.rho
    Fraction(1, 25)
    >>> noisy = mechanism.release([10, -20, 30])
    >>> noisy.value.shape, noisy.noise_error(0.95)
    ((3,), 14)
    """

    variance: Real
    squared_sensitivity: int = 1
    dimension: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(
            self,
            squared_sensitivity=count(self.squared_sensitivity, "squared_sensitivity"),
            dimension=count(self.dimension, "dimension"),
            neighbors=Neighbors.of(self.neighbors),
        )
        self.event  # noqa: B018 — its fields are checks too

    @property
    def rho(self) -> Fraction:
        """ρ = Δ2²/2σ², exactly."""
        return Fraction(self.squared_sensitivity) / (2 * rational(self.variance, "variance"))

    @property
    def noise(self) -> DiscreteGaussianLaw:
        """The law of each coordinate's noise."""
        return DiscreteGaussianLaw(rational(self.variance, "variance"))

    @cached_property
    def event(self) -> events.DiscreteGaussian:
        """What a release does, known before it."""
        variance = rational(self.variance, "variance")
        return events.DiscreteGaussian(variance, self.squared_sensitivity, self.dimension, self.neighbors)

    @overload
    def release(self, value: int) -> Noisy[int]: ...
    @overload
    def release(self, value: Vector) -> Noisy[IntArray]: ...
    def release(self, value: object) -> Noisy[Any]:
        """``value`` plus noise, each coordinate its own."""
        exact = of_dimension(integers(value), self.dimension)
        drawn = self.noise.draw(None if isinstance(exact, int) else exact.size)
        return Noisy(add(exact, drawn), self.event, self.noise)

    def noise_error(self, confidence: float = 0.95) -> int:
        """Half-width of one coordinate from the noise alone; needs no data, so it serves previews."""
        return self.noise.noise_error(confidence)

    def utility(self, beta: float) -> int:
        """α = ⌈σ√(2 ln(2d/β))⌉: all d coordinates are within α of the truth with probability 1 − β.

        The noise is sub-Gaussian with parameter σ: P(|X| ≥ α) ≤ 2·exp(−α²/2σ²) [Canonne et al. (2020), §2.2].

        >>> DiscreteGaussian(variance=100, dimension=100).utility(beta=0.05)
        41
        """
        log_ratio = math.log(2 * self.dimension) - math.log(probability(beta, "beta"))
        return math.ceil(math.sqrt(2 * float(self.variance) * log_ratio))


def widened(value: Fraction) -> Fraction:
    """The value, or slightly more, with few digits: exact arithmetic stays fast, and more noise costs no more."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - _BITS)
    return math.ceil(value / unit) * unit
