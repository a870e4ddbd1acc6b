"""UNION ALL: rows of tables of one data set below one another, each with its own unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import Column, Expression, Type
from dalenius.measuring.functions import bounded, whole
from dalenius.measuring.relations import Relation, Stacked, full
from dalenius.queries.rules.joins import limits
from dalenius.queries.rules.per_unit import number_column
from dalenius.queries.rules.total import made_finite
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Spec

if TYPE_CHECKING:
    from dalenius.errors import Place

_KINDS = {Type.BOOLEAN: Kind.BOOLEAN, Type.DATE: Kind.DATE, Type.DATETIME: Kind.DATETIME, Type.TEXT: Kind.TEXT}


def stacked(
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
    rows = [limits(relation).rows for relation, _ in parts]
    known = None if any(each is None for each in rows) else sum(each or 0 for each in rows)
    source = Stacked(
        name,
        tuple((relation, tuple(one)) for (relation, _), one in zip(parts, values, strict=True)),
        columns,
        named,
        known,
    )
    for place, (spelled, _) in enumerate(parts[0][1]):
        kind = Type.UNIT if f"c{place}" not in columns else values[0][place].type
        kind = next((one[place].type for one in values if one[place].type is not Type.NOTHING), kind)
        names[spelled.lower()] = (spelled, Column(full(source, f"c{place}"), kind))
    return source, names


def _made(expression: Expression, relation: Relation) -> Expression:
    return made_finite(expression, relation.columns.ranges)


def _merged(name: str, parts: Sequence[tuple[Expression, Relation]]) -> Spec:
    """A column that holds what those of all parts may."""
    specs = [_spec(name, value, relation) for value, relation in parts if value.type is not Type.NOTHING]
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


def _spec(name: str, value: Expression, relation: Relation) -> Spec:
    columns = relation.columns
    if isinstance(value, Column):
        return replace(columns[value.name], name=name)
    if value.type is not Type.NUMBER:
        return Spec(name, _KINDS[value.type])
    return number_column(name, bounded(value, columns.ranges), whole(value, columns.integers))


def _refused(message: str, at: Place | None) -> QuestionRefusedError:
    return QuestionRefusedError(
        message,
        why="Its rows stand below one another: their columns must fit, and every row must belong to a unit.",
        fix="Select the same columns in each part, in one order.",
        at=at,
    )
