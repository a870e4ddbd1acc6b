"""Amplification by sampling: a mechanism on a random part of the data says less about each unit."""

from __future__ import annotations

import math


def amplified_epsilon(epsilon: float, rate: float) -> float:
    """ε′ = ln(1 + q(e^ε − 1)), exactly; "≈ qε" holds only for small ε.

    For Poisson sampling under add-remove and for sampling m of n without replacement under substitute (q = m/n); the
    δ becomes qδ. Balle, Barthe & Gaboardi (2018), Thm. 8 and 9.

    >>> amplified_epsilon(1.0, 1.0)
    1.0
    >>> round(amplified_epsilon(1.0, 0.01), 5)
    0.01704
    """
    if rate == 1:
        return epsilon
    if epsilon < 1:
        return math.log1p(rate * math.expm1(epsilon))
    return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
