"""SUM(DISTINCT x): different values, added up.

A unit keeps at most K pairs of group and value, as for COUNT(DISTINCT x) (`distinct`), and each value that some unit
keeps in a group is added there once, as floor(x/step + ½), which lies within ±M. Adding or removing a unit changes
which values are there by at most K pairs in all, and so the sums by a vector of L1 norm at most K·M: Δ1 = K·M, and
Δ2² = (K·M)², reached where all pairs are in one group. Exchanging one unit for another changes them by a − b with both
of these so short, which `measures.change_within` says of K·M: where values have one sign, a and b have it too. With s
grouping sets that holds in each (`statements.distinct`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.measures import clip_measure
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.distinct import limit_of
from dalenius.measuring.statistics.family import AggregateForm, Single, StatisticRequest

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder


class DistinctSum(Single):
    """The sum of different values."""

    name = "distinct_sum"
    asked: ClassVar[Mapping[str, AggregateForm]] = {"sum_distinct": AggregateForm("SUM(DISTINCT {})", per_row=True)}
    reference = (("SUM(DISTINCT x)", "different values of x, added up", "bounds of x; `groups` or `rows`"),)

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One measure, and a note on how many values of one unit count."""
        value, at = wanted.summed, wanted.at
        least, most = builder.range(value, wanted.first, at)
        step = builder.step(value, least, most)
        low, high = builder.whole_range(value, step)
        found = limit_of(builder, wanted, "SUM")
        builder.notes.append(found.note)
        # what one unit can add must fit; the limit itself is one of pairs
        whole = builder.measure(
            "distinct_sum", value, wanted.where, step, 0, (low, high), found.most * max(-low, high, 1), at
        )
        sets = replace(whole, sets=len(builder.sizes))
        return Statistic(self.name, (clip_measure(sets, found.most, builder.norm, builder.neighbors),), least, most)


FAMILY = DistinctSum()
