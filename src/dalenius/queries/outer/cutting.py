"""One aggregated SELECT, cut in two: keys and aggregates, which are asked, and what is computed from them.

`SELECT region, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () FROM visits GROUP BY region` asks for `region` and `COUNT(*)`;
the rest is arithmetic on two columns. The inner SELECT has the same FROM, WHERE, GROUP BY and HAVING. Its columns are
the aggregates, and the largest parts of the text without an aggregate or a window; or the smallest, which are keys and
columns, so that functions of keys that questions do not know are computed outside. Whatever of a row would be left
outside of both is a column of the inner SELECT, too, where the usual reader refuses it by name.

Names are DuckDB's: a column of FROM first, then the name of another item; the other way round in DISTINCT ON,
and for a name that stands alone in ORDER BY.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.engines.duckdb.public_checks import AGGREGATES
from dalenius.queries.rules.aggregated import is_aggregate
from dalenius.queries.rules.nested import default_name
from dalenius.queries.rules.whole import text_of

MOST_NODES = 20_000  # of all items together, once names of other items are put in place
_DROPPED = ("order", "limit", "offset", "distinct", "qualify", "windows", "with_")


@dataclass(frozen=True)
class Cut:
    """What is asked, and what is computed from it.

    Attributes:
        inner: A SELECT of keys and aggregates, whose columns are called as `column_name` says.
        outer: A SELECT over the inner one's columns.
        names: What the outer one's columns are called.
        labels: What the inner one's columns are called to people: as items are that show them, or as they are written.
    """

    inner: Any
    outer: Any
    names: tuple[str, ...]
    labels: tuple[str, ...]


def column_name(number: int) -> str:
    """What a column of a release is called in the outer part; no column of a table is called so."""
    return f"released {number}"


def column_of(table: str, name: str) -> Any:
    """A column of a table of the outer part."""
    from sqlglot import exp

    return exp.Column(this=_quoted(name), table=_quoted(table))


def table_named(name: str, alias: str | None = None) -> Any:
    """A table of the outer part, in FROM."""
    from sqlglot import exp

    return exp.Table(this=_quoted(name), alias=exp.TableAlias(this=_quoted(alias)) if alias else None)


def named(expression: Any, name: str) -> Any:
    """An item of SELECT with a name."""
    from sqlglot import exp

    return exp.Alias(this=expression, alias=_quoted(name))


def has_windows(node: Any) -> bool:
    """Whether a window stands in it, not counting those of subqueries."""
    return any(type(each).__name__ == "Window" for each in own_parts(node))


def gathers(node: Any) -> bool:
    """Whether a function that sqlglot does not know is an aggregate of the engine's."""
    from sqlglot import exp

    unknown = exp.Anonymous | exp.AnonymousAggFunc | exp.ParameterizedAgg | exp.CombinedAggFunc
    return isinstance(node, unknown) and str(node.name).lower() in AGGREGATES


def aggregates(select: Any) -> bool:
    """Whether a SELECT gathers rows into groups: by GROUP BY, or by an aggregate that is no window's function."""
    if select.args.get("group") or select.args.get("having"):
        return True
    parts = [*select.expressions, select.args.get("qualify"), select.args.get("order"), *_windows(select)]
    return any(_holds_aggregate(each) for each in parts if each is not None)


def cut_select(
    select: Any,
    table: str,
    in_view: Collection[str],
    nested: Callable[[Any], Any],
    clamps: Collection[int] = (),
    *,
    small: bool = False,
) -> Cut:
    """The two parts of an aggregated SELECT.

    Args:
        select: The SELECT; it is not changed.
        table: What the release is to be called in the outer part.
        in_view: The names of all columns of its FROM, in lower case.
        nested: Rewrites a query that stands for a value in the outer part.
        clamps: Where aggregates stand in the text that have contribution bounds: such are alike only with themselves.
        small: Whether the smallest parts without an aggregate are asked, and not the largest.
    """
    return _Cutter(select.copy(), table, frozenset(in_view), nested, frozenset(clamps), small).cut()


