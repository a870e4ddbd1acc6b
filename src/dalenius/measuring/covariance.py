"""From noisy sums to covariances and correlations with intervals: post-processing, as in `estimates`.

Of rows with integers a and b the sums n, s = Σa, t = Σb, p = Σab, q = Σa² and w = Σb² are released. With μ = s/n and
ν = t/n the covariance is C = p/n − μν, the variances are V = q/n − μ² and W = w/n − ν².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.measuring.estimates import (
    Estimate,
    Part,
    _deviation,
    _ratio,
    _unknown,
    _within,
    half_width,
)

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.plan import Measure, Statistic

    # what one noise adds to numerator and denominator of a ratio, and its law
    Term = tuple[float, float, Noise]


def covariance(
    count: Part,
    first: Part,
    second: Part,
    products: Part,
    *,
    unit: Fraction,
    most: Fraction,
    confidence: float,
    sample: bool,
) -> Estimate:
    """The covariance of integers from n, s, t and p.

    Near the truth, n·(C − r) is the noise of p − νs − μt + (μν − r)n, so the interval is found as for a mean.

    Args:
        count: n.
        first: s.
        second: t.
        products: p.
        unit: What a product of two integers stands for.
        most: The largest covariance that the bounds allow: a quarter of the product of both ranges.
        confidence: Chance that the interval covers.
        sample: Divide by n − 1 rather than by n; n is the noisy one.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> parts = [Part(value, DiscreteGaussianLaw(Fraction(100))) for value in (1000, 2000, -1000, 10000)]
    >>> found = covariance(*parts, unit=Fraction(1), most=Fraction(100), confidence=0.95, sample=False)
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (12.0, 11.73, 12.28)
    """
    n, s, t, p = count.value, first.value, second.value, products.value
    ceiling = float(most)
    if n <= 0 or (sample and n <= 1.5):
        # n/(n − 1) is at most 2, at the two rows that a sample needs
        return _unknown(-ceiling * (1 + sample), ceiling * (1 + sample))
    mean, other = s / n, t / n
    found = (p * n - s * t) / (n * n)  # exact integers, rounded once
    noise = [(1.0, products.law), (-other, first.law), (-mean, second.law)]
    ends = _ratio(found, mean * other, count, noise, confidence)
    factor = n / (n - 1) if sample else 1.0
    value = min(max(found * float(unit), -ceiling), ceiling) * factor
    scaled = None if ends is None else [end * float(unit) * factor for end in ends]
    edge = ceiling * (factor if scaled else 1 + sample)
    return _within(value, scaled, -edge, edge)


def correlation(count: Part, first: Part, second: Part, products: Part, *squares: Part, confidence: float) -> Estimate:
    """The correlation R = C/D, D = √(V·W), from all six sums; within [−1, 1].

    The interval is Fieller's: all r with |C − r·D| no wider than its noise. With β = √(W/V)/2 and γ = √(V/W)/2 that
    noise is, to first order and over n, the one of

        p − (ν − 2rμβ)s − (μ − 2rνγ)t + (μν − r(βμ² + γν²))n − r(βq + γw).

    Where n, V or W is not clearly positive, D is anything, and so is R.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> parts = [Part(value, DiscreteGaussianLaw(Fraction(10000))) for value in (10000, 0, 0, 60000, 90000, 160000)]
    >>> found = correlation(*parts, confidence=0.95)
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (0.5, 0.4983, 0.5017)
    """
    n, s, t, p = count.value, first.value, second.value, products.value
    q, w = (each.value for each in squares)
    if n <= 0 or q * n <= s * s or w * n <= t * t:
        return _unknown(-1.0, 1.0)
    mean, other = s / n, t / n
    v, u = (q * n - s * s) / (n * n), (w * n - t * t) / (n * n)
    cross, size = (p * n - s * t) / (n * n), math.sqrt(v) * math.sqrt(u)
    value = min(max(cross / size, -1.0), 1.0)
    for spread, square, total, centre in ((v, squares[0], first, mean), (u, squares[1], second, other)):
        noise = [(1.0, square.law), (-2 * centre, total.law), (centre * centre - spread, count.law)]
        if spread * n <= half_width(noise, confidence):
            return _within(value, None, -1.0, 1.0)
    if n <= half_width([(1.0, count.law)], confidence):
        return _within(value, None, -1.0, 1.0)
    one, two = math.sqrt(u / v) / 2, math.sqrt(v / u) / 2
    terms = [
        (1.0, 0.0, products.law),
        (-other, -2 * mean * one, first.law),
        (-mean, -2 * other * two, second.law),
        (mean * other, one * mean * mean + two * other * other, count.law),
        (0.0, one, squares[0].law),
        (0.0, two, squares[1].law),
    ]
    return _within(value, _fieller(cross * n, size * n, terms, confidence), -1.0, 1.0)


def estimator(kind: str, statistic: Statistic, confidence: float) -> Callable[[Sequence[Part]], Estimate]:
    """What turns the noisy sums into an aggregate's number."""
    if kind == "corr":
        return lambda parts: correlation(*parts, confidence=confidence)
    a, b = statistic.measures[1:3]
    unit = a.step * b.step
    return lambda parts: covariance(
        *parts[:4],
        unit=unit,
        most=unit * (a.high - a.low) * (b.high - b.low) / 4,
        confidence=confidence,
        sample=kind == "covar_samp",
    )


