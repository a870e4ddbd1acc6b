"""COUNT(*), COUNT(x), COUNT_IF(p): rows.

A row that counts adds 1; a unit's counts over the groups are brought within C in the plan's norm, so that it changes
them by at most C (`measures`). No entry is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.family import AggregateForm, PerGroup, Single, StatisticRequest

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder


class Rows(Single):
    """The number of rows."""

    name = "rows"
    asked: ClassVar[Mapping[str, AggregateForm]] = {"count": AggregateForm("COUNT({})", per_group=PerGroup.COUNT)}
    reference = (
        ("COUNT(*)", "rows", "`rows`"),
        ("COUNT(x)", "rows in which x is not NULL", "`rows`"),
        ("COUNT_IF(p)", "rows in which p is true", "`rows`"),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One measure."""
        return Statistic(self.name, (builder.rows(wanted.where, wanted.at, wanted.first.limit),))


FAMILY = Rows()
