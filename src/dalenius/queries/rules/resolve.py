"""The third pass: names become columns of the policy, types are checked, and every expression gets its one form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dalenius.errors import (
    NotAllowedError,
    QuestionRefusedError,
    UnknownColumnError,
    UnknownTableError,
)
from dalenius.queries.expressions import (
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Literal,
    Type,
    walk,
)
from dalenius.queries.plan import Order, Output, Question, Stage, Table, needed
from dalenius.queries.rules.aggregated import Aggregating
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.typed import has_aggregates
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.errors import Place

TYPES = {
    Kind.INTEGER: Type.NUMBER,
    Kind.NUMBER: Type.NUMBER,
    Kind.BOOLEAN: Type.BOOLEAN,
    Kind.CATEGORY: Type.TEXT,
    Kind.TEXT: Type.TEXT,
    Kind.DATE: Type.DATE,
    Kind.DATETIME: Type.DATETIME,
}
MOST_OUTPUTS = 100
MOST_ROWS = 10**9


def resolve(stage: Stage) -> Stage:
    """The question in the policy's own terms."""
    return stage.with_(question=_Reader(stage).question())


class _Reader(Aggregating):
    """Reads one SELECT."""

    def __init__(self, stage: Stage) -> None:
        self.text = stage.text
        self.tree: Any = stage.tree
        self.tables = stage.tables
        self.places: dict[Aggregate, Place | None] = {}
        self.aliases: dict[str, Expression] = {}
        self.clamps = needed(stage.options).clamps
        self.claimed: set[int] = set()
        self.notes: dict[str, None] = {}

    # --- the statement

    def question(self) -> Question:
        self.table  # noqa: B018 (an unknown table is the first thing to say)
        where = self.tree.args.get("where")
        condition = self.boolean(where.this, "WHERE") if where else TRUE
        if has_aggregates(condition):
            raise self.refused(where, "An aggregate cannot stand in WHERE.", "Put the condition into HAVING.")
        items = self.tree.expressions
        if len(items) > MOST_OUTPUTS:
            raise self.refused(items[0], f"At most {MOST_OUTPUTS} columns can be asked for.", "Ask in parts.")
        named = [self.item(each) for each in items]
        keys = self.keys(named)
        for name, expression in named:
            self.aliases.setdefault(name.lower(), expression)
        outputs = tuple(
            Output(name, self.released(expression, keys, node))
            for (name, expression), node in zip(named, items, strict=True)
        )
        having = self.tree.args.get("having")
        kept = self.released(self.boolean(having.this, "HAVING"), keys, having) if having else TRUE
        order = self.order(keys, outputs)
        self.all_claimed()
        found = Question(
            self.table,
            condition,
            keys,
            outputs,
            kept,
            order,
            self.count("limit"),
            self.count("offset") or 0,
            self.places,
            tuple(each for each in self.notes if each),
        )
        if not found.aggregates:
            raise QuestionRefusedError(
                "The question asks for no aggregate.",
                why="Rows and values of single people never leave; only counts, sums and averages of many do.",
                fix="Ask for COUNT(*), SUM(x) or AVG(x), with GROUP BY for the columns that you want to see.",
                at=place(items[0], self.text),
            )
        return found

    @cached_property
    def table(self) -> Table:
        from sqlglot import exp

        source = self.tree.args.get("from_") or self.tree.args.get("from")
        named = source.this if source is not None else None
        if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
            raise QuestionRefusedError(
                "The question names no table.",
                why="FROM must name a table that is protected; files and functions are never read for a question.",
                fix="Write FROM and one of the names of 'dalenius tables'.",
                at=place(named, self.text) if named is not None else None,
            )
        spelled = {name.lower(): table for name, table in self.tables.items()}
        found = spelled.get(named.name.lower())
        if found is None:
            meant = nearest(named.name, self.tables)
            raise UnknownTableError(
                f"There is no table {named.name!r}.",
                why=f"Protected are: {', '.join(sorted(self.tables))}."
                if self.tables
                else "No table is protected yet.",
                fix=f"Did you mean {meant!r}?" if meant else "See 'dalenius tables'.",
                at=place(named, self.text),
            )
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """What may stand before a column's dot."""
        source = self.tree.args.get("from_") or self.tree.args.get("from")
        return frozenset({source.this.name.lower(), source.this.alias.lower()} - {""})

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        return {name.lower(): Column(name, TYPES[each.kind]) for name, each in self.table.policy.columns.items()}

    @cached_property
    def integers(self) -> frozenset[str]:
        return frozenset(name for name, each in self.table.policy.columns.items() if each.kind is Kind.INTEGER)

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
        name = node.alias if isinstance(node, exp.Alias) else _default_name(inner)
        return name, self.expression(inner)

    def keys(self, named: list[tuple[str, Expression]]) -> tuple[Expression, ...]:
        """The expressions of GROUP BY: columns, functions of them, numbers and names of items, or ALL."""
        from sqlglot import exp

        group = self.tree.args.get("group")
        if group is None:
            return ()
        if group.args.get("all"):
            found = [each for _, each in named if not has_aggregates(each)]
        else:
            found = []
            aliases = {name.lower(): each for name, each in named}
            for node in group.expressions:
                if isinstance(node, exp.Literal) and not node.is_string:
                    found.append(self.numbered(node, [each for _, each in named]))
                elif isinstance(node, exp.Column) and not node.table and node.name.lower() not in self.columns:
                    found.append(aliases.get(node.name.lower()) or self.expression(node))
                else:
                    found.append(self.expression(node))
                if has_aggregates(found[-1]):
                    raise self.refused(node, "An aggregate cannot be a key.", "Group by columns.")
        return tuple(each for each in dict.fromkeys(found) if not isinstance(each, Literal))

    def numbered(self, node: exp.Expr, items: list[Expression]) -> Expression:
        number_ = node.name
        if not re.fullmatch(r"\d{1,10}", number_) or not 1 <= int(number_) <= len(items):
            shown = number_[:20]
            raise self.invalid(node, f"There is no column {shown} in SELECT.", f"It has {len(items)}.", "Correct it.")
        return items[int(number_) - 1]

    def order(self, keys: tuple[Expression, ...], outputs: tuple[Output, ...]) -> tuple[Order, ...]:
        from sqlglot import exp

        order = self.tree.args.get("order")
        found = []
        for each in order.expressions if order else ():
            node, descending = each.this, bool(each.args.get("desc"))
            nulls_first = bool(each.args.get("nulls_first"))
            if isinstance(node, exp.Var):
                if node.name.upper() != "ALL":
                    raise self.refused(node, f"ORDER BY {node.name} is not supported.", "Name a column.")
                found += [Order(output.expression, descending, nulls_first) for output in outputs]
            elif isinstance(node, exp.Literal) and not node.is_string:
                inner = self.numbered(node, [output.expression for output in outputs])
                found.append(Order(inner, descending, nulls_first))
            else:
                aliased = isinstance(node, exp.Column) and not node.table and self.aliases.get(node.name.lower())
                inner = aliased or self.expression(node)
                found.append(Order(self.released(inner, keys, node), descending, nulls_first))
        return tuple(found)

    def count(self, part: str) -> int | None:
        """The number after LIMIT or OFFSET."""
        from sqlglot import exp

        node = self.tree.args.get(part)
        if node is None:
            return None
        value = node.expression
        if not isinstance(value, exp.Literal) or value.is_string or not re.fullmatch(r"\d{1,10}", value.name):
            raise self.refused(value, f"{part.upper()} takes a number.", "Write a whole number.")
        return min(int(value.name), MOST_ROWS)

    def released(self, expression: Expression, keys: tuple[Expression, ...], node: exp.Expr) -> Expression:
        """The expression over what is released: keys and aggregates. Anything else is a raw column."""
        found = _over_keys(expression, {each: Key(place_, each.type) for place_, each in enumerate(keys)})
        raw = next((each for each in walk(found) if isinstance(each, Column)), None)
        if raw is not None:
            raise QuestionRefusedError(
                f"Column {raw.name!r} stands outside an aggregate.",
                why="Its values belong to single people."
                + (" It is not one of the keys of GROUP BY." if keys else " There is no GROUP BY."),
                fix=f"Aggregate it, as in AVG({raw.name}), or add it to GROUP BY.",
                at=place(node, self.text),
            )
        return found

    # --- names

    def column(self, node: Any) -> Expression:
        from sqlglot import exp

        if not isinstance(node.this, exp.Identifier):
            raise self.refused(node, "* cannot stand here.", "Name a column, or write COUNT(*).")
        if node.table and node.table.lower() not in self.names:
            raise self.refused(node, f"There is no table {node.table!r} in FROM.", "Leave the name before the dot out.")
        found = self.columns.get(node.name.lower())
        if found is None and not node.table and node.name.lower() in self.aliases:
            return self.aliases[node.name.lower()]
        if found is None:
            raise self.unknown(node)
        return found

    def unknown(self, node: exp.Expr) -> UnknownColumnError | NotAllowedError:
        policy, name = self.table.policy, node.name
        meant = nearest(name, policy.columns)
        if name.lower() in {each.lower() for each in policy.unit}:
            return NotAllowedError(
                f"Column {name!r} names the units; it is not open to questions.",
                why="The policy does not list it among the columns.",
                fix=f"It can be counted: COUNT(DISTINCT {', '.join(policy.unit)}).",
                at=place(node, self.text),
            )
        return UnknownColumnError(
            f"There is no column {name!r}.",
            why=f"Table {policy.name!r} has: {', '.join(policy.columns)}.",
            fix=f"Did you mean {meant!r}?" if meant else f"See 'dalenius tables {policy.name}'.",
            at=place(node, self.text),
        )


def _over_keys(expression: Expression, keys: Mapping[Expression, Key]) -> Expression:
    """The expression with every part that is a key replaced by it, the largest parts first."""
    if expression in keys:
        return keys[expression]
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(_over_keys(each, keys) for each in expression.arguments), expression.type
        )
    return expression


def _default_name(node: exp.Expr) -> str:
    """What DuckDB would call the column, or nearly so."""
    from sqlglot import exp

    return node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb").lower()[:60]
