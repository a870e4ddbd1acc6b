"""SKEWNESS, KURTOSIS, KURTOSIS_POP: from the count and the sums of three or four powers of a value.

A row with a value adds 1 and floor(zᵏ/step + ½) for each power k, where z = (x − middle)/half lies between −1 and 1 by
the bounds of x. So every entry of a row is within ±1/step. All sums have one factor per unit, the smallest of their
C/k, so that they stay about the same rows; each is then within its own C in the plan's norm, and
a unit changes it, whatever its rows hold, by as much as `measures` says of C.

Released are n and sₖ = Σzᵏ. With mₖ = sₖ/n the central moments are

    c₂ = m₂ − m₁²,   c₃ = m₃ − 3m₁m₂ + 2m₁³,   c₄ = m₄ − 4m₁m₃ + 6m₁²m₂ − 3m₁⁴,

skewness is c₃/c₂^1.5 and kurtosis c₄/c₂², which do not depend on how x is scaled to z; corrections for samples are
DuckDB's. The interval is Fieller's (`covariance.fieller`): all r with |c₃ − r·c₂^1.5| no wider than its noise to first
order. Where n or c₂ is not clearly positive, the ratio is anything that n values can have.

Shares: weights are the squares of what each sum's noise moves, averaged over values that lie evenly in a half of the
bounds, here or there. Nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.building import moved_shares, weigh_shares
from dalenius.measuring.canonical import call, plain
from dalenius.measuring.estimates import Estimate, NoisySum, cut_between, half_width, unknown_between
from dalenius.measuring.expressions import number
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.covariance import fieller
from dalenius.measuring.statistics.family import (
    AggregateForm,
    Estimator,
    Ratio,
    StatisticRequest,
    UsualGroup,
    one_row,
)

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.building import Builder
    from dalenius.measuring.expressions import Aggregate, Expression


@dataclass(frozen=True, slots=True)
class _Shape:
    """A ratio of central moments: the power of the one above, and as which power of c₂ the one below stands."""

    power: int
    below: float
    sample: bool
    fewest: int  # rows that it needs


_SHAPES = {
    "skewness": _Shape(3, 1.5, sample=True, fewest=3),
    "kurtosis": _Shape(4, 2.0, sample=True, fewest=4),
    "kurtosis_pop": _Shape(4, 2.0, sample=False, fewest=2),
}
_NEEDS = "bounds of x; `rows`"
_FINE, _COARSE, _ROOM = 40, 24, 2**50  # bits of a power between −1 and 1; of what one unit adds, for quick roots
_LEAST = 4  # steps: a variance below is that of rounding
_EVEN = 1.8  # the kurtosis of values that lie evenly
_USUAL = 2.0  # the variance of values, in their squared mean, where it is not known


class Shape(Ratio):
    """How lopsided values lie, and how far out."""

    name = "shape"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        each: AggregateForm(each.upper() + "({})", per_row=True) for each in _SHAPES
    }
    reference = (
        ("SKEWNESS(x), SKEW(x)", "the skewness of a sample, as in DuckDB; 0 of what lies evenly", _NEEDS),
        ("KURTOSIS(x)", "the excess kurtosis of a sample; 0 of a normal law", _NEEDS),
        ("KURTOSIS_POP(x)", "the excess kurtosis without a sample's correction", _NEEDS),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """Count, and sums of powers."""
        value, at = wanted.summed, wanted.at
        least, most = builder.range(value, wanted.first, at)
        present = call("and", wanted.where, call("not", call("is_null", value)))
        step = _step(builder, at)
        scaled = _scaled(value, float(least), float(most))
        last = max(_SHAPES[each.kind].power for each in wanted.aggregates)
        powers = [scaled, *(plain("power", scaled, number(each)) for each in range(2, last + 1))]
        measures = [builder.rows(present, at), *(builder.sum(each, present, step, 0, at) for each in powers)]
        return Statistic(self.name, weigh_shares(measures, _weights(last), builder.norm).measures, least, most)

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:
        """The ratio, with its correction."""
        shape, step, row = _SHAPES[aggregate.kind], statistic.measures[1].step, one_row(statistic)
        return lambda parts: estimate_shape(parts, shape, step=step, confidence=confidence, row=row)

    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        """The sums of values that lie evenly between the bounds."""
        return _sums(statistic, rows, 0.0, 1 / 3)

    def sums_of(self, statistic: Statistic, group: UsualGroup) -> list[int]:
        """The same around their mean, where that is known."""
        half = float(statistic.high - statistic.low) / 2 or 1.0
        if group.mean is None:
            return self.usual(statistic, group.rows)
        differ = _USUAL if group.square is None else group.square - 1
        middle = (group.mean - float(statistic.low + statistic.high) / 2) / half
        return _sums(statistic, group.rows, middle, min(max(differ, 1e-6) * (group.mean / half) ** 2, 1 / 3))

    def reshare(self, before: Statistic, after: Statistic, norm: str) -> Statistic:
        """Shares moved with what one unit can change."""
        return moved_shares(before, after, norm)


def _step(builder: Builder, at: Place | None) -> Fraction:
    """As fine as helps where values lie close together, while lengths have quick roots; what one unit adds must fit."""
    bits, rows = _FINE, builder.row_limit(at)
    while bits > _COARSE and builder.joined(rows << bits) * builder.reach >= _ROOM:
        bits -= 1
    while bits > 1 and builder.joined(rows << bits) >= builder.most:
        bits -= 1
    return Fraction(1, 1 << bits)


def _scaled(value: Expression, low: float, high: float) -> Expression:
    """The value as a number between −1 and 1."""
    middle, half = low + (high - low) / 2, (high - low) / 2 or 1.0
    return plain("div", plain("sub", value, number(middle)), number(half))


def _sums(statistic: Statistic, rows: int, mean: float, spread: float) -> list[int]:
    """The measures of values around a mean that lie evenly."""
    raw = _raw(mean, spread, _EVEN * spread * spread)
    parts = statistic.measures[1].step.denominator
    return [rows, *(round(rows * each * parts) for each in raw[: len(statistic.measures) - 1])]


def _raw(mean: float, second: float, fourth: float) -> list[float]:
    """m₁ to m₄ of values with these central moments, whose third is 0."""
    square = mean * mean
    return [mean, second + square, 3 * mean * second + mean**3, fourth + 6 * square * second + square * square]


def _weights(last: int) -> list[float]:
    """What the variance of each sum's noise counts for, on average over some laws of values."""
    shape = next(each for each in _SHAPES.values() if each.power == last)
    found = [0.0] * (last + 1)
    for mean in (-0.5, 0.0, 0.5):
        moments = _raw(mean, 1 / 12, _EVEN / 144)[:last]
        top, below = _central(shape, moments)
        ratio = top[0] / below[0]
        for at, (a, b) in enumerate(zip(top[1], below[1], strict=True)):
            found[at] += (a - ratio * b) ** 2
    return found


