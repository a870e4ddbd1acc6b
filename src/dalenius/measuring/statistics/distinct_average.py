"""AVG(DISTINCT x): the average of different values, from their number and their sum.

Both are about the same pairs of group and value: a unit keeps K of them, chosen by one keyed hash. So their number
changes by at most K with one unit, and the sum of floor(x/step + ½) − centre, within ±M, by at most K·M, as
`distinct_sum` says; each has its own noise, for its own sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.building import weigh_shares
from dalenius.measuring.measures import clip_measure
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.distinct import limit_of
from dalenius.measuring.statistics.family import AggregateForm, Estimator, Ratio, StatisticRequest
from dalenius.measuring.statistics.moments import mean

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder
    from dalenius.measuring.expressions import Aggregate


class DistinctAverage(Ratio):
    """The average of different values."""

    name = "distinct_average"
    asked: ClassVar[Mapping[str, AggregateForm]] = {"avg_distinct": AggregateForm("AVG(DISTINCT {})", per_row=True)}
    reference = (("AVG(DISTINCT x)", "the average of different values of x", "bounds of x; `groups` or `rows`"),)

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """The number of values and their sum, around the centre that gives the least noise."""
        value, where, at = wanted.summed, wanted.where, wanted.at
        least, most = builder.range(value, wanted.first, at)
        step = builder.step(value, least, most)
        low, high = builder.whole_range(value, step)
        found, sets = limit_of(builder, wanted, "AVG"), len(builder.sizes)
        builder.notes.append(found.note)
        counted = builder.measure("distinct_count", value, where, Fraction(1), 0, (0, 1), found.most, at)
        tried = []
        for centre in dict.fromkeys((0, (low + high) // 2)):
            ends = low - centre, high - centre
            largest = max(abs(ends[0]), abs(ends[1]), 1)
            summed = builder.measure("distinct_sum", value, where, step, centre, ends, found.most * largest, at)
            measures = [
                clip_measure(replace(each, sets=sets), found.most, builder.norm, builder.neighbors)
                for each in (counted, summed)
            ]
            square = (ends[0] * ends[0] + ends[0] * ends[1] + ends[1] * ends[1]) / 3  # of the mean, over the bounds
            tried.append(weigh_shares(measures, [square, 1.0], builder.norm))
        best = min(tried, key=lambda each: each.noise)
        return Statistic(self.name, best.measures, low * step, high * step)

    def estimator(self, aggregate: Aggregate, statistic: Statistic, confidence: float) -> Estimator:  # noqa: ARG002
        """The mean."""
        summed, low, high = statistic.measures[1], statistic.low, statistic.high
        step, centre = summed.step, summed.centre
        return lambda parts: mean(*parts, step=step, centre=centre, low=low, high=high, confidence=confidence)

    def usual(self, statistic: Statistic, rows: int) -> list[int]:
        """The sums of values that were drawn evenly from all that the bounds allow, each once."""
        summed = statistic.measures[1]
        values = summed.high - summed.low + 1
        number = max(1.0, values * -math.expm1(-rows / values))
        return [round(number), round(number * (summed.low + summed.high) / 2)]


FAMILY = DistinctAverage()
