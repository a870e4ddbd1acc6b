"""MEDIAN, QUANTILE_CONT, PERCENTILE_CONT …, and MIN and MAX: from one noisy tree of values (`trees`).

Rows are counted by group and value, in a tree of values; a unit's row counts over the groups are brought within C by
weights, and `trees.largest` says how long its tree can then be: L levels, each within S·C in the plan's norm. No entry
is negative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dalenius.errors import QuestionRefusedError
from dalenius.measuring import trees
from dalenius.measuring.estimates import Estimate
from dalenius.measuring.expressions import Type
from dalenius.measuring.measures import change_within
from dalenius.measuring.plan import MOST_GROUPS, Statistic
from dalenius.measuring.statistics.family import AggregateForm, Column, Family, Reading, StatisticRequest, UsualGroup
from dalenius.measuring.value_spread import ValueSpread

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder
    from dalenius.measuring.expressions import Aggregate
    from dalenius.mechanisms.laws import Law

FOUND_GROUPS = 512  # that groups which have to be found are reckoned to be
_ORDERED = (Type.NUMBER, Type.DATE, Type.DATETIME, Type.TEXT)  # of which there is a least within one unit
_NEEDS = "bounds of x; `rows`"


class Quantiles(Family):
    """The value below which a share of the rows lie."""

    name = "quantiles"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "quantile": AggregateForm("QUANTILE({})", per_row=True),
        "min": AggregateForm("MIN({})", takes_within=_ORDERED, keeps_type=True, per_row=True),
        "max": AggregateForm("MAX({})", takes_within=_ORDERED, keeps_type=True, per_row=True),
    }
    reference = (
        ("MEDIAN(x), QUANTILE_CONT(x, 0.9)", "the value below which half, or 0.9, of the rows lie", _NEEDS),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", "the same; also QUANTILE(x, 0.9)", _NEEDS),
        (
            "QUANTILE_CONT(x, [0.25, 0.5, 0.75])",
            "a list of them in one cell, at the price of one",
            _NEEDS,
        ),
        ("APPROX_QUANTILES(x, 4)", "a list: MIN(x), the quartiles, MAX(x)", _NEEDS),
        ("MIN(x), MAX(x)", "private extremes: a few rows may lie beyond, and a note says how many", _NEEDS),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One tree, which serves all quantiles of its value."""
        value, at = wanted.summed, wanted.at
        least, most = builder.range(value, wanted.first, at)
        step = builder.step(value, least, most)
        low, high = builder.whole_range(value, step)
        leaves = trees.leaves_for(high - low + 1, builder.cells if builder.cells < MOST_GROUPS else FOUND_GROUPS)
        if leaves is None:
            raise QuestionRefusedError(
                f"There are too many groups for quantiles: {builder.cells:,}.",
                why=f"All groups together have at most {trees.MOST_NODES:,} counts, which is too few for each here.",
                fix="Group by fewer keys, or ask for averages.",
                at=at,
            )
        clip = _tree_limit(builder, builder.rows(wanted.where, at).clip, leaves.bit_length())
        found = builder.measure("leaves", value, wanted.where, step, 0, (low, high), clip, at)
        found = replace(found, width=2 * leaves - 1)
        level = change_within(trees.SCALE * found.clip, builder.norm, builder.neighbors, non_negative=True)
        found = replace(found, sensitivity=trees.TreeLayout.of(found).levels * level)
        return Statistic(self.name, (found,), least, most)

    def read(self, statistic: Statistic, columns: Sequence[Column], cells: int, confidence: float) -> Reading:  # noqa: ARG002
        """The tree of all groups, made consistent once."""
        (law, values), (measure,) = columns[0], statistic.measures
        return trees.Tree.read(measure, law, values, confidence)

    def expected(
        self, aggregate: Aggregate, statistic: Statistic, laws: Sequence[Law], group: UsualGroup, confidence: float
    ) -> Estimate:
        """That of rows which spread over the bounds, evenly or as their mean says."""
        low, high = float(statistic.low), float(statistic.high)
        spread = ValueSpread.of(low, high, group.mean, group.square)
        error = trees.expected_error(aggregate, statistic.measures[0], laws[0], group.rows, confidence, spread)
        share = trees.EXTREMES[aggregate.kind][0] if aggregate.kind in trees.EXTREMES else aggregate.parameter
        value = low + (high - low) * spread.place(float(share or 0.0))
        return Estimate(value, error, value - error, value + error)


def _tree_limit(builder: Builder, clip: int, levels: int) -> int:
    """The limit of a unit's rows in a tree: less than that of a count, where it was found to suit counts.

    A found limit balances a count's noise with what it cuts off. A tree has √L times that noise (L times in L1),
    and cuts nothing off: it weighs heavy units less. Typical units keep their full weight. What was declared or
    asked for is taken as it is.
    """
    if builder.limits.typical is None:
        return clip
    times = levels if builder.norm == "l1" else math.sqrt(levels)
    return min(clip, max(math.ceil(clip / times), builder.joined(builder.limits.typical)))


FAMILY = Quantiles()
