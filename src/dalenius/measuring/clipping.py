"""How one unit's part of a measure is limited, and what one unit can then change.

Bounding is on exact integers (DESIGN, decisions 1 and 3). For one measure, a unit contributes a vector w over the
groups: the sum of its rows' integers in each. It is brought within the norm C that the policy allows,

    v = w                  where ‖w‖ ≤ C,
    v = trunc(w·C/k)       else, with k = ⌈‖w‖⌉ settled on integers,

so ‖v‖ ≤ C: truncation only shrinks, and ‖w‖·C/k ≤ C. Hence adding or removing a unit changes the sum over all units by
at most C in that norm, whatever its rows hold; exchanging one changes it by at most 2C, and Δ2² = 2C² where no entry
is negative (`mechanisms.vector`). With grouping sets the vector goes over the groups of all sets, and is clipped as a
whole; `together` says at what.

Measures of one ratio share the smallest of their factors C/k, so that numerator and denominator stay about the same
rows; each is then within its own C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dalenius.accounting.neighbors import Neighbors
from dalenius.measuring.plan import Measure
from dalenius.mechanisms.vector import sensitivity_l1, squared_sensitivity_l2


def limited(measure: Measure, clip: int, norm: str, neighbors: Neighbors) -> Measure:
    """The measure with a unit's vector brought within ``clip``, and what one unit can then change (see above)."""
    sensitivity = change_within(clip, norm, neighbors, non_negative=not _signed(measure))
    # Pairs are limited in each of so many grouping sets; of all other vectors the clip is that of all sets together.
    return replace(measure, clip=clip, sensitivity=sensitivity * measure.sets)


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


def together(limits: Sequence[int], norm: str) -> int:
    """The limit of a vector over all sets, from that of each: ⌈√Σc²⌉ in L2, Σc in L1.

    >>> together([10], "l2"), together([10, 10], "l2"), together([3, 4], "l2"), together([3, 4], "l1")
    (10, 15, 5, 7)
    """
    if norm == "l1":
        return sum(limits)
    square = sum(each * each for each in limits)
    return math.isqrt(square - 1) + 1 if square else 0
