"""What statistics are built with: the measures that several of them have, under the limits of one question.

A builder says what one unit may add (`row_limit`), between which integers a value lies (`whole_range`), and how fine it
is read (`step`). Every measure that it gives has its clip, and the sensitivity that follows from it (`clipping`). All
of that is public: nothing here has seen a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.clipping import limited, together
from dalenius.measuring.expressions import Aggregate, Column, Expression, columns_of
from dalenius.measuring.functions import bounded, dominated, ranges_of, whole
from dalenius.measuring.plan import MOST_GROUPS, Measure, needed
from dalenius.tables.policy import Kind, Policy
from dalenius.tables.values import default_step

if TYPE_CHECKING:
    from dalenius.errors import Place

# Products w·C and squares Σw² are taken in 127 bits: C stays below 2⁶², and entries are clamped so that Σw² fits.
MOST = 2**62
LARGEST = 1e100  # of a value that is summed: its square, with noise, is still a double
_FINEST = Fraction(1, 10**100)  # of a step: it must be a double, and so must what is divided by it


@dataclass(frozen=True)
class Tightened:
    """The limits that hold for one question: the policy's, or lower ones."""

    rows: int | None
    groups: int | None
    totals: Mapping[str, Fraction]
    distinct: Mapping[str, int]
    typical: int | None = None  # twice the rows of an average unit, where `rows` was found rather than given


