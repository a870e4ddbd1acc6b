"""Sources that subqueries make: sums within one unit, and UNION ALL. Their results are columns like any other.

SELECT AVG(total) FROM (SELECT user_id, SUM(amount) AS total FROM visits GROUP BY user_id) asks about people, not about
visits. What stands inside GROUP BY must name the unit, or a key that leads to one; then each row of the subquery
belongs to one unit and is made of its rows alone (`relations`). Of UNION ALL, rows of tables of one data set stand
below one another, each with its own unit.

The columns of a subquery have bounds that follow from those of the table and from the limits of one unit: a count
lies between 0 and the limit of rows. Values beyond are clipped, as those of any column are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.expressions import Aggregate, Column, Expression, Type, columns_of, rebuild, walk, written
from dalenius.measuring.functions import Range, bounded, dominated, whole
from dalenius.measuring.relations import PerUnit, Relation, Stacked, full, same_unit
from dalenius.measuring.statistics import said
from dalenius.queries.rules.joins import limits_of
from dalenius.queries.rules.total import make_finite, make_total
from dalenius.tables.columns import default_step
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Spec

if TYPE_CHECKING:
    from dalenius.errors import Place

NOT_WITHIN = "The subquery's groups are not within one unit."
INSIDE = frozenset({"count", "sum", "avg", "min", "max", "distinct"})
_KINDS = {
    Type.BOOLEAN: Kind.BOOLEAN,
    Type.TEXT: Kind.TEXT,
    Type.UNIT: Kind.TEXT,
    Type.DATE: Kind.DATE,
    Type.DATETIME: Kind.DATETIME,
}
_LARGEST = 2.0**62  # of what is added within a unit, in steps: no number of rows makes the engine's integers overflow


def group_by_unit(
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
            NOT_WITHIN,
            why="Its numbers would be about several people, without noise.",
            fix="Group it by the unit (and more), or ask the subquery itself as a question.",
            at=at,
        )
    ranges, columns = relation.columns.ranges, dict[str, Spec]()
    integers = relation.columns.integers
    safe_keys = tuple(make_total(each, ranges) for each in keys)
    for place, key in enumerate(safe_keys):
        columns[f"k{place}"] = _column(f"k{place}", key, relation)
    rows = limits_of(relation).rows
    totals = {each: float(value) for each, value in limits_of(relation).totals.items()}
    safe = []
    for place, each in enumerate(aggregates):
        if each.kind not in INSIDE:
            raise QuestionRefusedError(
                f"{said(each.kind)} cannot stand in a subquery.",
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
        value = None if each.value is None else make_total(each.value, ranges)
        one = replace(each, value=value, where=make_total(each.where, ranges))
        columns[f"a{place}"] = _aggregate(f"a{place}", one, relation, rows, totals, integers, places.get(each))
        safe.append(one)
    only = all(any(one.startswith("unit ") for one in each) for each in classes)
    named = {f"k{place}": each for place, each in enumerate(classes) if each}
    return PerUnit(name, relation, safe_keys, tuple(safe), columns, named, 1 if only else rows)


def over_subquery(expression: Expression, replaced: Mapping[Expression, Column]) -> Expression:
    """An expression over the subquery's keys and aggregates as one over its columns."""
    if expression in replaced:
        return replaced[expression]
    return rebuild(expression, lambda each: replaced.get(each, each))


def aggregates_of(expressions: Sequence[Expression]) -> list[Aggregate]:
    """All aggregates, each once, in a fixed order."""
    found = {part for each in expressions for part in walk(each) if isinstance(part, Aggregate)}
    return sorted(found, key=written)


def _column(name: str, value: Expression, relation: Relation) -> Spec:
    """The column of a value of the relation inside."""
    columns = relation.columns
    if isinstance(value, Column) and value.type is not Type.UNIT:
        return replace(columns[value.name], name=name)
    if value.type is not Type.NUMBER:
        return Spec(name, _KINDS.get(value.type, Kind.TEXT))
    return _number_column(name, bounded(value, columns.ranges), whole(value, columns.integers))


