"""COVAR_POP, COVAR_SAMP and CORR: what is measured for them, how they share the price, and what the noisy sums say.

A row in which x and y both have a value adds the integers a = floor(x/step + ½) − centre, b likewise, to four or six
sums: 1, a, b, ab and, for correlations, a² and b². All have one factor per unit, the smallest of their C/k, so that
they stay about the same rows; each is then within its own C in the plan's norm, whatever the rows hold, so that a unit
that is added or removed changes it by at most C, and one that is exchanged by as much as `measures` says.
|ab| ≤ |a|·max|b|, so a limit of Σ|a| gives one of Σ|ab|: that is how the product's C is chosen, and C is enforced.

Released are n, s = Σa, t = Σb, p = Σab, q = Σa² and w = Σb². With μ = s/n and ν = t/n the covariance is C = p/n − μν,
the variances are V = q/n − μ² and W = w/n − ν².

Shares: to first order n·COVAR has the noise of p − νs − μt + (μν − COVAR)n; n·CORR that of `correlation`. Weights are
the squares of these coefficients, averaged over what the bounds allow: μ over the bounds (or at the total per row,
where totals are limited far below), spreads of values that lie evenly between them, and a correlation evenly between
−1 and 1, whose square is ⅓ on average. Nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.building import moved_shares, weigh_shares
from dalenius.measuring.canonical import call
from dalenius.measuring.estimates import (
    Estimate,
    NoisySum,
    cut_between,
    deviation_of,
    half_width,
    ratio_ends,
    unknown_between,
)
from dalenius.measuring.plan import Measure, Statistic
from dalenius.measuring.statistics.family import AggregateForm, Estimator, Ratio, StatisticRequest, one_row

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.building import Builder
    from dalenius.measuring.estimates import Noise
    from dalenius.measuring.expressions import Aggregate, Expression

    # what one noise adds to numerator and denominator of a ratio, and its law
    Term = tuple[float, float, Noise]

_SQUARED_CORRELATION = 1 / 3
_SAMPLES = {"covar_pop": False, "covar_samp": True}  # whether it is divided by n − 1
_NEEDS = "bounds of x and y; `rows`"


class Covariance(Ratio):
    """How two values go together."""

    name = "covariance"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        each: AggregateForm(each.upper() + "({})", symmetric=True) for each in (*_SAMPLES, "corr")
    }
    reference = (
        ("COVAR_SAMP(x, y)", "the covariance, over n − 1; rows in which both are not NULL", _NEEDS),
        ("COVAR_POP(x, y)", "the covariance, over n", _NEEDS),
        ("CORR(x, y)", "the correlation, between −1 and 1", _NEEDS),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """Count, two sums, sum of products and (for correlations) two sums of squares, around the quietest centres."""
        values, at = (wanted.summed, wanted.second), wanted.at
        squares = any(each.kind not in _SAMPLES for each in wanted.aggregates)
        present = call("and", wanted.where, *(call("not", call("is_null", each)) for each in values))
        sides = [_Side.of(builder, each, wanted.first, at) for each in values]
        rows = builder.rows(present, at)
        tried = []
        for centres in product(*(side.centres for side in sides)):
            a, b = (
                builder.sum(value, present, side.step, centre, at)
                for value, side, centre in zip(values, sides, centres, strict=True)
            )
            measures = [rows, a, b, _product(builder, a, b, at)]
            if squares:
                measures += [_square(builder, a, at), _square(builder, b, at)]
            means = [side.mean_square(centre) for side, centre in zip(sides, centres, strict=True)]
            tried.append(
                weigh_shares(measures, _weights(means, [side.spread for side in sides], squares), builder.norm)
            )
        return Statistic(self.name, min(tried, key=lambda each: each.noise).measures)

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:
        """The covariance, or the correlation."""
        sample = _SAMPLES.get(aggregate.kind)
        if sample is None:
            return lambda parts: correlation(*parts, confidence=confidence)
        a, b = statistic.measures[1:3]
        unit = a.step * b.step
        most = unit * (a.high - a.low) * (b.high - b.low) / 4
        row = one_row(statistic)
        return lambda parts: covariance(*parts[:4], unit=unit, most=most, confidence=confidence, sample=sample, row=row)

    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        """The sums of rows whose values spread evenly over the bounds, half correlated.

        The square of the correlation is ⅓, its average between −1 and 1, as it is where the price is shared.
        """
        count, a, b = statistic.measures[:3]
        (mean, spread), (other, width) = _even(a, count), _even(b, count)
        together = Fraction(math.isqrt(math.floor(spread * width / 3)))
        sums = [Fraction(1), mean, other, mean * other + together, spread + mean * mean, width + other * other]
        return [round(rows * each) for each in sums[: len(statistic.measures)]]

    def reshare(self, before: Statistic, after: Statistic, norm: str) -> Statistic:
        """Shares moved with what one unit can change: they are least noisy in proportion to Δ (Δ^⅔ under pure DP)."""
        return moved_shares(before, after, norm)


@dataclass(frozen=True)
class _Side:
    """One of the two values, in its steps."""

    step: Fraction
    low: int
    high: int
    typical: float  # the size of a value that totals and rows allow, on average

    @classmethod
    def of(cls, builder: Builder, value: Expression, aggregate: Aggregate, at: Place | None) -> _Side:
        step = builder.coarsened(value, builder.step(value, *builder.range(value, aggregate, at)), at)
        low, high = builder.whole_range(value, step)
        total = builder.sum(value, aggregate.where, step, 0, at).clip
        return cls(step, low, high, total / builder.joined(builder.row_limit(at)))

    @property
    def centres(self) -> Sequence[int]:
        return list(dict.fromkeys((0, (self.low + self.high) // 2)))

    @property
    def limited(self) -> bool:
        """Whether totals keep values, on average, far inside the bounds."""
        return self.typical**2 < self._even(0)

    def mean_square(self, centre: int) -> float:
        return (self.typical - centre) ** 2 if self.limited else self._even(centre)

    @property
    def spread(self) -> float:
        even = (self.high - self.low) ** 2 / 12
        return max(1.0, min(even, self.typical**2) if self.limited else even)

    def _even(self, centre: int) -> float:
        low, high = self.low - centre, self.high - centre
        return (low * low + low * high + high * high) / 3


def _weights(means: Sequence[float], spreads: Sequence[float], squares: bool) -> list[float]:
    """What the variance of each sum's noise counts for: of count, sums, product and squares."""
    (m, v), (n, w) = zip(means, spreads, strict=True)
    if not squares:
        return [m * n + _SQUARED_CORRELATION * v * w, n, m, 1.0]
    r = _SQUARED_CORRELATION
    count = m * n / (v * w) + r / 4 * ((m / v) ** 2 + (n / w) ** 2)
    first, second = n / (v * w) + r * m / v**2, m / (v * w) + r * n / w**2
    return [count, first, second, 1 / (v * w), r / 4 / v**2, r / 4 / w**2]