class Builder:
    """Builds statistics under the limits of one question."""

    def __init__(
        self,
        policy: Policy,
        limits: Tightened,
        sizes: Sequence[int],
        norm: str,
        neighbors: Neighbors,
        found_norms: Sequence[int | None],
        unit: Sequence[str] = (),
    ) -> None:
        self.unit = unit
        self.policy = policy
        self.limits = limits
        self.norm = norm
        self.found_norms = found_norms if norm == "l2" else [None] * len(sizes)  # of each grouping set
        self.neighbors = neighbors
        self.ranges = ranges_of(policy.columns)
        self.integers = frozenset(name for name, each in policy.columns.items() if each.kind is Kind.INTEGER)
        self.sizes, self.cells = sizes, sum(sizes)
        # In how many groups one unit can be. Its rows do not limit that: their number is clipped, not the rows.
        self.reach = sum(each if limits.groups is None else min(each, limits.groups) for each in sizes)
        self.notes: list[str] = []
        # Where groups have to be found there may be so many that entries are clamped (`Compiler.most`) below 2⁶²: a
        # limit past that would silently be a lower one.
        entries = len(sizes) * min(limits.groups or MOST_GROUPS, MOST_GROUPS)
        self.most = MOST if self.cells < MOST_GROUPS else min(MOST, math.isqrt(2**126 // entries))

    # --- measures

    def rows(self, where: Expression, at: Place | None, limit: Fraction | None = None) -> Measure:
        """The number of rows for which a condition holds; ``limit``: of one unit, as the question bounds it."""
        clip = self.row_limit(at, limit)
        clips = [clip if each is None else min(clip, each) for each in self.found_norms]
        return self.measure("rows", None, where, Fraction(1), 0, (0, 1), together(clips, self.norm))

    def joined(self, clip: int) -> int:
        """The limit over all grouping sets, where it is the same in each."""
        return together([clip] * len(self.sizes), self.norm)

    def sum(
        self,
        value: Expression,
        where: Expression,
        step: Fraction,
        centre: int,
        at: Place | None,
        limit: Fraction | None = None,
    ) -> Measure:
        """The sum of a value in steps, less a centre; ``limit``: of one unit, as the question bounds it."""
        low, high = self.whole_range(value, step)
        largest = max(abs(low - centre), abs(high - centre), 1)
        clips = [] if self.limits.rows is None else [self.limits.rows * largest]
        total = self.dominated(value)
        if total is not None and math.isfinite(total) and centre == 0:
            clips.append(max(1, math.floor(Fraction(total) / step)))
        if limit is not None:
            clips.append(max(1, math.floor(limit / step)))
        clip = self.joined(min(clips, default=None) or self.row_limit(at))
        return self.measure("sum", value, where, step, centre, (low - centre, high - centre), clip, at)

    def dominated(self, value: Expression) -> float | None:
        """What follows from the limits of totals for the total of an expression."""
        return dominated(value, {name: float(each) for name, each in self.limits.totals.items()}, self.ranges)

    def measure(
        self,
        kind: str,
        value: Expression | None,
        where: Expression,
        step: Fraction,
        centre: int,
        ends: tuple[int, int],
        clip: int,
        at: Place | None = None,
    ) -> Measure:
        """A measure of any kind that an engine knows (`measures`), clipped; ``ends`` bound what a row adds."""
        if clip >= self.most:
            raise QuestionRefusedError(
                "One unit could add too much to be summed exactly.",
                why=f"Its limit, counted in steps, is beyond {'2⁶²' if self.most == MOST else f'{self.most:,}'}.",
                fix="Ask the owner for a coarser step, lower limits or narrower bounds.",
                at=at,
            )
        return limited(Measure(kind, value, where, step, centre, *ends, clip, 0), clip, self.norm, self.neighbors)

    # --- ranges and limits

    def row_limit(self, at: Place | None, limit: Fraction | None = None) -> int:
        """How many rows one unit may add; refused where nobody said."""
        if limit is not None:
            most = max(1, int(limit))
            return most if self.limits.rows is None else min(most, self.limits.rows)
        if self.limits.rows is None:
            raise NotAllowedError(
                "How many rows one unit may add is not declared.",
                why="Without a limit, one unit could change the answer by any amount.",
                fix="Ask the owner for [contribution] rows, or give --rows N.",
                at=at,
            )
        return self.limits.rows

    def range(self, value: Expression, aggregate: Aggregate, at: Place | None) -> tuple[Fraction, Fraction]:
        """Between which a value surely lies; refused where that is not known."""
        found = bounded(value, self.ranges)
        if found is not None and max(map(abs, found)) > LARGEST:
            raise QuestionRefusedError(
                "What is summed is too large.",
                why=f"Its values may lie beyond {LARGEST:g}; the answer would be no number that can be shown.",
                fix="Scale it down.",
                at=at,
            )
        if found is not None:
            return Fraction(found[0]), Fraction(found[1])
        without = sorted(
            name
            for name in columns_of(value)
            if self.policy.columns[name].kind in {Kind.INTEGER, Kind.NUMBER}
            and self.policy.columns[name].bounds is None
        )
        shown = without[0] if without else "x"
        raise NotAllowedError(
            f"Column {without[0]!r} has no bounds." if without else "What is summed has no bounds.",
            why=f"{aggregate.kind.upper()} needs them: one unit could change it by any amount.",
            fix=f"Ask the owner for bounds, clip it yourself with LEAST(GREATEST({shown}, 0), 100), or count it.",
            at=at,
        )

    def step(self, value: Expression, low: Fraction, high: Fraction) -> Fraction:
        """What a value is rounded to: its column's step, or one that is fine enough for its range."""
        if isinstance(value, Column):
            return needed(self.policy.columns[value.name].step)
        if whole(value, self.integers) and max(abs(low), abs(high)) < 2**53:
            return Fraction(1)
        return max(_FINEST, default_step(low, high) if low < high else default_step(low, low + 1))

    def whole_range(self, value: Expression, step: Fraction) -> tuple[int, int]:
        """The bounds as integers, rounded as the engine rounds: floor(x/step + ½) in doubles."""
        found = needed(bounded(value, self.ranges))
        low, high = (math.floor(each / float(step) + 0.5) for each in found)
        return low, high

    def coarsened(self, value: Expression, step: Fraction, at: Place | None) -> Fraction:
        """A step at which the squares of one unit can be summed in 62 bits."""
        rows = self.row_limit(at)
        while True:
            low, high = self.whole_range(value, step)
            if self.joined(rows * max(abs(low), abs(high), 1) ** 2) < self.most:
                return step
            step *= 10
