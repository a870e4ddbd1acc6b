"""The third pass: names become columns of the policy, types are checked, and every expression gets its one form."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dalenius.errors import (
    InputError,
    NotAllowedError,
    QuestionRefusedError,
    UnknownColumnError,
    UnknownTableError,
)
from dalenius.queries.canonical import call
from dalenius.queries.expressions import (
    NULL,
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Literal,
    Type,
    number,
    walk,
    written,
)
from dalenius.queries.functions import FUNCTIONS
from dalenius.queries.plan import Order, Output, Question, Stage, Table
from dalenius.queries.rules.parse import place
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
PAIRED = frozenset({"covar_pop", "covar_samp", "corr"})  # aggregates of two arguments
MOST_OUTPUTS = 100
MOST_ROWS = 10**9


def resolve(stage: Stage) -> Stage:
    """The question in the policy's own terms."""
    return stage.with_(question=_Reader(stage).question())


class _Reader:
    """Reads one SELECT."""

    def __init__(self, stage: Stage) -> None:
        self.text = stage.text
        self.tree: Any = stage.tree
        self.tables = stage.tables
        self.places: dict[Aggregate, Place | None] = {}
        self.aliases: dict[str, Expression] = {}

    # --- the statement

    def question(self) -> Question:
        self.table  # noqa: B018 (an unknown table is the first thing to say)
        where = self.tree.args.get("where")
        condition = self.boolean(where.this, "WHERE") if where else TRUE
        if _aggregates(condition):
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
            found = [each for _, each in named if not _aggregates(each)]
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
                if _aggregates(found[-1]):
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

    # --- expressions

    def boolean(self, node: exp.Expr, where: str) -> Expression:
        found = self.expression(node)
        if found.type not in {Type.BOOLEAN, Type.NOTHING}:
            raise self.invalid(node, f"{where} needs a condition.", f"This is a {found.type.value}.", "Compare it.")
        return found

    def expression(self, node: exp.Expr | None) -> Expression:
        if node is None:
            raise InputError("An argument is missing.", why="A function has too few of them.", fix="Add it.")
        reader = _readers().get(type(node))
        if reader is None:  # allowed somewhere, but not here
            raise self.refused(node, f"{type(node).__name__} cannot stand here.", "See docs/reference/sql.md.")
        return reader(self, node)

    def apply(self, node: exp.Expr, function: str, *arguments: Expression) -> Expression:
        """The function, if the types fit; constants are brought to the type that the others have."""
        spec = FUNCTIONS[{"gt": "lt", "ge": "le"}.get(function, function)]
        least = spec.least if spec.least is not None else len(spec.takes)
        if len(arguments) < least or (len(arguments) > len(spec.takes) and not spec.many):
            raise self.invalid(
                node, f"{spec.says} has another number of arguments.", f"Here are {len(arguments)}.", "Correct it."
            )
        if any(_aggregates(each) for each in arguments) and function in {"like", "ilike", "contains"}:
            raise self.refused(node, "Texts cannot be searched in aggregates.", "Leave it out.")
        if any(len(types) > 1 for types in spec.takes):
            arguments = self.alike(node, function, arguments)
        else:
            takes = [*spec.takes, *(spec.takes[-1] for _ in arguments[len(spec.takes) :])]
            arguments = tuple(
                self.typed(node, each, next(iter(types))) for each, types in zip(arguments, takes, strict=False)
            )
        return call(function, *arguments, integers=self.integers)

    def alike(self, node: exp.Expr, function: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Arguments that must be of one type."""
        if function == "case":
            conditions = tuple(self.typed(node, each, Type.BOOLEAN) for each in arguments[:-1:2])
            values = self.same_type(node, (*arguments[1:-1:2], arguments[-1]))
            pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
            return (*pairs, values[-1])
        if function in {"eq", "ne", "lt", "le", "gt", "ge", "in", "coalesce", "nullif"}:
            return self.same_type(node, arguments)
        if function in {"date_part", "date_trunc", "date_diff", "date_add"}:
            return (arguments[0], *(self.time(node, each) for each in arguments[1:3]), *arguments[3:])
        return arguments

    def time(self, node: exp.Expr, argument: Expression) -> Expression:
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            return self.typed(node, argument, Type.DATETIME if len(argument.value) > 10 else Type.DATE)
        if argument.type is Type.NUMBER and isinstance(argument, Literal):
            return argument  # how many units a date is moved by
        if argument.type not in {Type.DATE, Type.DATETIME, Type.NOTHING}:
            raise self.invalid(node, "This needs a date.", f"It is given a {argument.type.value}.", "Cast it.")
        return argument

    def same_type(self, node: exp.Expr, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        types = {each.type for each in arguments if not isinstance(each, Literal)} - {Type.NOTHING}
        if not types:
            types = {each.type for each in arguments} - {Type.NOTHING}
        if types == {Type.DATE, Type.DATETIME}:
            types = {Type.DATETIME}
        if len(types) > 1:
            raise self.mismatch(node, *sorted(each.value for each in types)[:2])
        if not types:
            return arguments
        (wanted,) = types
        if wanted is Type.DATE and any(_has_time(each) for each in arguments):
            wanted = Type.DATETIME
        return tuple(self.typed(node, each, wanted) for each in arguments)

    def typed(self, node: exp.Expr, argument: Expression, wanted: Type) -> Expression:
        if argument.type in {wanted, Type.NOTHING}:
            return argument
        if argument.type is Type.DATE and wanted is Type.DATETIME and not isinstance(argument, Literal):
            return call("to_datetime", argument)
        if isinstance(argument, Literal):
            found = _converted(argument.value, wanted)
            if found is not None:
                return found
        raise self.mismatch(node, wanted.value, argument.type.value)

    def mismatch(self, node: exp.Expr, wanted: str, given: str) -> InputError:
        return self.invalid(
            node,
            f"A {given} stands where a {wanted} belongs.",
            "The types do not fit.",
            f"Cast it, or give a {wanted}.",
        )

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

    # --- aggregates

    def aggregate(
        self,
        node: exp.Expr,
        kind: str,
        value: Expression | None,
        where: Expression,
        other: Expression | None = None,
        parameter: float | None = None,
    ) -> Aggregate:
        if any(_aggregates(each) for each in (value, where, other) if each is not None):
            raise self.refused(node, "An aggregate inside an aggregate is not supported.", "Ask for one of them.")
        if value is not None and value.type is Type.BOOLEAN and kind == "sum":
            kind, where = "count", call("and", where, value)
            value = None
        if value is not None and kind != "count":
            for each in (value, other):
                if each is not None and each.type is not Type.NUMBER and kind != "distinct":
                    raise self.mismatch(node, "number", each.type.value)
            if other is None:
                value, where = _guarded(value, where, kind)
            if kind == "sum" and value == number(1):  # SUM(1) is COUNT(*)
                kind, value = "count", None
        found = Aggregate(kind, value, where, other=other, parameter=parameter)
        self.places.setdefault(found, place(node, self.text))
        return found

    def counted(self, node: Any, where: Expression) -> Aggregate:
        from sqlglot import exp

        inner = node.this
        if node.expressions:
            raise self.refused(node, "COUNT takes one argument.", "Write COUNT(*) or COUNT(x).")
        if inner is None or isinstance(inner, exp.Star):
            return self.aggregate(node, "count", None, where)
        if isinstance(inner, exp.Distinct):
            return self.counted_units(node, inner, where)
        value, where = _guarded(self.expression(inner), where, "count")
        if isinstance(value, Literal):
            present: Expression = TRUE if value != NULL else call("not", TRUE)
        else:
            present = self.present(value)
        return self.aggregate(node, "count", None, call("and", where, present))

    def present(self, value: Expression) -> Expression:
        column = self.table.policy.columns[value.name] if isinstance(value, Column) else None
        return TRUE if column is not None and column.default is not None else call("not", call("is_null", value))

    def counted_units(self, node: Any, inner: Any, where: Expression) -> Aggregate:
        from sqlglot import exp

        nodes = inner.expressions
        if len(nodes) == 1 and isinstance(nodes[0], exp.Tuple):
            nodes = nodes[0].expressions
        named = {each.name.lower() for each in nodes if isinstance(each, exp.Column)}
        unit = self.table.policy.unit
        if len(named) == len(nodes) and named == {each.lower() for each in unit}:
            return self.aggregate(node, "units", None, where)
        if len(nodes) == 1:
            return self.aggregate(node, "distinct", self.expression(nodes[0]), where)
        raise QuestionRefusedError(
            "COUNT(DISTINCT …) takes the unit or one value.",
            why="Of several values together the parts of one person are not bounded here.",
            fix="Ask for one of them, or for "
            f"COUNT(DISTINCT {', '.join(unit) if len(unit) == 1 else '(' + ', '.join(unit) + ')'}).",
            at=place(node, self.text),
        )

    def filtered(self, node: Any) -> Aggregate:
        inner = node.this
        where = self.boolean(node.expression.this, "FILTER")
        return self.aggregated(inner, where)

    def aggregated(self, node: Any, where: Expression = TRUE) -> Aggregate:
        from sqlglot import exp

        if isinstance(node, exp.Count):
            return self.counted(node, where)
        if isinstance(node, exp.CountIf):
            return self.aggregate(node, "count", None, call("and", where, self.boolean(node.this, "COUNT_IF")))
        if isinstance(node, _quantiles()):
            return self.quantile(node, where)
        kind = _kinds().get(type(node))
        if kind is None:
            raise self.refused(node, "FILTER belongs to an aggregate.", "Write COUNT(*) FILTER (WHERE …).")
        if isinstance(node.this, exp.Distinct):
            raise self.refused(node, "DISTINCT inside an aggregate is not supported.", "Leave it out.")
        if kind in PAIRED:  # the same whichever comes first
            pair = sorted((self.expression(node.this), self.expression(node.expression)), key=written)
            return self.aggregate(node, kind, pair[0], where, pair[1])
        return self.aggregate(node, kind, self.expression(node.this), where)

    def quantile(self, node: Any, where: Expression) -> Aggregate:
        """MEDIAN(x), QUANTILE_CONT(x, p) and the like, PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)."""
        from sqlglot import exp

        value, share, descending = node.this, node.args.get("quantile") or node.args.get("expression"), False
        if isinstance(node, exp.WithinGroup):
            order = node.expression
            terms = order.expressions if isinstance(order, exp.Order) else []
            if not isinstance(value, _quantiles()) or value.args.get("expression") is not None or len(terms) != 1:
                raise self.refused(
                    node,
                    "WITHIN GROUP is not understood here.",
                    "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).",
                )
            value, share, descending = terms[0].this, value.this, bool(terms[0].args.get("desc"))
        if isinstance(value, exp.Distinct):
            raise self.refused(node, "DISTINCT inside an aggregate is not supported.", "Leave it out.")
        if isinstance(node, exp.Median):
            return self.aggregate(node, "quantile", self.expression(value), where, parameter=0.5)
        found = None if share is None else self.expression(share)
        at = found.value if isinstance(found, Literal) else None
        if not isinstance(at, float) or not 0 <= at <= 1:
            raise self.invalid(
                node, "A quantile needs a share.", "It is one number from 0 to 1.", "Write QUANTILE_CONT(x, 0.9)."
            )
        return self.aggregate(node, "quantile", self.expression(value), where, parameter=1 - at if descending else at)

    # --- errors

    def refused(self, node: exp.Expr, message: str, fix: str) -> QuestionRefusedError:
        why = "It is not among what has been shown to be safe."
        return QuestionRefusedError(message, why=why, fix=fix, at=place(node, self.text))

    def invalid(self, node: exp.Expr, message: str, why: str, fix: str) -> InputError:
        return InputError(message, why=why, fix=fix, at=place(node, self.text))


# --- how each node of the syntax tree is read

Read = Callable[[_Reader, Any], Expression]
_cache: dict[type, Read] = {}


def _readers() -> Mapping[type, Read]:
    if not _cache:
        from dalenius.queries.rules.syntax import readers

        _cache.update(readers())
    return _cache


def _kinds() -> Mapping[type, str]:
    from sqlglot import exp

    return {
        exp.Sum: "sum",
        exp.Avg: "avg",
        exp.Variance: "var_samp",
        exp.VariancePop: "var_pop",
        exp.Stddev: "stddev_samp",
        exp.StddevSamp: "stddev_samp",
        exp.StddevPop: "stddev_pop",
        exp.Min: "min",
        exp.Max: "max",
        exp.CovarPop: "covar_pop",
        exp.CovarSamp: "covar_samp",
        exp.Corr: "corr",
    }


def _quantiles() -> tuple[type[Any], ...]:
    from sqlglot import exp

    return (
        exp.Median,
        exp.Quantile,
        exp.ApproxQuantile,
        exp.PercentileCont,
        exp.PercentileDisc,
        exp.WithinGroup,
    )


def _aggregates(expression: Expression) -> bool:
    return any(isinstance(each, Aggregate) for each in walk(expression))


def _over_keys(expression: Expression, keys: Mapping[Expression, Key]) -> Expression:
    """The expression with every part that is a key replaced by it, the largest parts first."""
    if expression in keys:
        return keys[expression]
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(_over_keys(each, keys) for each in expression.arguments), expression.type
        )
    return expression


def _guarded(value: Expression, where: Expression, kind: str) -> tuple[Expression, Expression]:
    """SUM(CASE WHEN p THEN x ELSE 0 END) is SUM(x) FILTER (WHERE p); for averages, with ELSE NULL."""
    if isinstance(value, Call) and value.function == "case" and len(value.arguments) == 3:
        condition, inner, otherwise = value.arguments
        if otherwise == NULL or (kind == "sum" and otherwise == number(0)):
            return inner, call("and", where, condition)
    return value, where


def _has_time(expression: Expression) -> bool:
    if not isinstance(expression, Literal):
        return False
    if isinstance(expression.value, datetime):
        return expression.value.time() != datetime.min.time()
    return isinstance(expression.value, str) and len(expression.value.strip()) > 10


def _converted(value: object, wanted: Type) -> Literal | None:
    """A constant in another type, where it has one: '2025-03-01' as a date, '5' as a number."""
    try:
        match wanted, value:
            case Type.NUMBER, str():
                found = float(value)
                return number(found) if math.isfinite(found) else None
            case Type.DATE, str():
                return Literal(date.fromisoformat(value.strip()), Type.DATE)
            case Type.DATE, datetime() if value.time() == datetime.min.time():
                return Literal(value.date(), Type.DATE)
            case Type.DATETIME, str():
                moment = datetime.fromisoformat(value.strip())
                return Literal(moment, Type.DATETIME) if moment.tzinfo is None else None
            case Type.DATETIME, date() if not isinstance(value, datetime):
                return Literal(datetime.combine(value, datetime.min.time()), Type.DATETIME)
            case Type.BOOLEAN, str() if value.lower() in {"true", "false"}:
                return Literal(value.lower() == "true", Type.BOOLEAN)
    except ValueError:
        return None
    return None


def _default_name(node: exp.Expr) -> str:
    """What DuckDB would call the column, or nearly so."""
    from sqlglot import exp

    return node.name if isinstance(node, exp.Column) else node.sql(dialect="duckdb").lower()[:60]