# --- from noisy sums to numbers with intervals: post-processing, as in `estimates`


def _central(shape: _Shape, m: Sequence[float]) -> tuple[tuple[float, list[float]], tuple[float, list[float]]]:
    """Both central moments of a ratio, each with how n times it moves with the noise of n and of each sum."""
    first, second, third = m[:3]
    spread = second - first * first
    wide = [-2 * first, 1.0]
    if shape.power == 3:
        top = third - 3 * first * second + 2 * first**3
        moved = [6 * first * first - 3 * second, -3 * first, 1.0]
    else:
        top = m[3] - 4 * first * third + 6 * first * first * second - 3 * first**4
        moved = [-4 * third + 12 * first * second - 12 * first**3, 6 * first * first, -4 * first, 1.0]
    factor = shape.below * max(spread, 0.0) ** (shape.below - 1)
    lower = [factor * each for each in wide]

    def with_count(value: float, slopes: list[float]) -> list[float]:
        padded = [*slopes, *[0.0] * (len(m) - len(slopes))]
        # n·f(s/n) moves with n by f − Σ f′·m
        return [value - sum(a * b for a, b in zip(padded, m, strict=True)), *padded]

    below = max(spread, 0.0) ** shape.below
    return (top, with_count(top, moved)), (below, with_count(below, lower))


