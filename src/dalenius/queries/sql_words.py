"""Expressions of a plan as SQL that people read: what was understood, in the names that were typed.

Plans have names and functions of their own; none of them is shown. Nothing here is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Aggregate, Call, Column, Expression, Key, Literal, Type, conjuncts
from dalenius.measuring.functions import FUNCTIONS
from dalenius.measuring.relations import Open, Owned, PerUnit, Relation, Source, Stacked
from dalenius.measuring.statistics import family_for

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan, Table

MOST_PARTS, MOST_LISTED = 300, 12  # of an expression, of a list of constants: what is past them is "…"
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%", "concat": "||"}
_INFIX |= {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "like": "LIKE", "ilike": "ILIKE"}
_JOINED = {"and": " AND ", "or": " OR "}
_TURNED = {"eq": "=", "ne": "<>", "lt": ">", "le": ">="}  # with the constant on the right, as people write it
_NOT = {"eq": "<>", "ne": "=", "lt": ">=", "le": ">", "like": "NOT LIKE", "ilike": "NOT ILIKE"}
_NUMBER = "n0"  # the column of a row's number within its unit
_NAME, _CAST = re.compile(r"([A-Z][A-Z0-9_]*)\("), re.compile(r"CAST\(.* AS (\w+)\)")


@dataclass
class SqlWords:
    """Writes expressions over one relation's rows, or over what is released of them.

    Attributes:
        labels: What each source is called in the text.
        sources: The sources by the names that plans have for them.
        keys: What stands for the keys of groups.
        unit: Who is protected, as the owner calls it.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    keys: Sequence[Expression] = ()
    unit: str = "unit"
    _parts: int = 0

    @classmethod
    def of(cls, plan: Plan) -> SqlWords:
        """For the expressions of a plan."""
        return cls.over(plan.table, plan.question.keys)

    @classmethod
    def over(cls, table: Table, keys: Sequence[Expression] = ()) -> SqlWords:
        """For expressions over the rows of a table."""
        found = list(_sources(table.relation))
        labels, used = dict[str, str](), dict[str, int]()
        for each in found:
            called = label_of(each)
            used[called] = used.get(called, 0) + 1
            labels[each.name] = called if used[called] == 1 else f"{called} ({used[called]})"
        if sum(isinstance(each, Owned | Open) for each in found) == 1:
            labels = dict.fromkeys(labels, "")
        unit = " + ".join(table.unit)
        return cls(labels, {each.name: each for each in found}, keys, unit)

    def text(self, expression: Expression) -> str:
        """The expression, cut where it is very long."""
        self._parts = 0
        return self.write(expression)

    def conditions(self, condition: Expression) -> tuple[str, ...]:
        """The parts of a condition that all must hold, each by itself; none where there is no condition."""
        return tuple(self.text(each) for each in conjuncts(condition) if each != TRUE)

    def write(self, expression: Expression) -> str:
        """A part of an expression."""
        self._parts += 1
        if self._parts > MOST_PARTS:
            return "…"
        match expression:
            case Literal():
                return literal(expression)
            case Column(name=name):
                return self.column(name)
            case Key(number=number):
                known = number < len(self.keys)
                return self.write(self.keys[number]) if known else "GROUPING(…)"
            case Aggregate():
                return self.aggregate(expression)
            case Call(function=function, arguments=arguments):
                return self.call(function, arguments)
        return "the grouping set"

    def column(self, name: str) -> str:
        """A column under the name that the text has for its table."""
        source, short = self.found(name)
        match source:
            case PerUnit(keys=keys, aggregates=aggregates):
                at = int(short[1:])
                if short.startswith("k"):
                    return self.write(keys[at])
                each = " and ".join(self.write(one) for one in keys[:4]) + (" …" if len(keys) > 4 else "")
                return f"{self.write(aggregates[at])} of each {each}"
            case Stacked() if short == _NUMBER:
                return f"the row's number within its {self.unit}"
            case Stacked(shown=shown, parts=parts):
                at = int(short[1:])
                return name_of(shown[at]) if at < len(shown) else self.write(parts[0][1][at])
        label = self.labels.get(source.name, "") if source is not None else ""
        return f"{name_of(label)}.{name_of(short)}" if label else name_of(short)

    def found(self, name: str) -> tuple[Source | None, str]:
        """The source of a column, and its own name there."""
        for source, found in self.sources.items():
            if source and name.startswith(f"{source}.") and name[len(source) + 1 :] in _names(found):
                return found, name[len(source) + 1 :]
        return None, name

    def aggregate(self, asked: Aggregate) -> str:
        """An aggregate as people write it."""
        if asked.kind == "units":
            shown = f"COUNT(DISTINCT {self.unit})"
        elif asked.value is None:
            shown = family_for(asked.kind).asked[asked.kind].written.format("*")
        else:
            inside = [self.write(each) for each in (asked.value, asked.other) if each is not None]
            inside += [] if asked.parameter is None else [shown_parameter(asked.parameter)]
            shown = family_for(asked.kind).asked[asked.kind].written.format(", ".join(inside))
        return shown if asked.where == TRUE else f"{shown} FILTER (WHERE {self.write(asked.where)})"

    def call(self, function: str, arguments: Sequence[Expression]) -> str:
        """A function of its arguments."""
        if function == "finite":  # a guard, which nobody writes
            return self.write(arguments[0])
        if function in _JOINED:
            return _JOINED[function].join(self.inside(each) for each in arguments)
        if function in _INFIX:
            return self.infix(function, arguments)
        match function, arguments:
            case "not", (Call(function="is_null", arguments=(inner,)),):
                return f"{self.inside(inner)} IS NOT NULL"
            case "not", (Call(function="in", arguments=inner),):
                return self.among("NOT IN", inner)
            case "not", (Call(function=inner, arguments=parts),) if inner in _NOT:
                return self.infix(inner, parts, _NOT[inner])
            case "not", (inner,):
                return f"NOT {self.inside(inner)}"
            case "neg", (inner,):
                return f"-{self.inside(inner)}"
            case "is_null", (inner,):
                return f"{self.inside(inner)} IS NULL"
            case "in", _:
                return self.among("IN", arguments)
            case "case", _:
                return self.case(arguments)
            case "date_part", (Literal(value=str() as part), moment):
                return f"EXTRACT({part} FROM {self.write(moment)})"
            case "date_add", (Literal(value=str() as part), moment, number):
                return f"{self.inside(moment)} + INTERVAL {self.inside(number)} {part.upper()}"
        says = FUNCTIONS[function].says if function in FUNCTIONS else ""
        cast, named = _CAST.fullmatch(says), _NAME.match(says)
        if cast is not None:
            return f"CAST({self.write(arguments[0])} AS {cast[1]})"
        name = named[1] if named is not None else function.upper()
        return f"{name}({', '.join(map(self.write, arguments))})"

    def infix(self, function: str, arguments: Sequence[Expression], sign: str = "") -> str:
        """Two arguments with a sign between them; a constant stands on the right of a comparison."""
        one, other = arguments[0], arguments[1]
        if function in _TURNED and isinstance(one, Literal) and not isinstance(other, Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            sign = turned.get(sign, sign) if sign else _TURNED[function]
            one, other = other, one
        return f"{self.inside(one)} {sign or _INFIX[function]} {self.inside(other)}"

    def among(self, word: str, arguments: Sequence[Expression]) -> str:
        """IN with its list."""
        listed = [self.write(each) for each in arguments[1 : MOST_LISTED + 1]]
        more = len(arguments) - 1 - len(listed)
        listed += [f"… {more:,} more"] if more > 0 else []
        return f"{self.inside(arguments[0])} {word} ({', '.join(listed)})"

    def case(self, arguments: Sequence[Expression]) -> str:
        """CASE with its branches."""
        parts = []
        for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
            parts.append(f"WHEN {self.write(condition)} THEN {self.write(value)}")
            if self._parts > MOST_PARTS:
                return f"CASE {' '.join(parts)} … END"
        rest = arguments[-1]
        end = "" if rest == Literal(None, Type.NOTHING) else f" ELSE {self.write(rest)}"
        return f"CASE {' '.join(parts)}{end} END"

    def inside(self, expression: Expression) -> str:
        """A part within a larger one: in parentheses where it has a sign of its own."""
        shown = self.write(expression)
        signed = isinstance(expression, Call) and expression.function in {*_INFIX, *_JOINED, "not", "in", "date_add"}
        return f"({shown})" if signed or " of each " in shown else shown


def label_of(source: Source) -> str:
    """What a source is called where people typed it."""
    match source:
        case Owned(called=called, table=table):
            return called or table.policy.name
        case Open(called=called, table=table):
            return called or table.name
    return ""


def literal(value: Literal) -> str:
    """A constant."""
    held = value.value
    if held is None:
        return "NULL"
    if isinstance(held, bool):
        return "TRUE" if held else "FALSE"
    if isinstance(held, float):
        return shown_parameter(held)
    if isinstance(held, str):
        return "'" + held.replace("'", "''") + "'"
    if isinstance(held, datetime):
        return f"TIMESTAMP '{held.isoformat(sep=' ')}'"
    return f"DATE '{held.isoformat()}'"


def shown_parameter(value: object) -> str:
    """A number, or several in a list."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(shown_parameter, value))}]"
    return str(value)


def name_of(name: str) -> str:
    """A name, in quotes where it needs them."""
    plain = all(each.isidentifier() for each in name.split(" (", 1)[:1])
    return name if plain else '"' + name.replace('"', '""') + '"'


def _names(source: Source) -> set[str]:
    if isinstance(source, PerUnit):
        keys, aggregates = (range(len(each)) for each in (source.keys, source.aggregates))
        return {*(f"k{at}" for at in keys), *(f"a{at}" for at in aggregates)}
    if isinstance(source, Stacked):
        return {_NUMBER, *(f"c{at}" for at in range(len(source.parts[0][1])))}
    return {*source.columns, *source.identities}


def _sources(relation: Relation) -> Iterator[Source]:
    """All sources, also those within subqueries."""
    for each in relation.within():
        yield from each.sources
