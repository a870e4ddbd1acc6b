"""Subqueries: dissolved into the SELECT around, grouped by the unit, stacked by UNION ALL, or only matched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import call, factor
from dalenius.measuring.expressions import TRUE, Column, Expression, walk, written
from dalenius.measuring.functions import TYPES
from dalenius.measuring.relations import Join, PerUnit, Relation, full
from dalenius.queries.rules import sets
from dalenius.queries.rules.aggregated import is_aggregate
from dalenius.queries.rules.derived import aggregates_of, group_by_unit, over_subquery, stack_parts
from dalenius.queries.rules.joins import check_relation, join_table
from dalenius.queries.rules.numbered import is_numbered, keep_first, number_subquery, read_window
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.scope import Names, Subqueries, has_aggregates, owned_tables
from dalenius.queries.rules.sources import Sources

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.measuring.plan import Table
    from dalenius.measuring.relations import Numbering

_OTHERS = "Which rows are left would depend on those of others."


class Nested(Sources):
    """Reads a SELECT that stands in another, and what any SELECT has: items and keys."""

    numbers = False  # whether rows may be numbered here: the items of a subquery are read
    numbering: Numbering | None = None

    @property
    def owned(self) -> list[Table]:
        """The protected tables of FROM."""
        return list(owned_tables(self.joins))

    def relation(self) -> Relation:
        """FROM and WHERE as a relation that is about one unit at a time."""
        where = self.total(call("and", *self.conditions))
        found = Relation(keep_first(self.joins, where), where, tuple(self.matches))
        source = self.tree.args.get("from_") or self.tree.args.get("from")
        check_relation(found, self.shared.identities, self.parts, place(source, self.text), self.shared.places)
        return found

    # --- subqueries

    def subquery(self, tree: Any, visible: Subqueries, alias: Any, node: Any, *, left: bool) -> Names:
        """What a subquery in FROM brings."""
        from sqlglot import exp

        if isinstance(tree, exp.Subquery | exp.Paren):
            return self.subquery(tree.this, visible, alias, node, left=left)
        if isinstance(tree, exp.SetOperation):
            found = self.union(tree, visible, left)
        elif not isinstance(tree, exp.Select):
            raise self.refused(node, "This cannot stand in FROM.", "Name a table, or write a SELECT.")
        else:
            child = self.child(tree, visible)
            found = child.inside(self, node, left)
        names = [each.name for each in (alias.args.get("columns") if alias is not None else None) or ()]
        if names:
            if len(names) != len(found):
                raise self.invalid(
                    node, f"{len(names)} names do not fit.", f"It has {len(found)} columns.", "Correct it."
                )
            found = {new.lower(): (new, each) for new, (_, each) in zip(names, found.values(), strict=True)}
        return found

    def inside(self, around: Nested, node: Any, left: bool) -> Names:
        """This SELECT as a subquery in FROM of another."""
        if any(self.tree.args.get(each) is not None for each in ("limit", "offset")):
            raise self.refused(
                self.tree, "LIMIT in a subquery is not supported.", "Choose rows by a condition in WHERE.", _OTHERS
            )
        self.read_rows()
        numbered = is_numbered(self.tree)
        if not numbered and not self.gathers:
            return around.dissolved(self, self.items(), node, left)
        source, names, having = number_subquery(self, node) if numbered else self.per_unit(node)
        if left and not all(isinstance(each, Column) for _, each in names.values()):
            raise self.refused(
                node,
                "In a subquery that is joined by LEFT JOIN, only keys and aggregates themselves can be selected.",
                "Select the aggregate, and compute with it outside.",
            )
        around.sourced(source, left, self.tree)
        if left:
            around.joins[-1] = Join(source, True, around.total(having))
        else:
            around.conditions += factor(having)
        return names

    @property
    def gathers(self) -> bool:
        """Whether it gives fewer rows than it reads."""
        aggregates = any(
            is_aggregate(part) for each in self.tree.expressions for part in each.walk() if part is not None
        )
        return any(self.tree.args.get(each) for each in ("group", "having", "distinct")) or aggregates

    def items(self) -> list[tuple[str, Expression]]:
        """The columns of a subquery that does not group."""
        from sqlglot import exp

        found: list[tuple[str, Expression]] = []
        for each in self.tree.expressions:
            if isinstance(each, exp.Star) or isinstance(each.this, exp.Star):
                found += self.starred(each)
            else:
                found.append(self.item(each))
        names = [name.lower() for name, _ in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self.refused(
                self.tree, f"Two columns of the subquery are named {twice!r}.", "Name the columns, with AS."
            )
        return found

    def matched(self, *, needs: bool) -> list[tuple[str, Expression]]:
        """Reads this SELECT as a subquery of EXISTS or IN; gives its columns, where they matter."""
        from sqlglot import exp

        if any(self.tree.args.get(each) is not None for each in ("limit", "offset")):
            raise self.refused(self.tree, "LIMIT in a subquery is not supported.", "Leave it out.", _OTHERS)
        if not self.gathers and not is_numbered(self.tree):
            self.read_rows()
            return self.items() if needs else []
        # With groups of its own it cannot speak of the rows around it.
        inner = {each.alias_or_name.lower() for each in self.tree.find_all(exp.Table)}
        for each in self.tree.find_all(exp.Column):
            if each.table and each.table.lower() not in inner and self.outer is not None:
                raise self.no_subquery(each, "grouped")
        names = self.subquery(exp.Subquery(this=self.tree), self.subqueries, None, self.tree, left=False)
        return list(names.values())

    def union(self, tree: Any, visible: Subqueries, left: bool) -> Names:
        """UNION ALL of tables of one data set, as a source."""
        from sqlglot import exp

        parts, waiting = [], [tree]
        while waiting:
            each = waiting.pop()
            if isinstance(each, exp.Subquery | exp.Paren):
                waiting.append(each.this)
            elif isinstance(each, exp.Union) and not each.args.get("distinct") and not each.args.get("by_name"):
                waiting += [each.expression, each.this]
            elif isinstance(each, exp.Select):
                parts.append(each)
            else:
                raise QuestionRefusedError(
                    f"{each.key.upper()} is not supported.",
                    why="Only UNION ALL keeps every row with the unit that it belongs to.",
                    fix="Write UNION ALL, or join on the unit.",
                    at=place(each, self.text),
                )
        read = []
        for each in parts:
            child = self.child(each, visible)
            around = self.child(each, visible)
            names = child.inside(around, each, False)
            around.outer = None
            read.append((around.relation(), list(names.values())))
        source, names = stack_parts(self.shared.name("union"), read, self.shared.identities, place(tree, self.text))
        self.sourced(source, left, tree)
        return names

    def per_unit(self, node: Any) -> tuple[PerUnit, Names, Expression]:
        """A subquery that groups by unit: the source, its columns and what HAVING asks of them."""
        at = place(self.tree, self.text) or place(node, self.text)
        if not any(True for _ in owned_tables(self.joins)):
            raise QuestionRefusedError(
                "A subquery with aggregates over public tables is not supported beside protected ones.",
                why="Only sums within one unit are worked out inside a question.",
                fix="Ask it by itself, which is free, and write its numbers into the question.",
                at=at,
            )
        relation = self.relation()
        self._table = join_table(relation, at)
        named = [self.item(each) for each in self.tree.expressions]
        grouped = self.grouped(named)
        keys = tuple(sorted(grouped.keys, key=written))
        if grouped.sets:
            raise self.refused(
                self.tree, "Grouping sets in a subquery are not supported.", "Group it by the unit and by keys."
            )
        if self.tree.args.get("distinct"):
            if keys or any(has_aggregates(each) for _, each in named):
                raise self.refused(self.tree, "DISTINCT beside GROUP BY is not supported.", "Leave it out.")
            keys = tuple(sorted(dict.fromkeys(each for _, each in named), key=written))
        for name, expression in named:
            self.aliases.setdefault(name.lower(), expression)
        having = self.tree.args.get("having")
        kept = self.boolean(having.this, "HAVING") if having else TRUE
        aggregates = aggregates_of([*(each for _, each in named), kept])
        source = group_by_unit(
            self.shared.name("per unit"),
            relation,
            keys,
            aggregates,
            self.shared.identities,
            self.parts,
            at,
            self.places,
        )
        replaced: dict[Expression, Column] = {
            key: Column(full(source, f"k{place_}"), key.type) for place_, key in enumerate(keys)
        }
        for number, each in enumerate(aggregates):
            kind = source.columns[f"a{number}"].kind
            replaced[each] = Column(full(source, f"a{number}"), TYPES[kind])
        names = {name.lower(): (name, self.over(expression, replaced, node)) for name, expression in named}
        return source, names, self.over(kept, replaced, node)

    def over(self, expression: Expression, replaced: Mapping[Expression, Column], node: Any) -> Expression:
        """An expression of the subquery over its own columns."""
        found = over_subquery(expression, replaced)
        own = {each.name for each in replaced.values()}
        raw = next((each for each in walk(found) if isinstance(each, Column) and each.name not in own), None)
        if raw is not None:
            shown = self.shown(raw)
            raise self.invalid(
                node, f"Column {shown!r} stands outside an aggregate.", "It is not in GROUP BY.", "Add it there."
            )
        return found

    def item(self, node: exp.Expr) -> tuple[str, Expression]:
        """Name and expression of one item of SELECT."""
        from sqlglot import exp

        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            raise QuestionRefusedError(
                "SELECT * is not supported.",
                why="It would show rows of single people.",
                fix="Ask for COUNT(*), SUM(x) or AVG(x) by groups.",
                at=place(inner, self.text),
            )
        name = node.alias if isinstance(node, exp.Alias) else default_name(inner)
        if self.early is not None:
            self.early.see(node)
        found = self.expression(inner)
        if self.early is not None:
            self.early.see()
        return name, found

    def grouped(self, named: list[tuple[str, Expression]]) -> sets.Grouped:
        """The keys of GROUP BY: columns, functions of them, numbers and names of items, sets of these, or ALL."""
        from sqlglot import exp

        group = self.tree.args.get("group")
        if group is None:
            return sets.Grouped()
        if group.args.get("all"):
            return sets.Grouped.of([[each for _, each in named if not has_aggregates(each)]])
        aliases = {name.lower(): each for name, each in named}

        def key(node: exp.Expr) -> Expression:
            if isinstance(node, exp.Literal) and not node.is_string:
                found = self.numbered_item(node, [each for _, each in named])
            elif isinstance(node, exp.Column) and not node.table and not self.in_view(node):
                found = aliases.get(node.name.lower()) or self.expression(node)
            else:
                found = self.expression(node)
            if has_aggregates(found):
                why = "Groups are made of rows, before anything is counted."
                raise self.refused(node, "An aggregate cannot be a key.", "Group by columns.", why)
            return found

        return sets.read_sets(self, group.expressions, key)

    def expression(self, node: Any) -> Expression:
        """Any expression."""
        return read_window(self, node) if type(node).__name__ == "Window" else super().expression(node)

    def numbered_item(self, node: exp.Expr, items: list[Expression]) -> Expression:
        """An item of SELECT by its number."""
        number_ = node.name
        if not re.fullmatch(r"\d{1,10}", number_) or not 1 <= int(number_) <= len(items):
            shown = number_[:20]
            raise self.invalid(node, f"There is no column {shown} in SELECT.", f"It has {len(items)}.", "Correct it.")
        return items[int(number_) - 1]


def default_name(node: exp.Expr) -> str:
    """What DuckDB would call the column, or nearly so."""
    from sqlglot import exp

    if isinstance(node, exp.Column):
        return node.name
    return str(node.meta.get("typed") or node.sql(dialect="duckdb")).lower()[:60]
