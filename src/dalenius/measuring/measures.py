"""The measures that an engine knows, a closed set, and how one unit's part of a measure is limited.

A measure is what an engine adds up, exactly; its SQL is the engine's. A statistic (`statistics`) is made of measures,
and whatever can be made of these needs no engine to learn anything.

*Clipping.* Bounding is on exact integers (DESIGN, decisions 1 and 3). For one measure, a unit contributes a vector w
over the groups: the sum of its rows' integers in each. It is brought within the norm C that the policy allows,

    v = w                  where ‖w‖ ≤ C,
    v = trunc(w·C/k)       else, with k = ⌈‖w‖⌉ settled on integers,

so ‖v‖ ≤ C: truncation only shrinks, and ‖w‖·C/k ≤ C. Hence adding or removing a unit changes the sum over all units by
at most C in that norm, whatever its rows hold; exchanging one changes it by at most 2C, and Δ2² = 2C² where no entry
is negative (`mechanisms.vector`). With grouping sets the vector goes over the groups of all sets, and is clipped as a
whole; `combine_limits` says at what.

Measures of one ratio share the smallest of their factors C/k, so that numerator and denominator stay about the same
rows; each is then within its own C.

*Fixed point.* In whole rows, scaling would lose nearly all of a unit: of one row in each of 30 groups and a limit of 5,
each entry would be trunc(5/6) = 0. So the engine counts every row as S = 2^bits, and every step likewise:

    v = trunc(S·w·(S·C)/k),   k = ⌈‖S·w‖⌉.

*Guarantee.* With W = S·w and L = S·C this is the clipping above, word for word: ‖v‖ ≤ L. One unit changes the sum by at
most L in the plan's norm, the noise is made for L, and what is released is divided by S at the very end. S is public:
it follows from the number of groups and from C.

*What truncation takes.* Each entry loses less than 1 of S·w·C/k, and k exceeds ‖S·w‖ by less than 1. A vector that is
spread evenly over m groups keeps L/√m in each (in L1: L/m), so with L ≥ 1024·√m it loses less than a thousandth; S
itself is at least 1024·⌈√m⌉ wherever there is room, which is so for counts of rows. The measures of a ratio are scaled
by the smallest of their factors, which may be far below a measure's own: they have 1024 times as many parts.

*Room.* Σv² must fit an engine's integers. Where L is below 2⁵⁰ over the number of groups that a unit can be in, 104
bits do, and roots are quick; a measure whose own steps are as fine as that, such as a sum of squares, gets fewer bits
or none. Only where that would leave less than 1024·√m of L (where groups are still to be found, there may be any number
of them) are 126 bits used. Under L1 there are no squares, but products of a length and the largest limit. And 2⁴⁰ rows,
more than any file has of one unit, must fit 127 bits before anything is clamped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.vector import sensitivity_l1, squared_sensitivity_l2

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure, Plan, Statistic

_VECTOR = "a unit's vector over {groups} to {norm} norm {clip:,} steps"


@dataclass(frozen=True, slots=True)
class Primitive:
    """One kind of measure.

    Attributes:
        words: What it is, in a plan for people.
        statement: The kind of SELECT that gives it; statistics whose measures have the same kind share one.
        clip: What its limit does to a unit's rows, in words.
        degree: In the value: a row of a sum adds x, one of a sum of squares x².
        signed: Whether rows add integers of either sign, where the value has both.
        rounded: Whether it reads the value rounded to its step.
        tree: Whether it is a tree of counts in each group. These are many, and stored in few bytes, rounded to a small
            part of their noise (`queries.answering`).
        alone: Whether the rows are gone through for it alone, rather than for all such measures at once.
        search: How a question finds a lower limit for it (`limits.in_question`); None: it has none that could be lower.
        scaled: Whether a unit's vector is scaled down to its limit, and so counted in fractions.
        pairs: Whether its limit is one of pairs, each of which adds up to the largest value.
        reads: How often its value stands in the statement (`work`).
        tests: How often its condition does.
    """

    words: str
    statement: str = "sums"
    clip: str = _VECTOR
    degree: int = 0
    signed: bool = True
    rounded: bool = False
    tree: bool = False
    alone: bool = False
    search: str | None = "lengths"
    scaled: bool = True
    pairs: bool = False
    reads: int = 2
    tests: int = 1


PRIMITIVES = {
    "rows": Primitive("count rows"),
    "units": Primitive("count units", clip="ones in at most {clip:,} groups", search=None, scaled=False),
    "sum": Primitive("sum", degree=1, rounded=True),
    "square": Primitive("sum of squares", degree=2, signed=False, rounded=True, reads=3),
    "product": Primitive("sum of products", degree=2, rounded=True),
    "leaves": Primitive(
        "tree of values",
        statement="leaves",
        clip="a unit's rows over {groups} to {norm} norm {clip:,}, by weighing them less",
        rounded=True,
        tree=True,
        alone=True,
        search=None,
        scaled=False,
        reads=4,
        tests=2,
    ),
    "histogram": Primitive(  # one level of such a tree
        "count of each value",
        statement="leaves",
        clip="a unit's rows over {groups} to {norm} norm {clip:,}, by weighing them less",
        rounded=True,
        alone=True,
        search=None,
        scaled=False,
        reads=4,
        tests=2,
    ),
    "distinct": Primitive(
        "count distinct values",
        statement="distinct",
        clip="at most {clip:,} pairs of group and value of a unit{each}, chosen by a keyed hash",
        alone=True,
        search="ladder",
        scaled=False,
    ),
    "distinct_count": Primitive(  # the same beside a sum of these values, of as many of them
        "count distinct values",
        statement="distinct",
        clip="at most {clip:,} pairs of group and value of a unit{each}, chosen by a keyed hash",
        alone=True,
        search=None,
        scaled=False,
    ),
    "distinct_sum": Primitive(
        "sum of distinct values",
        statement="distinct",
        clip="at most {clip:,} pairs of group and value of a unit{each}, chosen by a keyed hash",
        degree=1,
        rounded=True,
        alone=True,
        search=None,
        scaled=False,
        pairs=True,
        reads=3,
    ),
}


# --- clipping


def clip_measure(measure: Measure, clip: int, norm: str, neighbors: Neighbors, bits: int = 0) -> Measure:
    """The measure with a unit's vector brought within ``clip``, and what one unit can then change (see above).

    It is counted in 2^bits parts, so that is a change of ``clip``·2^bits.
    """
    length = clip * measure.largest if measure.primitive.pairs else clip
    sensitivity = change_within(length << bits, norm, neighbors, non_negative=not _signed(measure))
    # Pairs are limited in each of so many grouping sets; of all other vectors the clip is that of all sets together.
    return replace(measure, clip=clip, bits=bits, sensitivity=sensitivity * measure.sets)


def change_within(clip: int, norm: str, neighbors: Neighbors, *, non_negative: bool) -> int:
    """What one unit can change whose vector lies within ``clip``: Δ2² where the norm is L2, Δ1 where it is L1."""
    if norm == "l1":
        return sensitivity_l1(clip, neighbors)
    return squared_sensitivity_l2(clip, neighbors, non_negative=non_negative)


def _signed(measure: Measure) -> bool:
    """Whether two rows can add integers of different signs."""
    if measure.times is None:
        return measure.primitive.signed and measure.low < 0 < measure.high
    corners = [a * b for a in (measure.low, measure.high) for b in (measure.times.low, measure.times.high)]
    return min(corners) < 0 < max(corners)


def combine_limits(limits: Sequence[int], norm: str) -> int:
    """The limit of a vector over all sets, from that of each: ⌈√Σc²⌉ in L2, Σc in L1.

    >>> combine_limits([10], "l2"), combine_limits([10, 10], "l2")
    (10, 15)
    >>> combine_limits([3, 4], "l2"), combine_limits([3, 4], "l1")
    (5, 7)
    """
    if norm == "l1":
        return sum(limits)
    square = sum(each * each for each in limits)
    return math.isqrt(square - 1) + 1 if square else 0


# --- fixed point

FINE = 1024  # parts of what is left of a row, at the least
_FOUND = 2**20  # groups, where they are still to be found: how many is not known yet
_ROOM, _ALL = 2**50, 2**126  # of a limit times groups, for quick roots; of squares, at the most
_ROW = 86  # bits of what one row adds: 2⁴⁰ of them are below 2¹²⁶


def refine(plan: Plan) -> Plan:
    """The plan with every measure counted as finely as it should be."""
    return count_in(plan, [bits_for(plan, each, measure) for each in plan.statistics for measure in each.measures])


def count_in(plan: Plan, bits: Sequence[int]) -> Plan:
    """The plan with its measures counted in so many bits each, as a stored answer says."""
    left = iter(bits)
    statistics = []
    for each in plan.statistics:
        measures = tuple(_counted(one, plan, next(left)) for one in each.measures)
        statistics.append(replace(each, measures=measures))
    return replace(plan, statistics=tuple(statistics))


def _counted(measure: Measure, plan: Plan, bits: int) -> Measure:
    # What one unit changes in trees, ones and values is another matter, and nothing of theirs is scaled down.
    return clip_measure(measure, measure.clip, plan.norm, plan.neighbors, bits) if measure.primitive.scaled else measure


def bits_for(plan: Plan, statistic: Statistic, measure: Measure) -> int:
    """How many bits below a step are counted. It follows from public sizes and the limit alone."""
    if not measure.primitive.scaled:
        return 0
    cells = _FOUND if plan.selection is not None else max(1, len(plan.cells))
    ratio = len(statistic.measures) > 1
    if cells == 1 and not ratio:  # one number: what is beyond C becomes C, and nothing is lost
        return 0
    spread = cells if plan.norm == "l1" else math.isqrt(cells - 1) + 1
    parts, reach = FINE * spread * (FINE if ratio else 1), reach_of(plan)
    wanted = min((parts - 1).bit_length(), max(0, _ROW - measure.one_row.bit_length()))
    quick = min(wanted, _fitting(measure.clip, _ROOM // reach))
    if measure.clip << quick >= parts:
        return quick
    largest = max(each.clip for each in plan.measures)
    return min(wanted, _fitting(measure.clip, min(math.isqrt(_ALL // reach) // 2, _ALL // (largest * reach))))


def _fitting(clip: int, most: int) -> int:
    """The most bits with clip·2^bits < most; none where even the clip is not below."""
    return max(0, ((most - 1) // clip).bit_length() - 1)


def reach_of(plan: Plan) -> int:
    """In how many groups one unit can be, over all grouping sets."""
    from dalenius.measuring.plan import MOST_GROUPS

    sets = max(1, len(plan.sets))
    if plan.groups is not None:
        return max(1, plan.groups * sets)
    return MOST_GROUPS * sets if plan.selection is not None else max(1, len(plan.cells))
