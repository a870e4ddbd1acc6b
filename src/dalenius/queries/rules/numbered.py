"""ROW_NUMBER() within one unit: the first visit of each person, the last three, by year.

`SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM visits) WHERE k = 1`
keeps some of each unit's own rows, chosen by these alone. The subquery is a source (`relations.Numbered`) whose rows
have a number more, a column like any other: it can be compared, grouped by and averaged. QUALIFY is a condition on it,
and `DISTINCT ON (person_id) … ORDER BY day` means that it is 1.

Neighbours differ in one unit's rows; these alone get other numbers, since the statement partitions by the unit
(`statements.numbered`). So what one unit adds is clipped as ever, and nothing is charged besides. Where a condition
keeps the first n rows of a unit, n is a limit of its rows; a wrong one would cost accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    Type,
    columns_of,
    conjuncts,
    number,
    walk,
)
from dalenius.measuring.relations import Join, Numbered, Numbering, full, same_unit
from dalenius.queries.rules.derived import over_subquery, stack_parts
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.total import make_finite, make_total
from dalenius.tables.policy import Bounds, Kind
from dalenius.tables.policy import Column as Spec

if TYPE_CHECKING:
    from dalenius.queries.rules.nested import Nested
    from dalenius.queries.rules.scope import Names

NUMBER = "n0"  # the column of a source
_HERE = "\x1frow number"  # the column, as long as there is no source yet
_LARGEST = 2**31  # of a condition on the number
_WHY = "It would show what one person's rows hold."
_WAY = (
    "Number the rows of one unit, in a subquery: ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY x) AS k, with "
    "WHERE k = 1 outside; or aggregate with GROUP BY: windows over aggregates are free."
)


def is_numbered(tree: Any) -> bool:
    """Whether a SELECT of a subquery numbers its rows, or keeps one of each kind."""
    from sqlglot import exp

    distinct = tree.args.get("distinct")
    if tree.args.get("qualify") is not None or (distinct is not None and distinct.args.get("on") is not None):
        return True
    own = (each for item in tree.expressions for each in item.walk(prune=lambda one: isinstance(one, exp.Query)))
    return any(isinstance(each, exp.Window) for each in own)


def refuse_window(reader: Nested, node: Any, what: str = "A window function over rows") -> QuestionRefusedError:
    """The error about a window, a QUALIFY or a DISTINCT ON that is about rows of several people, or leaves."""
    unit = ", ".join(next((each.policy.unit for each in reader.owned), ("unit",)))
    return QuestionRefusedError(
        f"{what} is not supported.", why=_WHY, fix=_WAY.format(unit=unit), at=place(node, reader.text)
    )


def read_window(reader: Nested, node: Any) -> Expression:
    """ROW_NUMBER() OVER (…) in a subquery: the column of its numbers."""
    from sqlglot import exp

    plain = isinstance(node.this, exp.RowNumber) and not any(node.args.get(each) for each in ("spec", "alias"))
    if not plain or not reader.numbers:
        raise refuse_window(reader, node)
    order = node.args.get("order")
    terms = [_term(reader, each, reader.expression(each.this)) for each in (order.expressions if order else ())]
    keys = [reader.expression(each) for each in node.args.get("partition_by") or ()]
    return _numbered_by(reader, keys, terms, node)


def number_subquery(reader: Nested, node: Any) -> tuple[Numbered, Names, Expression]:
    """A subquery that numbers its rows: the source, its columns, and the condition of QUALIFY or DISTINCT ON."""
    at = place(reader.tree, reader.text) or place(node, reader.text)
    if reader.tree.args.get("group") or reader.tree.args.get("having"):
        raise reader.refused(
            reader.tree,
            "ROW_NUMBER, QUALIFY and DISTINCT ON beside GROUP BY are not supported in a subquery.",
            "Group in a subquery, and number its rows in another around it.",
        )
    if not reader.owned:
        raise refuse_window(reader, reader.tree)
    relation = reader.relation()
    reader.numbers = True
    named = reader.items()
    for name, expression in named:
        reader.aliases.setdefault(name.lower(), expression)
    kept = _distinct(reader, named) if reader.tree.args.get("distinct") else TRUE
    qualify = reader.tree.args.get("qualify")
    if qualify is not None:
        kept = call("and", kept, reader.boolean(qualify.this, "QUALIFY"))
    numbering = reader.numbering
    if numbering is None:
        raise reader.refused(reader.tree, "QUALIFY takes a row number here.", _WAY.format(unit="unit"))
    values = _values([each for _, each in named], kept)
    source, columns = stack_parts(
        reader.shared.name("numbered"),
        [(relation, [(f"v{at_}", each) for at_, each in enumerate(values)])],
        reader.shared.identities,
        at,
    )
    ranges = relation.columns.ranges
    safe = Numbering(
        tuple(make_total(each, ranges) for each in numbering.keys),
        tuple((make_finite(each, ranges), down, first) for each, down, first in numbering.order),
    )
    specs = {**source.columns, NUMBER: _number_column(source.rows)}
    found = Numbered(source.name, source.parts, specs, source.identities, source.rows, numbering=safe)
    held = [column for _, column in columns.values() if isinstance(column, Column)]
    replaced: dict[Expression, Column] = dict(zip(values, held, strict=True))
    replaced[Column(_HERE, Type.NUMBER)] = Column(full(found, NUMBER), Type.NUMBER)
    names = {name.lower(): (name, over_subquery(each, replaced)) for name, each in named}
    return found, names, over_subquery(kept, replaced)


def keep_first(joins: Sequence[Join], where: Expression) -> tuple[Join, ...]:
    """Joins whose numbered rows end where conditions on their numbers do."""
    found = []
    for join in joins:
        if isinstance(join.source, Numbered):
            ends = map(_end(full(join.source, NUMBER)), conjuncts(join.on if join.left else where))
            most = min((each for each in ends if each is not None), default=None)
            join = replace(join, source=_ending(join.source, most))  # noqa: PLW2901
        found.append(join)
    return tuple(found)


def _ending(source: Numbered, most: int | None) -> Numbered:
    if most is None or not 1 <= most <= _LARGEST:
        return source
    most = min(most, source.numbering.most or most)
    rows = source.rows
    if not source.numbering.keys:
        rows = most if rows is None else min(rows, most)
    columns = {**source.columns, NUMBER: _number_column(most)}
    return replace(source, numbering=replace(source.numbering, most=most), rows=rows, columns=columns)


def _end(name: str) -> Any:
    """What a condition says of the highest number, where it says something."""

    def most(part: Expression) -> int | None:
        match part:
            case (
                Call(function="eq", arguments=(Column(name=one), Literal(value=float() as end)))
                | Call(function="eq", arguments=(Literal(value=float() as end), Column(name=one)))
            ) if one == name:
                return math.floor(end)
            case Call(function="le", arguments=(Column(name=one), Literal(value=float() as end))) if one == name:
                return math.floor(end)
            case Call(function="lt", arguments=(Column(name=one), Literal(value=float() as end))) if one == name:
                return math.ceil(end) - 1
            case Call(function="in", arguments=(Column(name=one), *values)) if one == name:
                ends = [each.value for each in values if isinstance(each, Literal)]
                return max((math.floor(each) for each in ends if isinstance(each, float)), default=None)
        return None

    return most


def _numbered_by(
    reader: Nested, keys: Sequence[Expression], order: Sequence[tuple[Expression, bool, bool]], node: Any
) -> Expression:
    """Settles how rows are numbered; the same for all of a SELECT."""
    known = reader.shared.identities
    classes = [known.get(each.name, frozenset()) if isinstance(each, Column) else frozenset[str]() for each in keys]
    # Rows that LEFT JOIN left out name nobody: in SQL all of them are one partition.
    left = {full(each.source, name) for each in reader.joins if each.left for name in each.source.identities}
    sure = {one for key, names in zip(keys, classes, strict=True) if not columns_of(key) & left for one in names}
    if not same_unit(sure, reader.parts):
        what = "ROW_NUMBER" if type(node).__name__ == "Window" else "DISTINCT ON"
        raise refuse_window(reader, node, f"{what} over rows of several people")
    rest = [key for key, names in zip(keys, classes, strict=True) if not any(one.startswith("unit ") for one in names)]
    found = Numbering(tuple(dict.fromkeys(rest)), tuple(order))
    if any(_HERE in columns_of(each) for each in found.read):
        raise refuse_window(reader, node)
    if reader.numbering is not None and reader.numbering != found:
        raise reader.refused(
            node, "A subquery numbers its rows in one way.", "Write each row number in a subquery of its own."
        )
    reader.numbering = found
    return Column(_HERE, Type.NUMBER)


def _distinct(reader: Nested, named: Sequence[tuple[str, Expression]]) -> Expression:
    """DISTINCT ON (keys) … ORDER BY: the first row of each."""
    from sqlglot import exp

    on = reader.tree.args["distinct"].args.get("on")
    if on is None or reader.numbering is not None:
        raise reader.refused(
            reader.tree, "DISTINCT beside a row number is not supported.", "Write WHERE k = 1 around the subquery."
        )

    def item(node: Any) -> Expression:
        if isinstance(node, exp.Literal) and not node.is_string:
            return reader.numbered_item(node, [each for _, each in named])
        alias = isinstance(node, exp.Column) and not node.table and reader.aliases.get(node.name.lower())
        return alias or reader.expression(node)

    keys = [item(each) for each in (on.expressions if isinstance(on, exp.Tuple) else [on.unnest()])]
    order = reader.tree.args.get("order")
    terms = [_term(reader, each, item(each.this)) for each in (order.expressions if order else ())]
    return call("eq", _numbered_by(reader, keys, terms, reader.tree), number(1))


def _term(reader: Nested, node: Any, value: Expression) -> tuple[Expression, bool, bool]:
    if any(isinstance(each, Literal) for each in (value,)):
        raise reader.refused(node, "A constant is no order.", "Name the column that says which row is first.")
    return value, bool(node.args.get("desc")), bool(node.args.get("nulls_first"))


def _values(items: Sequence[Expression], kept: Expression) -> list[Expression]:
    """What the rows hold: items as they are, and the columns of those that speak of the row number too."""
    found = dict[Expression, None]()
    for each in (*items, kept):
        if each is not kept and _HERE not in columns_of(each):
            found[each] = None
        else:
            parts: Mapping[Expression, None] = {part: None for part in walk(each) if isinstance(part, Column)}
            found |= {part: None for part in parts if part != Column(_HERE, Type.NUMBER)}
    return list(found)


def _number_column(most: int | None) -> Spec:
    if most is None:
        return Spec(NUMBER, Kind.INTEGER)
    return Spec(NUMBER, Kind.INTEGER, Bounds(1, most), Fraction(1))
