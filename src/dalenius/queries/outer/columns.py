"""Queries of the outer part: their columns, which of these are exact, and what their rows are told apart by.

A column is exact where it is made of keys, constants and columns of public tables alone: it is the same whatever the
noise was. Rows are told apart by exact things, too: the number of a row of a release, the keys of a GROUP BY. Where
they are, each query gets one more column with that as a text (`ID`), which nobody sees; by it a row of the answer is
found again where other noise was drawn (`noise_copies`). A query that merges rows by noisy values has no such column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dalenius.errors import QuestionRefusedError, UnknownColumnError, UnknownTableError
from dalenius.measuring.fairness import check_patience
from dalenius.queries.outer import words
from dalenius.queries.outer.all_copies import over_copies
from dalenius.queries.outer.cutting import aggregates, column_of, gathers, has_windows, named
from dalenius.queries.outer.sources import COPY, ID, ROW, OuterColumn, OuterQuery, Source
from dalenius.queries.rules.nested import default_name

MOST_COLUMNS = 500  # of one query: * of a query that has * itself doubles them at each step
_RANKS = ("Rank", "DenseRank", "RowNumber", "PercentRank", "CumeDist", "Ntile")
_LAST = ("order", "limit", "offset", "qualify", "distinct")


def describe_select(tree: Any, sources: Sequence[Source], *, value: bool, errors: bool = True) -> OuterQuery:
    """A SELECT over such sources.

    Args:
        tree: The SELECT.
        sources: What stands in its FROM.
        value: It stands for a value, so no column is added.
        errors: Whether copies of the releases will be computed from, too.
    """
    return _Select(tree, tuple(sources)).query(value=value, errors=errors)


def describe_union(tree: Any, parts: Sequence[OuterQuery], *, value: bool) -> OuterQuery:
    """UNION and the like of two queries; of UNION ALL each row keeps what it is told apart by."""
    from sqlglot import exp

    one, other = parts
    if len(one.columns) != len(other.columns):
        raise QuestionRefusedError(
            f"The parts of {tree.key.upper()} have different numbers of columns.",
            why=f"One has {len(one.columns)}, the other {len(other.columns)}.",
            fix="Select the same columns in each part, in one order.",
        )
    pairs = list(zip(one.columns, other.columns, strict=True))
    if tree.args.get("by_name"):
        pairs = _by_name(one.columns, other.columns)
    plain = isinstance(tree, exp.Union) and not tree.args.get("distinct") and not tree.args.get("by_name")
    keeps = plain and one.identified and other.identified and not value
    found = tree.copy()
    found.set("with_", None)  # what it names stands before all queries, by names that nobody can type over
    for part, each, number in (("this", one, 1), ("expression", other, 2)):
        found.set(part, _renamed(each, each.tree, number if keeps else None))
    columns = tuple(OuterColumn(a.name, a.exact and b.exact, rank=a.rank and b.rank) for a, b in pairs)
    check_places(tree, len(columns))
    if not keeps:
        return OuterQuery(found, columns, identified=False)
    copied = None
    if one.copied is not None and other.copied is not None and not any(tree.args.get(each) for each in _LAST[1:]):
        copied = _base(found)
        copied.set("this", _renamed(one, one.copied, 1, copied=True))
        copied.set("expression", _renamed(other, other.copied, 2, copied=True))
    return OuterQuery(found, columns, True, _base(found), copied, copied)


def check_places(tree: Any, columns: int) -> None:
    """Refuses numbers of columns that are not shown: behind those there may be one that tells rows apart."""
    from sqlglot import exp

    distinct = tree.args.get("distinct")
    parts = {"ORDER BY": tree.args.get("order"), "GROUP BY": tree.args.get("group")}
    parts["DISTINCT ON"] = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    for clause, part in parts.items():
        for each in () if part is None else part.expressions:
            number = each.this if isinstance(each, exp.Ordered) else each
            counts = isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()
            if counts and not 1 <= int(number.name) <= columns:
                raise words.refuse_place(clause, number.name, columns)


def _by_name(one: Sequence[OuterColumn], other: Sequence[OuterColumn]) -> list[tuple[OuterColumn, OuterColumn]]:
    """The columns that UNION BY NAME puts together."""
    first, second = ({each.name.lower(): each for each in columns} for columns in (one, other))
    if set(first) != set(second) or len(first) != len(one) or len(second) != len(other):
        raise QuestionRefusedError(
            "The parts of UNION BY NAME have different columns.",
            why="Here each name stands once in each part, so that the columns of an answer are known before.",
            fix="Give the columns of each part the same names.",
        )
    return [(each, second[name]) for name, each in first.items()]


def name_natural(tree: Any, sources: Sequence[Source]) -> None:
    """Writes NATURAL JOIN with the columns that it means: those that are shown, and not what is hidden beside them."""
    from sqlglot import exp

    for at, join in enumerate(tree.args.get("joins") or [], 1):
        if join.args.get("method") == "NATURAL":
            before = {each.name.lower() for source in sources[:at] for each in source.columns}
            common = [each.name for each in sources[at].columns if each.name.lower() in before]
            join.set("method", None)
            join.set("using", [exp.to_identifier(each, quoted=True) for each in common])


@dataclass
class _Select:
    tree: Any
    sources: tuple[Source, ...]
    items: list[tuple[str, Any, OuterColumn]] = field(default_factory=list)

    def query(self, *, value: bool, errors: bool) -> OuterQuery:
        from sqlglot import exp

        tree = self.tree
        for each in tree.expressions:
            for name, item in self.expanded(each):
                if len(self.items) >= MOST_COLUMNS:
                    raise words.refuse_wide(MOST_COLUMNS)
                self.items.append((name, item, self.column(name, item)))
        columns = tuple(column for _, _, column in self.items)
        self.check_names(value=value)
        check_places(tree, len(columns))
        tree.set("expressions", [named(item, name) for name, item, _ in self.items])
        parts = None if value or not errors else self.ids()
        if parts is None:
            return OuterQuery(tree, columns, identified=False)
        merges = tree.args.get("distinct") is not None and tree.args["distinct"].args.get("on") is None
        settled = all(each.exact for each in columns)
        if merges and settled:  # a row is what it shows: by anything else, equal rows would stay apart
            parts = [item for _, item, _ in self.items]
        texts = [exp.cast(each.copy(), "VARCHAR", dialect="duckdb") for each in parts]
        id_ = named(exp.cast(exp.Array(expressions=texts), "VARCHAR", dialect="duckdb"), ID)
        with_id = tree.copy()
        with_id.set("expressions", [*with_id.expressions, id_.copy()])
        base = _base(with_id)
        if not aggregates(tree) and not has_windows(tree):
            base.set("where", None)  # which rows it keeps changes nothing in them
        single = self.sources[0] if len(self.sources) == 1 else None
        rows_of = single.rows_of if single is not None and not aggregates(tree) and not merges else None
        at_once, copied = (over_copies(each, self.sources) for each in (base, with_id))
        if merges and not settled:
            return OuterQuery(tree, columns, False, base, at_once)
        if rows_of is not None and single is not None and single.release:
            _settle_order(with_id, column_of(single.alias, ROW))
        return OuterQuery(with_id, columns, True, base, at_once, copied, rows_of)

    # --- columns

    def expanded(self, item: Any) -> Iterable[tuple[str, Any]]:
        """An item with its name; * is all columns that are shown."""
        from sqlglot import exp

        inner = item.this if isinstance(item, exp.Alias) else item
        star = inner.this if isinstance(inner, exp.Column) else inner
        if not isinstance(star, exp.Star):
            yield (item.alias if isinstance(item, exp.Alias) else default_name(inner)), inner
            return
        if any(star.args.values()):
            raise QuestionRefusedError(
                "* with EXCLUDE, REPLACE or RENAME is not supported here.",
                why="The columns of an answer are known before it is paid for.",
                fix="Name the columns.",
            )
        check_patience()
        table, merged = inner.table.lower() if isinstance(inner, exp.Column) else "", self.merged()
        for at, source in self.seen.items():
            if table and source.alias.lower() != table:
                continue
            for each in source.columns:
                if not table and each.name.lower() in merged.get(at, ()):
                    continue
                both = not table and any(each.name.lower() in names for names in merged.values())
                # of both sides, whichever has it: without a table before it
                yield each.name, exp.Column(this=_named(each.name)) if both else column_of(source.alias, each.name)

    @property
    def seen(self) -> dict[int, Source]:
        """The sources whose columns can be named, by their places; of those that rows are only matched with, none."""
        joins = self.tree.args.get("joins") or []
        matched = {at for at, join in enumerate(joins, 1) if join.kind in {"SEMI", "ANTI"}}
        return {at: source for at, source in enumerate(self.sources) if at not in matched}

    def merged(self) -> dict[int, frozenset[str]]:
        """Of each source that is joined by USING, the columns that stand in another already."""
        joins = self.tree.args.get("joins") or []
        return {
            at: frozenset(each.name.lower() for each in join.args.get("using") or ())
            for at, join in enumerate(joins, 1)
        }

    def column(self, name: str, item: Any) -> OuterColumn:
        """What is known of an item."""
        from sqlglot import exp

        inner = item
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Column):
            known = self.resolved(inner)
            if known is not None:
                return replace(known, name=name, origin=None if aggregates(self.tree) else known.origin)
        rank = isinstance(inner, exp.Window) and type(inner.this).__name__ in _RANKS
        return OuterColumn(name, self.exact(item), rank=rank)

    def resolved(self, column: Any) -> OuterColumn | None:
        """The column of a source, or the item, that a name means."""
        name, table = column.name.lower(), column.table.lower()
        if not table and any(name in names for names in self.merged().values()):
            sides = [each for source in self.seen.values() for each in source.columns if each.name.lower() == name]
            one_side = all(join.side in {"", "LEFT"} for join in self.tree.args.get("joins") or [])
            if len(sides) > 1 and not one_side:  # of either
                return OuterColumn(sides[0].name, all(each.exact for each in sides))
        for source in self.sources:
            if not table or source.alias.lower() == table:
                for each in source.columns:
                    if each.name.lower() == name:
                        return each
        if table:
            return None
        # an item that is the name itself names nothing
        return next((each for shown, item, each in self.items if shown.lower() == name and not _is(item, name)), None)

    def exact(self, node: Any) -> bool:
        """Whether no noise can be in an expression."""
        from sqlglot import exp

        values = exp.Column | exp.Identifier | exp.Literal | exp.Boolean | exp.Null | exp.Var | exp.Interval
        shapes = exp.Paren | exp.Tuple | exp.Case | exp.If | exp.DataType | exp.DataTypeParam | exp.IntervalSpan
        over = exp.Binary | exp.Unary | exp.Predicate | exp.Func
        for each in node.walk():
            if not isinstance(each, values | shapes | over) or isinstance(each, exp.AggFunc | exp.Columns):
                return False
            if gathers(each):
                return False
            if isinstance(each, exp.Column):
                known = self.resolved(each)
                if known is None or not known.exact or each.args.get("db"):
                    return False
        return True

    def check_names(self, *, value: bool) -> None:
        """Refuses a column that is nowhere, by its name: the engine would only say that something is wrong.

        Nor is the name of a source one: as a value it is all of a row, with what is hidden in it. A query that stands
        for a value may name columns of those around it, with the name of their source before them: without one, a name
        might mean another column here than where it was typed.
        """
        from sqlglot import exp

        nodes = list(self.tree.walk(prune=lambda each: isinstance(each, exp.Query) and each is not self.tree))
        for each in nodes:
            if isinstance(each, exp.Columns | exp.PositionalColumn):
                raise QuestionRefusedError(
                    "COLUMNS and numbers of columns (#1) are not supported here.",
                    why="The columns of an answer are known before it is paid for.",
                    fix="Name the columns.",
                )
        free = {one.name.lower() for each in nodes if isinstance(each, exp.Lambda) for one in each.expressions}
        free |= {each.this.name.lower() for each in nodes if isinstance(each, exp.Kwarg)}
        aliases = {each.alias.lower() for each in self.sources}
        parts = {one.name.lower() for source in self.sources for one in source.columns}  # s.a of {'a': 1} AS s
        for each in nodes:
            plain = isinstance(each, exp.Column) and isinstance(each.this, exp.Identifier)
            if not plain or each.args.get("db") or (not each.table and each.name.lower() in free):
                continue
            if not each.table:
                self.check_unique(each.name)
            elif not value and each.table.lower() not in (*aliases, *parts):
                raise UnknownTableError(
                    f"There is no table {each.table[:60]!r} in this FROM.",
                    why=f"It has: {', '.join(one.alias for one in self.sources)[:300]}.",
                    fix="Correct the name.",
                )
            if self.resolved(each) is None and (not each.table or each.table.lower() in aliases):
                shown = ", ".join(dict.fromkeys(one.name for source in self.sources for one in source.columns))
                around = " In a query that stands for a value, write t.x for a column x of a table t around it."
                raise UnknownColumnError(
                    f"There is no column {each.name[:60]!r}.",
                    why=f"It is not among what is released and joined here: {shown[:300]}.",
                    fix=f"Correct the name.{around if value else ''}",
                )

    def check_unique(self, name: str) -> None:
        """Refuses a name without a table that several sources have, and that no item gives to something else."""
        from sqlglot import exp

        low = name.lower()
        tables = [source.alias for source in self.seen.values() for one in source.columns if one.name.lower() == low]
        merged = any(low in names for names in self.merged().values())
        given = any(shown.lower() == low and not _is_bare(item, exp.Column) for shown, item, _ in self.items)
        if len(tables) > 1 and not merged and not given:
            raise words.refuse_ambiguous(name, tables)

    # --- what rows are told apart by

    def ids(self) -> list[Any] | None:
        tree = self.tree
        if not aggregates(tree):
            known = [source.ids() for source in self.seen.values() if source.id is not None]
            return known if len(known) == len(self.seen) else None
        group = tree.args.get("group")
        keys = self.keys(group) if group is not None else []
        return keys if keys is not None and all(self.exact(each) for each in keys) else None

    def keys(self, group: Any) -> list[Any] | None:
        """The keys of GROUP BY; None for sets of them."""
        from sqlglot import exp

        if group.args.get("all"):
            return [item for _, item, column in self.items if column.exact] if self._all_exact() else None
        found = []
        for each in group.expressions:
            if isinstance(each, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple):
                return None
            if isinstance(each, exp.Literal) and not each.is_string and each.name.isdigit():
                number = int(each.name)
                if not 1 <= number <= len(self.items):
                    return None
                found.append(self.items[number - 1][1])
                continue
            alias = isinstance(each, exp.Column) and not each.table and not self._in_source(each)
            meant = next((item for name, item, _ in self.items if alias and name.lower() == each.name.lower()), None)
            found.append(each if meant is None else meant)
        return found

    def _all_exact(self) -> bool:
        from sqlglot import exp

        return all(column.exact or item.find(exp.AggFunc) is not None for _, item, column in self.items)

    def _in_source(self, column: Any) -> bool:
        names = (each.name.lower() for source in self.sources for each in source.columns)
        return column.name.lower() in set(names)


def _is(item: Any, name: str) -> bool:
    """Whether an item is a column of this name, and nothing else."""
    from sqlglot import exp

    return isinstance(item, exp.Column) and str(item.name).lower() == name


def _is_bare(item: Any, kind: type) -> bool:
    """Whether an item is a column, without a table before it."""
    return isinstance(item, kind) and not item.table  # type: ignore[attr-defined]


def _settle_order(tree: Any, row: Any) -> None:
    """Ties in the order of the release, and all rows where no order is asked for."""
    from sqlglot import exp

    order = tree.args.get("order")
    if order is not None and any(isinstance(each.this, exp.Var) for each in order.expressions):
        return  # ORDER BY ALL stands alone
    if tree.args.get("distinct"):
        return
    before = [] if order is None else order.expressions
    tree.set("order", exp.Order(expressions=[*before, exp.Ordered(this=row, nulls_first=False)]))


def _base(tree: Any) -> Any:
    found = tree.copy()
    for part in _LAST:
        found.set(part, None)
    return found


def _renamed(part: OuterQuery, tree: Any, number: int | None, *, copied: bool = False) -> Any:
    """A part of a set operation; with its `ID`, which then says which part it is too, or without."""
    from sqlglot import exp

    if not part.identified and number is None:
        return tree
    names = [*(f"c{at}" for at in range(len(part.columns))), "id", *(["copy"] if copied else [])]
    alias = exp.TableAlias(this=_named("part"), columns=[_named(each) for each in names])
    items = [named(exp.Column(this=_named(f"c{at}")), each.name) for at, each in enumerate(part.columns)]
    if number is not None:
        own = [exp.Literal.string(f"{number}:"), exp.Column(this=_named("id"))]
        items.append(named(exp.Concat(expressions=own, safe=True, coalesce=True), ID))
    if copied:
        items.append(named(exp.Column(this=_named("copy")), COPY))
    return exp.Select(expressions=items, from_=exp.From(this=exp.Subquery(this=tree.copy(), alias=alias)))


def _named(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name, quoted=True)
