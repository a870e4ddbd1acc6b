"""How finely a unit's vector is counted, so that scaling it down does not lose it.

A unit beyond its limit C is scaled: v = trunc(w·C/k), with k = ⌈‖w‖⌉. In whole rows that would lose nearly all of it:
of one row in each of 30 groups and a limit of 5, each entry would be trunc(5/6) = 0. So the engine counts every row as
S = 2^bits, and every step likewise:

    v = trunc(S·w·(S·C)/k),   k = ⌈‖S·w‖⌉.

*Guarantee.* With W = S·w and L = S·C this is the clipping of `measures`, word for word: ‖v‖ ≤ L. One unit changes the
sum by at most L in the plan's norm, the noise is made for L, and what is released is divided by S at the very end. S
is public: it follows from the number of groups and from C.

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
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.measuring.measures import clip_measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.measuring.plan import Measure, Plan, Statistic

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
