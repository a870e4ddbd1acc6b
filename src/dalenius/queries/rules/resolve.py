"""The third pass: names become columns of the policy, types are checked, and every expression gets its one form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError, UnknownColumnError
from dalenius.queries.canonical import call, factored
from dalenius.queries.expressions import TRUE, Call, Column, Expression, Key, Type, columns_of, walk, written
from dalenius.queries.plan import Order, Output, Question, Stage, Table, needed
from dalenius.queries.relations import Join, Owned, PerUnit, Relation, full
from dalenius.queries.rules import sets
from dalenius.queries.rules.clause import Options, not_the_unit
from dalenius.queries.rules.joins import checked, joined, narrowed
from dalenius.queries.rules.naming import named_alike
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.per_unit import aggregates_of, over_subquery, per_unit
from dalenius.queries.rules.sources import TYPES, Names, NotPlain, Shared, Sources, Subqueries, owned_tables
from dalenius.queries.rules.stacked import stacked
from dalenius.queries.rules.typed import has_aggregates
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from sqlglot import exp

MOST_OUTPUTS = 100
MOST_ROWS = 10**9


def resolve(stage: Stage) -> Stage:
    """The question in the policy's own terms."""
    plain = _plain(stage)
    try:
        found = _Reader(Shared(stage, plain=plain), stage.tree).question()
        plain = plain and not _names_units(found)  # a subquery says IS NULL of them: only relations know such columns
    except NotPlain:
        plain = False
    if not plain:
        found = _Reader(Shared(stage, plain=False), stage.tree).question()
    return stage.with_(question=found)


def _names_units(question: Question) -> bool:
    read = [question.where, *question.keys]
    read += [part for each in question.aggregates for part in (each.value, each.other, each.where) if part is not None]
    return any(isinstance(part, Column) and part.type is Type.UNIT for each in read for part in walk(each))


