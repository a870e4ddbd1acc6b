"""Random questions over several tables: joins of all kinds, EXISTS and IN, subqueries, per-unit sums, UNION ALL.

Half of them keep to what plain SQL and our rules mean alike (`Asked.plain`): what they answer without limits is then
compared with what DuckDB says to the same text (`fuzzing.oracle`). A few say too little about whose rows meet: the
planner has to refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from dalenius.audit.fuzzing.questions import Writer
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.engines.duckdb.rendering import identifier, literal
from dalenius.measuring.relations import identities_of
from dalenius.tables.policy import Bounds, Column, Kind

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.public import PublicTable

WRONG = 0.05  # of the places where units should be equal, they are not asked to be
PUBLIC_FIRST = 0.04  # of the questions keep public rows that found nobody
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Asked:
    """A question: its subqueries of WITH, and the rest of its text.

    Attributes:
        plain: It means the same to DuckDB.
    """

    subqueries: tuple[str, ...]
    body: str
    plain: bool

    @property
    def text(self) -> str:
        """The whole."""
        return self.after(())

    def after(self, more: Sequence[str]) -> str:
        """The whole, with other subqueries before its own."""
        shown = [*more, *self.subqueries]
        return f"{'WITH ' + ', '.join(shown) + ' ' if shown else ''}{self.body}"


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


def asked(random: Random, schema: Schema, publics: Mapping[str, PublicTable]) -> Asked:
    """One question about the tables of ``schema``."""
    return _Asker(random, schema, publics).asked()


class _Asker(Writer):
    """Writes one question."""

    def __init__(self, random: Random, schema: Schema, publics: Mapping[str, PublicTable]) -> None:
        self.random, self.schema, self.publics = random, schema, publics
        self.tables = schema.tables
        self.policy = schema.first
        self.parts = len(self.policy.unit)
        self.finds = next(iter(schema.tables.values())).budget.accounting is Accounting.ZCDP
        self.columns: list[Column] = []
        self.subqueries: list[str] = []
        self.named = 0
        self.plainly = self.chance(0.55)
        self.units: list[str] = []
        self.known: list[str] = []  # columns that say who somebody is

    def asked(self) -> Asked:
        """The whole question."""
        scope = self.scope(self.random.choice((1, 1, 2, 2, 2, 3, 3, 4)))
        self.columns = scope.columns
        self.known = [item.called(name) for item in scope.items for name in item.identities]
        self.units = next((units for item in scope.items if (units := self.unit_names(item))), [])
        keys = self.simple_keys() if self.plainly else self.keys()
        items = [self.measure() for _ in range(self.random.choice((1, 1, 1, 2, 2, 3)))]
        text = f"SELECT {', '.join([*keys, *items])} {scope.rows}"
        if keys:
            numbers = ", ".join(str(at + 1) for at in range(len(keys)))
            text += f" GROUP BY {self.pick([', '.join(keys), numbers])}"
        if not self.plainly and self.chance(0.1):
            text += f" HAVING {items[0]} > 3"
        return Asked(tuple(self.subqueries), text, self.plainly)

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
        public = self.public_item(self.pick(list(self.publics)))
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
            scope.source += f" {self.pick(['JOIN', 'INNER JOIN'])} {new.text} ON {self.together(on, more)}"
        elif style < 0.75:
            scope.source += f" CROSS JOIN {new.text}"
            scope.conditions.append(on)
        elif style < 0.77:
            scope.source += f" {self.pick(['RIGHT', 'FULL'])} JOIN {new.text} ON {on}"
        else:
            own = Scope([new], "", [])
            extra = self.condition(own) if self.chance(0.4) else None
            scope.source += f" LEFT {self.pick(['', 'OUTER '])}JOIN {new.text} ON {self.together(on, more, extra)}"
        scope.items.append(new)

    def join_public(self, scope: Scope) -> None:
        new = self.public_item(self.pick(list(self.publics)))
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
                    f" LEFT JOIN {new.text} ON {self.together(on, self.condition(own) if self.chance(0.3) else None)}"
                )
        scope.items.append(new)

    @staticmethod
    def together(*conditions: str | None) -> str:
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

    # --- items

    def item(self, depth: int) -> Item:
        """A protected table, or a subquery over some."""
        chance = self.random.random()
        if depth >= 2 or chance < 0.6:
            return self.table_item()
        if chance < 0.74:
            return self.selected(depth)
        if chance < 0.9:
            return self.per_unit(depth)
        return self.stacked(depth)

    def alias(self, mark: str = "a") -> str:
        self.named += 1
        return f"{mark}{self.named}"

    def table_item(self, name: str | None = None) -> Item:
        name = name or self.pick(list(self.tables))
        table, alias = self.tables[name], self.alias()
        shown = self.pick([name, name, name.upper()])
        identities = dict(identities_of(table, self.tables))
        columns = {each: column for each, column in table.policy.columns.items() if each not in identities}
        return Item(f"{shown} {self.pick(['', 'AS '])}{alias}", alias, columns, identities)

    def public_item(self, name: str) -> Item:
        alias = self.alias("p")
        return Item(f"{name} AS {alias}", alias, dict(self.publics[name].columns))

    def named_subquery(self, text: str, alias: str) -> str:
        """The subquery in FROM, or in WITH."""
        if self.chance(0.35):
            name = self.alias("cte")
            self.subqueries.append(f"{name} AS ({text})")
            return f"{name} AS {alias}"
        return f"({text}) AS {alias}"

    def selected(self, depth: int) -> Item:
        """A subquery that filters, and perhaps joins."""
        scope = self.scope(self.random.choice((1, 1, 1, 2)), depth=depth + 1)
        alias = self.alias()
        if len(scope.items) == 1 and self.chance(0.3):
            item = scope.items[0]
            text = f"SELECT * {scope.rows}"
            return Item(self.named_subquery(text, alias), alias, dict(item.columns), dict(item.identities))
        shown, columns, identities = list[str](), dict[str, Column](), dict[str, frozenset[str]]()
        for item in scope.items:
            for name, classes in item.identities.items():
                new = name if name not in identities else f"i{len(shown)}"
                identities[new] = classes
                shown.append(f"{item.called(name)} AS {identifier(new)}")
            for name, column in item.columns.items():
                if self.chance(0.3):
                    continue
                new = name if name not in columns and name not in identities else f"v{len(shown)}"
                columns[new] = column
                shown.append(f"{item.called(name)} AS {identifier(new)}")
        text = f"SELECT {'DISTINCT ' if self.chance(0.12) else ''}{', '.join(shown)} {scope.rows}"
        return Item(self.named_subquery(text, alias), alias, columns, identities)

    def per_unit(self, depth: int) -> Item:
        """A subquery that groups by unit, or by a key that leads to one, and perhaps by more."""
        scope = self.scope(self.random.choice((1, 1, 2)), depth=depth + 1)
        item = next((each for each in scope.items if each.owned), scope.items[0])
        units = self.unit_names(item)
        others = [name for name, classes in item.identities.items() if any("." in each for each in classes)]
        names = (
            units
            if units and (not others or self.chance(0.7))
            else [item.called(self.pick(others or list(item.identities)))]
        )
        if self.plainly and names != units:  # rows without a key are one group in SQL, and one per unit with us
            scope.conditions.append(f"{names[0]} IS NOT NULL")
        shown, columns, identities = list[str](), dict[str, Column](), dict[str, frozenset[str]]()
        for at, name in enumerate(names):
            short = next(each for each in item.identities if item.called(each) == name)
            identities[f"g{at}"] = item.identities[short]
            shown.append(f"{name} AS g{at}")
        keyed = [each for each in scope.columns if each.kind is not Kind.NUMBER]
        if keyed and self.chance(0.3):
            column = self.pick(keyed)
            columns["by"] = column
            shown.append(f"{column.name} AS by")
            names = [*names, column.name]
        inner, self.columns = self.columns, scope.columns
        wanted = self.random.randint(1, 2)
        made = [self.inside() for _ in range(wanted)]
        having = (
            f" HAVING {self.inside()[0]} {self.pick(_COMPARED)} {self.pick(['0', '1', '2', '5'])}"
            if self.chance(0.3)
            else ""
        )
        self.columns = inner
        for at, (text, column) in enumerate(made):
            columns[f"m{at}"] = column
            shown.append(f"{text} AS m{at}")
        alias = self.alias()
        text = f"SELECT {', '.join(shown)} {scope.rows} GROUP BY {', '.join(names)}{having}"
        return Item(self.named_subquery(text, alias), alias, columns, identities)

    def inside(self) -> tuple[str, Column]:
        """An aggregate within one unit, and what is known of it."""
        whole = [
            each for each in self.columns if each.kind is Kind.INTEGER and each.bounds is not None and each.step == 1
        ]
        count = Column("m", Kind.INTEGER, Bounds(0, 5), Fraction(1))
        if not whole or self.chance(0.4):
            name = self.pick(self.columns).name if self.columns else ""
            return self.pick(["COUNT(*)", f"COUNT({name})" if name else "COUNT(*)"]), count
        column = self.pick(whole)
        kind = self.pick(["SUM", "SUM", "MIN", "MAX", "COUNT(DISTINCT", "AVG"])
        if kind == "COUNT(DISTINCT":
            return f"COUNT(DISTINCT {column.name})", count
        bounds = column.bounds
        if kind == "SUM" and bounds is not None:
            bounds = Bounds(min(0, 3 * bounds.low), max(0, 3 * bounds.high))
        if kind == "AVG":
            self.plainly = False  # rounded within the unit
            return f"AVG({column.name})", Column("m", Kind.NUMBER, bounds, Fraction(1, 1000))
        shown = f"{kind}({column.name})"
        if kind == "SUM" and self.chance(0.2):
            shown = f"SUM({column.name}) FILTER (WHERE {self.simple(self.columns)})"
        return shown, Column("m", Kind.INTEGER, bounds, Fraction(1))

    def stacked(self, depth: int) -> Item:
        """UNION ALL of selections with the same columns."""
        parts, kinds, specs = list[str](), None, list[Column]()
        classes: list[frozenset[str]] = []
        width = self.random.randint(1, 2)
        for _ in range(self.random.choice((2, 2, 3))):
            scope = self.scope(self.random.choice((1, 1, 2)), depth=depth + 2)
            item = next((each for each in scope.items if self.unit_names(each)), None)
            if item is None:
                continue
            if kinds is None:
                specs = [self.pick(scope.columns) for _ in range(width)] if scope.columns else []
                kinds = [each.kind for each in specs]
                found: list[Column] | None = specs
            else:
                found = self.alike(scope, kinds)
            if found is None:
                continue
            units = self.unit_names(item)
            classes = [frozenset({f"unit {at}"}) for at in range(self.parts)]
            shown = [f"{name} AS q{at}" for at, name in enumerate(units)]
            shown += [f"{each.name} AS r{at}" for at, each in enumerate(found)]
            parts.append(f"SELECT {', '.join(shown)} {scope.rows}")
        if not parts:
            return self.table_item()
        alias = self.alias()
        columns = {f"r{at}": Column("r", each.kind, each.bounds, each.step) for at, each in enumerate(specs)}
        identities = {f"q{at}": each for at, each in enumerate(classes)}
        return Item(self.named_subquery(" UNION ALL ".join(parts), alias), alias, columns, identities)

    def alike(self, scope: Scope, kinds: Sequence[Kind]) -> list[Column] | None:
        """Columns of the same kinds."""
        found = []
        for kind in kinds:
            fits = [each for each in scope.columns if each.kind is kind]
            if not fits:
                return None
            found.append(self.pick(fits))
        return found

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
                    return f"{name} {self.pick(_COMPARED)} {self.pick(alike).name}"
                return self.pick(
                    [f"{name} {self.pick(_COMPARED)} {value}", f"{name} BETWEEN {value - 1} AND {value + 1}"]
                )
            case Kind.CATEGORY | Kind.TEXT:
                keys = [literal(str(each)) for each in (column.keys or ("north", "south", "", "12", "a"))[:4]]
                return self.pick([f"{name} {self.pick(_COMPARED[:2])} {keys[0]}", f"{name} IN ({', '.join(keys[:2])})"])
            case Kind.BOOLEAN:
                return self.pick([name, f"NOT {name}"])
        return f"{name} IS NOT NULL"

    def match(self, scope: Scope, depth: int) -> str:
        """[NOT] EXISTS or [NOT] IN."""
        negated = self.pick(["", "NOT "])
        if self.publics and self.chance(0.25):
            return self.match_public(scope, negated, depth)
        inner = self.scope(self.random.choice((1, 1, 2)), depth=depth + 1, outer=scope)
        own = [each for each in inner.items if each.owned]
        outside = [each for each in scope.items if each.owned]
        if not own or not outside:
            return "1 = 1"
        ties = [(item, tie) for item in own if (tie := self.tie(Scope(outside, "", []), item)) is not None]
        values = [
            (a, b)
            for a in scope.columns
            for b in inner.columns
            if a.kind is b.kind and a.kind in {Kind.INTEGER, Kind.CATEGORY, Kind.TEXT}
        ]
        if not ties:
            return "1 = 1"
        _, tie = self.pick(ties)
        if self.chance(WRONG):
            tie = "1 = 1"
        style = self.random.random()
        if style < 0.3 and values:
            a, b = self.pick(values)
            inner.conditions.append(tie)
            return f"{a.name} {negated}IN (SELECT {b.name} {inner.rows})"
        if style < 0.6 and " AND " not in tie and tie != "1 = 1":
            return self.among(inner, tie, negated, values)
        inner.conditions.append(tie)
        if self.chance(0.4):
            both = Scope([*scope.items, *inner.items], "", [])
            inner.conditions.append(self.simple(both.columns))
        return f"{negated}EXISTS (SELECT {self.pick(['1', '*']) if len(inner.items) == 1 else '1'} {inner.rows})"

    def among(self, inner: Scope, tie: str, negated: str, values: Sequence[tuple[Column, Column]]) -> str:
        """[NOT] IN with what says who somebody is."""
        mine, theirs = tie.split(" = ")
        there = ""
        if self.plainly and negated:  # one NULL key of anybody's, and NOT IN is true for nobody; with us it is absent
            inner.conditions.append(f"{theirs} IS NOT NULL")
            there = f"{mine} IS NOT NULL AND "
        if self.chance(0.3):
            having = f" HAVING COUNT(*) {self.pick(_COMPARED)} {self.pick(['1', '2'])}" if self.chance(0.7) else ""
            if self.plainly:
                inner.conditions.append(f"{theirs} IS NOT NULL")
            return f"{there}{mine} {negated}IN (SELECT {theirs} {inner.rows} GROUP BY {theirs}{having})"
        if values and self.chance(0.2):
            a, b = self.pick(values)
            return f"{there}({mine}, {a.name}) {negated}IN (SELECT {theirs}, {b.name} {inner.rows})"
        return f"{there}{mine} {negated}IN (SELECT {theirs} {inner.rows})"

    def match_public(self, scope: Scope, negated: str, depth: int) -> str:
        public = self.public_item(self.pick(list(self.publics)))
        ties = [on for each in scope.items if (on := self.equal_values(each, public))]
        inner = Scope([public], public.text, [self.pick(ties)] if ties else [])
        if self.chance(0.4):
            inner.conditions.append(self.simple(inner.columns))
        if self.chance(0.1):  # behind the public table somebody's rows again
            item = self.table_item()
            inner.source += f" LEFT JOIN {item.text} ON {self.equal_values(item, public) or 'TRUE'}"
            inner.conditions.append(self.simple(Scope([item], "", []).columns))
        elif depth == 0 and self.chance(0.1):
            inner.conditions.append(self.match(Scope([*scope.items, public], "", []), depth + 1))
        texts = [
            (a, b)
            for a in scope.columns
            for b in inner.columns
            if a.kind in {Kind.CATEGORY, Kind.TEXT} and b.kind in {Kind.CATEGORY, Kind.TEXT}
        ]
        if texts and self.chance(0.5):
            a, b = self.pick(texts)
            return f"{a.name} {negated}IN (SELECT {b.name} {inner.rows})"
        return f"{negated}EXISTS (SELECT 1 {inner.rows})"

    # --- what is asked

    def measure(self) -> str:
        if self.known and self.chance(0.07):
            return f"COUNT({self.pick(self.known)})"
        if not self.plainly:
            return self.aggregate()
        whole = [each.name for each in self.columns if each.kind is Kind.INTEGER and each.bounds is not None]
        choices = ["COUNT(*)", "COUNT(*)", self.distinct()]
        if self.columns:
            any_ = self.pick(self.columns).name
            choices += [
                f"COUNT({any_})",
                f"COUNT(DISTINCT {any_})",
                f"COUNT(*) FILTER (WHERE {self.simple(self.columns)})",
            ]
        if whole:
            name = self.pick(whole)
            choices += [f"SUM({name})", f"SUM({name})", f"AVG({name})"]
            choices += [f"SUM(CASE WHEN {self.simple(self.columns)} THEN {name} ELSE 0 END)"]
        return self.pick(choices)

    def simple_keys(self) -> list[str]:
        keyed = [each for each in self.columns if each.public_keys is not None or self.finds]
        small = [each for each in self.columns if _small(each)]
        found = [self.pick(keyed + small).name for _ in range(self.random.choice((0, 0, 1, 1, 2))) if keyed + small]
        return list(dict.fromkeys(found))

    def distinct(self) -> str:
        if not self.units:
            return "COUNT(*)"
        unit = ", ".join(self.units)
        return f"COUNT(DISTINCT {unit if self.parts == 1 else f'({unit})'})"

    def values(self) -> str:
        return super().values() if self.columns else "COUNT(*)"

    def name(self, column: Column) -> str:
        return column.name


def _small(column: Column) -> bool:
    return column.kind is Kind.INTEGER and column.bounds is not None and column.bounds.high - column.bounds.low <= 60
