"""Joins in random questions: what stands in FROM and WHERE of one SELECT, and what ties its rows to one unit.

A few say too little about whose rows meet: the planner has to refuse them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from dalenius.audit.fuzzing.questions import ExpressionWriter
from dalenius.measuring.engines.duckdb.rendering import identifier, literal
from dalenius.measuring.relations import identities_of
from dalenius.tables.policy import Column, Kind

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.public import PublicTable

WRONG = 0.05  # of the places where units should be equal, they are not asked to be
PUBLIC_FIRST = 0.04  # of the questions keep public rows that found nobody
COMPARED = ("=", "<>", "<", "<=", ">", ">=")


@dataclass
class Item:
    """What one name in FROM shows: columns that can be asked about, and columns that say who somebody is."""

    text: str
    alias: str
    columns: dict[str, Column] = field(default_factory=dict)
    identities: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def owned(self) -> bool:
        """Whether its rows belong to somebody."""
        return bool(self.identities)

    def called(self, name: str) -> str:
        """One of its columns, as the question calls it."""
        return f"{self.alias}.{identifier(name)}"


@dataclass
class Scope:
    """FROM and WHERE of one SELECT."""

    items: list[Item]
    source: str
    conditions: list[str]

    @property
    def columns(self) -> list[Column]:
        """All columns, each by the name that it has here."""
        return [replace(column, name=item.called(name)) for item in self.items for name, column in item.columns.items()]

    @property
    def rows(self) -> str:
        """The text from FROM on."""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"FROM {self.source}{where}"


class JoinWriter(ExpressionWriter, ABC):
    """Writes FROM and WHERE."""

    def __init__(self, random: Random, schema: Schema, publics: Mapping[str, PublicTable]) -> None:
        super().__init__(random, schema)
        self.tables, self.publics = schema.tables, publics
        self.columns = []
        self.named = 0
        self.plainly = self.chance(0.55)

    @abstractmethod
    def item(self, depth: int) -> Item:
        """A protected table, or a subquery over some."""

    @abstractmethod
    def match(self, scope: Scope, depth: int) -> str:
        """[NOT] EXISTS or [NOT] IN."""

    # --- FROM

    def scope(self, count: int, *, depth: int = 0, outer: Scope | None = None) -> Scope:
        """Some items joined, with conditions."""
        first = self.item(depth)
        scope = Scope([first], first.text, [])
        if outer is None and depth == 0 and self.publics and self.chance(PUBLIC_FIRST):
            scope = self.public_first(first)
        for _ in range(count - 1):
            self.join(scope, depth)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            scope.conditions.append(self.condition(scope))
        if depth < 2 and self.chance(0.35 if depth == 0 else 0.15):
            scope.conditions.append(self.match(scope, depth))
        self.random.shuffle(scope.conditions)
        return scope

    def public_first(self, first: Item) -> Scope:
        """A public table that keeps its rows whatever is found in the protected one: to be refused."""
        public = self.public_item()
        on = self.equal_values(first, public) or "TRUE"
        return Scope([public, first], f"{public.text} LEFT JOIN {first.text} ON {on}", [])

    def join(self, scope: Scope, depth: int) -> None:
        """One more item."""
        if self.publics and self.chance(0.35):
            self.join_public(scope)
            return
        for _ in range(6):
            new = self.item(depth)
            tie = self.tie(scope, new)
            if tie is not None:
                break
        else:
            return
        on = tie
        more = self.equal_values(self.pick(scope.items), new) if self.chance(0.2) else None
        if self.chance(WRONG):  # not about the same unit
            on, more = more or "TRUE", None
        using = self.shared_name(scope, new)
        style = self.random.random()
        if style < 0.3:
            scope.source += f", {new.text}"
            scope.conditions += [on, *([more] if more else [])]
        elif style < 0.4 and using is not None:
            left = self.chance(0.3)
            scope.source += f"{' LEFT' if left else ''} JOIN {new.text} USING ({using})"
        elif style < 0.72:
            scope.source += f" {self.pick(['JOIN', 'INNER JOIN'])} {new.text} ON {self.all_of(on, more)}"
        elif style < 0.75:
            scope.source += f" CROSS JOIN {new.text}"
            scope.conditions.append(on)
        elif style < 0.77:
            scope.source += f" {self.pick(['RIGHT', 'FULL'])} JOIN {new.text} ON {on}"
        else:
            own = Scope([new], "", [])
            extra = self.condition(own) if self.chance(0.4) else None
            scope.source += f" LEFT {self.pick(['', 'OUTER '])}JOIN {new.text} ON {self.all_of(on, more, extra)}"
        scope.items.append(new)

    def join_public(self, scope: Scope) -> None:
        """One more item, a public table; nothing where no column of theirs can be equal."""
        new = self.public_item()
        tied = [on for each in scope.items if (on := self.equal_values(each, new))]
        if not tied:
            return
        on = self.pick(tied)
        match self.random.randrange(4):
            case 0:
                scope.source += f", {new.text}"
                scope.conditions.append(on)
            case 1 | 2:
                scope.source += f" JOIN {new.text} ON {on}"
            case _:
                own = Scope([new], "", [])
                scope.source += (
                    f" LEFT JOIN {new.text} ON {self.all_of(on, self.condition(own) if self.chance(0.3) else None)}"
                )
        scope.items.append(new)

    @staticmethod
    def all_of(*conditions: str | None) -> str:
        """All of the conditions that there are."""
        return " AND ".join(each for each in conditions if each)

    def shared_name(self, scope: Scope, new: Item) -> str | None:
        """A column that says who somebody is, under one name on both sides and on no other."""
        if self.parts > 1:
            return None
        for name, classes in new.identities.items():
            there = [each for each in scope.items if name in each.identities or name in each.columns]
            if len(there) == 1 and classes & there[0].identities.get(name, frozenset()):
                return identifier(name)
        return None

    # --- single tables

    def alias(self, mark: str = "a") -> str:
        """A name that nothing has yet."""
        self.named += 1
        return f"{mark}{self.named}"

    def table_item(self) -> Item:
        """A protected table."""
        name = self.pick(list(self.tables))
        table, alias = self.tables[name], self.alias()
        shown = self.pick([name, name, name.upper()])
        identities = dict(identities_of(table, self.tables))
        columns = {each: column for each, column in table.policy.columns.items() if each not in identities}
        return Item(f"{shown} {self.pick(['', 'AS '])}{alias}", alias, columns, identities)

    def public_item(self) -> Item:
        """A public table."""
        name, alias = self.pick(list(self.publics)), self.alias("p")
        return Item(f"{name} AS {alias}", alias, dict(self.publics[name].columns))

    # --- who is who

    def unit_names(self, item: Item) -> list[str]:
        """The columns of an item that name the unit, all parts of it; none where it has not all."""
        found = []
        for at in range(self.parts):
            name = next((each for each, classes in item.identities.items() if f"unit {at}" in classes), None)
            if name is None:
                return []
            found.append(item.called(name))
        return found

    def tie(self, scope: Scope, new: Item) -> str | None:
        """The condition that a new item is about the unit of one that is there."""
        ways = []
        for there in scope.items:
            mine, theirs = self.unit_names(new), self.unit_names(there)
            if mine and theirs:
                ways.append(" AND ".join(f"{one} = {other}" for one, other in zip(theirs, mine, strict=True)))
            for name, classes in new.identities.items():
                for other, known in there.identities.items():
                    if any("." in each for each in classes & known):
                        ways.append(f"{there.called(other)} = {new.called(name)}")
        return self.pick(ways) if ways else None

    def equal_values(self, one: Item, other: Item) -> str | None:
        """Two columns of one kind, that may have values in common, as equal."""
        texts, numbers = {Kind.CATEGORY, Kind.TEXT}, {Kind.INTEGER, Kind.NUMBER}
        ways = [
            f"{one.called(a)} = {other.called(b)}"
            for a, left in one.columns.items()
            for b, right in other.columns.items()
            for kinds in (texts, numbers)
            if left.kind in kinds
            and right.kind in kinds
            and (a == b or {a, b} == {"region", "code"} or self.chance(0.03))
        ]
        return self.pick(ways) if ways else None

    # --- conditions

    def condition(self, scope: Scope) -> str:
        """A condition on the columns in sight."""
        known = [item.called(name) for item in scope.items for name in item.identities]
        if known and self.chance(0.06):
            return f"{self.pick(known)} IS {self.pick(['', 'NOT '])}NULL"
        if self.plainly or self.chance(0.5):
            return self.simple(scope.columns)
        kept, self.columns = self.columns, scope.columns
        found = f"({self.boolean(1)})" if self.columns else "TRUE"
        self.columns = kept
        return found

    def simple(self, columns: Sequence[Column]) -> str:
        """A condition that means the same everywhere."""
        if not columns:
            return "1 = 1"
        column = self.pick(columns)
        name = column.name
        if self.chance(0.15):
            return f"{name} IS {self.pick(['', 'NOT '])}NULL"
        match column.kind:
            case Kind.INTEGER | Kind.NUMBER:
                known = [0, 1, 2, 3]
                known += [] if column.bounds is None else [int(column.bounds.low), int(column.bounds.high)]
                value = self.pick(known)
                alike = [each for each in columns if each.kind in {Kind.INTEGER, Kind.NUMBER}]
                if self.chance(0.2):
                    return f"{name} {self.pick(COMPARED)} {self.pick(alike).name}"
                return self.pick(
                    [f"{name} {self.pick(COMPARED)} {value}", f"{name} BETWEEN {value - 1} AND {value + 1}"]
                )
            case Kind.CATEGORY | Kind.TEXT:
                keys = [literal(str(each)) for each in (column.keys or ("north", "south", "", "12", "a"))[:4]]
                return self.pick([f"{name} {self.pick(COMPARED[:2])} {keys[0]}", f"{name} IN ({', '.join(keys[:2])})"])
            case Kind.BOOLEAN:
                return self.pick([name, f"NOT {name}"])
        return f"{name} IS NOT NULL"
