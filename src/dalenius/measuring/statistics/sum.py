"""SUM(x).

A row adds its value in whole steps; a unit's sums over the groups are brought within C in the plan's norm, so that it
changes them by at most C (`measures`). C follows from its rows and the bounds of x, or from a limit of its total.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.family import AggregateForm, PerGroup, Single, StatisticRequest

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder


class Sum(Single):
    """The sum of a value."""

    name = "sum"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "sum": AggregateForm("SUM({})", adds=True, per_row=True, per_group=PerGroup.TOTAL)
    }
    reference = (("SUM(x)", "the sum; NULL adds nothing", "bounds of x; `rows`, or a `total` of its column"),)

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One measure, around 0."""
        value = wanted.summed
        low, high = builder.range(value, wanted.first, wanted.at)
        step = builder.step(value, low, high)
        summed = builder.sum(value, wanted.where, step, 0, wanted.at, wanted.first.limit)
        return Statistic(self.name, (summed,), low, high)


FAMILY = Sum()