def _number_column(name: str, ends: Range | None, integer: bool, step: Fraction | None = None) -> Spec:
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
        return _number_column(name, None if rows is None else (0.0, float(rows)), True)
    value: Any = aggregate.value
    if aggregate.kind in {"min", "max"} and value.type is not Type.NUMBER:
        return _column(name, value, relation)
    ends = bounded(value, relation.columns.ranges)
    if ends is None and aggregate.kind in {"min", "max"}:
        return _number_column(name, None, whole(value, integers))
    if ends is None or max(map(abs, ends)) / float(default_step(*_apart(ends))) > _LARGEST:
        raise NotAllowedError(
            "What is summed in the subquery has no bounds.",
            why=f"{aggregate.kind.upper()} within one unit is worked out on whole numbers, which need some.",
            fix="Ask the owner for bounds, or clip it yourself with LEAST(GREATEST(x, 0), 100).",
            at=at,
        )
    if aggregate.kind in {"min", "max"}:
        return _number_column(name, ends, whole(value, integers))
    if aggregate.kind == "avg":
        return _number_column(name, ends, False)
    limit = [] if rows is None else [rows * max(map(abs, ends))]
    total = dominated(value, totals, relation.columns.ranges)
    limit += [total] if total is not None and math.isfinite(total) else []
    most = min(limit, default=None)
    if most is None:
        return Spec(name, Kind.NUMBER)
    return _number_column(name, (-most if ends[0] < 0 else 0.0, most if ends[1] > 0 else 0.0), whole(value, integers))


def _apart(ends: Range) -> tuple[Fraction, Fraction]:
    low, high = map(Fraction, ends)
    return low, high if low < high else low + 1


# --- UNION ALL


def stack_parts(
    name: str,
    parts: Sequence[tuple[Relation, Sequence[tuple[str, Expression]]]],
    identities: Mapping[str, frozenset[str]],
    at: Place | None,
) -> tuple[Stacked, dict[str, tuple[str, Expression]]]:
    """The source, and its columns by name; names are those of the first part."""
    width = len(parts[0][1])
    if any(len(columns) != width for _, columns in parts):
        raise _refused("The parts of UNION ALL have different numbers of columns.", at)
    if any(relation.owner is None for relation, _ in parts):
        raise _refused("A part of UNION ALL reads public tables only: its rows would belong to nobody.", at)
    columns, named, names = dict[str, Spec](), dict[str, frozenset[str]](), dict[str, tuple[str, Expression]]()
    values = [[_made(each, relation) for _, each in columns_] for relation, columns_ in parts]
    for place in range(width):
        short = f"c{place}"
        asked = [one[place] for one in values]
        classes = [
            identities.get(each.name, frozenset()) if isinstance(each, Column) else frozenset() for each in asked
        ]
        shared = frozenset.intersection(*classes)
        units = {one[place].type is Type.UNIT for one in values}
        if units == {True, False} or (True in units and not shared):
            raise _refused(f"Column {place + 1} of UNION ALL says who somebody is in one part only.", at)
        if shared:
            named[short] = shared
        if True in units:
            continue
        types = {one[place].type for one in values} - {Type.NOTHING}
        if len(types) > 1:
            raise _refused(f"Column {place + 1} of UNION ALL has different types.", at)
        columns[short] = _merged(
            short, [(one[place], relation) for one, (relation, _) in zip(values, parts, strict=True)]
        )
    rows = [limits_of(relation).rows for relation, _ in parts]
    known = None if any(each is None for each in rows) else sum(each or 0 for each in rows)
    source = Stacked(
        name,
        tuple((relation, tuple(one)) for (relation, _), one in zip(parts, values, strict=True)),
        columns,
        named,
        known,
        tuple(spelled for spelled, _ in parts[0][1]),
    )
    for place, (spelled, _) in enumerate(parts[0][1]):
        kind = Type.UNIT if f"c{place}" not in columns else values[0][place].type
        kind = next((one[place].type for one in values if one[place].type is not Type.NOTHING), kind)
        names[spelled.lower()] = (spelled, Column(full(source, f"c{place}"), kind))
    return source, names


def _made(expression: Expression, relation: Relation) -> Expression:
    return make_finite(expression, relation.columns.ranges)


def _merged(name: str, parts: Sequence[tuple[Expression, Relation]]) -> Spec:
    """A column that holds what those of all parts may."""
    specs = [_column(name, value, relation) for value, relation in parts if value.type is not Type.NOTHING]
    if not specs:
        return Spec(name, Kind.TEXT)
    first = specs[0]
    kinds = {each.kind for each in specs}
    kind = first.kind if len(kinds) == 1 else Kind.NUMBER if kinds <= {Kind.INTEGER, Kind.NUMBER} else Kind.TEXT
    keys = None
    if len(kinds) == 1 and all(each.keys is not None for each in specs):
        keys = tuple(dict.fromkeys(key for each in specs for key in each.keys or ()))
    bounds = None
    if all(each.bounds is not None for each in specs):
        ends = [each.bounds for each in specs if each.bounds is not None]
        bounds = Bounds(min(each.low for each in ends), max(each.high for each in ends))
    steps = [each.step for each in specs if each.step is not None]
    return Spec(name, kind, bounds, min(steps) if steps and bounds is not None else None, keys)


def _refused(message: str, at: Place | None) -> QuestionRefusedError:
    return QuestionRefusedError(
        message,
        why="Its rows stand below one another: their columns must fit, and every row must belong to a unit.",
        fix="Select the same columns in each part, in one order.",
        at=at,
    )
