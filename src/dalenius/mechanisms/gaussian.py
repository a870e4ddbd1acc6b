"""Gaussian noise calibrated to a promise (SPEC M3, errata 5): by (ε, δ), classical or tight, or by ρ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self

from dalenius.accounting import parameters
from dalenius.accounting.conversions import smallest, zcdp_epsilon, zcdp_rho
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.interface import rational, round_up
from dalenius.mechanisms.laws import MARGIN, discrete_gaussian_delta

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class Gaussian(DiscreteGaussian):
    """`DiscreteGaussian` whose variance is found from a promise, rounded up to a short rational.

    Guarantee:
        ρ-zCDP with ρ = Δ2²/2σ², whichever way σ² was found; and by construction the (ε, δ) that was asked
        for:

        * ``classical``, σ² = 2 ln(1.25/δ)·Δ2²/ε². Its textbook theorem is about continuous noise and ε ≤ 1,
          so past 1 it is refused, and within it the promise is taken from ρ by the tight conversion, which
          these σ² satisfy.
        * ``analytic``, for one number: the least σ² at which the exact δ(ε) of the *discrete* Gaussian is
          at most δ. For vectors no exact profile is known (it depends on the whole shift, not only on its
          norm); there σ² = Δ2²/2ρ with the largest ρ whose tight conversion gives (ε, δ).
        * ``of_rho``, σ² = Δ2²/2ρ.

    Assumes:
        As for `DiscreteGaussian`.

    References:
        Dwork & Roth (2014), Thm. A.1 (classical; ε ≤ 1 only). Balle & Wang (2018), Thm. 8 (the analytic
        idea). Canonne, Kamath & Steinke (2020), Thm. 4 (ρ), Thm. 7 (exact δ(ε), one number), Cor. 13
        (conversion).

    >>> tight = Gaussian.analytic(epsilon=1, delta=1e-6, squared_sensitivity=1)
    >>> loose = Gaussian.classical(epsilon=1, delta=1e-6, squared_sensitivity=1)
    >>> round(float(tight.variance), 1), round(float(loose.variance), 1)
    (17.9, 28.1)
    >>> Gaussian.of_rho(rho=Fraction(1, 8), squared_sensitivity=9).variance
    Fraction(36, 1)
    >>> abs(tight.release(500).value - 500) < 300
    True
    """

    @classmethod
    def classical(
        cls,
        *,
        epsilon: Real,
        delta: Real,
        squared_sensitivity: int,
        dimension: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """σ² = 2 ln(1.25/δ)·Δ2²/ε², for ε ≤ 1."""
        exact, failure = rational(epsilon, "epsilon"), _delta(delta)
        if exact > 1:
            raise InputError(
                "The classical calibration holds for epsilon up to 1.",
                why="Its proof ends there, and past it the noise is too small.",
                fix="Use Gaussian.analytic.",
            )
        parameters.count(squared_sensitivity, "squared_sensitivity")
        variance = _up(2 * (math.log(1.25) - math.log(failure))) * squared_sensitivity / exact**2
        found = cls(round_up(variance), squared_sensitivity, dimension, neighbors)
        if zcdp_epsilon(_up_float(found.rho), failure) > exact:
            raise InputError(
                "The classical calibration does not reach this epsilon and delta.",
                why="For discrete noise it is proved by way of ρ, which fails for a large delta.",
                fix="Use Gaussian.analytic.",
            )
        return found

    @classmethod
    def analytic(
        cls,
        *,
        epsilon: Real,
        delta: Real,
        squared_sensitivity: int,
        dimension: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """The least noise for (ε, δ): exact for one number, by ρ for vectors."""
        target, failure = float(rational(epsilon, "epsilon")), _delta(delta)
        parameters.count(squared_sensitivity, "squared_sensitivity")
        target *= 1 - 2.0**-50  # a float just below an exact ε
        variance = round_up(_up(squared_sensitivity / (2 * Fraction(zcdp_rho(target, failure)))))
        if parameters.count(dimension, "dimension") == 1:
            # one integer of squared change at most Δ2² changes by at most ⌊√Δ2²⌋
            step = math.isqrt(squared_sensitivity)

            def holds(candidate: float | Fraction) -> bool:
                return discrete_gaussian_delta(Fraction(candidate), step, target) <= failure

            least = smallest(holds, float(variance), precision=1e-9)
            # checked again at the very number used, so that nothing rests on δ(ε) falling as σ² grows
            if least < variance and holds(_up(least)):
                variance = min(variance, _up(least))
        return cls(variance, squared_sensitivity, dimension, neighbors)

    @classmethod
    def of_rho(
        cls,
        *,
        rho: Real,
        squared_sensitivity: int,
        dimension: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """σ² = Δ2²/2ρ."""
        parameters.count(squared_sensitivity, "squared_sensitivity")
        variance = Fraction(squared_sensitivity) / (2 * rational(rho, "rho"))
        return cls(round_up(variance), squared_sensitivity, dimension, neighbors)


def _delta(value: Real) -> float:
    """A δ strictly between 0 and 1."""
    number = parameters.delta(value)
    if number == 0:
        raise InputError(
            "Gaussian noise needs a delta above 0.",
            why="It is not ε-DP for any ε.",
            fix="Give a delta such as 1e-6, or use Laplace.",
        )
    return number


def _up(value: float | Fraction) -> Fraction:
    """A rational safely above a float computed with a relative error well below 1e-9."""
    return round_up(Fraction(value) * (1 + Fraction(MARGIN)))


def _up_float(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf)
