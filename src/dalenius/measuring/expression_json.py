"""Expressions as JSON has them, and back: what comes back is equal to what was written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from dalenius.measuring.expressions import (
    WHICH,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Literal,
    Scalar,
    Type,
    Which,
)


def expression_to_json(expression: Expression) -> list[Any]:
    """As a list that begins with what it is.

    >>> from dalenius.measuring.expressions import number
    >>> expression_to_json(Call("lt", (Column("age", Type.NUMBER), number(40)), Type.BOOLEAN))
    ['call', 'boolean', 'lt', ['column', 'number', 'age'], ['literal', 'number', 40.0]]
    """
    match expression:
        case Literal(value=value, type=type_):
            return ["literal", type_.value, scalar_to_json(value)]
        case Column(name=name, type=type_):
            return ["column", type_.value, name]
        case Call(function=function, arguments=arguments, type=type_):
            return ["call", type_.value, function, *map(expression_to_json, arguments)]
        case Key(number=place, type=type_):
            return ["key", type_.value, place]
        case Which():
            return ["which", expression.type.value]
        case Aggregate():
            return ["aggregate", expression.type.value, _aggregate_to_json(expression)]


def expression_of_json(data: Sequence[Any]) -> Expression:
    """As `expression_to_json` wrote it.

    Raises:
        ValueError: It is none.
    """
    type_ = Type(data[1])
    match data[0]:
        case "literal":
            return Literal(scalar_of_json(data[2], type_), type_)
        case "column":
            return Column(str(data[2]), type_)
        case "call":
            return Call(str(data[2]), tuple(map(expression_of_json, data[3:])), type_)
        case "key":
            return Key(int(data[2]), type_)
        case "which":
            return WHICH
        case "aggregate":
            return _aggregate_of_json(data[2], type_)
    raise ValueError("This is no expression.")


def optional_to_json(expression: Expression | None) -> list[Any] | None:
    """The same where there may be none."""
    return None if expression is None else expression_to_json(expression)


def optional_of_json(data: Sequence[Any] | None) -> Expression | None:
    """As `optional_to_json` wrote it."""
    return None if data is None else expression_of_json(data)


def scalar_to_json(value: Scalar) -> Any:
    """A value; days and times as ISO 8601."""
    return value.isoformat() if isinstance(value, date) else value


def scalar_of_json(value: Any, type_: Type) -> Scalar:
    """As `scalar_to_json` wrote it."""
    if value is None or type_ not in {Type.DATE, Type.DATETIME}:
        found: Scalar = value
        return found
    return date.fromisoformat(value) if type_ is Type.DATE else datetime.fromisoformat(value)


def _aggregate_to_json(aggregate: Aggregate) -> dict[str, Any]:
    return {
        "kind": aggregate.kind,
        "value": optional_to_json(aggregate.value),
        "where": expression_to_json(aggregate.where),
        "parameter": aggregate.parameter,
        "other": optional_to_json(aggregate.other),
        "limit": None if aggregate.limit is None else str(aggregate.limit),
    }


def _aggregate_of_json(data: dict[str, Any], type_: Type) -> Aggregate:
    return Aggregate(
        data["kind"],
        optional_of_json(data["value"]),
        expression_of_json(data["where"]),
        type_,
        data["parameter"],
        optional_of_json(data["other"]),
        None if data["limit"] is None else Fraction(data["limit"]),
    )
