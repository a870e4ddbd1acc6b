"""A relation as an item of FROM: every row with its unit, every column within its policy.

Units are compared here, in every join and every EXISTS, whatever the question says (`relations`). A row that belongs to
nobody is gone before anything is joined. What is compared as a unit or as a key on the way to one is the value in the
file, not the one that the policy cleans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.queries.expressions import TRUE, Aggregate, Column, Expression, Type, columns_of, written
from dalenius.queries.functions import bounded, whole
from dalenius.queries.relations import Join, Match, Open, Owned, PerUnit, Relation, Source, Stacked, full
from dalenius.queries.rendering import Renderer, double, identifier
from dalenius.queries.repeats import compares, row_limits
from dalenius.queries.statements.source import cast, clean, there
from dalenius.tables.policy import Kind
from dalenius.tables.steps import default_step, too_fine

if TYPE_CHECKING:
    from dalenius.queries.plan import Table

_TYPES = {
    Kind.INTEGER: "DOUBLE",
    Kind.NUMBER: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.CATEGORY: "VARCHAR",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP",
}


class Files:
    """Where the rows of each table are: an item of FROM, and the types of its columns."""

    def __init__(self, held: Mapping[str, tuple[str, Mapping[str, str]]]) -> None:
        self._held = {name.lower(): each for name, each in held.items()}

    def scan(self, name: str) -> str:
        """The files, in FROM."""
        return self._held[name.lower()][0]

    def types(self, name: str) -> Mapping[str, str]:
        """The types of their columns."""
        return self._held[name.lower()][1]


def scan_of(table: Table, files: Files) -> tuple[str, dict[str, str]]:
    """The rows of a table that is made of others, as an item of FROM, and the types of its columns."""
    if table.relation is None:
        return _PathScan(table, files).sql()
    return _Scan(table.relation, files, table.policy.columns).sql(table)


def unit_types(source: Source, files: Files) -> list[str]:
    """The types of a source's unit columns, as they lie in the file."""
    match source:
        case Owned(table=table):
            last = table.policy.path[-1].table if table.policy.path else table.policy.name
            return [files.types(last)[name] for name in table.policy.unit]
        case PerUnit(relation=relation):
            return unit_types(_owner(relation), files)
        case Stacked(parts=parts):
            return unit_types(_owner(parts[0][0]), files)
    return []


def _owner(relation: Relation) -> Source:
    if relation.owner is None:
        raise RuntimeError("A relation without units was compiled.")
    return relation.owner


class _PathScan:
    """A table whose unit is another table's column, read along its path: all its own columns, and the unit."""

    def __init__(self, table: Table, files: Files) -> None:
        self.table, self.files = table, files

    def sql(self) -> tuple[str, dict[str, str]]:
        policy, files = self.table.policy, self.files
        types = dict(files.types(policy.name))
        (unit,) = policy.unit
        last = policy.path[-1].table
        own = {name: type_ for name, type_ in types.items() if name.lower() != unit.lower()}
        shown = [f"t0.{identifier(name)}" for name in own]
        shown.append(f"t{len(policy.path)}.{identifier(unit)}")
        text = f"(SELECT {', '.join(shown)} FROM {self.joined()})"  # noqa: S608
        return text, {**own, unit: files.types(last)[unit]}

    def joined(self) -> str:
        """The tables of the path, each joined by its key."""
        return path_joins(self.table, self.files, "t")


def path_joins(table: Table, files: Files, prefix: str) -> str:
    """A table and those that its path goes through, each joined by its key: an inner join drops what dangles."""
    found = f"{files.scan(table.policy.name)} AS {prefix}0"
    for at, hop in enumerate(table.policy.path):
        on = f"{prefix}{at}.{identifier(hop.column)} = {prefix}{at + 1}.{identifier(hop.key)}"
        found += f" JOIN {files.scan(hop.table)} AS {prefix}{at + 1} ON {on}"
    return found


