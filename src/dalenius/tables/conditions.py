"""Conditions on the columns of a policy, as SQL writes them: what a row may hold, for rows that nobody is in.

    age >= 60 AND sex = 'f'        region IN ('north', 'south')       day BETWEEN '2025-01-01' AND '2025-03-31'
    weight IS NOT NULL             discharged >= admitted             NOT (smoker OR age < 18)

These are for synthetic rows (`--where`) and for what an owner knows of every row (`[synthetic] rules`). Questions about
protected rows are another language: theirs is compiled to an engine. A condition compares columns with constants of
their own type, or with one another, and nothing else; so what it says of a column is a set of its values.

As in SQL, a comparison with an absent value is neither true nor false. `holding` keeps the rows for which a condition
is true, `allowing` those for which it is not false: the first is for a filter, the second for a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dalenius.tables.policy import Kind, Value

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Compare:
    """A column against a constant."""

    column: str
    op: str
    value: Value


@dataclass(frozen=True)
class Among:
    """A column whose value is one of a few, or none of them."""

    column: str
    values: tuple[Value, ...]
    inside: bool = True


@dataclass(frozen=True)
class Columns:
    """A column against another one."""

    first: str
    op: str
    second: str


@dataclass(frozen=True)
class Absent:
    """A column whose value is absent, or is there."""

    column: str
    absent: bool = True


@dataclass(frozen=True)
class Negated:
    """What is not so."""

    part: Condition


@dataclass(frozen=True)
class Every:
    """All of them; of none, always."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Either:
    """One of them at least; of none, never."""

    parts: tuple[Condition, ...]


Atom: TypeAlias = "Compare | Among | Columns | Absent"
Condition: TypeAlias = "Atom | Negated | Every | Either"
Types: TypeAlias = Mapping[str, Kind]

ALWAYS = Every(())


def holding(condition: Condition) -> Condition:
    """The same without negations, true for just those rows for which the condition is true.

    >>> holding(Negated(Every((Compare("age", "<", 18), Absent("day")))))
    Either(parts=(Compare(column='age', op='>=', value=18), Absent(column='day', absent=False)))
    """
    return _plain(condition, negated=False, unknown=False)


def allowing(condition: Condition) -> Condition:
    """The same without negations, true for just those rows for which the condition is not false.

    >>> allowing(Compare("age", "<", 18))
    Either(parts=(Compare(column='age', op='<', value=18), Absent(column='age', absent=True)))
    """
    return _plain(condition, negated=False, unknown=True)


def _plain(condition: Condition, *, negated: bool, unknown: bool) -> Condition:
    """``unknown``: a comparison with an absent value counts as true, negated or not."""
    match condition:
        case Negated(part):
            return _plain(part, negated=not negated, unknown=unknown)
        case Every(parts) | Either(parts):
            kind = Every if isinstance(condition, Every) != negated else Either
            return kind(tuple(_plain(each, negated=negated, unknown=unknown) for each in parts))
        case Absent(column, absent):
            return Absent(column, absent != negated)
        case Compare(column, op, value):
            return _or_absent(Compare(column, OPPOSITE[op] if negated else op, value), (column,), unknown)
        case Among(column, values, inside):
            return _or_absent(Among(column, values, inside != negated), (column,), unknown)
        case Columns(first, op, second):
            return _or_absent(Columns(first, OPPOSITE[op] if negated else op, second), (first, second), unknown)


def _or_absent(atom: Atom, columns: tuple[str, ...], unknown: bool) -> Condition:
    return Either((atom, *map(Absent, columns))) if unknown else atom


def columns_of(condition: Condition) -> frozenset[str]:
    """The columns that it speaks of."""
    return frozenset(name for atom in atoms_of(condition) for name in names_of(atom))


def names_of(atom: Atom) -> tuple[str, ...]:
    """The columns of one comparison."""
    return (atom.first, atom.second) if isinstance(atom, Columns) else (atom.column,)


def atoms_of(condition: Condition) -> Iterator[Atom]:
    """All comparisons in it."""
    match condition:
        case Negated(part):
            yield from atoms_of(part)
        case Every(parts) | Either(parts):
            for each in parts:
                yield from atoms_of(each)
        case _:
            yield condition


def compared(one: Any, op: str, other: Any) -> Any:
    """One comparison, of two values or of two arrays."""
    match op:
        case "=":
            return one == other
        case "<>":
            return one != other
        case "<":
            return one < other
        case "<=":
            return one <= other
        case ">":
            return one > other
    return one >= other