def usual(statistic: Statistic, rows: int) -> list[int]:
    """The sums of so many rows whose values spread evenly over the bounds, half correlated; for previews.

    The square of the correlation is ⅓, its average between −1 and 1, as it is where the price is shared.
    """
    count, a, b = statistic.measures[:3]
    (mean, spread), (other, width) = _even(a, count), _even(b, count)
    together = Fraction(math.isqrt(math.floor(spread * width / 3)))
    sums = [Fraction(1), mean, other, mean * other + together, spread + mean * mean, width + other * other]
    return [round(rows * each) for each in sums[: len(statistic.measures)]]


def _even(measure: Measure, count: Measure) -> tuple[Fraction, Fraction]:
    """Mean and variance of a value between its bounds, or near what its total allows, where that is less."""
    mean, spread = Fraction(measure.low + measure.high, 2), Fraction((measure.high - measure.low) ** 2, 12)
    if measure.centre == 0:
        typical = Fraction(measure.clip, count.clip)
        mean, spread = max(-typical, min(mean, typical)), min(spread, typical * typical)
    return mean, spread


def _fieller(top: float, bottom: float, terms: Sequence[Term], confidence: float) -> tuple[float, float] | None:
    """The ends of {r : |top − r·bottom| ≤ width of the noise of Σ(a − r·b)·noise}, or None if it is unbounded.

    With width = z·deviation that is a quadratic in r. For normal noise z is one number; for Laplace noise it varies a
    little with r and is taken first at the estimate, then at the end so found.
    """
    aa, ab, bb = (
        sum(x * y * _deviation([(1.0, law)]) ** 2 for x, y, law in products)
        for products in (
            [(a, a, law) for a, _, law in terms],
            [(a, b, law) for a, b, law in terms],
            [(b, b, law) for _, b, law in terms],
        )
    )

    def end(side: int) -> float | None:
        r = top / bottom
        for _ in range(2):
            noise = [(a - r * b, law) for a, b, law in terms]
            deviation = _deviation(noise)
            z = half_width(noise, confidence) / deviation if deviation else 0.0
            lead = bottom * bottom - z * z * bb
            if lead <= 0:
                return None
            half = top * bottom - z * z * ab
            root = math.sqrt(max(0.0, half * half - lead * (top * top - z * z * aa)))
            r = (half + side * root) / lead
        return r

    low, high = end(-1), end(1)
    return None if low is None or high is None else (low, high)
