"""One form per meaning, so that a question asked in other words finds its stored answer.

*Expressions.* Every rewriting here keeps SQL's three-valued truth. `call` is the only way in which `resolve` builds
expressions, so an expression is in its form from the start.

*Names of sources.* A table that occurs twice is called "orders" and "orders 2" in the order of the text. Two questions
that differ in that order alone mean the same, so of all ways to give out these names the one is taken whose text comes
first (`name_alike`). The result is the same for all of them, and the stored answer is found.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import (
    FALSE,
    NULL,
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    Type,
    number,
    written,
)
from dalenius.measuring.functions import FUNCTIONS, whole
from dalenius.measuring.relations import Join, Match, Numbered, Open, Owned, PerUnit, Relation, Source, Stacked

if TYPE_CHECKING:
    from dalenius.measuring.plan import Question

B = Type.BOOLEAN
_DIGITS = 16  # with the point: longer ones come from doubles, such as 1/3


def call(function: str, *arguments: Expression, integers: frozenset[str] = frozenset()) -> Expression:
    """The function applied to arguments that are in their form already; the result is in its own.

    >>> from dalenius.measuring.expressions import Column
    >>> age, region = Column("age", Type.NUMBER), Column("region", Type.TEXT)
    >>> written(call("gt", age, number(17), integers=frozenset({"age"})))
    'le(18, age)'
    >>> written(call("not", call("ge", age, number(18))))
    'lt(age, 18)'
    """
    match function:
        case "and" | "or":
            return _joined(function, arguments)
        case "not":
            return _negated(arguments[0], integers)
        case "gt":
            return call("lt", arguments[1], arguments[0], integers=integers)
        case "ge":
            return call("le", arguments[1], arguments[0], integers=integers)
        case "lt" | "le":
            return _compared(function, arguments[0], arguments[1], integers)
        case "eq" | "ne":
            return _equated(function, arguments[0], arguments[1])
        case "in":
            return _among(arguments[0], arguments[1:])
        case "like" if isinstance(arguments[1], Literal) and not set("%_") & set(str(arguments[1].value)):
            return _equated("eq", *arguments)
        case "case":
            return _chosen(arguments)
        case "coalesce":
            return _first(arguments)
        case "add" | "mul":
            arguments = tuple(sorted(arguments, key=written))
        case "least" | "greatest":  # the same column twice makes DuckDB 2.0 fail where it copies a plan
            arguments = tuple(dict.fromkeys(arguments))
    folded = _folded(function, arguments)
    return folded if folded is not None else plain(function, *arguments)


def plain(function: str, *arguments: Expression) -> Call:
    """The function applied as it is, with its type."""
    return Call(function, arguments, FUNCTIONS[function].gives or _type_of(function, arguments))


def _type_of(function: str, arguments: Sequence[Expression]) -> Type:
    if function == "date_trunc":
        return arguments[1].type
    if function == "date_add":
        # months keep a date a date here; hours do not
        unit = arguments[0]
        small = isinstance(unit, Literal) and unit.value in {"hour", "minute", "second"}
        return Type.DATETIME if small else arguments[1].type
    values = (*arguments[1:-1:2], arguments[-1]) if function == "case" else arguments
    return next((each.type for each in values if each.type is not Type.NOTHING), Type.NOTHING)


def _joined(function: str, arguments: Sequence[Expression]) -> Expression:
    neutral, absorbing = (TRUE, FALSE) if function == "and" else (FALSE, TRUE)
    parts: list[Expression] = []
    for each in arguments:
        parts.extend(each.arguments if isinstance(each, Call) and each.function == function else (each,))
    if absorbing in parts:
        return absorbing
    merged = _merged(function, [each for each in parts if each != neutral])
    found = sorted(dict.fromkeys(merged), key=written)
    return neutral if not found else found[0] if len(found) == 1 else Call(function, tuple(found), B)


def _merged(function: str, parts: Sequence[Expression]) -> list[Expression]:
    """x = 1 OR x = 2 is x IN (1, 2), and x <> 1 AND x <> 2 is NOT x IN (1, 2)."""
    lists: dict[Expression, list[Expression]] = {}
    others: list[Expression] = []
    for each in parts:
        found = _alternatives(each if function == "or" else _negated(each, frozenset()))
        if found is None:
            others.append(each)
        else:
            lists.setdefault(found[0], []).extend(found[1])
    for subject, values in lists.items():
        among = _among(subject, values)
        others.append(among if function == "or" else _negated(among, frozenset()))
    return others


def _alternatives(part: Expression) -> tuple[Expression, list[Expression]] | None:
    """(x, values) of x = value or x IN values."""
    if not isinstance(part, Call):
        return None
    if part.function == "in":
        return part.arguments[0], list(part.arguments[1:])
    if part.function == "eq":
        literals: list[Expression] = [each for each in part.arguments if isinstance(each, Literal)]
        subjects = [each for each in part.arguments if not isinstance(each, Literal)]
        if len(literals) == len(subjects) == 1:
            return subjects[0], literals
    return None


def factor(expression: Expression) -> tuple[Expression, ...]:
    """Parts that all must hold: those of AND, and what every alternative of OR shares.

    (a AND b) OR (a AND c) is a AND (b OR c), also where some of them are NULL. So a join that stands in each branch of
    an OR is seen to be one.

    >>> from dalenius.measuring.expressions import Column
    >>> a, b, c = (Column(name, Type.BOOLEAN) for name in "abc")
    >>> [written(each) for each in factor(call("or", call("and", a, b), call("and", a, c)))]
    ['a', 'or(b, c)']
    """
    if not isinstance(expression, Call) or expression.function not in {"and", "or"}:
        return (expression,)
    if expression.function == "and":
        return tuple(part for each in expression.arguments for part in factor(each))
    branches = [factor(each) for each in expression.arguments]
    shared = [each for each in branches[0] if all(each in other for other in branches[1:])]
    if not shared:
        return (expression,)
    rest = [call("and", *(each for each in branch if each not in shared)) for branch in branches]
    left = call("or", *rest)
    return tuple(shared) if left == TRUE else (*shared, left)


_OPPOSITE = {"eq": "ne", "ne": "eq"}


def _negated(part: Expression, integers: frozenset[str]) -> Expression:
    if part in (TRUE, FALSE):
        return FALSE if part == TRUE else TRUE
    if isinstance(part, Call):
        arguments = part.arguments
        match part.function:
            case "not":
                return arguments[0]
            case "eq" | "ne":
                return Call(_OPPOSITE[part.function], arguments, B)
            case "lt":
                return _compared("le", arguments[1], arguments[0], integers)
            case "le":
                return _compared("lt", arguments[1], arguments[0], integers)
            case "and" | "or":
                other = "or" if part.function == "and" else "and"
                return _joined(other, [_negated(each, integers) for each in arguments])
    return Call("not", (part,), B)


def _compared(function: str, low: Expression, high: Expression, integers: frozenset[str]) -> Expression:
    """Where only whole numbers or days come, a strict comparison is a weak one with the next constant."""
    if isinstance(low, Literal) and not isinstance(high, Literal) and _stepped(high, integers):
        moved = _next(low, function == "lt", up=True)
        if moved is not None:
            return Call("le", (moved, high), B)
    if isinstance(high, Literal) and not isinstance(low, Literal) and _stepped(low, integers):
        moved = _next(high, function == "lt", up=False)
        if moved is not None:
            return Call("le", (low, moved), B)
    return Call(function, (low, high), B)


def _stepped(expression: Expression, integers: frozenset[str]) -> bool:
    return expression.type is Type.DATE or (expression.type is Type.NUMBER and whole(expression, integers))


def _next(literal: Literal, strict: bool, *, up: bool) -> Literal | None:
    value = literal.value
    if isinstance(value, float) and abs(value) < 2**52:
        edge = math.ceil(value) if up else math.floor(value)
        step = 1 if up else -1
        return number(edge + step if strict and edge == value else edge)
    if isinstance(value, date) and not isinstance(value, datetime):
        if not strict:
            return literal
        try:
            return Literal(value + timedelta(days=1 if up else -1), Type.DATE)
        except OverflowError:
            return None
    return None


def _equated(function: str, one: Expression, other: Expression) -> Expression:
    pair = sorted((one, other), key=written)
    for literal, subject in (pair, pair[::-1]):
        if literal == TRUE and subject.type is B:
            return subject if function == "eq" else _negated(subject, frozenset())
        if literal == FALSE and subject.type is B:
            return _negated(subject, frozenset()) if function == "eq" else subject
    return Call(function, tuple(pair), B)


def _among(subject: Expression, values: Sequence[Expression]) -> Expression:
    found = sorted(dict.fromkeys(values), key=written)
    return _equated("eq", subject, found[0]) if len(found) == 1 else Call("in", (subject, *found), B)


def _chosen(arguments: Sequence[Expression]) -> Expression:
    """Branches that cannot be taken go, and those behind one that always is."""
    *pairs, otherwise = arguments
    kept: list[Expression] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if condition in (FALSE, NULL):
            continue
        if condition == TRUE:
            otherwise = value
            break
        kept += [condition, value]
    return plain("case", *kept, otherwise) if kept else otherwise


def _first(arguments: Sequence[Expression]) -> Expression:
    parts: list[Expression] = []
    for each in arguments:
        parts.extend(each.arguments if isinstance(each, Call) and each.function == "coalesce" else (each,))
    kept = [each for each in parts if each != NULL]
    constant = next((place for place, each in enumerate(kept) if isinstance(each, Literal)), None)
    kept = kept if constant is None else kept[: constant + 1]
    return NULL if not kept else kept[0] if len(kept) == 1 else plain("coalesce", *kept)


def _folded(function: str, arguments: Sequence[Expression]) -> Expression | None:
    """Arithmetic on constants: on decimals as they are written, so that 0.06 + 0.01 is 0.07; else in doubles."""
    values = [each.value for each in arguments if isinstance(each, Literal) and isinstance(each.value, float)]
    if len(values) != len(arguments):
        return None
    match function, values:
        case "neg", [a]:
            result = -a
        case "add", [a, b]:
            result = _exactly(a, b, operator.add)
        case "sub", [a, b]:
            result = _exactly(a, b, operator.sub)
        case "mul", [a, b]:
            result = _exactly(a, b, operator.mul)
        case "div", [a, b] if b != 0:
            result = a / b
        case _:
            return None
    return number(result) if math.isfinite(result) else None


def _exactly(one: float, other: float, function: Callable[[Any, Any], Any]) -> float:
    """The double nearest to the exact result, where both are decimals that a person may have written."""
    shown = [repr(each) for each in (one, other)]
    if any("e" in each or "n" in each or len(each) > _DIGITS for each in shown):
        return float(function(one, other))
    return float(function(*map(Fraction, shown)))


# --- names of sources

MOST = 720  # ways that are tried; with more, the names stay as they are, and another wording is another question
_EITHER_WAY = frozenset({"and", "or", "eq", "ne", "add", "mul"})  # functions whose arguments have no order
_NUMBER = re.compile(r" \d+$")


def name_alike(question: Question, relation: Relation) -> tuple[Question, Relation] | None:
    """The question and its relation with names that do not depend on the wording; None: they are so already."""
    groups: dict[str, list[str]] = {}
    for each in relation.within():
        for source in each.sources:
            groups.setdefault(_NUMBER.sub("", source.name), []).append(source.name)
    several = [each for each in groups.values() if len(each) > 1]
    if not several or math.prod(math.factorial(len(each)) for each in several) > MOST:
        return None
    best = min(_ways(several), key=lambda way: _text(question, relation, way))
    if all(old == new for old, new in best.items()):
        return None
    change = _Renamed(best)
    return change.question(question), change.relation(relation)


def _ways(groups: Sequence[Sequence[str]]) -> Iterator[dict[str, str]]:
    """All ways to give the names of each group to its members."""
    for chosen in product(*(permutations(each) for each in groups)):
        yield {
            old: new for group, names in zip(groups, chosen, strict=True) for old, new in zip(group, names, strict=True)
        }


def _text(question: Question, relation: Relation, way: Mapping[str, str]) -> tuple[str, ...]:
    """What is compared; the order of outputs and HAVING, ORDER BY and LIMIT do not matter."""
    change = _Renamed(way)
    keys = [written(change.expression(each)) for each in question.keys]
    asked = sorted(written(change.expression(each)) for each in question.aggregates)
    return (change.relation(relation).written(), *keys, *asked, written(change.expression(question.where)))


class _Renamed:
    """Writes everything anew, with other names for the sources."""

    def __init__(self, way: Mapping[str, str]) -> None:
        self.way = way

    def question(self, question: Question) -> Question:
        """Its expressions; the table is made anew by whoever asks."""
        return replace(
            question,
            where=self.expression(question.where),
            keys=tuple(map(self.expression, question.keys)),
            outputs=tuple(replace(each, expression=self.expression(each.expression)) for each in question.outputs),
            having=self.expression(question.having),
            order=tuple(replace(each, expression=self.expression(each.expression)) for each in question.order),
            places={self._aggregate(each): at for each, at in question.places.items()},
        )

    def relation(self, relation: Relation) -> Relation:
        """A relation and all in it."""
        return Relation(
            tuple(Join(self.source(each.source), each.left, self.expression(each.on)) for each in relation.joins),
            self.expression(relation.where),
            tuple(Match(self.relation(each.relation), each.negated) for each in relation.matches),
        )

    def source(self, source: Source) -> Source:
        """A source under its new name."""
        name = self.way.get(source.name, source.name)
        match source:
            case Owned() | Open():
                return replace(source, name=name)
            case PerUnit():
                return replace(
                    source,
                    name=name,
                    relation=self.relation(source.relation),
                    keys=tuple(map(self.expression, source.keys)),
                    aggregates=tuple(map(self._aggregate, source.aggregates)),
                )
            case Stacked():
                parts = [(self.relation(one), tuple(map(self.expression, values))) for one, values in source.parts]
                if isinstance(source, Numbered):
                    numbering = source.numbering
                    order = tuple((self.expression(one), down, first) for one, down, first in numbering.order)
                    numbering = replace(numbering, keys=tuple(map(self.expression, numbering.keys)), order=order)
                    return replace(source, name=name, parts=tuple(parts), numbering=numbering)
                return replace(source, name=name, parts=tuple(parts))

    def column(self, name: str) -> str:
        """A column's full name."""
        source, dot, short = name.partition(".")
        return f"{self.way.get(source, source)}{dot}{short}" if dot else name

    def expression(self, expression: Expression) -> Expression:
        """An expression; what has no order is put into that of the new names."""
        match expression:
            case Column(name=name):
                return replace(expression, name=self.column(name))
            case Aggregate():
                return self._aggregate(expression)
            case Call(function=function, arguments=arguments):
                found = tuple(map(self.expression, arguments))
                return replace(expression, arguments=_sorted(found) if function in _EITHER_WAY else found)
        return expression

    def _aggregate(self, aggregate: Aggregate) -> Aggregate:
        change: Callable[[Expression], Expression] = self.expression
        value = None if aggregate.value is None else change(aggregate.value)
        other = None if aggregate.other is None else change(aggregate.other)
        if value is not None and other is not None:
            value, other = _sorted((value, other))
        where = TRUE if aggregate.where == TRUE else change(aggregate.where)
        return replace(aggregate, value=value, other=other, where=where)


def _sorted(expressions: Sequence[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(expressions, key=written))
