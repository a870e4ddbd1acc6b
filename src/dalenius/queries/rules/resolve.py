"""The third pass: names become columns of the policy, types are checked, and every expression gets its one form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.canonical import call, name_alike
from dalenius.measuring.expressions import TRUE, Aggregate, Call, Column, Expression, Key, Type, columns_of, walk
from dalenius.measuring.functions import TYPES
from dalenius.measuring.listed import is_listed
from dalenius.measuring.plan import Order, Output, Question, require
from dalenius.measuring.relations import Owned
from dalenius.measuring.statistics import family_for, said
from dalenius.queries.rules import sets
from dalenius.queries.rules.aggregated import is_aggregate
from dalenius.queries.rules.clause import REPORTED, Options, not_the_unit
from dalenius.queries.rules.joins import join_table, narrow_table
from dalenius.queries.rules.kept import check_kept, keep_public
from dalenius.queries.rules.nested import Nested
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.scope import NotPlain, Shared

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.queries.rules import Stage

MOST_OUTPUTS = 100
MOST_ROWS = 10**9


def _aggregated(type_: Type) -> str:
    return "AVG(" if type_ is Type.NUMBER else "COUNT(DISTINCT "


def resolve_names(stage: Stage) -> Stage:
    """The question in the policy's own terms."""
    if _plain(stage):
        try:
            found = _Reader(Shared(stage, plain=True), stage.tree).question()
            if not _names_units(found):  # a subquery says IS NULL of them: only relations know such columns
                return stage.with_(question=found)
        except NotPlain:
            pass
    return stage.with_(question=_Reader(Shared(stage, plain=False), stage.tree).question())


def _names_units(question: Question) -> bool:
    read = [question.where, *question.keys]
    read += [part for each in question.aggregates for part in (each.value, each.other, each.where) if part is not None]
    return any(isinstance(part, Column) and part.type is Type.UNIT for each in read for part in walk(each))


