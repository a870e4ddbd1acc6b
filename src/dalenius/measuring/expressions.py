"""Expressions over one row, or over released values: small, typed and closed, so that each can be made total.

Nothing of the analyst's text survives here but names, numbers and literals. Every number is a double, as it is on every
engine; an expression that has no value (a bad cast, a zero divisor, a missing cell) is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import TypeAlias


class Type(Enum):
    """What an expression gives."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    DATETIME = "datetime"
    UNIT = "unit"  # who somebody is: units, and keys that lead to them; only compared with one another
    NOTHING = "nothing"  # the literal NULL, which fits everywhere
    LIST = "list"  # several released numbers in one cell; only shown


Scalar: TypeAlias = "bool | float | str | date | datetime | None"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of the question."""

    value: Scalar
    type: Type


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, as its policy spells it."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the allow-list (`functions`) on arguments."""

    function: str
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Key:
    """In what is done with released values: the group's value of one key."""

    number: int
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What is asked of many rows.

    ``kind`` is `count`, `units`, `distinct`, `sum`, `avg`, `var_pop`, `var_samp`, `stddev_pop`, `stddev_samp`,
    `covar_pop`, `covar_samp`, `corr`, `quantile`, `min` or `max`.
    ``value`` is what is added up (for `count`: None counts rows); ``where`` says which rows, beyond the question's own.
    ``parameter`` is the share of rows that lie below a quantile; ``other`` is the second argument of those with two.
    ``limit`` is the most that one unit's part of it counts for, where the question bounds this one aggregate.
    """

    kind: str
    value: Expression | None
    where: Expression
    type: Type = Type.NUMBER
    parameter: float | None = None
    other: Expression | None = None
    limit: Fraction | None = None


def listed(parts: Iterable[Aggregate]) -> Call:
    """Several aggregates in one cell. It stands in SELECT by itself: nothing is computed with it."""
    return Call("list", tuple(parts), Type.LIST)


@dataclass(frozen=True, slots=True)
class Which:
    """The number of the grouping set that a row is counted for (`rules.sets`)."""

    type: Type = Type.NUMBER


Expression: TypeAlias = "Literal | Column | Call | Key | Aggregate | Which"

TRUE = Literal(True, Type.BOOLEAN)
FALSE = Literal(False, Type.BOOLEAN)
NULL = Literal(None, Type.NOTHING)
WHICH = Which()


def number(value: float) -> Literal:
    """A number as a literal."""
    return Literal(float(value) + 0.0, Type.NUMBER)  # + 0.0: there is no minus zero


def text(value: str) -> Literal:
    """A text as a literal."""
    return Literal(value, Type.TEXT)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it; aggregates are not looked into."""
    stack = [expression]
    while stack:
        each = stack.pop()
        yield each
        if isinstance(each, Call):
            stack.extend(each.arguments)


def columns_of(expression: Expression) -> frozenset[str]:
    """The columns that it reads."""
    return frozenset(each.name for each in walk(expression) if isinstance(each, Column))


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts of a condition that all must hold."""
    return condition.arguments if isinstance(condition, Call) and condition.function == "and" else (condition,)


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with ``change`` applied to every part, from the inside out."""
    if isinstance(expression, Call):
        arguments = tuple(rebuild(each, change) for each in expression.arguments)
        if arguments != expression.arguments:
            expression = Call(expression.function, arguments, expression.type)
    return change(expression)


_WORDS = frozenset({"true", "false", "null", "set"})  # what literals and sets are written as


def written(expression: Expression) -> str:
    """The expression in a fixed notation: equal texts mean equal expressions. For keys of stored answers, and plans.

    >>> age = Column("age", Type.NUMBER)
    >>> written(Call("lt", (age, number(40)), Type.BOOLEAN))
    'lt(age, 40)'
    """
    match expression:
        case Literal(value=value, type=type_):
            return _literal(value, type_)
        case Column(name=name, type=Type.UNIT):  # as it lies in the file, not as the policy reads it
            return 'unit "' + name.replace('"', '""') + '"'
        case Column(name=name):
            plain = name.isidentifier() and name not in _WORDS
            return name if plain else '"' + name.replace('"', '""') + '"'
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(written, arguments))})"
        case Key(number=place):
            return f"key {place + 1}"
        case Which():
            return "set"
        case Aggregate(kind=kind, value=value, where=where, parameter=parameter, other=other, limit=limit):
            inside = ", ".join(written(each) for each in (value, other) if each is not None)
            inside += "" if parameter is None else f", {parameter!r}"
            inside += "" if limit is None else f", limit {limit}"
            return f"{kind}({inside})" + ("" if where == TRUE else f" where {written(where)}")


def _literal(value: Scalar, type_: Type) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{type_.value} '{value.isoformat()}'"
