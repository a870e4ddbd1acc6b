"""COUNT(DISTINCT unit): people, devices, whoever is protected.

A unit adds 1 to each of its groups, to at most g of them: Δ1 = Δ2² = g where it is added or removed. Where one unit
replaces another, both sets of ones can differ: 2g.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.family import AggregateForm, PerGroup, Single, StatisticRequest

if TYPE_CHECKING:
    from dalenius.measuring.building import Builder


class Units(Single):
    """The number of units."""

    name = "units"
    asked: ClassVar[Mapping[str, AggregateForm]] = {"units": AggregateForm("UNITS({})", per_group=PerGroup.ONES)}
    reference = (("COUNT(DISTINCT unit)", "units: people, devices, whoever is protected", "nothing"),)
    counts_units = True

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """Ones in at most as many groups as a unit can be in."""
        found = builder.measure("units", None, wanted.where, Fraction(1), 0, (0, 1), builder.reach)
        both = 1 if builder.neighbors is Neighbors.ADD_REMOVE else 2
        return Statistic(self.name, (replace(found, sensitivity=builder.reach * both),))


FAMILY = Units()