class _Reader(Nested):
    """Reads one SELECT."""

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
        beside = keep_public(self)
        condition = self.rows_of()
        self.check_unit(require(self.shared.stage.options))
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
        if beside is not None:
            check_kept(self, beside, keys, found.aggregates)
        return self.narrow(self.name_alike(found))

    def name_alike(self, question: Question) -> Question:
        """The question with names of its sources that do not depend on the wording."""
        found = name_alike(question, self.table.relation)
        if found is None:
            return question
        question, relation = found
        self._table = join_table(relation, place(self.tree, self.text))
        return replace(question, table=self._table)

    def narrow(self, question: Question) -> Question:
        """Of a table that is made up of others, only the columns that the question reads."""
        if self.table.relation.single:
            return question
        read = [question.where, *question.keys]
        read += [
            part for each in question.aggregates for part in (each.value, each.other, each.where) if part is not None
        ]
        used = {part.name: part for each in read for part in walk(each) if isinstance(part, Column)}
        period = self.table.period
        if period is not None and self.table.budget.period is not None:
            used[period.column] = Column(period.column, TYPES[self.table.policy.columns[period.column].kind])
        return replace(question, table=narrow_table(self.table, used.values()))

    def rows_of(self) -> Expression:
        """Settles what table the question is about; gives the condition that is left for it."""
        if self.shared.plain:
            (join,) = self.joins
            if isinstance(join.source, Owned):
                self._table = join.source.table
                return call("and", *self.conditions)
        relation = self.relation()
        if relation.owner is None:
            if all(is_listed(each) for each in relation.publics()):
                raise QuestionRefusedError(
                    "The question reads nothing but rows that it lists itself.",
                    why="There is nobody in it to ask about.",
                    fix="Join the list with a table: FROM (VALUES ('a'), ('b')) AS k(x) LEFT JOIN t ON t.x = k.x.",
                    at=place(self.tree, self.text),
                )
            raise QuestionRefusedError(
                "The question reads public tables only.",
                why="There is nobody to protect in it, and it says something that is not answered so.",
                fix="Ask for rows of public tables in a question of their own.",
                at=place(self.tree, self.text),
            )
        self._table = join_table(relation, place(self.tree, self.text))
        period = self._table.period
        if self._table.budget.period is None or period is None:
            return TRUE
        return call("and", *(each for each in self.conditions if columns_of(each) == {period.column}))

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
                inner = self.numbered_item(node, [output.expression for output in outputs])
                found.append(Order(inner, descending, nulls_first))
            else:
                aliased = isinstance(node, exp.Column) and not node.table and self.aliases.get(node.name.lower())
                inner = aliased or self.expression(node)
                found.append(Order(self.released(inner, keys, node), descending, nulls_first))
        if any(each.expression.type is Type.LIST for each in found):
            raise self.list_alone(order)
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

        marked = sets.mark_groupings(expression, keys, self.groupings, unknown)
        found = _over_keys(marked, {each: Key(place_, each.type) for place_, each in enumerate(keys)})
        raw = next((each for each in walk(found) if isinstance(each, Column)), None)
        for part in walk(found):
            if part is found:
                continue
            if isinstance(part, Call) and part.function == "list":
                raise self.list_alone(node)
            if isinstance(part, Aggregate) and family_for(part.kind).asked[part.kind].alone:
                raise self.shown_alone(node, said(part.kind))
        if raw is not None and raw.type is Type.UNIT:
            raise self.told(node, raw)
        if raw is not None:
            raise QuestionRefusedError(
                f"Column {self.shown(raw)!r} stands outside an aggregate.",
                why="Its values belong to single people."
                + (" It is not one of the keys of GROUP BY." if keys else " There is no GROUP BY."),
                fix=f"Aggregate it, as in {_aggregated(raw.type)}{self.spelled(raw)}), or add it to GROUP BY.",
                at=place(node, self.text),
            )
        return found

    def spelled(self, column: Column) -> str:
        """A column as the question can call it."""
        for table, names in self.names.items():
            for name, expression in names.values():
                if expression == column:
                    return name if self.shared.plain or table.startswith("#") else f"{table}.{name}"
        return column.name

    # --- names

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

        self.clamps, self.claimed, self.notes = options.clamps, set(), {REPORTED: None} if options.report else {}
        if not options.unit:
            return
        *before, name = options.unit
        known = len(before) <= 1 and {each.lower() for each in before} <= {each.lower() for each in self.names}
        try:
            named = known and self.units_named([exp.column(name, *before)])
        except InputError as error:  # in several tables of FROM
            error.at = options.places.get("privacy_unit_column")
            raise
        if not named:
            columns = [each for names in self.names.values() for each, _ in names.values()]
            raise not_the_unit(options, self.table.unit, columns)

    def check_keys(self, keys: tuple[Expression, ...]) -> None:
        """A group of one unit's rows is about that unit."""
        if self.shared.plain:  # there, what the policy lists among the columns may be a key
            return
        for key in keys:
            for each in walk(key):
                if isinstance(each, Column) and each.name in self.shared.identities:
                    group = self.tree.args["group"]
                    raise QuestionRefusedError(
                        f"GROUP BY {self.shown(each)!r} would make groups about one {', '.join(self.table.unit)} each.",
                        why="It says who somebody is, or leads to it; answers are about many.",
                        fix="Group by something that many share.",
                        at=place(group, self.text),
                    )


def _plain(stage: Stage) -> bool:
    """Whether the question reads one table and has no subquery that groups or matches: see `Shared.plain`."""
    from sqlglot import exp

    tree: Any = stage.tree
    parts = list(tree.walk())
    if any(isinstance(each, exp.Subquery) and _is_value(each) for each in parts):
        tree = tree.copy()
        for each in [each for each in tree.find_all(exp.Subquery) if _is_value(each)]:
            each.replace(exp.Null())  # a constant, as far as this goes
        parts = list(tree.walk())
    with_ = tree.args.get("with_") or tree.args.get("with")
    named = {each.alias.lower() for each in with_.expressions} if with_ is not None else set()
    read = [each for each in parts if isinstance(each, exp.Table)]
    tables = [each for each in read if each.name.lower() not in named]
    apart = exp.SetOperation | exp.Exists | exp.Window | exp.Values | exp.Unnest
    if len(tables) != 1 or any(isinstance(each, apart) for each in parts):
        return False
    uses = [each for each in read if each.name.lower() in named]
    if len({each.name.lower() for each in uses}) < len(uses) or len(uses) < len(named):
        return False
    if any(isinstance(each, exp.In) and each.args.get("query") is not None for each in parts):
        return False
    inner = [each for each in parts if isinstance(each, exp.Select) and each is not tree]
    if any(each.args.get(part) for each in inner for part in ("group", "having", "distinct")):
        return False
    if any(is_aggregate(part) for each in inner for part in each.walk()):
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
