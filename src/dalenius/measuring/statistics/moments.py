"""AVG, VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP: from the count, the sum and, for the last four, the sum of squares.

A row with a value adds 1, y and y², y = floor(x/step + ½) − centre. The three have one factor per unit, the smallest
of their C/k, so that they stay about the same rows; each is then within its own C in the plan's norm, whatever the rows
hold, and a unit changes it by as much as `measures` says of C. Σy² ≤ max|y|·Σ|y|, so a limit of totals gives one of
squares: that is how their C is chosen, and C is enforced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.building import split_price
from dalenius.measuring.canonical import call
from dalenius.measuring.estimates import Estimate, NoisySum, cut_between, ratio_ends, unknown_between
from dalenius.measuring.plan import Measure, Statistic
from dalenius.measuring.statistics.family import (
    AggregateForm,
    Estimator,
    PerGroup,
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
class _Spread:
    """Which measure of spread: divided by n − 1 rather than by n; as a standard deviation."""

    sample: bool
    root: bool


_SPREADS = {
    "var_samp": _Spread(sample=True, root=False),
    "var_pop": _Spread(sample=False, root=False),
    "stddev_samp": _Spread(sample=True, root=True),
    "stddev_pop": _Spread(sample=False, root=True),
}
_NEEDS = "bounds of x; `rows`"
_USUAL = 2.0  # the variance of values, in their squared mean, where it is not known


class Moments(Ratio):
    """The average of a value, and its spread."""

    name = "moments"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "avg": AggregateForm("AVG({})", per_row=True, per_group=PerGroup.VALUES),
        **{each: AggregateForm(each.upper() + "({})", per_row=True) for each in _SPREADS},
    }
    reference = (
        ("AVG(x)", "the average of what is not NULL", _NEEDS),
        ("VAR_SAMP(x), VARIANCE(x)", "the variance, over n − 1", _NEEDS),
        ("VAR_POP(x)", "the variance, over n", _NEEDS),
        ("STDDEV_SAMP(x), STDDEV(x)", "the standard deviation, over n − 1", _NEEDS),
        ("STDDEV_POP(x)", "the standard deviation, over n", _NEEDS),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """Count, sum and (for variances) sum of squares, around the centre that gives the least noise."""
        value, where, at = wanted.summed, wanted.where, wanted.at
        step = builder.step(value, *builder.range(value, wanted.first, at))
        squares = any(each.kind in _SPREADS for each in wanted.aggregates)
        step = builder.coarsened(value, step, at) if squares else step
        present = call("and", where, call("not", call("is_null", value)))
        low, high = builder.whole_range(value, step)
        tried = []
        for centre in dict.fromkeys((0, (low + high) // 2)):
            measures = [builder.rows(present, at), builder.sum(value, where, step, centre, at)]
            if squares:
                measures.append(_square(builder, value, where, step, centre, at))
            tried.append(split_price(measures, low - centre, high - centre, builder.norm))
        best = min(tried, key=lambda each: each.noise)
        return Statistic(self.name, best.measures, low * step, high * step)

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:
        """The mean, or the spread."""
        summed, low, high = statistic.measures[1], statistic.low, statistic.high
        step, centre, spread = summed.step, summed.centre, _SPREADS.get(aggregate.kind)
        if spread is None:
            return lambda parts: mean(
                parts[0], parts[1], step=step, centre=centre, low=low, high=high, confidence=confidence
            )
        return lambda parts: variance(
            parts[0],
            parts[1],
            parts[2],
            step=step,
            low=low,
            high=high,
            confidence=confidence,
            sample=spread.sample,
            root=spread.root,
            row=one_row(statistic),
        )

    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        """The sums of a group whose values spread evenly over the bounds."""
        count, summed, width = statistic.measures[0], statistic.measures[1], statistic.high - statistic.low
        centre = summed.centre * summed.step
        middle = ((statistic.low + statistic.high) / 2 - centre) / summed.step
        spread = (width / summed.step) ** 2 / 12
        if summed.centre == 0:  # or whose totals are near their limit, where that is less
            typical = Fraction(summed.clip, count.clip)
            middle, spread = min(middle, typical), min(spread, typical * typical)
        sums = [rows, round(rows * middle), round(rows * (spread + middle * middle))]
        return sums[: len(statistic.measures)]

    def sums_of(self, statistic: Statistic, group: UsualGroup) -> list[int]:
        """The same around their mean, where that is known; else they spread about as far from it as it is large."""
        if group.mean is None:
            return self.usual(statistic, group.rows)
        summed = statistic.measures[1]
        mean = group.mean / float(summed.step)
        differ = _USUAL if group.square is None else group.square - 1
        spread = min(differ * mean * mean, float((statistic.high - statistic.low) / summed.step) ** 2 / 12)
        middle = mean - summed.centre
        sums = [group.rows, round(group.rows * middle), round(group.rows * (spread + middle * middle))]
        return sums[: len(statistic.measures)]

    def reshare(self, before: Statistic, after: Statistic, norm: str) -> Statistic:  # noqa: ARG002 all is in `after`
        """Shares that make the noise least at the new clips."""
        whole, summed = sum((each.share for each in after.measures), Fraction(0)), after.measures[1]
        shares = split_price(after.measures, summed.low, summed.high, norm).measures
        return replace(after, measures=tuple(replace(each, share=each.share * whole) for each in shares))


def _square(
    builder: Builder, value: Expression, where: Expression, step: Fraction, centre: int, at: Place | None
) -> Measure:
    low, high = builder.whole_range(value, step)
    largest = max(abs(low - centre), abs(high - centre), 1)
    clips = [builder.row_limit(at) * largest**2]
    total = builder.dominated(value)
    if total is not None and centre == 0:  # Σx² ≤ max |x| · Σ|x|
        clips.append(max(1, math.floor(Fraction(total) / step)) * largest)
    clip = builder.joined(min(clips))
    return builder.measure("square", value, where, step, centre, (low - centre, high - centre), clip, at)


# --- from noisy sums to numbers with intervals: post-processing, as in `estimates`


def mean(
    count: NoisySum, total: NoisySum, *, step: Fraction, centre: int, low: Fraction, high: Fraction, confidence: float
) -> Estimate:
    """The mean of integers v, in units of ``step``, from n and s = Σ(v − centre).

    The interval is Fieller's: all r with |s − r·n| no wider than the noise of s − r·n, within the bounds. When n is
    not clearly positive, that is every r, and the bounds themselves are the interval.

    Args:
        count: n.
        total: s.
        step: What one integer stands for.
        centre: The integer that was subtracted from each.
        low: Least value a row can have, in the column's own units.
        high: Largest such value.
        confidence: Chance that the interval covers.

    References:
        Fieller (1954), "Some problems in interval estimation".

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> law = DiscreteGaussianLaw(Fraction(100))
    >>> bounds = {"low": Fraction(0), "high": Fraction(100)}
    >>> age = mean(NoisySum(1000, law), NoisySum(-9000, law), step=Fraction(1), centre=50, confidence=0.95, **bounds)
    >>> age.value, round(age.low, 2), round(age.high, 2)
    (41.0, 40.82, 41.17)
    """
    if count.value <= 0:
        return unknown_between(float(low), float(high))
    exact = (centre + Fraction(total.value, count.value)) * step
    value = float(min(max(exact, low), high))
    ends = ratio_ends(total.value / count.value, 0.0, count, [(1.0, total.law)], confidence)
    scaled = None if ends is None else [(centre + end) * float(step) for end in ends]
    return cut_between(value, scaled, float(low), float(high))


def variance(
    count: NoisySum,
    first: NoisySum,
    second: NoisySum,
    *,
    step: Fraction,
    low: Fraction,
    high: Fraction,
    confidence: float,
    sample: bool,
    root: bool,
    row: int = 1,
) -> Estimate:
    """The variance or standard deviation of integers v from n, s = Σy and q = Σy², y = v − centre.

    V = q/n − μ² with μ = s/n. Near the truth, n·(V − r) is the noise of q − 2μs + (μ² − r)n, so the interval is
    found as for a mean. The bounds are 0 and a quarter of the squared range (Popoviciu).

    Args:
        count: n.
        first: s.
        second: q.
        step: What one integer stands for.
        low: Least value a row can have, in the column's own units.
        high: Largest such value.
        confidence: Chance that the interval covers.
        sample: Divide by n − 1 rather than by n; n is the noisy one.
        root: Answer the standard deviation.
        row: What one row adds to n, where all three are counted in parts of a row.

    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> parts = [NoisySum(value, DiscreteGaussianLaw(Fraction(100))) for value in (1000, 2000, 29000)]
    >>> bounds = {"low": Fraction(0), "high": Fraction(100)}
    >>> form = {"sample": False, "root": True}
    >>> spread = variance(*parts, step=Fraction(1), confidence=0.95, **bounds, **form)
    >>> spread.value, round(spread.low, 2), round(spread.high, 2)
    (5.0, 4.96, 5.04)
    """
    n, s, q = count.value, first.value, second.value
    unit = float(step * step)
    ceiling = float((high - low) ** 2) / 4
    if n <= 0 or (sample and n <= 1.5 * row):
        # n/(n − 1) is at most 2, at the two rows a sample variance needs
        return _rooted(unknown_between(0.0, ceiling * (1 + sample)), root)
    slope = s / n
    spread = (q * n - s * s) / (n * n)  # exact integers, rounded once
    noise = [(1.0, second.law), (-2 * slope, first.law)]
    ends = ratio_ends(spread, slope * slope, count, noise, confidence)
    factor = min(2.0, n / (n - row)) if sample else 1.0  # 2 at the two rows that a sample needs
    value = min(max(spread * unit, 0.0), ceiling) * factor
    scaled = None if ends is None else [end * unit * factor for end in ends]
    return _rooted(cut_between(value, scaled, 0.0, ceiling * (factor if scaled else 1 + sample)), root)


def _rooted(estimate: Estimate, root: bool) -> Estimate:
    """The estimate of a variance as that of a standard deviation, if asked."""
    if not root or estimate.low is None or estimate.high is None:
        return estimate
    low, high = math.sqrt(estimate.low), math.sqrt(estimate.high)
    if estimate.value is None:
        return unknown_between(low, high)
    return cut_between(math.sqrt(estimate.value), (low, high), low, high)


FAMILY = Moments()