class _Reader(Sources):
    """Reads one SELECT."""

    _table: Table | None = None

    def __init__(
        self, shared: Shared, tree: Any, subqueries: Subqueries | None = None, outer: Sources | None = None
    ) -> None:
        super().__init__(shared, tree, subqueries, outer)
        self.aliases: dict[str, Expression] = {}
        self.groupings: dict[sets.Set, int] = {}

    # --- the statement

    def question(self) -> Question:
        if self.tree.args.get("distinct"):
            raise QuestionRefusedError(
                "SELECT DISTINCT is not supported.",
                why="It would list values that people have.",
                fix="Use GROUP BY with COUNT(*).",
                at=place(self.tree, self.text),
            )
        self.read_rows()
        condition = self.rows_of()
        self.check_unit(needed(self.shared.stage.options))
        items = self.tree.expressions
        if len(items) > MOST_OUTPUTS:
            raise self.refused(items[0], f"At most {MOST_OUTPUTS} columns can be asked for.", "Ask in parts.")
        named = [self.item(each) for each in items]
        grouped = self.grouped(named)
        keys = grouped.keys
        self.check_keys(keys)
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
            grouped.sets,
            tuple(self.groupings),
            tuple(each for each in self.notes if each),
        )
        if not found.aggregates:
            raise QuestionRefusedError(
                "The question asks for no aggregate.",
                why="Rows and values of single people never leave; only counts, sums and averages of many do.",
                fix="Ask for COUNT(*), SUM(x) or AVG(x), with GROUP BY for the columns that you want to see.",
                at=place(items[0] if items else self.tree, self.text),
            )
        return self.narrowed(self.named_alike(found))

    def named_alike(self, question: Question) -> Question:
        """The question with names of its sources that do not depend on the wording."""
        relation = self.table.relation
        found = None if relation is None else named_alike(question, relation)
        if found is None:
            return question
        question, relation = found
        self._table = joined(relation, place(self.tree, self.text))
        return replace(question, table=self._table)

    def narrowed(self, question: Question) -> Question:
        """Of a table that is made up of others, only the columns that the question reads."""
        if self.table.relation is None:
            return question
        read = [question.where, *question.keys]
        read += [
            part for each in question.aggregates for part in (each.value, each.other, each.where) if part is not None
        ]
        used = {part.name: part for each in read for part in walk(each) if isinstance(part, Column)}
        period = self.table.period
        if period is not None and self.table.budget.period is not None:
            used[period.column] = Column(period.column, TYPES[self.table.policy.columns[period.column].kind])
        return replace(question, table=narrowed(self.table, used.values()))

    def rows_of(self) -> Expression:
        """Settles what table the question is about; gives the condition that is left for it."""
        if self.shared.plain:
            (join,) = self.joins
            if isinstance(join.source, Owned):
                self._table = join.source.table
                return call("and", *self.conditions)
        relation = self.relation()
        if relation.owner is None:
            raise QuestionRefusedError(
                "The question reads public tables only.",
                why="There is nobody to protect in it, and it says something that is not answered so.",
                fix="Ask for rows of public tables in a question of their own.",
                at=place(self.tree, self.text),
            )
        self._table = joined(relation, place(self.tree, self.text))
        period = self._table.period
        if self._table.budget.period is None or period is None:
            return TRUE
        return call("and", *(each for each in self.conditions if columns_of(each) == {period.column}))

    def relation(self) -> Relation:
        """FROM and WHERE as a relation that is about one unit at a time."""
        found = Relation(tuple(self.joins), self.total(call("and", *self.conditions)), tuple(self.matches))
        source = self.tree.args.get("from_") or self.tree.args.get("from")
        checked(found, self.shared.identities, self.parts, place(source, self.text), self.shared.places)
        return found

    @property
    def table(self) -> Table:
        if self._table is None:
            raise RuntimeError("The rows were not read yet.")
        return self._table

    @property
    def is_subquery(self) -> bool:
        return self.tree is not self.shared.stage.tree

    @property
    def integers(self) -> frozenset[str]:
        return frozenset().union(*(each.integers for each in self.all_columns()))

    # --- subqueries

    def subquery(self, tree: Any, visible: Subqueries, alias: Any, node: Any, *, left: bool) -> Names:
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

    def inside(self, around: _Reader, node: Any, left: bool) -> Names:
        """This SELECT as a subquery in FROM of another."""
        if any(self.tree.args.get(each) is not None for each in ("limit", "offset")):
            raise self.refused(
                self.tree, "LIMIT in a subquery is not supported.", "Choose rows by a condition in WHERE."
            )
        self.read_rows()
        if not self.gathers:
            return around.dissolved(self, self.items(), node, left)
        source, names, having = self.per_unit(node)
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
            around.conditions += factored(having)
        return names

    @property
    def gathers(self) -> bool:
        """Whether it gives fewer rows than it reads."""
        from sqlglot import exp

        aggregates = any(
            isinstance(part, exp.AggFunc) for each in self.tree.expressions for part in each.walk() if part is not None
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
        from sqlglot import exp

        if any(self.tree.args.get(each) is not None for each in ("limit", "offset")):
            raise self.refused(self.tree, "LIMIT in a subquery is not supported.", "Leave it out.")
        if not self.gathers:
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
        source, names = stacked(self.shared.name("union"), read, self.shared.identities, place(tree, self.text))
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
        self._table = joined(relation, at)
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
        source = per_unit(
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
            raise self.invalid(
                node, f"Column {raw.name!r} stands outside an aggregate.", "It is not in GROUP BY.", "Add it there."
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
        name = node.alias if isinstance(node, exp.Alias) else _default_name(inner)
        return name, self.expression(inner)

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
                found = self.numbered(node, [each for _, each in named])
            elif isinstance(node, exp.Column) and not node.table and not self.in_view(node):
                found = aliases.get(node.name.lower()) or self.expression(node)
            else:
                found = self.expression(node)
            if has_aggregates(found):
                raise self.refused(node, "An aggregate cannot be a key.", "Group by columns.")
            return found

        return sets.read(self, group.expressions, key)

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

        def unknown() -> QuestionRefusedError:
            return self.refused(node, "GROUPING takes keys of GROUP BY.", "Write GROUPING(a) where a is one of them.")

        marked = sets.marked(expression, keys, self.groupings, unknown)
        found = _over_keys(marked, {each: Key(place_, each.type) for place_, each in enumerate(keys)})
        raw = next((each for each in walk(found) if isinstance(each, Column)), None)
        if raw is not None and raw.type is Type.UNIT:
            raise self.told(node, raw)
        if raw is not None:
            raise QuestionRefusedError(
                f"Column {raw.name!r} stands outside an aggregate.",
                why="Its values belong to single people."
                + (" It is not one of the keys of GROUP BY." if keys else " There is no GROUP BY."),
                fix=f"Aggregate it, as in AVG({self.spelled(raw)}), or add it to GROUP BY.",
                at=place(node, self.text),
            )
        return found

    def spelled(self, column: Column) -> str:
        """A column as the question can call it."""
        for table, names in self.names.items():
            for name, expression in names.values():
                if expression == column:
                    return name if self.shared.plain else f"{table}.{name}"
        return column.name

    # --- names

    def column(self, node: Any) -> Expression:
        from sqlglot import exp

        if not isinstance(node.this, exp.Identifier):
            raise self.refused(node, "* cannot stand here.", "Name a column, or write COUNT(*).")
        if node.table and not self.knows(node.table.lower()):
            fix = "Leave the name before the dot out." if self.shared.plain else f"FROM has {', '.join(self.names)}."
            raise self.refused(node, f"There is no table {node.table!r} in FROM.", fix)
        found = self.lookup(node)
        if found is None and not node.table and node.name.lower() in self.aliases:
            return self.aliases[node.name.lower()]
        if found is None:
            raise self.unknown(node)
        if found.type is Type.UNIT and self.shared.plain and self.tree is self.shared.stage.tree:
            tree: Any = self.tree
            raise NotPlain if any(each is not tree for each in tree.find_all(exp.Select)) else self.unknown(node)
        return found

    def units_named(self, nodes: Sequence[Any]) -> bool:
        if not self.shared.plain:
            return super().units_named(nodes)
        named = {each.name.lower() for each in nodes}
        if len(named) < len(nodes) or named != {each.lower() for each in self.table.policy.unit}:
            return False
        # In a subquery another column may have got the name; at the end of a path the column is not there itself.
        found = [(node.name.lower(), self.lookup(node)) for node in nodes]
        return all(each is None or (isinstance(each, Column) and each.name.lower() == name) for name, each in found)

    def check_unit(self, options: Options) -> None:
        """Takes contribution bounds from the question's options, and refuses another unit than the policy's."""
        from sqlglot import exp

        self.clamps, self.claimed, self.notes = options.clamps, set(), {}
        *before, name = options.unit or ("",)
        if not name:
            return
        known = len(before) <= 1 and {each.lower() for each in before} <= {each.lower() for each in self.names}
        try:
            named = known and self.units_named([exp.column(name, *before)])
        except InputError as error:  # in several tables of FROM
            error.at = options.places.get("privacy_unit_column")
            raise
        if not named:
            raise not_the_unit(options, self.table.unit)

    def check_keys(self, keys: tuple[Expression, ...]) -> None:
        """A group of one unit's rows is about that unit."""
        if self.shared.plain:  # there, what the policy lists among the columns may be a key
            return
        for key in keys:
            for each in walk(key):
                if isinstance(each, Column) and each.name in self.shared.identities:
                    group = self.tree.args["group"]
                    raise QuestionRefusedError(
                        f"GROUP BY {each.name!r} would make groups about one {', '.join(self.table.unit)} each.",
                        why="It says who somebody is, or leads to it; answers are about many.",
                        fix="Group by something that many share.",
                        at=place(group, self.text),
                    )

    def unknown(self, node: exp.Expr) -> UnknownColumnError | NotAllowedError:
        name = node.name
        owned = [each.source for each in self.joins if isinstance(each.source, Owned)]
        columns = [each for one in self.names.values() for each, _ in one.values()]
        meant = nearest(name, columns)
        for source in owned:
            policy = source.table.policy
            if name.lower() in {each.lower() for each in (*policy.unit, *policy.owner)}:
                return NotAllowedError(
                    f"Column {name!r} names the units; it is not open to questions.",
                    why="The policy does not list it among the columns.",
                    fix=f"It can be counted: COUNT(DISTINCT {', '.join(policy.unit)}).",
                    at=place(node, self.text),
                )
        known = owned[0].table.policy.name if owned else ""
        shown = f"Table {known!r} has" if self.shared.plain and owned else "FROM has"
        return UnknownColumnError(
            f"There is no column {name!r}.",
            why=f"{shown}: {', '.join(dict.fromkeys(columns))}.",
            fix=f"Did you mean {meant!r}?" if meant else f"See 'dalenius tables {known}'.",
            at=place(node, self.text),
        )


def _plain(stage: Stage) -> bool:
    """Whether the question reads one table and has no subquery that groups or matches: see `Shared.plain`."""
    from sqlglot import exp

    tree: Any = stage.tree
    if any(_is_value(each) for each in tree.find_all(exp.Subquery)):
        tree = tree.copy()
        for each in [each for each in tree.find_all(exp.Subquery) if _is_value(each)]:
            each.replace(exp.Null())  # a constant, as far as this goes
    with_ = tree.args.get("with_") or tree.args.get("with")
    named = {each.alias.lower() for each in with_.expressions} if with_ is not None else set()
    tables = [each for each in tree.find_all(exp.Table) if each.name.lower() not in named]
    if len(tables) != 1 or any(True for _ in tree.find_all(exp.SetOperation, exp.Exists)):
        return False
    uses = [each for each in tree.find_all(exp.Table) if each.name.lower() in named]
    if len({each.name.lower() for each in uses}) < len(uses) or len(uses) < len(named):
        return False
    if any(each.args.get("query") is not None for each in tree.find_all(exp.In)):
        return False
    inner = [each for each in tree.find_all(exp.Select) if each is not tree]
    if any(each.args.get(part) for each in inner for part in ("group", "having", "distinct")):
        return False
    if any(each.find(exp.AggFunc) is not None for each in inner):
        return False
    name = tables[0].name.lower()
    return name in {each.lower() for each in stage.tables} or name not in {each.lower() for each in stage.publics}


def _is_value(node: Any) -> bool:
    """Whether a subquery stands where a value does."""
    from sqlglot import exp

    return not isinstance(
        node.parent, exp.From | exp.Join | exp.In | exp.Exists | exp.CTE | exp.SetOperation | exp.Subquery
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
