"""GROUP BY GROUPING SETS, ROLLUP and CUBE: several groupings of the same rows as one question, priced as one vector.

A row is counted once for each set, under the number of that set and the keys that the set has. What one unit adds is
one vector w = (w₁, …, wₛ) over the groups of all sets one after the other, and it is clipped as a whole (`bound`):

    ‖v‖ ≤ C, so adding or removing a unit changes the answer by at most C in the plan's norm, however a unit's rows fall
    on the groups of the s sets; exchanging one, by what `mechanisms.vector` says of C.

Nothing else is needed for the guarantee: C is enforced on the vector that is released. How large it is made is a matter
of accuracy alone. A limit of c holds for one set, and all sets are about the same rows; so C is the least integer that
leaves a unit within c in every set as it is: ‖w‖₂² = Σ‖wⱼ‖₂² gives ⌈√Σcⱼ²⌉ = ⌈c·√s⌉ in L2, and ‖w‖₁ gives c·s in L1.
A norm that was found over a column's keys holds for the sets that have this column as a key, and for no other.

The limit of groups holds for each set: with one for all sets together, which of a unit's groups count would be left to
chance, and a grand total would miss most people. So COUNT(DISTINCT unit) adds at most Σ min(g, groups of set j) ones,
and COUNT(DISTINCT x) keeps at most K pairs of a unit in each set (`statements.distinct`): Δ1 = s·K, and Δ2² = s·K²,
since Σa² ≤ (Σa)² ≤ K² within each set.

In the engine, a key that a set does not have is a constant there, which the set's number tells from a value; a row
whose key is NULL is in no group of the sets that have this key, and counts in the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.domains import MOST_VALUES, NOTHING, Cell, Domains, Facts, Groups, most_cells
from dalenius.measuring.expressions import WHICH, Call, Expression, Key, Literal, Scalar, Type, number, rebuild, written
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.measuring.plan import MOST_GROUPS
from dalenius.queries.rules.parse import place

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.errors import Place
    from dalenius.queries.rules.aggregated import Aggregating
    from dalenius.tables import policy as tables

MOST_SETS = 64
MOST_KEYS = 64
MOST_MARKED = 50  # arguments of GROUPING: one bit for each, in a double
GROUPING = "grouping"  # as a function, until it is known which keys there are
_ABSENT: Mapping[Type, Scalar] = {
    Type.NUMBER: 0.0,
    Type.BOOLEAN: False,
    Type.TEXT: "",
    Type.DATE: date(1970, 1, 1),
    Type.DATETIME: datetime(1970, 1, 1),  # noqa: DTZ001 (as all datetimes of the engine)
}
Set = tuple[int, ...]


# --- what was asked


@dataclass(frozen=True)
class Grouped:
    """The keys of GROUP BY, and the sets as they were asked for: places of keys. No sets: one, of all keys."""

    keys: tuple[Expression, ...] = ()
    sets: tuple[Set, ...] = ()

    @classmethod
    def of(cls, asked: Sequence[Sequence[Expression]]) -> Grouped:
        """Constants are no keys. Where sets differ, keys are put in one order: that of writing them does not matter."""
        sets = [tuple(dict.fromkeys(key for key in each if not isinstance(key, Literal))) for each in asked]
        keys = tuple(dict.fromkeys(chain.from_iterable(sets)))
        if len({frozenset(each) for each in sets}) > 1:
            keys = tuple(sorted(keys, key=written))
        places = {key: at for at, key in enumerate(keys)}
        return cls(keys, tuple(tuple(places[key] for key in each) for each in sets) if len(sets) > 1 else ())


def read_sets(reader: Aggregating, nodes: Sequence[exp.Expr], key: Callable[[exp.Expr], Expression]) -> Grouped:
    """What stands after GROUP BY. Several items: every set of one together with every set of the others."""
    found: list[tuple[Expression, ...]] = [()]
    for node in nodes:
        own = _sets(reader, node, key)
        _check(reader, node, len(found) * len(own))
        found = [one + other for one in found for other in own]
    return Grouped.of(found)


def _sets(reader: Aggregating, node: Any, key: Callable[[exp.Expr], Expression]) -> list[tuple[Expression, ...]]:
    from sqlglot import exp

    if isinstance(node, exp.GroupingSets):
        _check(reader, node, len(node.expressions))
        found = [each for inner in node.expressions for each in _sets(reader, inner, key)]
        _check(reader, node, len(found))
        return found
    if isinstance(node, exp.Rollup):
        parts = [_keys(each, key) for each in node.expressions]
        _check(reader, node, len(parts) + 1)
        return [sum(parts[:length], ()) for length in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        _check(reader, node, 2 ** len(node.expressions))
        parts = [_keys(each, key) for each in node.expressions]
        bits = [1 << at for at in reversed(range(len(parts)))]  # the first part has the highest
        chosen = reversed(range(2 ** len(parts)))
        return [sum((part for part, bit in zip(parts, bits, strict=True) if bit & each), ()) for each in chosen]
    return [_keys(node, key)]


def _keys(node: Any, key: Callable[[exp.Expr], Expression]) -> tuple[Expression, ...]:
    """One key, or several in brackets, which stay together."""
    from sqlglot import exp

    if isinstance(node, exp.Paren):
        return _keys(node.this, key)
    return tuple(map(key, node.expressions)) if isinstance(node, exp.Tuple) else (key(node),)


def _check(reader: Aggregating, node: exp.Expr, count: int) -> None:
    if count > MOST_SETS:
        raise QuestionRefusedError(
            "The question has too many grouping sets.",
            why=f"It has more than {MOST_SETS}; the noise is for all of them together.",
            fix="Name the sets that you need: GROUPING SETS ((a, b), (a), ()).",
            at=place(node, reader.text),
        )


def grouping(reader: Aggregating, node: Any) -> Expression:
    """GROUPING(a, b), as a function of what may be keys; `mark_groupings` says which."""
    arguments = tuple(map(reader.expression, node.expressions))
    if not 1 <= len(arguments) <= MOST_MARKED:
        raise reader.invalid(node, "GROUPING takes keys.", f"Here are {len(arguments)}.", "Write GROUPING(a).")
    return Call(GROUPING, arguments, Type.NUMBER)


def mark_groupings(
    expression: Expression,
    keys: tuple[Expression, ...],
    groupings: dict[Set, int],
    refused: Callable[[], QuestionRefusedError],
) -> Expression:
    """The expression with each GROUPING(…) as a column of its own after the keys; ``groupings`` remembers which."""

    def column(part: Expression) -> Expression:
        if not isinstance(part, Call) or part.function != GROUPING:
            return part
        if not set(part.arguments) <= set(keys):
            raise refused()
        places = tuple(keys.index(each) for each in part.arguments)
        return Key(len(keys) + groupings.setdefault(places, len(groupings)), Type.NUMBER)

    return rebuild(expression, column)


# --- what is measured


@dataclass(frozen=True)
class GroupingLayout:
    """The groups of all sets.

    Attributes:
        sets: The different sets, the largest first; none where there is one only.
        keys: What rows are grouped by: the set's number and each key, or a constant where the set lacks it.
        cells: The groups that are public, set by set.
        hidden: The numbers of sets whose groups have to be found.
        sizes: How many groups each set has.
        own: The keys of each set.
    """

    sets: tuple[Set, ...]
    keys: tuple[Expression, ...]
    cells: tuple[Cell, ...]
    hidden: tuple[int, ...]
    sizes: tuple[int, ...]
    own: tuple[tuple[Expression, ...], ...]

    @property
    def finest(self) -> int:
        """How many groups the set with most of them has."""
        return max(self.sizes)


def lay_out_groups(
    asked: Sequence[Set],
    keys: tuple[Expression, ...],
    columns: Mapping[str, tables.Column],
    at: Place | None,
    *,
    pure: bool,
    possible: Callable[[Sequence[Expression]], Facts] | None = None,
) -> GroupingLayout:
    """The groups of a question.

    Args:
        asked: The sets as they were asked for; none: one of all keys.
        keys: The keys, made total.
        columns: Of the policy.
        at: Where the question stands, for errors.
        pure: Keys cannot be found: a key of one unit alone must have no chance at all.
        possible: What the question says of rows with such keys (`public_facts`).

    Raises:
        QuestionRefusedError: Groups are not public where they must be, too many, or none.
    """
    sets = different(asked) or (tuple(range(len(keys))),)
    own = tuple(tuple(keys[place_] for place_ in each) for each in sets)
    if len(keys) > MOST_KEYS:
        raise QuestionRefusedError(
            "The question has too many keys.",
            why=f"It is grouped by {len(keys):,}; at most {MOST_KEYS} are answered, for every group.",
            fix="Group by fewer keys: one that follows from another can be worked out from the answer.",
            at=at,
        )
    often = Counter(tuple(sorted(each)) for each in asked)
    domains, left, counted = Domains(columns), most_cells(len(keys)), list[Groups | None]()
    for set_, each in zip(sets, own, strict=True):  # counted before any is made
        counted.append(domains.groups(each, at, NOTHING if possible is None else possible(each), needed=pure))
        left -= often.get(set_, 1) * (0 if (groups := counted[-1]) is None else groups.count)
        if left < 0:
            raise QuestionRefusedError(
                "The question has too many groups.",
                why=f"All grouping sets together have more than {MOST_CELLS:,}, or their keys have more than "
                f"{MOST_VALUES:,} values in all; every one of them is answered.",
                fix="Ask for fewer sets, or for coarser keys such as DATE_TRUNC('month', d).",
                at=at,
            )
    sizes = tuple(MOST_GROUPS if each is None else each.count for each in counted)
    found = [None if each is None else each.cells for each in counted]
    hidden = tuple(number_ for number_, each in enumerate(found) if each is None)
    if len(sets) == 1:
        return GroupingLayout((), keys, found[0] or (), hidden, sizes, own)
    numbered = (_cell(number_, each, cell, keys) for number_, each in enumerate(sets) for cell in found[number_] or ())
    return GroupingLayout(sets, _numbered(keys, sets), tuple(numbered), hidden, sizes, own)


def different(asked: Iterable[Set]) -> tuple[Set, ...]:
    """Each set once, whatever the order of writing; none where all are one."""
    found = sorted({tuple(sorted(each)) for each in asked}, key=lambda each: (-len(each), each))
    return tuple(found) if len(found) > 1 else ()


def _numbered(keys: Sequence[Expression], sets: Sequence[Set]) -> tuple[Expression, ...]:
    found: list[Expression] = [WHICH]
    for at, key in enumerate(keys):
        having = [number(number_) for number_, each in enumerate(sets) if at in each]
        there = call("in", WHICH, *having)
        found.append(key if len(having) == len(sets) else call("case", there, key, _absent(key)))
    return tuple(found)


def _cell(number_: int, own: Set, cell: Cell, keys: Sequence[Expression]) -> Cell:
    values = dict(zip(own, cell, strict=True))
    return (float(number_), *(values[at] if at in values else _absent(key).value for at, key in enumerate(keys)))


def _absent(key: Expression) -> Literal:
    return Literal(_ABSENT.get(key.type), key.type)
