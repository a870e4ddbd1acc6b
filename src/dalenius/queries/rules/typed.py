"""Expressions with their types checked, each in its one form: what `resolve` builds everything from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Aggregate, Call, Column, Expression, Literal, Type, number, walk
from dalenius.measuring.functions import FUNCTIONS
from dalenius.queries.rules.parse import place

if TYPE_CHECKING:
    from sqlglot import exp


class Typed:
    """Reads expressions. Who says what names mean, and which aggregates there are, is whoever inherits it."""

    text: str

    @property
    def integers(self) -> frozenset[str]:
        """The columns that hold whole numbers."""
        raise NotImplementedError

    def column(self, node: Any) -> Expression:
        """What a name means."""
        raise NotImplementedError

    def boolean(self, node: exp.Expr, where: str) -> Expression:
        """An expression that must be a condition."""
        found = self.expression(node)
        if found.type not in {Type.BOOLEAN, Type.NOTHING}:
            raise self.invalid(node, f"{where} needs a condition.", f"This is a {found.type.value}.", "Compare it.")
        return found

    def expression(self, node: exp.Expr | None) -> Expression:
        """Any expression."""
        if node is None:
            raise InputError("An argument is missing.", why="A function has too few of them.", fix="Add it.")
        reader = _readers().get(type(node))
        if reader is None:  # allowed somewhere, but not here
            raise self.refused(node, f"{type(node).__name__} cannot stand here.", "See docs/reference/sql.md.")
        return reader(self, node)

    def apply(self, node: exp.Expr, function: str, *arguments: Expression) -> Expression:
        """The function, if the types fit; constants are brought to the type that the others have."""
        if any(each.type is Type.UNIT for each in arguments) and function not in {"is_null", "not"}:
            raise self.told(node, *arguments)
        spec = FUNCTIONS[{"gt": "lt", "ge": "le"}.get(function, function)]
        least = spec.least if spec.least is not None else len(spec.takes)
        if len(arguments) < least or (len(arguments) > len(spec.takes) and not spec.many):
            raise self.invalid(
                node, f"{spec.says} has another number of arguments.", f"Here are {len(arguments)}.", "Correct it."
            )
        if any(has_aggregates(each) for each in arguments) and function in {"like", "ilike", "contains"}:
            raise self.refused(node, "Texts cannot be searched in aggregates.", "Leave it out.")
        if any(len(types) > 1 for types in spec.takes):
            arguments = self.alike(node, function, arguments)
        else:
            takes = [*spec.takes, *(spec.takes[-1] for _ in arguments[len(spec.takes) :])]
            arguments = tuple(
                self.typed(node, each, next(iter(types))) for each, types in zip(arguments, takes, strict=False)
            )
        return call(function, *arguments, integers=self.integers)

    def alike(self, node: exp.Expr, function: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Arguments that must be of one type."""
        if function == "case":
            conditions = tuple(self.typed(node, each, Type.BOOLEAN) for each in arguments[:-1:2])
            values = self.same_type(node, (*arguments[1:-1:2], arguments[-1]))
            pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
            return (*pairs, values[-1])
        if function in {"eq", "ne", "lt", "le", "gt", "ge", "in", "coalesce", "nullif"}:
            return self.same_type(node, arguments)
        if function in {"date_part", "date_trunc", "date_diff", "date_add"}:
            return (arguments[0], *(self.time(node, each) for each in arguments[1:3]), *arguments[3:])
        return arguments

    def time(self, node: exp.Expr, argument: Expression) -> Expression:
        """A date or a moment, or how many units one is moved by."""
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            return self.typed(node, argument, Type.DATETIME if len(argument.value) > 10 else Type.DATE)
        if argument.type is Type.NUMBER and isinstance(argument, Literal):
            return argument  # how many units a date is moved by
        if argument.type not in {Type.DATE, Type.DATETIME, Type.NOTHING}:
            raise self.invalid(node, "This needs a date.", f"It is given a {argument.type.value}.", "Cast it.")
        return argument

    def same_type(self, node: exp.Expr, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The arguments brought to one type."""
        types = {each.type for each in arguments if not isinstance(each, Literal)} - {Type.NOTHING}
        if not types:
            types = {each.type for each in arguments} - {Type.NOTHING}
        if types == {Type.DATE, Type.DATETIME}:
            types = {Type.DATETIME}
        if len(types) > 1:
            raise self.mismatch(node, *sorted(each.value for each in types)[:2])
        if not types:
            return arguments
        (wanted,) = types
        if wanted is Type.DATE and any(_has_time(each) for each in arguments):
            wanted = Type.DATETIME
        return tuple(self.typed(node, each, wanted) for each in arguments)

    def typed(self, node: exp.Expr, argument: Expression, wanted: Type) -> Expression:
        """The argument in the type that is wanted; a constant is converted."""
        if argument.type in {wanted, Type.NOTHING}:
            return argument
        if argument.type is Type.DATE and wanted is Type.DATETIME and not isinstance(argument, Literal):
            return call("to_datetime", argument)
        if isinstance(argument, Literal):
            found = _converted(argument.value, wanted)
            if found is not None:
                return found
        raise self.mismatch(node, wanted.value, argument.type.value)

    def mismatch(self, node: exp.Expr, wanted: str, given: str) -> InputError:
        """The error about types that do not fit."""
        return self.invalid(
            node,
            f"A {given} stands where a {wanted} belongs.",
            "The types do not fit.",
            f"Cast it, or give a {wanted}.",
        )

    def told(self, node: exp.Expr, *arguments: Expression) -> NotAllowedError:
        """The error about a column that says who somebody is, where its value would matter."""
        name = next(each.name for each in arguments if isinstance(each, Column) and each.type is Type.UNIT)
        short = name.rpartition(".")[2]
        return NotAllowedError(
            f"Column {name!r} says who somebody is; it is not open to questions.",
            why="Its values name single people, or lead to them.",
            fix="It can be compared with its like, to join tables; "
            + (f"units can be counted: COUNT(DISTINCT {short})." if self.unit_named(name) else "rows can be counted."),
            at=place(node, self.text),
        )

    def unit_named(self, name: str) -> bool:
        """Whether a column names units, not something that leads to one."""
        raise NotImplementedError

    def refused(self, node: exp.Expr, message: str, fix: str) -> QuestionRefusedError:
        """The error about something that is not known to be safe."""
        why = "It is not among what has been shown to be safe."
        return QuestionRefusedError(message, why=why, fix=fix, at=place(node, self.text))

    def invalid(self, node: exp.Expr, message: str, why: str, fix: str) -> InputError:
        """The error about something that means nothing."""
        return InputError(message, why=why, fix=fix, at=place(node, self.text))


# --- how each node of the syntax tree is read

Read = Callable[[Any, Any], Expression]
_cache: dict[type, Read] = {}


def _readers() -> Mapping[type, Read]:
    if not _cache:
        from dalenius.queries.rules.syntax import readers

        _cache.update(readers())
    return _cache


def has_aggregates(expression: Expression) -> bool:
    """Whether an aggregate is in it, or GROUPING(…), which is known no sooner."""
    return any(
        isinstance(each, Aggregate) or (isinstance(each, Call) and each.function == "grouping")
        for each in walk(expression)
    )


def _has_time(expression: Expression) -> bool:
    if not isinstance(expression, Literal):
        return False
    if isinstance(expression.value, datetime):
        return expression.value.time() != datetime.min.time()
    return isinstance(expression.value, str) and len(expression.value.strip()) > 10


def _converted(value: object, wanted: Type) -> Literal | None:
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
            case Type.BOOLEAN, str() if value.lower() in {"true", "false"}:
                return Literal(value.lower() == "true", Type.BOOLEAN)
    except ValueError:
        return None
    return None
