"""Subqueries with aggregates: sums within one unit, whose results are columns like any other.

SELECT AVG(total) FROM (SELECT user_id, SUM(amount) AS total FROM visits GROUP BY user_id) asks about people, not about
visits. What stands inside GROUP BY must name the unit, or a key that leads to one; then each row of the subquery
belongs to one unit and is made of its rows alone (`relations`).

The columns of the subquery have bounds that follow from those of the table and from the limits of one unit: a count
lies between 0 and the limit of rows. Values beyond are clipped, as those of any column are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.expressions import Aggregate, Column, Expression, Type, columns_of, rebuilt, walk, written
from dalenius.measuring.functions import Range, bounded, dominated, whole
from dalenius.measuring.relations import PerUnit, Relation, full, same_unit
from dalenius.queries.rules.joins import limits
from dalenius.queries.rules.total import made_total
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Spec
from dalenius.tables.values import default_step

if TYPE_CHECKING:
    from dalenius.errors import Place

INSIDE = frozenset({"count", "sum", "avg", "min", "max", "distinct"})
_KINDS = {
    Type.BOOLEAN: Kind.BOOLEAN,
    Type.TEXT: Kind.TEXT,
    Type.UNIT: Kind.TEXT,
    Type.DATE: Kind.DATE,
    Type.DATETIME: Kind.DATETIME,
}
_LARGEST = 2.0**62  # of what is added within a unit, in steps: no number of rows makes the engine's integers overflow


def per_unit(
    name: str,
    relation: Relation,
    keys: Sequence[Expression],
    aggregates: Sequence[Aggregate],
    identities: Mapping[str, frozenset[str]],
    parts: int,
    at: Place | None,
    places: Mapping[Aggregate, Place | None],
) -> PerUnit:
    """The subquery as a source; refused where its groups are not within one unit."""
    classes = [identities.get(each.name, frozenset()) if isinstance(each, Column) else frozenset() for each in keys]
    # What LEFT JOIN may leave out names nobody: in SQL all of whom it left out are one group.
    left = {full(each.source, name) for each in relation.joins if each.left for name in each.source.identities}
    sure = [names for key, names in zip(keys, classes, strict=True) if not columns_of(key) & left]
    if not same_unit({one for each in sure for one in each}, parts):
        raise QuestionRefusedError(
            "The subquery's groups are not within one unit.",
            why="Its numbers would be about several people, without noise.",
            fix="Group it by the unit (and more), or ask the subquery itself as a question.",
            at=at,
        )
    ranges, columns = relation.columns.ranges, dict[str, Spec]()
    integers = relation.columns.integers
    safe_keys = tuple(made_total(each, ranges) for each in keys)
    for place, key in enumerate(safe_keys):
        columns[f"k{place}"] = _key(f"k{place}", key, relation, ranges, integers)
    rows = limits(relation).rows
    totals = {each: float(value) for each, value in limits(relation).totals.items()}
    safe = []
    for place, each in enumerate(aggregates):
        if each.kind not in INSIDE:
            raise QuestionRefusedError(
                f"{each.kind.upper()} cannot stand in a subquery.",
                why="Within one unit only COUNT, SUM, AVG, MIN and MAX are worked out.",
                fix="Use one of them.",
                at=places.get(each),
            )
        if each.limit is not None:
            raise QuestionRefusedError(
                "Contribution bounds cannot stand in a subquery.",
                why="They limit what one unit adds to the answer, and the subquery is about one unit.",
                fix="Give them to the aggregate outside.",
                at=places.get(each),
            )
        value = None if each.value is None else made_total(each.value, ranges)
        one = replace(each, value=value, where=made_total(each.where, ranges))
        columns[f"a{place}"] = _aggregate(f"a{place}", one, relation, rows, totals, integers, places.get(each))
        safe.append(one)
    only = all(any(one.startswith("unit ") for one in each) for each in classes)
    named = {f"k{place}": each for place, each in enumerate(classes) if each}
    return PerUnit(name, relation, safe_keys, tuple(safe), columns, named, 1 if only else rows)


def over_subquery(expression: Expression, replaced: Mapping[Expression, Column]) -> Expression:
    """An expression over the subquery's keys and aggregates as one over its columns."""
    if expression in replaced:
        return replaced[expression]
    return rebuilt(expression, lambda each: replaced.get(each, each))


def aggregates_of(expressions: Sequence[Expression]) -> list[Aggregate]:
    """All aggregates, each once, in a fixed order."""
    found = {part for each in expressions for part in walk(each) if isinstance(part, Aggregate)}
    return sorted(found, key=written)


def _key(name: str, key: Expression, relation: Relation, ranges: Mapping[str, Range], integers: frozenset[str]) -> Spec:
    if isinstance(key, Column) and key.type is not Type.UNIT:
        return replace(relation.columns[key.name], name=name)
    if key.type is not Type.NUMBER:
        return Spec(name, _KINDS.get(key.type, Kind.TEXT))
    return number_column(name, bounded(key, ranges), whole(key, integers))


def number_column(name: str, ends: Range | None, integer: bool, step: Fraction | None = None) -> Spec:
    """The column of a number that lies between ends, where they are known."""
    if integer:
        bounds = None if ends is None else Bounds(math.floor(ends[0]), math.ceil(ends[1]))
        return Spec(name, Kind.INTEGER, bounds, None if ends is None else Fraction(1))
    if ends is None:
        return Spec(name, Kind.NUMBER)
    low, high = map(Fraction, ends)
    return Spec(name, Kind.NUMBER, Bounds(low, high), step or default_step(low, high if low < high else low + 1))


def _aggregate(
    name: str,
    aggregate: Aggregate,
    relation: Relation,
    rows: int | None,
    totals: Mapping[str, float],
    integers: frozenset[str],
    at: Place | None,
) -> Spec:
    """The column of one aggregate, with the bounds that it has."""
    if aggregate.kind in {"count", "distinct"}:
        return number_column(name, None if rows is None else (0.0, float(rows)), True)
    value: Any = aggregate.value
    if aggregate.kind in {"min", "max"} and value.type is not Type.NUMBER:
        return _key(name, value, relation, {}, integers)
    ends = bounded(value, relation.columns.ranges)
    if ends is None and aggregate.kind in {"min", "max"}:
        return number_column(name, None, whole(value, integers))
    if ends is None or max(map(abs, ends)) / float(default_step(*_apart(ends))) > _LARGEST:
        raise NotAllowedError(
            "What is summed in the subquery has no bounds.",
            why=f"{aggregate.kind.upper()} within one unit is worked out on whole numbers, which need some.",
            fix="Ask the owner for bounds, or clip it yourself with LEAST(GREATEST(x, 0), 100).",
            at=at,
        )
    if aggregate.kind in {"min", "max"}:
        return number_column(name, ends, whole(value, integers))
    if aggregate.kind == "avg":
        return number_column(name, ends, False)
    limit = [] if rows is None else [rows * max(map(abs, ends))]
    total = dominated(value, totals, relation.columns.ranges)
    limit += [total] if total is not None and math.isfinite(total) else []
    most = min(limit, default=None)
    if most is None:
        return Spec(name, Kind.NUMBER)
    return number_column(name, (-most if ends[0] < 0 else 0.0, most if ends[1] > 0 else 0.0), whole(value, integers))


def _apart(ends: Range) -> tuple[Fraction, Fraction]:
    low, high = map(Fraction, ends)
    return low, high if low < high else low + 1
