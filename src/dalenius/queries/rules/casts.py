"""CAST: how a value of one type becomes one of another; what cannot is NULL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Expression, Literal, Type, number
from dalenius.measuring.functions import decimal, whole

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

_CASTS = {
    "to_integer": "TINYINT SMALLINT INT BIGINT INT128 HUGEINT UTINYINT USMALLINT UINT UBIGINT UINT128",
    "to_number": "DOUBLE FLOAT DECIMAL REAL",
    "to_text": "TEXT VARCHAR CHAR NVARCHAR NCHAR",
    "to_boolean": "BOOLEAN",
    "to_date": "DATE DATE32",
    "to_datetime": "TIMESTAMP TIMESTAMPNTZ DATETIME",
}
_MOST_DIGITS = 15  # behind the point, of a double


def cast(reader: Aggregating, node: Any) -> Expression:
    """CAST and TRY_CAST, which are one: no row can make a cast fail."""
    name = node.args["to"].this
    name = name.name if hasattr(name, "name") else str(name)
    function = next((each for each, types in _CASTS.items() if name in types.split()), None)
    if name == "TIME":
        ways = "Write DATE_TRUNC('minute', t)::TIME, EXTRACT(hour FROM t) or STRFTIME(t, '%H:%M')."
        raise reader.refused(node, "There is no cast to TIME here but of whole minutes or seconds.", ways)
    if function is None:
        raise reader.refused(
            node,
            f"There is no cast to {_type_named(node, reader.text)}.",
            "Cast to DOUBLE, INTEGER, VARCHAR, DATE or TIMESTAMP.",
        )
    value = reader.expression(node.this)
    if name == "DECIMAL":
        return _decimal(reader, node, value)
    if isinstance(value, Literal) and isinstance(value.value, str) and function in {"to_date", "to_datetime"}:
        return reader.typed(node, value, Type.DATE if function == "to_date" else Type.DATETIME)
    same = {"to_number": Type.NUMBER, "to_text": Type.TEXT, "to_boolean": Type.BOOLEAN, "to_date": Type.DATE}
    same |= {"to_datetime": Type.DATETIME}
    if value.type is same.get(function):
        return value
    if value.type is Type.NUMBER and function in {"to_date", "to_datetime"}:
        raise reader.mismatch(node, "text", "number")
    if value.type in {Type.DATE, Type.DATETIME, Type.BOOLEAN} and function in {"to_number", "to_integer"}:
        if value.type is Type.BOOLEAN:
            return reader.as_number(node, value)
        raise reader.mismatch(node, "text", value.type.value)
    if value.type in {Type.DATE, Type.DATETIME} and function == "to_boolean":
        raise reader.mismatch(node, "text", value.type.value)
    if function == "to_integer" and value.type is Type.NUMBER and not whole(value, reader.integers):
        exact = decimal(value, reader.integers) and not _has_double(node.this)
        function = "to_integer" if exact else "round_even"
    return reader.apply(node, function, value)


def _decimal(reader: Aggregating, node: Any, value: Expression) -> Expression:
    """CAST(x AS DECIMAL(10, 2)) rounds to so many digits, half away from zero; DuckDB's DECIMAL alone has three.

    What has too many digits before the point stays as it is, where DuckDB would fail.
    """
    said = [each.this.name for each in node.args["to"].expressions]
    if not all(each.isdigit() and len(each) <= 2 for each in said):
        raise reader.refused(node, "DECIMAL takes one or two numbers.", "Write CAST(x AS DECIMAL(10, 2)).")
    digits = 3 if not said else int(said[1]) if len(said) > 1 else 0
    given = _number_of(reader, node, value)
    if whole(given, reader.integers) or digits > _MOST_DIGITS:
        return given
    return reader.apply(node, "round", given, number(digits)) if digits else reader.apply(node, "round", given)


def _number_of(reader: Aggregating, node: Any, value: Expression) -> Expression:
    """A value as a number: of a truth value 1 or 0."""
    if value.type is Type.BOOLEAN:
        return reader.as_number(node, value)
    if value.type in {Type.DATE, Type.DATETIME}:
        raise reader.mismatch(node, "text", value.type.value)
    return value if value.type is Type.NUMBER else reader.apply(node, "to_number", value)


def _type_named(node: Any, text: str) -> str:
    """A type as it was typed, where the parser knows no other name for it."""
    to = node.args["to"]
    name = str(to.args.get("kind") or (to.this.name if hasattr(to.this, "name") else to.this))
    if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
        return name
    typed = re.search(r"(?:::|\bAS)\s*(\w+)", text[node.meta.get("start", 0) :], re.IGNORECASE)
    return "this type" if typed is None else typed[1].upper()


def _has_double(node: Any) -> bool:
    """Whether a value is worked out in doubles, by its text alone: 25 / 10.0 and 25e-1 are, 2.5 is not."""
    from sqlglot import exp

    def is_double(each: Any) -> bool:
        if isinstance(each, exp.Literal):
            return not each.is_string and "e" in each.name.lower()
        to = each.args["to"].this if isinstance(each, exp.Cast) else None
        return isinstance(each, exp.Div) or getattr(to, "name", "") in {"DOUBLE", "FLOAT", "REAL"}

    return any(map(is_double, node.walk(prune=lambda each: isinstance(each, exp.Predicate))))
