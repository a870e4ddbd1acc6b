"""Contribution bounds of one aggregate, as BigQuery writes them, and what they mean here.

    SUM(x, contribution_bounds_per_group => (low, high))    a unit's sum in each group, clamped to [low, high]
    VAR_POP(x, contribution_bounds_per_row => (low, high))  each value, clamped to [low, high]

Values are clamped here just so. A unit's part in a group is not: its whole vector over the groups is brought within a
norm (`bound`). Within max(|low|, |high|) each entry is within that as well, and no larger norm makes sure of it; more
is cut off where a unit is in several groups. For AVG, BigQuery clamps each unit's average; it lies between the bounds
where every value does, so here values are clamped.

None of this is needed for privacy, which rests on the clip that `bound` sets and the engine enforces: bounds can only
lower it, and only that of their own aggregate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import InputError, Place, QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Expression, number, written
from dalenius.measuring.functions import Range, bounded
from dalenius.measuring.plan import require
from dalenius.measuring.statistics.family import AggregateForm, PerGroup

GROUP, ROW, REPORT = "contribution_bounds_per_group", "contribution_bounds_per_row", "report_format"
LARGEST = Fraction(10) ** 100


def no_place(clamp: Clamp) -> QuestionRefusedError:
    """The error about contribution bounds that belong to no aggregate."""
    return QuestionRefusedError(
        f"{clamp.per} has no place here.",
        why="It bounds what one unit adds to an aggregate.",
        fix="Write it behind the argument of COUNT, SUM, AVG, a variance, MEDIAN or PERCENTILE_CONT.",
        at=clamp.at,
    )


@dataclass(frozen=True, slots=True)
class Clamp:
    """Contribution bounds, as they were written."""

    per: str
    low: Fraction
    high: Fraction
    at: Place

    def __str__(self) -> str:
        return f"[{float(self.low):g}, {float(self.high):g}]"

    def clamps_values(self, asking: AggregateForm) -> bool:
        """Whether each value is clamped, rather than a unit's total; refuses what an aggregate has no use for."""
        if self.per == ROW and asking.per_row:
            return True
        if self.per == GROUP and asking.per_group is not PerGroup.NOTHING:
            return asking.per_group is PerGroup.VALUES
        other = ROW if self.per == GROUP else GROUP
        useful = asking.per_row if self.per == GROUP else asking.per_group is not PerGroup.NOTHING
        raise QuestionRefusedError(
            f"{self.per} does not belong to this aggregate.",
            why="A variance or a quantile has no part that a unit adds." if self.per == GROUP else "It has no values.",
            fix=f"Write {other}, or leave it out." if useful else "Leave it out.",
            at=self.at,
        )

    def value(self, value: Expression, ranges: Mapping[str, Range]) -> Expression:
        """A value brought between the bounds; the value itself where it lies there anyway."""
        known = bounded(value, ranges)
        low, high = float(self.low), float(self.high)
        if known is not None and known[0] <= high and low <= known[1]:  # a wider bound leaves what holds
            low, high = max(low, known[0]), min(high, known[1])
            if (low, high) == known:
                return value
        return call("least", call("greatest", value, number(low)), number(high))

    def total(self, asking: AggregateForm) -> Fraction | None:
        """The norm within which a unit's vector over the groups holds the bounds in each of them.

        None where a unit adds ones, which no bounds change.
        """
        if asking.per_group is PerGroup.ONES:
            return None
        if asking.per_group is PerGroup.TOTAL:
            most, least = max(abs(self.low), abs(self.high)), Fraction(0)
        else:
            most, least = Fraction(math.floor(self.high)), Fraction(1)
        if most <= 0 or most < least:
            raise InputError(
                f"{self.per} leaves nothing to count.",
                why="A unit must be able to add something.",
                fix="Raise the upper bound.",
                at=self.at,
            )
        return most

    def note(self, asking: AggregateForm, value: Expression | None, unit: Sequence[str]) -> str:
        """How the meaning differs from BigQuery's; empty where it does not."""
        shown, who = asking.written.format("*" if value is None else written(value)), " + ".join(unit)
        if self.per == ROW or asking.per_group is PerGroup.ONES:
            return ""
        if asking.per_group is PerGroup.VALUES:
            return (
                f"{shown}: each value is brought between {self}, and rows are averaged. BigQuery averages each {who} "
                f"first, clamps that average, and gives every {who} the same weight."
            )
        most = float(require(self.total(asking)))
        lifted = "" if self.low <= 0 <= self.high else " BigQuery would also raise what lies below the bounds."
        return (
            f"{shown}: one {who} counts for at most {most:g} over all groups together (the norm of "
            f"its vector), or the policy's limit where that is lower. BigQuery clamps each group by itself.{lifted}"
        )
