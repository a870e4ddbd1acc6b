"""Random questions over several tables: joins, EXISTS and IN, subqueries, per-unit sums and row numbers, UNION ALL.

Half of them keep to what plain SQL and our rules mean alike (`FuzzedQuestion.plain`): what they answer without limits
is then compared with what DuckDB says to the same text (`expected.PlainDuckDB`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from dalenius.audit.fuzzing import join_writer
from dalenius.audit.fuzzing.join_writer import COMPARED, Item, JoinWriter, Scope
from dalenius.audit.fuzzing.questions import FuzzedQuestion
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.tables.policy import Bounds, Column, Kind

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.public import PublicTable


def write_joined_question(random: Random, schema: Schema, publics: Mapping[str, PublicTable]) -> FuzzedQuestion:
    """One question about the tables of ``schema``."""
    return _JoinedWriter(random, schema, publics).question()


class _JoinedWriter(JoinWriter):
    """Writes one question."""

    def __init__(self, random: Random, schema: Schema, publics: Mapping[str, PublicTable]) -> None:
        super().__init__(random, schema, publics)
        self.subqueries: list[str] = []
        self.units = []
        self.known: list[str] = []  # columns that say who somebody is

    def question(self) -> FuzzedQuestion:
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
        return FuzzedQuestion(text, tuple(self.subqueries), self.plainly)

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

    def name(self, column: Column) -> str:
        return column.name

    # --- subqueries

    def item(self, depth: int) -> Item:
        """A protected table, or a subquery over some."""
        chance = self.random.random()
        if depth >= 2 or chance < 0.6:
            return self.table_item()
        if chance < 0.74:
            return self.selected(depth)
        if chance < 0.84:
            return self.per_unit(depth)
        return self.numbered(depth) if chance < 0.91 else self.stacked(depth)

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
            f" HAVING {self.inside()[0]} {self.pick(COMPARED)} {self.pick(['0', '1', '2', '5'])}"
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

    def numbered(self, depth: int) -> Item:
        """A subquery that numbers the rows of each unit, or keeps the first of them."""
        scope = self.scope(self.random.choice((1, 1, 2)), depth=depth + 1)
        item = next((each for each in scope.items if self.unit_names(each)), None)
        if item is None:
            return self.table_item()
        units, alias = self.unit_names(item), self.alias()
        held = [self.pick(scope.columns) for _ in range(self.random.randint(1, 3))] if scope.columns else []
        shown = [f"{name} AS q{at}" for at, name in enumerate(units)]
        shown += [f"{each.name} AS r{at}" for at, each in enumerate(held)]
        columns = {f"r{at}": each for at, each in enumerate(held)}
        identities = {f"q{at}": frozenset({f"unit {at}"}) for at in range(self.parts)}
        order = [self.pick(scope.columns).name for _ in range(self.random.randint(0, 2)) if scope.columns]
        order += [each.name for each in held] if self.plainly else []  # of rows that tie, DuckDB takes any
        terms = [each + self.pick(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]) for each in order]
        by = [*units, *([self.pick(scope.columns).name] if scope.columns and self.chance(0.25) else [])]
        ordered = f" ORDER BY {', '.join(terms)}" if terms else ""
        if self.chance(0.25):
            chosen = f"DISTINCT ON ({', '.join(by)}) "
            text = f"SELECT {chosen}{', '.join(shown)} {scope.rows}{ordered}"
            return Item(self.named_subquery(text, alias), alias, columns, identities)
        number = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(by)}{ordered})"
        if self.chance(0.3):
            text = f"SELECT {', '.join(shown)} {scope.rows} QUALIFY {number} {self.pick(['= 1', '<= 2', '> 1', '= 2'])}"
            return Item(self.named_subquery(text, alias), alias, columns, identities)
        columns["nr"] = Column("nr", Kind.INTEGER, Bounds(1, 3), Fraction(1))
        text = f"SELECT {', '.join(shown)}, {number} AS nr {scope.rows}"
        return Item(self.named_subquery(text, alias), alias, columns, identities)

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

    # --- matches

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
        if self.chance(join_writer.WRONG):
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
            having = f" HAVING COUNT(*) {self.pick(COMPARED)} {self.pick(['1', '2'])}" if self.chance(0.7) else ""
            if self.plainly:
                inner.conditions.append(f"{theirs} IS NOT NULL")
            return f"{there}{mine} {negated}IN (SELECT {theirs} {inner.rows} GROUP BY {theirs}{having})"
        if values and self.chance(0.2):
            a, b = self.pick(values)
            return f"{there}({mine}, {a.name}) {negated}IN (SELECT {theirs}, {b.name} {inner.rows})"
        return f"{there}{mine} {negated}IN (SELECT {theirs} {inner.rows})"

    def match_public(self, scope: Scope, negated: str, depth: int) -> str:
        public = self.public_item()
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


def _small(column: Column) -> bool:
    return column.kind is Kind.INTEGER and column.bounds is not None and column.bounds.high - column.bounds.low <= 60
