"""How the price of a ratio is split between its parts: so that the average, or the variance, gets the least noise.

The mean is s/n with s = Σ(x − c), n = Σ1. To first order its noise has variance (σs² + μ²σn²)/n², where μ is the mean
less the centre. The variance q/n − μ² has (σq² + 4μ²σs² + (μ² − V)²σn²)/n². With σ² = Δ²/2ρᵢ (Gaussian) the sum
Σ aᵢ/ρᵢ is least for ρᵢ ∝ √aᵢ; with scale Δ/εᵢ (Laplace) Σ aᵢ/εᵢ² is least for εᵢ ∝ aᵢ^⅓. The mean is not known, so μ²
stands for its average over the bounds, or for what the limits of total and rows make of it. All of it is public:
nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dalenius.measuring.plan import Measure

_LEAST = 0.05  # of the price, for each part: no part is left to drown
_PARTS = 1000  # shares are exact fractions


@dataclass(frozen=True)
class Split:
    """Measures with their shares, and how noisy what comes of them is, up to a factor that depends on the price."""

    measures: tuple[Measure, ...]
    noise: float


def split(measures: Sequence[Measure], low: int, high: int, norm: str) -> Split:
    """Shares for [count, sum] or [count, sum, squares] of values between ``low`` and ``high`` (less the centre)."""
    # Where totals are limited below rows × bounds, typical values lie near total per row, far inside the bounds.
    mean_square = min((low * low + low * high + high * high) / 3, (measures[1].clip / measures[0].clip) ** 2)
    spread = (high - low) ** 2 / 12
    weights = [mean_square, 1.0]
    if len(measures) == 3:
        weights = [(mean_square - spread) ** 2 + spread**2, 4 * mean_square, 1.0]
    return weighted(measures, weights, norm)


def weighted(measures: Sequence[Measure], weights: Sequence[float], norm: str) -> Split:
    """Shares that make Σ weight·(variance of the noise) least."""
    squared = [float(each.sensitivity) if norm == "l2" else float(each.sensitivity) ** 2 for each in measures]
    parts = [weight * each for weight, each in zip(weights, squared, strict=True)]
    parts = [max(each, 1e-12 * max(parts), 1e-300) for each in parts]  # none is nothing
    roots = [math.sqrt(each) if norm == "l2" else each ** (1 / 3) for each in parts]
    shares = exact_shares(roots)
    power = 1 if norm == "l2" else 2
    noise = sum(part / float(share) ** power for part, share in zip(parts, shares, strict=True))
    return Split(tuple(replace(each, share=share) for each, share in zip(measures, shares, strict=True)), noise)


def exact_shares(parts: Sequence[float]) -> list[Fraction]:
    """Fractions in proportion to some parts that sum to 1, none below the least."""
    raised = [max(_LEAST, each / sum(parts)) for each in parts]
    whole = [math.floor(_PARTS * each / sum(raised)) for each in raised]
    whole[whole.index(max(whole))] += _PARTS - sum(whole)
    return [Fraction(each, _PARTS) for each in whole]