def estimate_shape(
    parts: Sequence[NoisySum], shape: _Shape, *, step: Fraction, confidence: float, row: int = 1
) -> Estimate:
    """Skewness or kurtosis from n and s₁ to s₃ or s₄, which are counted in steps.

    Args:
        parts: n and the sums.
        shape: Which ratio.
        step: What one integer of a sum stands for; one over a whole number.
        confidence: Chance that the interval covers.
        row: What one row adds to n.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> law, fine = DiscreteGaussianLaw(Fraction(100)), DiscreteGaussianLaw(Fraction(100 << 40))
    >>> parts = [NoisySum(10_000, law), *(NoisySum(value << 20, fine) for value in (0, 5_000, 1_000))]
    >>> found = estimate_shape(parts, _SHAPES["skewness"], step=Fraction(1, 2**20), confidence=0.95)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.283, 0.273, 0.293)
    """
    n, sums = parts[0].value, [each.value for each in parts[1 : shape.power + 1]]
    width = half_width([(1.0, parts[0].law)], confidence)
    rows = max(n / row, 0.0)
    edges = _edges(shape, (max(n, 0) + width) / row)
    scale = step.denominator
    # exact integers, rounded once: n²·scale²·c₂, and the ratio's other moment likewise
    spread = sums[1] * n * scale - sums[0] ** 2
    if rows < shape.fewest - 0.5 or spread <= _LEAST * n * n * scale:
        return unknown_between(*edges)
    exact = _exact(shape, n * scale, sums)
    below = (spread / (n * scale) ** 2) ** shape.below
    value = _corrected(shape, exact / below, rows)
    m = [each / (n * scale) for each in sums]
    (_, moved), (_, lower) = _central(shape, m)
    terms = [
        (a / (1 if at == 0 else scale), b / (1 if at == 0 else scale), part.law)
        for at, (a, b, part) in enumerate(zip(moved, lower, parts[: shape.power + 1], strict=True))
    ]
    # first-order noise of n·c₂
    around = [(m[0] ** 2 * 2 - m[1], parts[0].law), (-2 * m[0] / scale, parts[1].law), (1 / scale, parts[2].law)]
    known = n > width and spread / (n * scale**2) > half_width(around, confidence)
    ends = fieller(exact * n, below * n, terms, confidence) if known else None
    told = None if ends is None else [_corrected(shape, each, rows) for each in ends]
    return cut_between(min(max(value, edges[0]), edges[1]), told, *edges)


def _exact(shape: _Shape, n: int, sums: Sequence[int]) -> float:
    """c₃ or c₄, from integers: nᵖ times it has no rounding."""
    first, second, third = sums[:3]
    if shape.power == 3:
        return (third * n**2 - 3 * first * second * n + 2 * first**3) / n**3
    top = sums[3] * n**3 - 4 * first * third * n**2 + 6 * first**2 * second * n - 3 * first**4
    return top / n**4


def _corrected(shape: _Shape, ratio: float, rows: float) -> float:
    """What is answered of a ratio of central moments: DuckDB's corrections for a sample, with at least enough rows."""
    n = max(rows, float(shape.fewest))
    if shape.power == 3:
        return ratio * math.sqrt(n * (n - 1)) / (n - 2)
    if not shape.sample:
        return ratio - 3
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * ratio - 3 * (n - 1))


def _edges(shape: _Shape, rows: float) -> tuple[float, float]:
    """Between which the answer lies for so many values: |c₃| ≤ c₂^1.5·√n and c₂² ≤ c₄ ≤ n·c₂²."""
    n = max(rows, float(shape.fewest))
    if shape.power == 3:
        most = _corrected(shape, math.sqrt(n), n)
        return -most, most
    low, high = (_corrected(shape, each, n) for each in (1.0, n))
    return low, high


FAMILY = Shape()
