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
from typing import Any

from dalenius.errors import InputError, Place, QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Expression, number, written
from dalenius.measuring.functions import Range, bounded
from dalenius.measuring.plan import require
from dalenius.measuring.statistics.family import AggregateForm, PerGroup
from dalenius.queries.rules.tokens import QuestionTokens

GROUP, ROW, REPORT = "contribution_bounds_per_group", "contribution_bounds_per_row", "report_format"
LARGEST = Fraction(10) ** 100
# The old clause has functions of its own, and CLAMPED BETWEEN; what that clamps depends on the function.
_OLD = {"count": GROUP, "sum": GROUP, "avg": GROUP, "var_pop": ROW, "stddev_pop": ROW, "percentile_cont": ROW}
_PREFIX = "anon_"


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


class Arguments(QuestionTokens):
    """Takes contribution bounds out of the aggregates that they belong to."""

    def __init__(self, text: str, tokens: Sequence[Any], *, old: bool) -> None:
        super().__init__(text, tokens)
        self.old = old
        self.found: dict[int, tuple[Clamp, ...]] = {}

    def clamps(self, after: int) -> dict[int, tuple[Clamp, ...]]:
        """All bounds from a token on, by where the name of their aggregate begins."""
        opened: list[int] = []
        for at in range(after, len(self.tokens)):
            if self.kind(at) is self.types.L_PAREN:
                opened.append(at)
            elif self.kind(at) is self.types.R_PAREN and opened:
                opened.pop()
            elif self.kind(at + 1) is self.types.FARROW and self.word(at) in {GROUP, ROW, REPORT}:
                self._named(at, opened)
            elif self.old and self.word(at) == "clamped" and self.kind(at + 1) is self.types.BETWEEN:
                self._clamped(at, opened)
            elif self._function(at) is not None:  # ANON_SUM is SUM
                self.spans.append((self.tokens[at].start, self.tokens[at].start + len(_PREFIX)))
        return self.found

    def _named(self, at: int, opened: list[int]) -> None:
        name = self.word(at)
        if name == REPORT:
            why = "A release tells its noise error anyway."
            raise self.refused(at, f"{name} is not supported.", why, "Remove it; --json prints all of a release.")
        if self.kind(at - 1) is not self.types.COMMA or not opened or self.word(opened[-1] - 1) is None:
            raise self.syntax(at, f"{name} stands behind the other arguments of an aggregate.")
        if self.kind(at + 2) is not self.types.L_PAREN:
            raise self.syntax(at + 2, f"{name} takes two numbers: (low, high).")
        comma = self.end(at + 3)
        close = self.end(comma + 1) if self.kind(comma) is self.types.COMMA else comma
        if self.kind(comma) is not self.types.COMMA or self.kind(close) is not self.types.R_PAREN:
            raise self.syntax(at + 2, f"{name} takes two numbers: (low, high).")
        if self.kind(close + 1) not in {self.types.COMMA, self.types.R_PAREN}:
            raise self.syntax(close + 1, f"Behind {name} comes another argument, or the parenthesis closes.")
        self._bounds(opened[-1] - 1, str(name), at, range(at + 3, comma), range(comma + 1, close))
        self.blank(at - 1, close)

    def _clamped(self, at: int, opened: list[int]) -> None:
        """CLAMPED BETWEEN low AND high, of the old clause."""
        function = self._function(opened[-1] - 1) if opened else None
        if function is None:
            raise self.syntax(at, "CLAMPED BETWEEN belongs to an aggregate such as ANON_SUM.")
        close = self.end(at + 2)
        middle = [each for each in range(at + 2, close) if self.kind(each) is self.types.AND]
        if len(middle) != 1 or not at + 2 < middle[0] < close - 1:
            raise self.syntax(at, "CLAMPED BETWEEN takes two numbers: low AND high.")
        self._bounds(opened[-1] - 1, _OLD[function], at, range(at + 2, middle[0]), range(middle[0] + 1, close))
        self.blank(at, close - 1)

    def _function(self, at: int) -> str | None:
        """The aggregate that an old name such as ANON_SUM stands for, where it is called."""
        name = self.word(at) or ""
        called = self.old and self.kind(at + 1) is self.types.L_PAREN and name.startswith(_PREFIX)
        return name.removeprefix(_PREFIX) if called and name.removeprefix(_PREFIX) in _OLD else None

    def _bounds(self, function: int, name: str, at: int, *ends: range) -> None:
        low, high = (self.number(each, f"{name} takes two numbers.", signed=True) for each in ends)
        if low > high:
            raise self.invalid(at, "The lower bound is above the upper one.", "Both hold.", "Write the smaller first.")
        if max(abs(low), abs(high)) > LARGEST:
            raise self.invalid(at, "The bounds are too large.", "Nothing lies beyond 1e100.", "Write smaller ones.")
        start = self.tokens[function].start + (len(_PREFIX) if self._function(function) else 0)
        there = self.found.get(start, ())
        if any(each.per == name for each in there):
            raise self.invalid(at, f"{name} is there twice.", "Which holds?", "Write it once.")
        self.found[start] = (*there, Clamp(name, low, high, self.place(at)))
