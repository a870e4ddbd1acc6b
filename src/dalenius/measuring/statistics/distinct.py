"""COUNT(DISTINCT x): different values.

A unit keeps at most K pairs of group and value, chosen by a keyed hash, and a value counts in a group where some unit
keeps it. Adding or removing a unit changes the counts by at most K in all: Δ1 = K, Δ2² = K², and by as much in each
grouping set (`statements.distinct`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.domains import cells
from dalenius.measuring.expressions import Column, Expression, Literal, Type, written
from dalenius.measuring.measures import clip_measure
from dalenius.measuring.plan import Statistic
from dalenius.measuring.statistics.family import AggregateForm, PerGroup, Single, StatisticRequest
from dalenius.tables.policy import Policy

if TYPE_CHECKING:
    from dalenius.errors import Place
    from dalenius.measuring.building import Builder

_COUNTED = tuple(each for each in Type if each is not Type.LIST)
USUAL = 32  # pairs, where nobody said or found how many a unit has


class Distinct(Single):
    """The number of different values."""

    name = "distinct"
    asked: ClassVar[Mapping[str, AggregateForm]] = {
        "distinct": AggregateForm("COUNT(DISTINCT {})", takes=_COUNTED, per_group=PerGroup.COUNT)
    }
    reference = (
        ("COUNT(DISTINCT x)", "different values of x; NULL is none", "`groups`, or `rows`, or public values of x"),
    )

    def build(self, builder: Builder, wanted: StatisticRequest) -> Statistic:
        """One measure, and a note on how many values of one unit count."""
        found, sets = limit_of(builder, wanted, "COUNT"), len(builder.sizes)
        builder.notes.append(found.note)
        one = builder.measure("distinct", wanted.summed, wanted.where, Fraction(1), 0, (0, 1), found.most, wanted.at)
        counted = clip_measure(replace(one, sets=sets), found.most, builder.norm, builder.neighbors)
        return Statistic(self.name, (counted,))


def limit_of(builder: Builder, wanted: StatisticRequest, function: str) -> PairLimit:
    """How many pairs of group and value a unit keeps in a question."""
    value, limit, limits = wanted.summed, wanted.first.limit, builder.limits
    known = limits.groups or limits.distinct.get(value.name if isinstance(value, Column) else "")
    return pair_limit(
        value,
        builder.policy,
        groups=limits.groups if limit is None else min(int(limit), known or int(limit)),
        found=limits.distinct,
        rows=limits.rows,
        cells=max(builder.sizes),
        at=wanted.at,
        unit=builder.unit,
        sets=len(builder.sizes),
        function=function,
    )


@dataclass(frozen=True)
class PairLimit:
    """The limit K, and what the reader of a release should know of it."""

    most: int
    note: str


def pair_limit(
    value: Expression,
    policy: Policy,
    *,
    groups: int | None,
    found: Mapping[str, int],
    rows: int | None,
    cells: int,
    at: Place | None,
    sets: int = 1,
    unit: Sequence[str] = (),
    function: str = "COUNT",
) -> PairLimit:
    """K: the declared or asked limit of groups; else what was found for the column; else a usual one.

    Never more than there are pairs at all, where the values are public.

    Args:
        value: What is counted.
        policy: Of the table.
        groups: The limit of groups that is declared or asked for.
        found: How many keys of a column one unit has, as was found privately.
        rows: The limit of rows.
        cells: How many groups the question has; with grouping sets, the one with most.
        at: Where it stands in the question.
        sets: How many grouping sets there are; the limit is for each.
        unit: Who is protected, as the owner calls it; by default the policy's unit.
        function: What is asked of the different values, in words.
    """
    limits = [groups, found.get(value.name) if isinstance(value, Column) else None]
    known = next((each for each in limits if each), None)
    usual = known is None and rows is not None
    most = min(rows or 1, USUAL) if usual else known
    public = public_values(value, policy)
    if public is not None:
        usual = usual and (most or 0) < public * cells
        most = public * cells if most is None else min(most, public * cells)
    if most is None:
        raise NotAllowedError(
            "How many values one unit may add is not declared.",
            why="Without a limit, one unit could change the answer by any amount.",
            fix="Ask the owner for [contribution] groups or rows, or give --groups N.",
            at=at,
        )
    shown, name = written(value), " + ".join(unit or policy.unit)
    what = ("value" if most == 1 else "values") if cells == 1 else "pairs of group and value"
    what += " in each grouping set" if sets > 1 else ""
    note = f"{function}(DISTINCT {shown}): of one {name}, at most {most:,} {what} count; those beyond are left out."
    if usual:
        note += " That limit is a usual one, since none is declared or found: --groups N sets another."
    return PairLimit(most, note)


def public_values(value: Expression, policy: Policy) -> int | None:
    """How many values an expression can have, where that is public; at least 1."""
    if isinstance(value, Literal):
        return 1
    try:
        return len(cells((value,), policy.columns))
    except QuestionRefusedError:
        return None


FAMILY = Distinct()
