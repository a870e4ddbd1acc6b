"""What `resolve` builds everything from: the names in view of one SELECT, and expressions with their types checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dalenius.errors import InputError, NotAllowedError, QuestionRefusedError, UnknownColumnError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import NULL, Aggregate, Call, Column, Expression, Literal, Type, number, walk
from dalenius.measuring.functions import FUNCTIONS
from dalenius.measuring.relations import (
    Columns,
    Join,
    Match,
    Open,
    Owned,
    Ranges,
    full,
)
from dalenius.queries.rules.constants import as_truth, at_midnight, converted, has_time
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.refusing import Refusing
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from sqlglot import exp

    from dalenius.errors import Place
    from dalenius.measuring.plan import Table
    from dalenius.queries.rules import Stage
    from dalenius.queries.rules.early import EarlyNames

MOST_SOURCES = 20
_MIXED = frozenset({"lt", "le", "gt", "ge", "coalesce"})  # which take truth values for 1 and 0
_MISPLACED = {
    "Star": "*",
    "Tuple": "A list in parentheses",
    "Distinct": "DISTINCT",
    "Var": "A bare word",
    "Array": "A list",
    "Values": "VALUES",
    "Unnest": "UNNEST",
}
_INSTEAD = {
    "Star": "Name a column, or write COUNT(*).",
    "Tuple": "Name the columns one by one.",
    "Distinct": "Write COUNT(DISTINCT x).",
    "Var": "Texts stand in single quotes.",
    "Array": "Lists are of shares alone: QUANTILE_CONT(x, [0.25, 0.5]).",
    **dict.fromkeys(("Values", "Unnest"), "It lists rows in FROM; else write x IN ('a', 'b')."),
}
_HOLDS = {  # what a column of each type holds, and how one is written
    Type.TEXT: ("texts", "'{}'"),
    Type.NUMBER: ("numbers", "3"),
    Type.BOOLEAN: ("truth values", "TRUE"),
    Type.DATE: ("dates", "DATE '2025-01-31'"),
    Type.DATETIME: ("moments", "TIMESTAMP '2025-01-31 12:00:00'"),
}
Names = dict[str, tuple[str, Expression]]  # in lower case → as it is spelled, what it stands for
Subqueries = Mapping[str, tuple[Any, "Subqueries"]]  # those of WITH by name, each with the ones that it can see


class NotPlain(Exception):  # noqa: N818 (no error: the question is read again)
    """A question over one table says something about who somebody is, which only relations can."""


@dataclass
class Shared:
    """What all SELECTs of one question have in common."""

    stage: Stage
    plain: bool  # one table and nothing else: its columns need no table's name before them
    used: dict[str, int] = field(default_factory=dict)
    identities: dict[str, frozenset[str]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)  # where each source stands in the text

    def name(self, table: str) -> str:
        """A name for one more occurrence of a table."""
        if self.plain:
            return ""
        self.used[table] = self.used.get(table, 0) + 1
        if sum(self.used.values()) > MOST_SOURCES:
            raise QuestionRefusedError(
                "The question reads too many tables.", why=f"At most {MOST_SOURCES} are joined.", fix="Ask in parts."
            )
        return table if self.used[table] == 1 else f"{table} {self.used[table]}"


class SelectScope(Refusing):
    """Reads expressions of one SELECT: the names in view, and the types that functions take."""

    def __init__(
        self, shared: Shared, tree: Any, subqueries: Subqueries | None = None, outer: SelectScope | None = None
    ) -> None:
        self.shared, self.tree, self.outer = shared, tree, outer
        self.text = shared.stage.text
        self.places: dict[Aggregate, Place | None] = {}  # where each stands
        self.subqueries: Subqueries = subqueries or {}
        self.aliases: dict[str, Expression] = {}  # items of SELECT by name
        self.early: EarlyNames | None = None  # the same, before they are all read
        self.groupings: dict[tuple[int, ...], int] = {}  # arguments of each GROUPING(…), and its number
        self.names: dict[str, Names] = {}  # by the name of each item of FROM
        self.merged: dict[str, Expression] = {}  # columns of USING, which belong to both sides
        self.joins: list[Join] = []
        self.conditions: list[Expression] = []
        self.matches: list[Match] = []

    @property
    def is_subquery(self) -> bool:
        """Whether this SELECT stands in another."""
        return self.tree is not self.shared.stage.tree

    # --- names

    def lookup(self, node: Any) -> Expression | None:
        """The column of a name, here or in the SELECT around; None: there is none."""
        name, table = node.name.lower(), node.table.lower()
        if table:
            if table in self.names:
                found = self.names[table].get(name)
                return None if found is None else found[1]
            return self.outer.lookup(node) if self.outer is not None else None
        there = [each[name][1] for each in self.names.values() if name in each]
        if name in self.merged:
            return self.merged[name]
        if len(there) > 1:
            raise self.invalid(
                node,
                f"Column {node.name!r} is in several tables of FROM.",
                "It is not plain which is meant.",
                f"Write the table before it: {next(iter(self.names))}.{node.name}.",
            )
        if there:
            return there[0]
        return self.outer.lookup(node) if self.outer is not None else None

    def knows(self, name: str) -> bool:
        """Whether a table of that name is in view."""
        return name in self.names or (self.outer is not None and self.outer.knows(name))

    def in_view(self, node: Any) -> bool:
        """Whether a name is a column of FROM."""
        return self.lookup(node) is not None

    def starred(self, node: Any) -> list[tuple[str, Expression]]:
        """All columns of FROM, or of one of its items, for * in a subquery."""
        table = (node.table if hasattr(node, "table") else "").lower()
        if table and table not in self.names:
            known = f"FROM has {', '.join(self.names)}."
            raise self.refused(node, f"There is no table {table!r} in FROM.", "Correct the name.", known)
        if table:
            return list(self.names[table].values())
        # A column of USING is one, the left side's.
        shown, found = set[str](), []
        for names in self.names.values():
            found += [pair for name, pair in names.items() if name not in shown]
            shown |= names.keys() & self.merged.keys()
        return found

    def units_named(self, nodes: Sequence[Any]) -> bool:
        """Whether columns are those that name the unit, all of its parts."""
        classes: set[str] = set()
        for node in nodes:
            found = self.lookup(node)
            if not isinstance(found, Column) or found.name not in self.shared.identities:
                return False
            classes |= {each for each in self.shared.identities[found.name] if each.startswith("unit ")}
        return bool(nodes) and classes == {f"unit {at}" for at in range(self.parts)}

    def units_present(self, nodes: Sequence[Any]) -> list[Expression]:
        """The conditions that a row has the unit that columns name: those of LEFT JOIN may be missing."""
        left = {full(each.source, name) for each in self.joins if each.left for name in each.source.identities}
        found = [self.lookup(node) for node in nodes]
        return [call("not", call("is_null", each)) for each in found if isinstance(each, Column) and each.name in left]

    def unit_named(self, name: str) -> bool:
        """Whether a column names units, not something that leads to one."""
        return any(each.startswith("unit ") for each in self.shared.identities.get(name, ()))

    @property
    def parts(self) -> int:
        """Of how many columns a unit is made."""
        return next((len(each.policy.unit) for each in owned_tables(self.joins)), 1)

    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The bounds of all columns in view."""
        return Ranges(*self.all_columns())

    def all_columns(self) -> list[Columns]:
        """Those of this SELECT, and of the ones around."""
        own = Columns([join.source for join in self.joins])
        return [own] if self.outer is None else [own, *self.outer.all_columns()]

    @property
    def integers(self) -> frozenset[str]:
        """The columns in view that hold whole numbers."""
        return frozenset().union(*(each.integers for each in self.all_columns()))

    def column(self, node: Any) -> Expression:
        """What a name means."""
        from sqlglot import exp

        if not isinstance(node.this, exp.Identifier):
            raise self.refused(node, "* cannot stand here.", "Name a column, or write COUNT(*).")
        if node.table and not self.knows(node.table.lower()):
            known, way = ", ".join(self.names), f"{next(iter(self.names))}.{node.name}"
            fix = f"Write {node.name}, or {way}." if self.shared.plain else f"Write for example {way}."
            raise self.refused(node, f"There is no table {node.table!r} in FROM.", fix, f"FROM has {known}.")
        found = self.lookup(node)
        if found is None and not node.table and node.name.lower() in self.aliases:
            return self.aliases[node.name.lower()]
        if found is None and not node.table and self.early is not None:
            found = self.early.meant(node)
        if found is None:
            raise self.unknown(node)
        if found.type is Type.UNIT and self.shared.plain and self.tree is self.shared.stage.tree:
            tree: Any = self.tree
            raise NotPlain if any(each is not tree for each in tree.find_all(exp.Select)) else self.unknown(node)
        return found

    def unknown(self, node: exp.Expr) -> UnknownColumnError | NotAllowedError:
        """The error about a name that no column has."""
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
            fix=_meant_text(node, meant) or f"See 'dalenius tables {known}'.",
            at=place(node, self.text),
        )

    # --- types

    def boolean(self, node: exp.Expr, where: str) -> Expression:
        """An expression that must be a condition."""
        found = self.expression(node)
        if found.type not in {Type.BOOLEAN, Type.NOTHING}:
            raise self.invalid(node, f"{where} needs a condition.", f"This is a {found.type.value}.", "Compare it.")
        return found

    def expression(self, node: exp.Expr | None) -> Expression:
        """Any expression."""
        if node is None:
            raise InputError("An argument is missing.", why="A function has too few of them.", fix="Add it.")
        reader = _readers().get(type(node))
        if reader is None:  # allowed somewhere, but not here
            what = _MISPLACED.get(type(node).__name__, "This")
            fix = _INSTEAD.get(type(node).__name__, "See docs/reference/sql.md for what can be asked.")
            raise self.refused(node, f"{what} cannot stand here.", fix, "It is read in other places alone.")
        return reader(self, node)

    def apply(self, node: exp.Expr, function: str, *arguments: Expression) -> Expression:
        """The function, if the types fit; constants are brought to the type that the others have."""
        if self.shared.plain and any(each.type is Type.UNIT for each in arguments):
            raise NotPlain
        if any(each.type is Type.UNIT for each in arguments) and function not in {"is_null", "not"}:
            raise self.told(node, *arguments)
        if any(each.type is Type.LIST for each in arguments):
            raise self.list_alone(node)
        spec = FUNCTIONS[{"gt": "lt", "ge": "le"}.get(function, function)]
        least = spec.least if spec.least is not None else len(spec.takes)
        if len(arguments) < least or (len(arguments) > len(spec.takes) and not spec.many):
            raise self.invalid(
                node, f"{spec.says} has another number of arguments.", f"Here are {len(arguments)}.", "Correct it."
            )
        if any(has_aggregates(each) for each in arguments) and function in {"like", "ilike", "contains", "regexp"}:
            raise self.refused(node, "Texts cannot be searched in aggregates.", "Leave it out.")
        if any(len(types) > 1 for types in spec.takes):
            arguments = self.alike(node, function, arguments)
        else:
            takes = [*spec.takes, *(spec.takes[-1] for _ in arguments[len(spec.takes) :])]
            arguments = tuple(
                self.typed(node, each, next(iter(types))) for each, types in zip(arguments, takes, strict=False)
            )
        return call(function, *arguments, integers=self.integers)

    def equal(self, node: Any, one: Expression, other: Expression) -> Expression:
        """a = b; where both name the same thing about who somebody is, as they lie in the files.

        Of two that name different things the types in the files may differ, and to convert could fail on a row.
        """
        if isinstance(one, Column) and isinstance(other, Column):
            known = self.shared.identities
            if known.get(one.name, frozenset()) & known.get(other.name, frozenset()):
                if self.shared.plain:
                    raise NotPlain
                return call("eq", Column(one.name, Type.UNIT), Column(other.name, Type.UNIT))
        return self.apply(node, "eq", one, other)

    def alike(self, node: exp.Expr, function: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """Arguments that must be of one type."""
        if function == "case":
            conditions = tuple(self.typed(node, each, Type.BOOLEAN) for each in arguments[:-1:2])
            values = (*arguments[1:-1:2], arguments[-1])
            if {each.type for each in values} - {Type.NOTHING} == {Type.BOOLEAN, Type.NUMBER}:
                values = tuple(self.as_number(node, each) for each in values)
            values = self.same_type(node, values)
            pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
            return (*pairs, values[-1])
        if function == "eq" and {each.type for each in arguments} == {Type.DATE, Type.DATETIME}:
            # A day and the beginning of one: compared as days, so that public tables can be joined on them.
            day, moment = sorted(arguments, key=lambda each: each.type is Type.DATETIME)
            if at_midnight(moment) and not isinstance(day, Literal):
                return day, self.apply(node, "to_date", moment)
        if function in {"eq", "ne", "in"} and Type.BOOLEAN in {each.type for each in arguments}:
            arguments = tuple(map(as_truth, arguments))
        if function in _MIXED and {each.type for each in arguments} - {Type.NOTHING} == {Type.BOOLEAN, Type.NUMBER}:
            arguments = tuple(self.as_number(node, each) for each in arguments)
        if function in {"eq", "ne", "lt", "le", "gt", "ge", "in", "coalesce", "nullif"}:
            return self.same_type(node, arguments)
        if function in {"date_part", "date_trunc", "date_diff", "date_sub", "date_add"}:
            return (arguments[0], *(self.time(node, each) for each in arguments[1:3]), *arguments[3:])
        return arguments

    def as_number(self, node: exp.Expr, argument: Expression) -> Expression:
        """1 and 0 for truth values, everything else as it is."""
        if argument.type is not Type.BOOLEAN:
            return argument
        if isinstance(argument, Literal):
            return number(1 if argument.value else 0)
        return self.apply(node, "case", argument, number(1), self.apply(node, "not", argument), number(0), NULL)

    def time(self, node: exp.Expr, argument: Expression) -> Expression:
        """A date or a moment, or how many units one is moved by."""
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            return self.typed(node, argument, Type.DATETIME if len(argument.value) > 10 else Type.DATE)
        if argument.type is Type.NUMBER and isinstance(argument, Literal):
            return argument  # how many units a date is moved by
        if argument.type not in {Type.DATE, Type.DATETIME, Type.NOTHING}:
            from dalenius.queries.rules.restrict import typed_name

            given = argument.type.value
            fix = "Write CAST(x AS VARCHAR)." if given == "number" else "Cast it: CAST(x AS DATE)."
            raise self.invalid(node, f"{typed_name(node, self.text)} needs a date.", f"It is given a {given}.", fix)
        return argument

    def same_type(self, node: exp.Expr, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        """The arguments brought to one type."""
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
        if wanted is Type.DATE and any(has_time(each) for each in arguments):
            wanted = Type.DATETIME
        column = next((each for each in arguments if isinstance(each, Column)), None)
        try:
            return tuple(self.typed(node, each, wanted) for each in arguments)
        except InputError as error:
            if column is not None and column.type in _HOLDS:
                constant = next((each.value for each in arguments if isinstance(each, Literal)), None)
                given = f"{constant:g}" if isinstance(constant, float) else constant
                held, shown = _HOLDS[column.type]
                name = self.shown(column).rpartition(".")[2]
                error.fix = f"Column {name!r} holds {held}: write {name} = {shown.format(given)}."
            raise

    def typed(self, node: exp.Expr, argument: Expression, wanted: Type) -> Expression:
        """The argument in the type that is wanted; a constant is converted."""
        if argument.type in {wanted, Type.NOTHING}:
            return argument
        if argument.type is Type.DATE and wanted is Type.DATETIME and not isinstance(argument, Literal):
            return call("to_datetime", argument)
        if isinstance(argument, Literal):
            found = converted(argument.value, wanted)
            if found is not None:
                return found
            if wanted in {Type.DATE, Type.DATETIME} and isinstance(argument.value, str):
                raise self.no_moment(node, argument.value, wanted)
        raise self.mismatch(node, wanted.value, argument.type.value)

    def whole_number(self, node: Any, least: int, most: int) -> int:
        """A whole number that stands in the question itself."""
        found = self.expression(node)
        value = found.value if isinstance(found, Literal) else None
        if isinstance(value, str):
            value = float(value) if re.fullmatch(r"-?\d{1,12}", value.strip()) else None
        if not isinstance(value, float) or not value.is_integer() or not least <= value <= most:
            raise self.invalid(
                node, "Here a whole number is needed.", f"It must lie between {least:,} and {most:,}.", "Write it out."
            )
        return int(value)

    def shown(self, column: Column) -> str:
        """A column as people can call it: under the name that FROM has for its table."""
        if "." not in column.name:
            return column.name
        for table, names in self.names.items():
            for name, expression in names.values():
                if expression == column:
                    return name if table.startswith("#") else f"{table}.{name}"
        stage, (source, _, short) = self.shared.stage, column.name.rpartition(".")
        known = {each.lower() for each in (*stage.tables, *stage.publics)}
        base = source if source.lower() in known else source.rstrip("0123456789").rstrip()
        return f"{base}.{short}" if base.lower() in known else "of the subquery"

    def told(self, node: exp.Expr, *arguments: Expression) -> NotAllowedError:
        """The error about a column that says who somebody is, where its value would matter."""
        column = next(each for each in arguments if isinstance(each, Column) and each.type is Type.UNIT)
        name, shown = column.name, self.shown(column)
        short = shown.rpartition(".")[2]
        return NotAllowedError(
            f"Column {shown!r} says who somebody is; it is not open to questions.",
            why="Its values name single people, or lead to them.",
            fix="It can be compared with its like, to join tables; "
            + (f"units can be counted: COUNT(DISTINCT {short})." if self.unit_named(name) else "rows can be counted."),
            at=place(node, self.text),
        )


# --- how each node of the syntax tree is read

Read = Callable[[Any, Any], Expression]
_cache: dict[type, Read] = {}


def _readers() -> Mapping[type, Read]:
    if not _cache:
        from dalenius.queries.rules.syntax import readers

        _cache.update(readers())
    return _cache


def has_aggregates(expression: Expression) -> bool:
    """Whether an aggregate is in it, or GROUPING(…), which is known no sooner."""
    return any(
        isinstance(each, Aggregate) or (isinstance(each, Call) and each.function == "grouping")
        for each in walk(expression)
    )


def _meant_text(node: Any, column: str | None) -> str:
    """What to write where no column has a name: another column, a text, or a unit of time.

    Args:
        node: The name.
        column: The column with the nearest name, if there is one.
    """
    from sqlglot import exp

    if node.name.lower() == "week":
        return "Weeks begin on a Monday here: write DATE_TRUNC('week', d) or DATE_DIFF('week', d, e)."
    quoted, around = node.this.args.get("quoted"), node.parent
    compared = not node.table and isinstance(around, exp.EQ | exp.NEQ | exp.In) and around.this is not node
    text = f"Texts stand in single quotes: '{node.name}'." if compared or quoted else ""
    meant = f"Did you mean {column!r}?" if column else ""
    if meant and compared:
        return text if quoted else f"{meant} {text}"
    return meant or text


def owned_tables(joins: Sequence[Join]) -> Iterator[Table]:
    """The protected tables that joins read."""
    for join in joins:
        source = join.source
        if isinstance(source, Owned):
            yield source.table
        elif not isinstance(source, Open):
            inner = source.relation if hasattr(source, "relation") else source.parts[0][0]
            yield from owned_tables(inner.joins)
