"""Constants and truth values where another type is wanted: 1 for TRUE, '2024-02-29' for a date, a date for a moment."""

from __future__ import annotations

import math
from datetime import date, datetime

from dalenius.measuring.expressions import Call, Expression, Literal, Type, number

_TRUE, _FALSE = frozenset({"true", "t", "1"}), frozenset({"false", "f", "0"})  # as DuckDB reads texts


def as_truth(expression: Expression) -> Expression:
    """1 and 0 as truth values, where they are compared with one."""
    if isinstance(expression, Literal) and expression.type is Type.NUMBER and expression.value in {0.0, 1.0}:
        return Literal(expression.value == 1.0, Type.BOOLEAN)
    return expression


def at_midnight(expression: Expression) -> bool:
    """Whether a moment is always the beginning of a day, as far as its form tells: DATE_TRUNC('month', t)."""
    match expression:
        case Call(function="date_trunc", arguments=(Literal(value=str() as unit), *_), type=Type.DATETIME):
            return unit in {"day", "week", "month", "quarter", "year"}
    return False


def has_time(expression: Expression) -> bool:
    """Whether a constant has a time of day beside its day."""
    if not isinstance(expression, Literal):
        return False
    if isinstance(expression.value, datetime):
        return expression.value.time() != datetime.min.time()
    return isinstance(expression.value, str) and len(expression.value.strip()) > 10


def converted(value: object, wanted: Type) -> Literal | None:
    """A constant in another type, where it has one: '2025-03-01' as a date, '5' as a number."""
    try:
        match wanted, value:
            case Type.NUMBER, str():
                found = float(value)
                return number(found) if math.isfinite(found) else None
            case Type.DATE, str():
                return Literal(date.fromisoformat(value.strip()), Type.DATE)
            case Type.DATE, datetime() if value.time() == datetime.min.time():
                return Literal(value.date(), Type.DATE)
            case Type.DATETIME, str():
                moment = datetime.fromisoformat(value.strip())
                return Literal(moment, Type.DATETIME) if moment.tzinfo is None else None
            case Type.DATETIME, date() if not isinstance(value, datetime):
                return Literal(datetime.combine(value, datetime.min.time()), Type.DATETIME)
            case Type.BOOLEAN, str() if value.lower() in _TRUE | _FALSE:
                return Literal(value.lower() in _TRUE, Type.BOOLEAN)
    except ValueError:
        return None
    return None
