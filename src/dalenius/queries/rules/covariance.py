"""What is measured for COVAR_POP, COVAR_SAMP and CORR, and how the price is shared among it.

A row in which x and y both have a value adds the integers a = floor(x/step + ½) − centre, b likewise, to four or six
sums: 1, a, b, ab and, for correlations, a² and b². All have one factor per unit, the smallest of their C/k, so that
they stay about the same rows; each is then within its own C in the plan's norm, whatever the rows hold, so that a unit
that is added or removed changes it by at most C, and one that is exchanged by as much as `rules.bound` says.
|ab| ≤ |a|·max|b|, so a limit of Σ|a| gives one of Σ|ab|: that is how the product's C is chosen, and C is enforced.

Shares: to first order n·COVAR has the noise of p − νs − μt + (μν − COVAR)n, where s = Σa, t = Σb, p = Σab, μ = s/n,
ν = t/n; n·CORR that of `queries.covariance`. Weights are the squares of these coefficients, averaged over what the
bounds allow: μ over the bounds (or at the total per row, where totals are limited far below), spreads of values that
lie evenly between them, and a correlation evenly between −1 and 1, whose square is ⅓ on average. Nothing here has seen
a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import Aggregate, Expression
from dalenius.measuring.plan import Measure, Statistic
from dalenius.measuring.splitting import weighted
from dalenius.queries.canonical import call

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.queries.rules.bound import _Builder

_SQUARED_CORRELATION = 1 / 3


def covariance(
    builder: _Builder,
    aggregate: Aggregate,
    values: tuple[Expression, Expression],
    where: Expression,
    squares: bool,
    at: Place | None,
) -> Statistic:
    """Count, two sums, sum of products and (for correlations) two sums of squares, around the quietest centres."""
    present = call("and", where, *(call("not", call("is_null", each)) for each in values))
    sides = [_Side.of(builder, each, aggregate, at) for each in values]
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
        tried.append(weighted(measures, _weights(means, [side.spread for side in sides], squares), builder.norm))
    return Statistic("covariance", min(tried, key=lambda each: each.noise).measures)


@dataclass(frozen=True)
class _Side:
    """One of the two values, in its steps."""

    step: Fraction
    low: int
    high: int
    typical: float  # the size of a value that totals and rows allow, on average

    @classmethod
    def of(cls, builder: _Builder, value: Expression, aggregate: Aggregate, at: Place | None) -> _Side:
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


def _product(builder: _Builder, a: Measure, b: Measure, at: Place | None) -> Measure:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    clip = min(a.clip * _largest(b), b.clip * _largest(a))
    found = builder.measure("product", a.value, a.where, a.step, a.centre, (min(corners), max(corners)), clip, at)
    return replace(found, low=a.low, high=a.high, times=b)


def _square(builder: _Builder, a: Measure, at: Place | None) -> Measure:
    return builder.measure("square", a.value, a.where, a.step, a.centre, (a.low, a.high), a.clip * _largest(a), at)


def _largest(measure: Measure) -> int:
    return max(abs(measure.low), abs(measure.high), 1)
