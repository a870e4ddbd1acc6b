"""The measures that an engine knows: a closed set, with what passes ask about each.

A measure is what an engine adds up, exactly; its SQL is the engine's. A statistic (`statistics`) is made of measures,
and whatever can be made of these needs no engine to learn anything.
"""

from __future__ import annotations

from dataclasses import dataclass

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
            part of their noise (`packing`).
        alone: Whether the rows are gone through for it alone, rather than for all such measures at once.
        search: How a question finds a lower limit for it (`searches`); None: it has no limit that could be lower.
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
    reads: int = 2
    tests: int = 1


PRIMITIVES = {
    "rows": Primitive("count rows"),
    "units": Primitive("count units", clip="ones in at most {clip:,} groups", search=None),
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
        reads=4,
        tests=2,
    ),
    "distinct": Primitive(
        "count distinct values",
        statement="distinct",
        clip="at most {clip:,} pairs of group and value of a unit{each}, chosen by a keyed hash",
        alone=True,
        search="ladder",
    ),
}
