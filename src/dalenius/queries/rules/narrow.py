"""Bounds of what is added up, from the conditions under which it is: AVG(LN(x)) … WHERE x > 0.

A column lies between its bounds, and for a row that counts also where WHERE and FILTER say. So does it for a row that
has a value at all: of LN(x) only where x is above 0, of a / x only where x is not 0. A column has steps, so that above
0 is at least one step. Where a value has bounds only so, it is brought between them (`LEAST(GREATEST(…))`), and rows
without it stay without.

*Why it is safe.* Nothing rests on the conditions. The value is clamped for every row, whatever it holds, so that its
bounds are those of any other clamped value, and what one unit adds is clipped as always (`measures`). If a condition
were read wrongly here, the answer would be off, and nobody's rows would show more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Call, Column, Expression, Literal, Type, conjuncts, number
from dalenius.measuring.functions import Range, bounded, ranges_of
from dalenius.tables import policy as tables
from dalenius.tables.policy import Kind

# What is NULL as soon as one argument is: there, a part without a value leaves none.
_STRICT = frozenset({"add", "sub", "mul", "div", "intdiv", "mod", "neg", "abs", "sign", "floor", "ceil", "trunc"})
_STRICT |= {"round", "sqrt", "ln", "log10", "log2", "exp", "power", "finite", "to_number", "to_integer", "round_even"}


def clamp_by_conditions(
    value: Expression, where: Expression, around: Iterable[Expression], columns: Mapping[str, tables.Column]
) -> tuple[Expression, Expression, Range] | None:
    """A value without bounds brought between those that conditions give it, and the rows that have one.

    Args:
        value: Made total.
        where: Which rows the aggregate takes.
        around: What else holds for them.
        columns: Of the policy.

    Returns:
        The value, its rows and its bounds; None where nothing is known, or no condition is needed.
    """
    conditions = [part for each in (where, *around) for part in conjuncts(each)]
    ranges = {**ranges_of(columns)}
    for each in (*conditions, *_implied(value)):
        _narrow(ranges, each, columns)
    found = bounded(value, ranges) if all(low <= high for low, high in ranges.values()) else None
    if found is None:
        return None
    low, high = found
    clamped = call("least", call("greatest", value, number(low)), number(high))
    # LEAST and GREATEST pass over NULL, which has to stay one
    return clamped, call("and", where, call("not", call("is_null", value))), found


def _implied(value: Expression) -> Iterator[Expression]:
    """What holds wherever the value is not NULL."""
    match value:
        case Call(function="ln" | "log10" | "log2", arguments=(inner,)):
            if (column := _column(inner)) is not None:
                yield Call("lt", (number(0), column), Type.BOOLEAN)
        case Call(function="div" | "intdiv", arguments=(_, divisor)):
            if (column := _column(divisor)) is not None:
                yield Call("ne", (column, number(0)), Type.BOOLEAN)
        case Call(function="nullif", arguments=(inner, Literal() as given)):
            if (column := _column(inner)) is not None:
                yield Call("ne", (column, given), Type.BOOLEAN)
    if isinstance(value, Call) and value.function in _STRICT:
        for each in value.arguments:
            yield from _implied(each)


def _column(inner: Expression) -> Column | None:
    """The column of x, and of what guards make of it: CASE WHEN 0 < x THEN x END, NULLIF(x, 0)."""
    match inner:
        case Column():
            return inner
        case Call(function="nullif", arguments=(one, _)):
            return _column(one)
        case Call(function="case", arguments=(_, one, Literal(value=None))):
            return _column(one)
    return None


def _narrow(ranges: dict[str, Range], condition: Expression, columns: Mapping[str, tables.Column]) -> None:
    """Narrows the range of a column by a comparison with a number."""
    match condition:
        case Call(function="lt" | "le" as sign, arguments=(Literal(value=float() as low), Column(name=name))):
            _cut(ranges, name, _above(columns, name, low) if sign == "lt" else low, math.inf)
        case Call(function="lt" | "le" as sign, arguments=(Column(name=name), Literal(value=float() as high))):
            _cut(ranges, name, -math.inf, _below(columns, name, high) if sign == "lt" else high)
        case Call(function="eq", arguments=(Column(name=name), Literal(value=float() as value))):
            _cut(ranges, name, value, value)
        case Call(function="eq", arguments=(Literal(value=float() as value), Column(name=name))):
            _cut(ranges, name, value, value)
        case Call(function="in", arguments=(Column(name=name), *listed)):
            values = [each.value for each in listed if isinstance(each, Literal) and isinstance(each.value, float)]
            if len(values) == len(listed):
                _cut(ranges, name, min(values), max(values))
        case Call(function="ne", arguments=(Column(name=name), Literal(value=float() as value))):
            low, high = ranges.get(name, (-math.inf, math.inf))
            if low == value:
                _cut(ranges, name, _above(columns, name, value), math.inf)
            elif high == value:
                _cut(ranges, name, -math.inf, _below(columns, name, value))


def _cut(ranges: dict[str, Range], name: str, low: float, high: float) -> None:
    if name in ranges:
        ranges[name] = (max(low, ranges[name][0]), min(high, ranges[name][1]))


def _above(columns: Mapping[str, tables.Column], name: str, value: float) -> float:
    """The next value of a column above another."""
    step = _step(columns, name)
    return value if step is None else float((math.floor(Fraction(value) / step) + 1) * step)


def _below(columns: Mapping[str, tables.Column], name: str, value: float) -> float:
    step = _step(columns, name)
    return value if step is None else float((math.ceil(Fraction(value) / step) - 1) * step)


def _step(columns: Mapping[str, tables.Column], name: str) -> Fraction | None:
    column = columns.get(name)
    if column is None or column.kind not in tables.NUMERIC:
        return None
    return Fraction(1) if column.kind is Kind.INTEGER else column.step
