"""Noise that parties make together: each adds discrete Gaussian noise, and only the sum is ever seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.events import Zcdp
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.discrete_gaussian import widened
from dalenius.mechanisms.laws import DiscreteGaussianLaw

if TYPE_CHECKING:
    from typing import Self

LEAST = Fraction(16)
"""A party's variance, at the least: σ ≥ 4 keeps τ below what any float can hold beside 1."""
_TAU = Fraction(1, 2**227)  # exp(−16π²) < 2⁻²²⁷, as 16π²/ln 2 > 227.8


@dataclass(frozen=True)
class SummedGaussian:
    """Each of n parties adds discrete Gaussian noise of variance ``part`` to every coordinate of its own vector.

    Guarantee:
        Towards whoever sees the sum and knows the vectors and the noise of any ``colluding`` parties, ρ-zCDP with
        ρ = Δ2²/2mσ² + τd: m = n − t parties' noise stays unknown, σ² is ``part``, d the ``dimension``, and
        τ = 10·Σ_{k=1}^{m−1} exp(−2π²σ²k/(k+1)). Since k/(k+1) ≥ 1/2 and σ² ≥ 16, τ ≤ 10(m−1)·2⁻²²⁷. A sum of discrete
        Gaussians is not a discrete Gaussian; τ is the price of that.

    Assumes:
        ``squared_sensitivity`` bounds what one unit changes in the *sum* of all parties' vectors: where a person may
        be in k parties, each of which brings what it adds within C, that is (kC)² = k²C² by the triangle inequality,
        whatever the relation. Parties draw their noise as they should (semi-honest); at most ``colluding`` of them
        pool what they know. Without a coalition there is more noise than is counted.

    References:
        Kairouz, Liu & Steinke, The distributed discrete Gaussian mechanism for federated learning with secure
        aggregation (2021), Thm. 1: D_α ≤ αΔ2²/2mσ² + τd, which is at most α(Δ2²/2mσ² + τd) for α ≥ 1.

    >>> made = SummedGaussian.priced(Fraction(1, 40), squared_sensitivity=9, dimension=4, parties=3, colluding=1)
    >>> round(float(made.part), 3), made.rho <= Fraction(1, 40), round(float(made.rho), 6)
    (90.0, True, 0.025)
    """

    part: Fraction
    squared_sensitivity: int
    dimension: int
    parties: int
    colluding: int
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        if not 1 <= self.colluding < self.parties:
            raise InputError(
                f"A threshold of {self.colluding} does not fit {self.parties} parties.",
                why="At least one may collude, and not all: noise that everybody knows hides nothing.",
                fix="Take one below the number of parties.",
            )
        if self.part < LEAST:
            raise InputError(
                "The noise of one party is too small.",
                why="The guarantee of summed noise is proved for a standard deviation of 4 and more.",
                fix="Give a smaller epsilon.",
            )

    @classmethod
    def priced(
        cls,
        rho: Fraction,
        *,
        squared_sensitivity: int,
        dimension: int,
        parties: int,
        colluding: int,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """The least noise that costs no more than ρ, rounded up to few digits.

        Raises:
            InputError: So small a ρ is below what τ costs.
        """
        honest = max(1, parties - colluding)
        left = rho - 10 * (honest - 1) * _TAU * dimension
        if left <= 0:
            raise InputError("The price is too small.", why="Nothing would be left.", fix="Give a larger epsilon.")
        part = max(LEAST, widened(Fraction(squared_sensitivity) / (2 * honest * left)))
        return cls(part, squared_sensitivity, dimension, parties, colluding, neighbors)

    @property
    def rho(self) -> Fraction:
        """ρ = Δ2²/2mσ² + τd, exactly, with a bound on τ."""
        honest = self.parties - self.colluding
        return self.squared_sensitivity / (2 * honest * self.part) + 10 * (honest - 1) * _TAU * self.dimension

    @property
    def event(self) -> Zcdp:
        """What a release does, known before it."""
        return Zcdp(self.rho, 0, self.neighbors)

    @property
    def own(self) -> DiscreteGaussianLaw:
        """The law of what one party adds to each coordinate."""
        return DiscreteGaussianLaw(self.part)

    @property
    def noise(self) -> DiscreteGaussianLaw:
        """The law of a coordinate's noise in the sum, for intervals: at σ ≥ 4 that of one noise of variance nσ².

        Ratios of chances differ by less than 10n·exp(−16π²), which is below 10⁻⁶⁶·n (same theorem).
        """
        return DiscreteGaussianLaw(self.parties * self.part)

    @property
    def reach(self) -> int:
        """No coordinate's noise is larger, but for a chance below 2⁻²⁰⁰·d: 20 standard deviations of the sum."""
        return math.isqrt(math.ceil(400 * self.parties * self.part)) + 1
