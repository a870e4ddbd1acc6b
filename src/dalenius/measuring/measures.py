"""The measures that an engine knows, a closed set, and how one unit's part of a measure is limited.

A measure is what an engine adds up, exactly; its SQL is the engine's. A statistic (`statistics`) is made of measures,
and whatever can be made of these needs no engine to learn anything.

*Clipping.* Bounding is on exact integers (DESIGN, decisions 1 and 3). For one measure, a unit contributes a vector w
over the groups: the sum of its rows' integers in each. It is brought within the norm C that the policy allows,

    v = w                  where ‖w‖ ≤ C,
    v = trunc(w·C/k)       else, with k = ⌈‖w‖⌉ settled on integers,

so ‖v‖ ≤ C: truncation only shrinks, and ‖w‖·C/k ≤ C. Hence adding or removing a unit changes the sum over all units by
at most C in that norm, whatever its rows hold; exchanging one changes it by at most 2C, and Δ2² = 2C² where no entry
is negative (`mechanisms.vector`). All of these are counted in parts of a row or a step (`fixed_point`). With grouping
sets the vector goes over the groups of all sets, and is clipped as a whole; `combine_limits` says at what.

Measures of one ratio share the smallest of their factors C/k, so that numerator and denominator stay about the same
rows; each is then within its own C.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.vector import sensitivity_l1, squared_sensitivity_l2

if TYPE_CHECKING:
    from dalenius.measuring.plan import Measure

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
        scaled: Whether a unit's vector is scaled down to its limit, and so counted in fractions (`fixed_point`).
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
    "distinct": Primitive(
        "count distinct values",
        statement="distinct",
        clip="at most {clip:,} pairs of group and value of a unit{each}, chosen by a keyed hash",
        alone=True,
        search="ladder",
        scaled=False,
    ),
}


# --- clipping


def clip_measure(measure: Measure, clip: int, norm: str, neighbors: Neighbors, bits: int = 0) -> Measure:
    """The measure with a unit's vector brought within ``clip``, and what one unit can then change (see above).

    It is counted in 2^bits parts, so that is a change of ``clip``·2^bits.
    """
    sensitivity = change_within(clip << bits, norm, neighbors, non_negative=not _signed(measure))
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