@dataclass
class _Cutter:
    select: Any
    table: str
    in_view: frozenset[str]
    nested: Callable[[Any], Any]
    clamps: frozenset[int]
    small: bool
    keys: frozenset[str] = frozenset()
    outputs: dict[tuple[str, tuple[int, ...]], Any] = field(default_factory=dict)
    items: dict[str, Any] = field(default_factory=dict)  # by their names, with names of earlier ones put in place
    nodes: int = 0

    def cut(self) -> Cut:
        from sqlglot import exp

        select, places, names = self.select, dict[str, int](), list[str]()
        shown = []
        for each in select.expressions:
            aliased = isinstance(each, exp.Alias)
            name, item = _name_of(each), self.placed(each.this if aliased else each)
            shown.append(item)
            names.append(name)
            self.items.setdefault(name.lower(), item.copy())
            places.setdefault(name.lower(), len(names))
        inner = select.copy()
        for part in _DROPPED:
            inner.set(part, None)
        if select.args.get("group"):
            inner.set("group", self.group(select.args["group"], shown))
            group = inner.args.get("group")
            self.keys = frozenset(_text(each) for each in (() if group is None else group.expressions))
        if select.args.get("having"):
            inner.set("having", exp.Having(this=self.placed(select.args["having"].this)))
        outer = exp.Select(from_=exp.From(this=table_named(self.table)))
        outer.set("expressions", [named(self.lifted(each), name) for each, name in zip(shown, names, strict=True)])
        for part in ("qualify", "distinct"):
            if select.args.get(part):
                placed = self.placed(select.args[part], first=part == "distinct")
                outer.set(part, self.lifted_inside(placed))
        if _windows(select):
            outer.set("windows", [self.lifted_inside(self.placed(each)) for each in _windows(select)])
        if select.args.get("order"):
            outer.set("order", self.order(select.args["order"], places))
        for part in ("limit", "offset"):
            outer.set(part, select.args.get(part))
        inner.set("expressions", [named(each, column_name(at)) for at, each in enumerate(self.outputs.values())])
        labels = [self.label(at, outer.expressions) for at in range(len(self.outputs))]
        return Cut(inner, outer, tuple(names), tuple(labels))

    def label(self, at: int, items: Sequence[Any]) -> str:
        """What a column of the release is called to people."""
        from sqlglot import exp

        for item in items:
            if isinstance(item.this, exp.Column) and item.this.name == column_name(at):
                return str(item.alias)
        return default_name(list(self.outputs.values())[at])

    # --- names of other items

    def placed(self, node: Any, *, first: bool = False) -> Any:
        """A copy with the items put in place that it names; ``first``: also where a column is called so."""
        from sqlglot import exp

        def put(part: Any) -> Any:
            if not isinstance(part, exp.Column) or part.table:
                return part
            name = part.name.lower()
            item = self.items.get(name) if first or name not in self.in_view else None
            return part if item is None else exp.Paren(this=item.copy())

        found = node.copy().transform(put)
        self.nodes += sum(1 for _ in found.walk())
        if self.nodes > MOST_NODES:
            raise QuestionRefusedError(
                "The question is too long once its names are put in place.",
                why=f"Its items name one another; written out they have more than {MOST_NODES:,} parts.",
                fix="Simplify it.",
            )
        return found

    def group(self, group: Any, shown: list[Any]) -> Any:
        """GROUP BY with expressions in place of numbers, names and ALL."""
        from sqlglot import exp

        if group.args.get("all"):
            keys = [each.copy() for each in shown if not _above(each) and each.find(exp.Column)]
            return exp.Group(expressions=keys) if keys else None

        def key(node: Any) -> Any:
            if isinstance(node, exp.Literal) and not node.is_string:
                number = int(node.name) if node.name.isdigit() else 0
                return shown[number - 1].copy() if 1 <= number <= len(shown) else node
            return self.placed(node)

        found = group.copy()
        for each in [found, *found.find_all(exp.GroupingSets, exp.Rollup, exp.Cube)]:
            each.set("expressions", [_keys_of(one, key) for one in each.expressions])
        return found

    def order(self, order: Any, places: Mapping[str, int]) -> Any:
        """ORDER BY; a name alone is that of an item, by its number."""
        from sqlglot import exp

        terms = []
        for each in order.expressions:
            term, node = each.copy(), each.this
            known = isinstance(node, exp.Column) and not node.table and places.get(node.name.lower())
            if known:
                term.set("this", exp.Literal.number(known))
            elif not isinstance(node, exp.Literal | exp.Var):
                term.set("this", self.lifted(self.placed(node)))
            terms.append(term)
        return exp.Order(expressions=terms)

    # --- from the SELECT to the release

    def lifted(self, node: Any) -> Any:
        """An expression over the release's columns."""
        from sqlglot import exp

        if isinstance(node, exp.Query):
            return self.nested(node)
        if isinstance(node, exp.Window):
            function = node.this
            while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
                self.lifted_inside(function, but="this")
                function = function.this
            self.lifted_inside(function)
            return self.lifted_inside(node, but="this")
        if _is_inner(node) or (_is_value(node) and self.is_asked(node)):
            return self.column(node)
        return self.lifted_inside(node)

    def is_asked(self, node: Any) -> bool:
        """Whether a value without an aggregate is a column of the inner SELECT."""
        from sqlglot import exp

        if node.find(exp.Column, exp.Star) is None or _above(node):
            return False
        return not self.small or isinstance(node, exp.Column | exp.Star) or _text(node) in self.keys

    def lifted_inside(self, node: Any, but: str = "") -> Any:
        """The same with all of its parts over the release's columns."""
        from sqlglot import exp

        for part, value in list(node.args.items()):
            if part == but:
                continue
            if isinstance(value, list):
                node.set(part, [self.lifted(each) if isinstance(each, exp.Expr) else each for each in value])
            elif isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier | exp.Star):
                node.set(part, self.lifted(value))
        return node

    def column(self, node: Any) -> Any:
        """A part of the question as a column of the release."""
        inner = node
        while type(inner).__name__ == "Paren":
            inner = inner.this
        bounds = sorted({each.meta.get("start", -1) for each in inner.walk()} & self.clamps)
        key = (_text(inner), tuple(bounds))
        if key not in self.outputs:
            self.outputs[key] = inner.copy()
        return column_of(self.table, column_name(list(self.outputs).index(key)))