class _Scan:
    """Writes a relation. Methods are the steps; the fuzzer's planted bugs replace single ones."""

    def __init__(
        self,
        relation: Relation,
        files: Files,
        used: Iterable[str] = (),
        outer: Mapping[str, str] | None = None,
        depth: int = 0,
    ) -> None:
        self.relation, self.files, self.depth = relation, files, depth
        self.aliases = {id(source): f"s{depth}_{at}" for at, source in enumerate(relation.sources)}
        columns = dict(outer or {})
        for source in relation.sources:
            for name in (*source.columns, *source.identities):
                columns[full(source, name)] = f"{self.aliases[id(source)]}.{identifier(held(name))}"
            for name in source.identities:
                columns[raw(full(source, name))] = f"{self.aliases[id(source)]}.{identifier(raw(name))}"
        self.columns = columns
        self.renderer = _Renderer(columns, relation.columns.integers)
        self.needed = {*used, *_read(relation)}
        self.row_limits = row_limits(relation, inside=outer is not None and compares(relation))

    # --- the whole

    def sql(self, table: Table) -> tuple[str, dict[str, str]]:
        """The rows with their units and all columns of the made-up policy."""
        owner, policy = _owner(self.relation), table.policy
        shown = [f"{self.unit(owner, at)} AS {identifier(name)}" for at, name in enumerate(policy.unit)]
        for name in policy.columns:
            held = self.columns[name] if name in self.relation.columns else presence(self.columns[raw(name)])
            shown.append(f"{held} AS {identifier(name)}")
        types = dict(zip(policy.unit, unit_types(owner, self.files), strict=True))
        types |= {
            name: _TYPES[each.kind] if name in self.relation.columns else "VARCHAR"
            for name, each in policy.columns.items()
        }
        return f"(SELECT {', '.join(shown)} FROM {self.body()})", types  # noqa: S608

    def body(self, more: Sequence[str] = ()) -> str:
        """FROM and WHERE, with more conditions."""
        conditions = [*self.conditions(), *more]
        return f"{self.joined()}{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"

    def joined(self) -> str:
        """The sources: inner joins, whose conditions stand in WHERE; then LEFT joins with their own."""
        found = " CROSS JOIN ".join(self.item(each.source) for each in self.relation.joins if not each.left)
        for join in self.relation.joins:
            if join.left:
                found += f" LEFT JOIN {self.item(join.source)} ON {' AND '.join(self.left_conditions(join))}"
        return found

    def conditions(self) -> list[str]:
        """WHERE: equal units of all inner sources, the conditions, and EXISTS."""
        found = self.inner_conditions()
        if self.relation.where != TRUE:
            found.append(self.renderer.sql(self.relation.where))
        return [*found, *map(self.match, self.relation.matches)]

    def inner_conditions(self) -> list[str]:
        """All inner sources with units have one and the same."""
        owned = [each.source for each in self.relation.joins if not each.left and not isinstance(each.source, Open)]
        return [self.same(owned[0], each) for each in owned[1:]]

    def left_conditions(self, join: Join) -> list[str]:
        """What a LEFT join asks for, and one unit on both sides."""
        found = [self.renderer.sql(join.on)]
        if not isinstance(join.source, Open):
            found.append(self.same(_owner(self.relation), join.source))
        return found

    def same(self, one: Source, other: Source) -> str:
        """That two sources speak of one unit."""
        parts = len(unit_types(one, self.files))
        return " AND ".join(f"{self.unit(one, at)} = {self.unit(other, at)}" for at in range(parts))

    def unit(self, source: Source, at: int) -> str:
        """A part of a source's unit."""
        return f"{self.aliases[id(source)]}.u{at}"

    def match(self, match: Match) -> str:
        """[NOT] EXISTS, within one unit where the inner relation has units."""
        inner = _Scan(match.relation, self.files, (), self.columns, self.depth + 1)
        same = []
        if match.relation.owner is not None:
            mine, theirs = _owner(self.relation), match.relation.owner
            parts = range(len(unit_types(mine, self.files)))
            same = [f"{inner.unit(theirs, at)} = {self.unit(mine, at)}" for at in parts]
        return f"{'NOT ' if match.negated else ''}EXISTS (SELECT 1 FROM {inner.body(same)})"  # noqa: S608

    # --- sources

    def item(self, source: Source) -> str:
        """A source in FROM, with u0, u1 … for its unit."""
        match source:
            case Owned():
                text = self.owned(source)
            case Open():
                text = self.open(source)
            case PerUnit():
                text = self.per_unit(source)
            case Stacked():
                text = self.stacked(source)
        return f"({self.cut(source, text)}) AS {self.aliases[id(source)]}"

    def cut(self, source: Source, text: str) -> str:
        """Of each unit as many rows as its limit says, where rows meet one another (`repeats`).

        In the order of what is in them, so that no other unit's rows decide which: those that tie are alike.
        """
        most = self.row_limits.get(id(source))
        if most is None:
            return text
        units = ", ".join(f"u{at}" for at in range(len(unit_types(source, self.files))))
        order = f"row_number() OVER (PARTITION BY {units} ORDER BY r)"  # r is no column, but the whole row
        return f"SELECT * FROM ({text}) AS r QUALIFY {order} <= {most}"  # noqa: S608

    def owned(self, source: Owned) -> str:
        """A protected table: rows that belong to somebody, with their units; its columns within their policy."""
        policy, types = source.table.policy, dict(self.files.types(source.table.policy.name))
        if policy.path:
            rows, unit_of = path_joins(source.table, self.files, "t"), f"t{len(policy.path)}."
            kinds = self.files.types(policy.path[-1].table)
        else:
            rows, unit_of, kinds = f"{self.files.scan(policy.name)} AS t0", "t0.", types
        columns = [each for each in policy.columns.values() if full(source, each.name) in self.needed]
        units = [f"{unit_of}{identifier(name)} AS u{at}" for at, name in enumerate(policy.unit)]
        reads = [f"{cast(each, types, f't0.{identifier(each.name)}')} AS c{at}" for at, each in enumerate(columns)]
        keys = [f"t0.{identifier(name)} AS {identifier(raw(name))}" for name in source.identities]
        inner = f"SELECT {', '.join([*units, *reads, *keys])} FROM {rows}"  # noqa: S608
        shown = [f"u{at}" for at in range(len(policy.unit))]
        shown += [f"{clean(each, f'c{at}')} AS {identifier(held(each.name))}" for at, each in enumerate(columns)]
        shown += [identifier(raw(name)) for name in source.identities]
        named = {f"u{at}": kinds.get(name, "") for at, name in enumerate(policy.unit)}
        return f"SELECT {', '.join(shown)} FROM ({inner}) WHERE {there(tuple(named), named)}"  # noqa: S608

    def open(self, source: Open) -> str:
        """A public table; its columns as questions see them."""
        table = source.table
        columns = [table.columns[name] for name in table.kinds if full(source, name) in self.needed]
        reads = [f"{cast(each, table.types)} AS c{at}" for at, each in enumerate(columns)] or ["1"]
        shown = [f"{clean(each, f'c{at}')} AS {identifier(held(each.name))}" for at, each in enumerate(columns)] or [
            "1"
        ]
        inner = f"SELECT {', '.join(reads)} FROM {table.scan}"  # noqa: S608
        return f"SELECT {', '.join(shown)} FROM ({inner})"  # noqa: S608

    def per_unit(self, source: PerUnit) -> str:
        """Sums within one unit, on integers: no row of another unit can move their last digit."""
        used = [
            *source.keys,
            *(each for one in source.aggregates for each in (one.value, one.where) if each is not None),
        ]
        scan = _Scan(source.relation, self.files, _names(used), None, self.depth + 10)
        owner, relation = _owner(source.relation), source.relation
        parts = range(len(unit_types(owner, self.files)))
        units = [f"{scan.unit(owner, at)} AS u{at}" for at in parts]
        keys = [f"{scan.key(each)} AS k{at}" for at, each in enumerate(source.keys)]
        sums = [f"{scan.aggregate(each, relation)} AS a{at}" for at, each in enumerate(source.aggregates)]
        keys += [f"{scan.raw(source.keys[int(name[1:])])} AS {identifier(raw(name))}" for name in source.identities]
        by = ", ".join(str(at + 1) for at in range(len(units) + len(keys)))
        inner = f"SELECT {', '.join([*units, *keys, *sums])} FROM {scan.body()} GROUP BY {by}"  # noqa: S608
        shown = [f"u{at}" for at in parts]
        who = {f"k{at}" for at, key in enumerate(source.keys) if key.type is Type.UNIT}
        for name, column in source.columns.items():
            value = clean(column, name) if column.kind is not Kind.TEXT else name
            shown.append(f"{presence(name) if name in who else value} AS {identifier(held(name))}")
        shown += [identifier(raw(name)) for name in source.identities]
        return f"SELECT {', '.join(shown)} FROM ({inner})"  # noqa: S608

    def stacked(self, source: Stacked) -> str:
        """UNION ALL."""
        texts = []
        for at, (relation, values) in enumerate(source.parts):
            scan = _Scan(relation, self.files, _names(values), None, self.depth + 10 + at)
            owner = _owner(relation)
            shown = [f"{scan.unit(owner, part)} AS u{part}" for part in range(len(unit_types(owner, self.files)))]
            for place, value in enumerate(values):
                column = f"c{place}"
                shown.append(f"{scan.renderer.sql(value)} AS {identifier(held(column))}")
                if column in source.identities:
                    shown.append(f"{scan.raw(value)} AS {identifier(raw(column))}")
            texts.append(f"SELECT {', '.join(shown)} FROM {scan.body()}")  # noqa: S608
        return " UNION ALL ".join(texts)

    # --- within one unit

    def key(self, key: Expression) -> str:
        """A key; −0.0 and 0.0 are one."""
        shown = self.renderer.sql(key)
        return f"({shown} + 0e0)" if key.type is Type.NUMBER else shown

    def raw(self, value: Expression) -> str:
        """A column that says who somebody is, as it lies in the file: whatever type its policy reads it as."""
        return self.renderer.sql(Column(value.name, Type.UNIT) if isinstance(value, Column) else value)

    def aggregate(self, aggregate: Aggregate, relation: Relation) -> str:
        """One aggregate of one unit's rows, as a double (or as its argument's type for MIN and MAX)."""
        only = "" if aggregate.where == TRUE else f" FILTER (WHERE {self.renderer.sql(aggregate.where)})"
        if aggregate.value is None:
            return f"CAST(count(*){only} AS DOUBLE)"
        value = self.renderer.sql(aggregate.value)
        if aggregate.kind == "distinct":
            return f"CAST(count(DISTINCT {value}){only} AS DOUBLE)"
        if aggregate.kind in {"min", "max"}:
            # Of −0.0 and 0.0 either may come first, which would be other rows' doing.
            zero = " + 0e0" if aggregate.value.type is Type.NUMBER else ""
            return f"({aggregate.kind}({value}){only}{zero})"
        step = double(float(step_of(aggregate.value, relation)))
        total = f"CAST(sum(CAST(floor({value} / {step} + 0.5e0) AS HUGEINT)){only} AS DOUBLE)"
        if aggregate.kind == "sum":
            return f"({total} * {step})"
        return f"({total} * {step} / nullif(CAST(count({value}){only} AS DOUBLE), 0e0))"


