"""The fourth pass: every expression is made total. No row can make it fail, and it is a finite value or NULL.

Neighbours differ in a unit's rows. An expression that fails on some row, or gives infinity, would show whether such a
row is there (ATTACKS, H6). So a divisor that is zero, a logarithm of what is not positive, an overflow are NULL, and a
NULL adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import plain
from dalenius.measuring.expressions import NULL, Aggregate, Call, Expression, Literal, Type, number
from dalenius.measuring.functions import Range, bounded, moments_of, ranges_of
from dalenius.measuring.plan import Safe, require
from dalenius.queries.rules.narrow import clamp_by_conditions
from dalenius.queries.sql_words import SqlWords

if TYPE_CHECKING:
    from dalenius.queries.rules import Stage

_COUNTED = frozenset({"count", "units", "distinct"})  # which need no bounds
LARGEST = 1000  # parts of an expression, constants aside, after guards were put in: the engine is slow with repeats

# Where a number is used up, it must be finite: comparing or printing an infinity would be defined, but not as SQL is.
_USES = frozenset({"eq", "ne", "lt", "le", "in", "is_null", "coalesce", "nullif", "to_text", "to_boolean", "least"})
_USES |= {"greatest", "case", "floor", "ceil", "trunc", "round", "mod"}
_USES |= {"sin", "cos", "tan", "atan", "atan2"}  # which are bounded, or finite, where these are


_TWICE = frozenset({"finite", "nullif", "to_date", "to_datetime"})  # written out, they name their argument twice


def guard_question(stage: Stage) -> Stage:
    """The question's expressions with guards."""
    question = require(stage.question)
    columns = question.table.policy.columns
    guard = _Guard(ranges_of(columns))
    known = {**guard.ranges, **moments_of(columns)}
    around = (question.where, question.table.relation.where)
    notes: dict[str, None] = {}
    values: dict[Aggregate, tuple[Expression | None, Expression]] = {}
    for each in question.aggregates:
        value = None if each.value is None else guard.finite(guard.expression(each.value))
        where = guard.expression(each.where)
        if (
            value is not None
            and each.value is not None
            and each.other is None
            and each.kind not in _COUNTED
            and value.type is Type.NUMBER
        ):
            clamped = None if bounded(value, known) else clamp_by_conditions(value, where, around, columns)
            if clamped is not None:
                value, where, (low, high) = clamped
                shown = SqlWords.over(question.table).text(each.value)
                notes[f"{shown} is brought between {low:.6g} and {high:.6g}, where it lies for all that counts."] = None
        values[each] = value, where
    others = {
        each: guard.finite(guard.expression(each.other)) for each in question.aggregates if each.other is not None
    }
    keys = tuple(guard.finite(guard.expression(each)) for each in question.keys)
    stage = stage.with_(safe=Safe(guard.expression(question.where), keys, values, others))
    return stage.with_(question=replace(question, notes=(*question.notes, *notes))) if notes else stage


def make_total(expression: Expression, ranges: Mapping[str, Range] | None = None) -> Expression:
    """An expression made total: over released values, or over columns of which some ranges are known."""
    return _Guard({} if ranges is None else ranges).expression(expression)  # to ask whether it is empty reads all of it


def make_finite(expression: Expression, ranges: Mapping[str, Range]) -> Expression:
    """An expression made total, and NULL where it is not finite: as good as a column."""
    guard = _Guard(ranges)
    return guard.finite(guard.expression(expression))


class _Guard:
    """Puts guards in, and counts: an expression that grows too large is refused before it is written out."""

    def __init__(self, ranges: Mapping[str, Range]) -> None:
        self.ranges = ranges
        self.sizes: dict[int, int] = {}
        self.kept: list[Expression] = []  # alive, so that their ids stay theirs

    def expression(self, given: Expression) -> Expression:
        if not isinstance(given, Call):
            return given
        arguments = tuple(self.expression(each) for each in given.arguments)
        if given.function in _USES:
            arguments = tuple(self.finite(each) for each in arguments)
        return self.sized(self.guarded(given, arguments))

    def guarded(self, given: Call, arguments: tuple[Expression, ...]) -> Expression:
        match given.function:
            case "div" | "mod":
                return plain(given.function, arguments[0], self.not_zero(arguments[1]))
            case "intdiv":
                quotient = self.sized(plain("div", arguments[0], self.not_zero(arguments[1])))
                return plain("trunc", self.finite(quotient))
            case "ln" | "log10" | "log2":
                return plain(given.function, self.above(arguments[0], "lt"))
            case "sqrt":
                return plain("sqrt", self.above(arguments[0], "le"))
            case "asin" | "acos":
                return plain(given.function, self.within_one(arguments[0]))
        return Call(given.function, arguments, given.type)

    def not_zero(self, divisor: Expression) -> Expression:
        known = bounded(divisor, self.ranges)
        return divisor if known and not known[0] <= 0 <= known[1] else self.sized(plain("nullif", divisor, number(0)))

    def above(self, argument: Expression, relation: str) -> Expression:
        known = bounded(argument, self.ranges)
        if known and (known[0] > 0 or (relation == "le" and known[0] >= 0)):
            return argument
        condition = self.sized(Call(relation, (number(0), argument), Type.BOOLEAN))
        return self.sized(plain("case", condition, argument, NULL))

    def within_one(self, argument: Expression) -> Expression:
        """The argument between −1 and 1, or NULL."""
        known = bounded(argument, self.ranges)
        if known and known[0] >= -1 and known[1] <= 1:
            return argument
        above = self.sized(Call("le", (number(-1), argument), Type.BOOLEAN))
        below = self.sized(Call("le", (argument, number(1)), Type.BOOLEAN))
        both = self.sized(Call("and", (above, below), Type.BOOLEAN))
        return self.sized(plain("case", both, argument, NULL))

    def finite(self, given: Expression) -> Expression:
        """The expression, or NULL where it is not finite; nothing to do where its range is known."""
        if not isinstance(given, Call) or given.type is not Type.NUMBER or given.function == "finite":
            return given
        if bounded(given, self.ranges) is not None:
            return given
        return self.sized(Call("finite", (given,), Type.NUMBER))

    def sized(self, given: Expression) -> Expression:
        size = 1
        if isinstance(given, Call):
            twice = 2 if given.function in _TWICE else 1
            parts = [each for each in given.arguments if not isinstance(each, Literal)]
            size += twice * sum(self.sizes.get(id(each), 1) for each in parts)
        if size > LARGEST:
            raise QuestionRefusedError(
                "An expression is too involved.",
                why="Guards against failing on some row would make it too large.",
                fix="Nest fewer divisions, logarithms and roots.",
            )
        self.sizes[id(given)] = size
        self.kept.append(given)
        return given