def _text(node: Any) -> str:
    while type(node).__name__ == "Paren":
        node = node.this
    return text_of(node)


def _quoted(name: str) -> Any:
    from sqlglot import exp

    return exp.Identifier(this=name, quoted=True)


def _name_of(item: Any) -> str:
    from sqlglot import exp

    return str(item.alias) if isinstance(item, exp.Alias) else default_name(item)


def _keys_of(node: Any, key: Callable[[Any], Any]) -> Any:
    """Keys inside the sets of GROUP BY."""
    from sqlglot import exp

    if isinstance(node, exp.GroupingSets | exp.Rollup | exp.Cube):
        return node  # in its own turn
    if isinstance(node, exp.Tuple):
        return exp.Tuple(expressions=[_keys_of(each, key) for each in node.expressions])
    if isinstance(node, exp.Paren):
        return exp.Paren(this=_keys_of(node.this, key))
    return key(node)


def _windows(select: Any) -> list[Any]:
    return select.args.get("windows") or []


def _is_inner(node: Any) -> bool:
    """Whether it is an aggregate of rows, with its FILTER or WITHIN GROUP; a window's function is none."""
    from sqlglot import exp

    return is_aggregate(node) or isinstance(node, exp.Filter | exp.WithinGroup) or gathers(node)


def _is_value(node: Any) -> bool:
    """Whether it stands for a value: no clause, and no branch of a CASE."""
    from sqlglot import exp

    branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    return isinstance(node, exp.Condition | exp.Star) and not branch


def _above(node: Any) -> bool:
    """Whether something in it is computed from aggregates, or stands on its own."""
    from sqlglot import exp

    return any(_is_inner(each) or isinstance(each, exp.Window | exp.Query) for each in node.walk())


def own_parts(node: Any) -> list[Any]:
    """Its parts, but not those of queries inside."""
    from sqlglot import exp

    if node is None:
        return []
    return list(node.walk(prune=lambda each: isinstance(each, exp.Query) and each is not node))


def _holds_aggregate(node: Any) -> bool:
    """Whether an aggregate of rows stands in it, outside of queries inside."""
    from sqlglot import exp

    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function, rest = node.this, [each for part, each in node.args.items() if part != "this"]
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter | exp.WithinGroup):
            rest += [each for part, each in function.args.items() if part != "this"]
            function = function.this
        rest += list(function.args.values())
        inside = [one for each in rest for one in (each if isinstance(each, list) else [each])]
        return any(_holds_aggregate(each) for each in inside if isinstance(each, exp.Expr))
    return _is_inner(node) or any(_holds_aggregate(each) for each in node.iter_expressions())