def step_of(value: Expression, relation: Relation) -> Fraction:
    """What values are rounded to before they are added within a unit: as in sums over all units."""
    columns = relation.columns
    found = bounded(value, columns.ranges)
    if found is None:
        raise RuntimeError(f"{written(value)} has no bounds.")
    low, high = map(Fraction, found)
    step = columns[value.name].step if isinstance(value, Column) else None
    if step is not None and not too_fine(step, low, high):  # whole numbers beyond 2⁵³: in steps of 1 they overflow
        return step
    if whole(value, columns.integers) and max(abs(low), abs(high)) < 2**53:
        return Fraction(1)
    return default_step(low, high if low < high else low + 1)


def presence(shown: str) -> str:
    """Of who somebody is, whether it is there: nothing else is asked, and to print some moments in time is fatal."""
    return f"CASE WHEN {shown} IS NOT NULL THEN 'there' END"


def held(name: str) -> str:
    """The name of a column in an item of FROM: owners may call theirs u0, which is the unit's there."""
    return f"column {name}"


def raw(name: str) -> str:
    """The name under which a column's value in the file is kept, beside the one that its policy cleans."""
    return f"raw {name}"


def _read(relation: Relation) -> set[str]:
    """The columns that a relation reads itself, also those of the relation around it."""
    found = _names([relation.where, *(join.on for join in relation.joins)])
    return found.union(*(_read(match.relation) for match in relation.matches))


def _names(expressions: Iterable[Expression]) -> set[str]:
    return {name for each in expressions for name in columns_of(each)}


class _Renderer(Renderer):
    """As elsewhere; columns that say who somebody is are compared as they lie in the file."""

    def sql(self, expression: Expression) -> str:
        """The expression as SQL."""
        if isinstance(expression, Column) and expression.type is Type.UNIT:
            return self.columns[raw(expression.name)]
        return super().sql(expression)
