"""The geometric mechanism (SPEC M2): the Laplace mechanism on integers, written with α = exp(ε/Δ1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dalenius.mechanisms.laplace import Laplace


@dataclass(frozen=True)
class Geometric(Laplace):
    """Adds two-sided geometric noise, P(k) = (α−1)/(α+1)·α^(−|k|) with α = exp(ε/Δ1).

    It is `Laplace` on integers under its older name: with b = Δ1/ε, (α−1)/(α+1) = tanh(1/2b) and α^(−|k|) =
    e^(−|k|/b). Same sampler, same event; only the tail is said in α.

    Guarantee:
        ε-DP for a value, or a vector as a whole, of L1 sensitivity Δ1.

    Assumes:
        As for `Laplace`.

    References:
        Ghosh, Roughgarden & Sundararajan, Universally utility-maximizing privacy mechanisms (2009): for one
        count (Δ1 = 1) it is optimal for every user at once, after that user's own post-processing.

    >>> mechanism = Geometric(epsilon=1)
    >>> round(mechanism.alpha, 3), round(mechanism.probability(0), 3), round(mechanism.tail(5), 4)
    (2.718, 0.462, 0.0099)
    >>> isinstance(mechanism.release(7).value, int)
    True
    """

    @property
    def alpha(self) -> float:
        """α = exp(ε/Δ1), as a float to look at; sampling uses the rational ε/Δ1."""
        exponent = float(1 / self.scale)
        return math.exp(exponent) if exponent < 709 else math.inf

    def probability(self, k: int) -> float:
        """P(X = k)."""
        return math.tanh(float(1 / self.scale / 2)) * math.exp(-float(abs(k) / self.scale))

    def tail(self, k: int) -> float:
        """P(|X| ≥ k) = 2·α^(1−k)/(α+1) for k ≥ 1."""
        return min(1.0, 2 * math.exp(self.noise.log_upper_tail(k))) if k >= 1 else 1.0