def _product(builder: Builder, a: Measure, b: Measure, at: Place | None) -> Measure:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    clip = min(a.clip * b.largest, b.clip * a.largest)
    found = builder.measure("product", a.value, a.where, a.step, a.centre, (min(corners), max(corners)), clip, at)
    return replace(found, low=a.low, high=a.high, times=b)


def _square(builder: Builder, a: Measure, at: Place | None) -> Measure:
    return builder.measure("square", a.value, a.where, a.step, a.centre, (a.low, a.high), a.clip * a.largest, at)


def _even(measure: Measure, count: Measure) -> tuple[Fraction, Fraction]:
    """Mean and variance of a value between its bounds, or near what its total allows, where that is less."""
    mean, spread = Fraction(measure.low + measure.high, 2), Fraction((measure.high - measure.low) ** 2, 12)
    if measure.centre == 0:
        typical = Fraction(measure.clip, count.clip)
        mean, spread = max(-typical, min(mean, typical)), min(spread, typical * typical)
    return mean, spread


# --- from noisy sums to numbers with intervals: post-processing, as in `estimates`


def covariance(
    count: NoisySum,
    first: NoisySum,
    second: NoisySum,
    products: NoisySum,
    *,
    unit: Fraction,
    most: Fraction,
    confidence: float,
    sample: bool,
    row: int = 1,
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
        row: What one row adds to n, where all are counted in parts of a row.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> parts = [NoisySum(value, DiscreteGaussianLaw(Fraction(100))) for value in (1000, 2000, -1000, 10000)]
    >>> found = covariance(*parts, unit=Fraction(1), most=Fraction(100), confidence=0.95, sample=False)
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (12.0, 11.73, 12.28)
    """
    n, s, t, p = count.value, first.value, second.value, products.value
    ceiling = float(most)
    if n <= 0 or (sample and n <= 1.5 * row):
        # n/(n − 1) is at most 2, at the two rows that a sample needs
        return unknown_between(-ceiling * (1 + sample), ceiling * (1 + sample))
    mean, other = s / n, t / n
    found = (p * n - s * t) / (n * n)  # exact integers, rounded once
    noise = [(1.0, products.law), (-other, first.law), (-mean, second.law)]
    ends = ratio_ends(found, mean * other, count, noise, confidence)
    factor = min(2.0, n / (n - row)) if sample else 1.0  # 2 at the two rows that a sample needs
    value = min(max(found * float(unit), -ceiling), ceiling) * factor
    scaled = None if ends is None else [end * float(unit) * factor for end in ends]
    edge = ceiling * (factor if scaled else 1 + sample)
    return cut_between(value, scaled, -edge, edge)


def correlation(
    count: NoisySum, first: NoisySum, second: NoisySum, products: NoisySum, *squares: NoisySum, confidence: float
) -> Estimate:
    """The correlation R = C/D, D = √(V·W), from all six sums; within [−1, 1].

    The interval is Fieller's: all r with |C − r·D| no wider than its noise. With β = √(W/V)/2 and γ = √(V/W)/2 that
    noise is, to first order and over n, the one of

        p − (ν − 2rμβ)s − (μ − 2rνγ)t + (μν − r(βμ² + γν²))n − r(βq + γw).

    Where n, V or W is not clearly positive, D is anything, and so is R.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> parts = [NoisySum(value, DiscreteGaussianLaw(Fraction(10000))) for value in (10000, 0, 0, 60000, 90000, 160000)]
    >>> found = correlation(*parts, confidence=0.95)
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (0.5, 0.4983, 0.5017)
    """
    n, s, t, p = count.value, first.value, second.value, products.value
    q, w = (each.value for each in squares)
    if n <= 0 or q * n <= s * s or w * n <= t * t:
        return unknown_between(-1.0, 1.0)
    mean, other = s / n, t / n
    v, u = (q * n - s * s) / (n * n), (w * n - t * t) / (n * n)
    cross, size = (p * n - s * t) / (n * n), math.sqrt(v) * math.sqrt(u)
    value = min(max(cross / size, -1.0), 1.0)
    for spread, square, total, centre in ((v, squares[0], first, mean), (u, squares[1], second, other)):
        noise = [(1.0, square.law), (-2 * centre, total.law), (centre * centre - spread, count.law)]
        if spread * n <= half_width(noise, confidence):
            return cut_between(value, None, -1.0, 1.0)
    if n <= half_width([(1.0, count.law)], confidence):
        return cut_between(value, None, -1.0, 1.0)
    one, two = math.sqrt(u / v) / 2, math.sqrt(v / u) / 2
    terms = [
        (1.0, 0.0, products.law),
        (-other, -2 * mean * one, first.law),
        (-mean, -2 * other * two, second.law),
        (mean * other, one * mean * mean + two * other * other, count.law),
        (0.0, one, squares[0].law),
        (0.0, two, squares[1].law),
    ]
    return cut_between(value, fieller(cross * n, size * n, terms, confidence), -1.0, 1.0)


def fieller(top: float, bottom: float, terms: Sequence[Term], confidence: float) -> tuple[float, float] | None:
    """The ends of {r : |top − r·bottom| ≤ width of the noise of Σ(a − r·b)·noise}, or None if it is unbounded.

    With width = z·deviation that is a quadratic in r. For normal noise z is one number; for Laplace noise it varies a
    little with r and is taken first at the estimate, then at the end so found.
    """
    aa, ab, bb = (
        sum(x * y * deviation_of([(1.0, law)]) ** 2 for x, y, law in products)
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
            deviation = deviation_of(noise)
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


FAMILY = Covariance()
