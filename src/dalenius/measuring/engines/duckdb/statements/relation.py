"""A relation as an item of FROM: every row with its unit, every column within its policy.

Units are compared here, in every join and every EXISTS, whatever the question says (`relations`). A row that belongs to
nobody is gone before anything is joined. What is compared as a unit or as a key on the way to one is the value in the
file, not the one that the policy cleans (`units`).

Which rows of a table a question keeps must not decide which parts of its files are read, or which rows carry their
ballast (`work`). DuckDB moves conditions down to where rows are read, and leaves out what their statistics rule out; it
needs to, since joins are written as conditions. So each protected table ends with a LIMIT that no table reaches, or,
within EXISTS, is a CTE before the whole: conditions move below neither. Each row has done its ballast by then. Anywhere
within EXISTS DuckDB takes a LIMIT, or a random number, for a reason to pair everything with everything: conditions
about one table alone are therefore in such a CTE too, with their ballast, and those that are left have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.rendering import double, heavier, identifier
from dalenius.measuring.engines.duckdb.statements.conditions import (
    HERE,
    Conditions,
    equal,
    passing,
    spare,
    with_spare,
    without_spare,
)
from dalenius.measuring.engines.duckdb.statements.numbered import number_rows
from dalenius.measuring.engines.duckdb.statements.source import cast, clean, one_spelling, there
from dalenius.measuring.engines.duckdb.statements.units import (
    OURS,
    Files,
    check_comparable,
    owner_of,
    raw_name,
    raw_type,
    unit_name,
    unit_types,
)
from dalenius.measuring.expressions import TRUE, Aggregate, Column, Expression, Type, columns_of, written
from dalenius.measuring.functions import bounded, whole
from dalenius.measuring.relations import Match, Numbered, Open, Owned, PerUnit, Relation, Source, Stacked, full
from dalenius.measuring.work import LONGEST_TEXT, Work, sifting
from dalenius.tables.columns import default_step
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.public_values import DuckDBLookup
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable

_MOST_STEPS = 2**86  # of one value: the sum of 2⁴⁰, more than any file has of one unit, fits 127 bits
_TYPES = {
    Kind.INTEGER: "DOUBLE",
    Kind.NUMBER: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.CATEGORY: "VARCHAR",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP",
}


def scan_of(table: Table, files: Files) -> tuple[str, dict[str, str]]:
    """The rows of a table that is made of others, as an item of FROM, and the types of its columns."""
    relation = table.relation
    if relation.single:
        return _scan_along_path(table, files)
    check_comparable(relation, files)
    return RelationScan(relation, files, table.policy.columns, ballast=heavier(Work(table.work))).sql(table)


def scan_of_public(table: PublicTable) -> str:
    """The files of a public table, in FROM: all tables of a question are of one engine (`sources.Engines.over`)."""
    lookup: DuckDBLookup = table.lookup  # type: ignore[assignment]
    return lookup.scan


def _scan_along_path(table: Table, files: Files) -> tuple[str, dict[str, str]]:
    """A table whose unit is another table's column, read along its path: all its own columns, and the unit."""
    policy = table.policy
    (unit,) = policy.unit
    own = {name: type_ for name, type_ in files.types(policy.name).items() if name.lower() != unit.lower()}
    shown = [f"t0.{identifier(name)}" for name in own]
    shown.append(f"t{len(policy.path)}.{identifier(unit)}")
    text = f"(SELECT {', '.join(shown)} FROM {_path_joins(table, files)} {HERE})"  # noqa: S608
    return text, {**own, unit: files.types(policy.path[-1].table)[unit]}


def _path_joins(table: Table, files: Files) -> str:
    """A table t0 and those that its path goes through, each joined by its key: an inner join drops what dangles."""
    found = f"{files.scan(table.policy.name)} AS t0"
    for at, hop in enumerate(table.policy.path):
        on = f"t{at}.{identifier(hop.column)} = t{at + 1}.{identifier(hop.key)}"
        found += f" JOIN {files.scan(hop.table)} AS t{at + 1} ON {on}"
    return found


class RelationScan(Conditions):
    """Writes a relation. Methods are the steps; the fuzzer's planted bugs replace single ones.

    Args:
        relation: What is written.
        files: Where its tables lie.
        used: The columns that are shown of it.
        outer: What stands around it, where it is within EXISTS.
        depth: Tells the names of nested ones apart.
        ballast: What each row of a protected table does (`rendering.heavier`).
        matched: Whether it stands, however deep, within [NOT] EXISTS.
        shared: What stands before the whole: its name, by its text.
        negated: Whether it stands within NOT EXISTS.
    """

    def __init__(
        self,
        relation: Relation,
        files: Files,
        used: Iterable[str] = (),
        outer: RelationScan | None = None,
        depth: int = 0,
        ballast: str = "",
        matched: bool = False,
        shared: dict[str, str] | None = None,
        negated: bool = False,
    ) -> None:
        super().__init__(relation, files, outer, depth, matched=matched, negated=negated)
        self.ballast = ballast
        self.shared: dict[str, str] = {} if shared is None else shared
        self.needed = {*used, *_read(relation)}

    # --- the whole

    def sql(self, table: Table) -> tuple[str, dict[str, str]]:
        """The rows with their units and all columns of the made-up policy."""
        owner, policy = owner_of(self.relation), table.policy
        shown = [f"{self.unit(owner, at)} AS {identifier(name)}" for at, name in enumerate(policy.unit)]
        for name in policy.columns:
            held = self.known(name) if self.hidden(name) else self.columns[name]
            shown.append(f"{held} AS {identifier(name)}")
        types = dict(zip(policy.unit, unit_types(owner, self.files), strict=True))
        types |= {
            name: _TYPES[each.kind] if name in self.relation.columns else "VARCHAR"
            for name, each in policy.columns.items()
        }
        rows = self.rows(shown)
        before = ", ".join(f"{name} AS MATERIALIZED ({text})" for text, name in self.shared.items())
        return f"({f'WITH {before} ' if before else ''}{rows})", types

    def hidden(self, name: str) -> bool:
        """Whether a column is only there to say who somebody is."""
        keys = (
            full(source, f"k{at}")
            for source in self.relation.sources
            if isinstance(source, PerUnit)
            for at, key in enumerate(source.keys)
            if key.type is Type.UNIT
        )
        return name not in self.relation.columns or name in keys

    def known(self, name: str) -> str:
        """A column that says who somebody is: there or not, and equal to its like. To print a time may fail."""
        shown, type_ = self.columns[raw_name(name)], raw_type(self.relation, name, self.files).upper()
        if type_.startswith("TIME"):
            return f"CASE WHEN {shown} IS NOT NULL THEN hash({shown}) END"
        return f"({shown} + 0e0)" if type_ in {"FLOAT", "DOUBLE"} else shown

    def rows(self, shown: Sequence[str]) -> str:
        """All rows, and what is shown of each."""
        if self.spared:
            return without_spare([*shown], self.body(), self.first)
        return f"SELECT {', '.join(shown)} FROM {self.body()}"  # noqa: S608

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
        alone, others = sifting(self.relation)
        found = self.inner_conditions()
        for at, parts in alone.items():
            if self.matched:
                found += [] if self.is_apart(at) else map(self.condition, parts)
            else:
                texts, alias = self.sifted(parts), self.aliases[id(self.relation.sources[at])]
                found += [passing(each, alias) for each in texts] if self.spared else texts
        found += map(self.condition, others)
        return list(dict.fromkeys([*found, *map(self.match, self.relation.matches)]))

    def match(self, match: Match) -> str:
        """[NOT] EXISTS, within one unit where the inner relation has units."""
        inner = RelationScan(match.relation, self.files, (), self, self.depth + 1, "", True, self.shared, match.negated)
        same = []
        if match.relation.owner is not None:
            mine, theirs = owner_of(self.relation), match.relation.owner
            parts = range(len(unit_types(mine, self.files)))
            pairs = [(inner.unit(theirs, at), self.unit(mine, at)) for at in parts]
            same = [equal(*pair) for pair in pairs if pair[0] != pair[1]]
        return f"{'NOT ' if match.negated else ''}EXISTS (SELECT 1 FROM {inner.body(same)})"  # noqa: S608

    # --- sources

    def item(self, source: Source) -> str:
        """A source in FROM, with `unit_name` for each part of its unit."""
        match source:
            case Owned():
                text = self.owned(source)
            case Open():
                text = self.open(source)
            case PerUnit():
                text = self.per_unit(source)
            case Numbered():
                text = self.numbered(source)
            case Stacked():
                text = self.stacked(source)
        text, alias = self.cut(source, text), self.aliases[id(source)]
        at = next(at for at, each in enumerate(self.relation.sources) if each is source)
        parts = sifting(self.relation)[0].get(at, [])
        if parts and self.is_apart(at):
            text = self.before(f"SELECT * FROM ({text}) AS {alias} WHERE {' AND '.join(self.sifted(parts))}")  # noqa: S608
        return f"({with_spare(text) if self.spared else text}) AS {alias}"

    def cut(self, source: Source, text: str) -> str:
        """Of each unit as many rows as its limit says, where rows meet one another (`repeats`).

        In the order of what is in them, so that no other unit's rows decide which: those that tie are alike, as −0.0 is
        spelled 0.0 before (`owned`). Only the rows of units that have more are put in order; hardly any has.
        """
        most = self.cuts.get(id(source))
        if most is None:
            return text
        units = ", ".join(unit_name(at) for at in range(len(unit_types(source, self.files))))
        if id(source) in self.lenders and isinstance(source, Owned):  # rows of one key are of one unit
            units = identifier(raw_name(source.table.policy.path[0].column))
        row, taken = "r", {name.lower() for name in source.columns}
        while row in taken:  # it would be the column
            row += "r"
        rows, heavy = (identifier(f"{OURS}{name}") for name in ("rows", "heavy"))
        order = f"row_number() OVER (PARTITION BY {units} ORDER BY {row})"
        return (
            f"WITH {rows} AS MATERIALIZED ({text}), {heavy} AS MATERIALIZED "  # noqa: S608
            f"(SELECT {units} FROM {rows} GROUP BY {units} HAVING count(*) > {most}) "
            f"SELECT * FROM {rows} ANTI JOIN {heavy} USING ({units}) UNION ALL "
            f"SELECT * FROM (SELECT * FROM {rows} SEMI JOIN {heavy} USING ({units})) AS {row} QUALIFY {order} <= {most}"
        )

    def owned(self, source: Owned) -> str:
        """A protected table: rows that belong to somebody, with their units; its columns within their policy."""
        policy, types = source.table.policy, dict(self.files.types(source.table.policy.name))
        unit, walked = policy.unit, policy.path
        if id(source) in self.lenders:
            unit, walked = (), ()
        kinds = self.files.types(walked[-1].table) if walked else types
        rows = _path_joins(source.table, self.files) if walked else f"{self.files.scan(policy.name)} AS t0"
        columns = [each for each in policy.columns.values() if full(source, each.name) in self.needed]
        units = [
            f"{one_spelling(f't{len(walked)}.{identifier(name)}', kinds.get(name, ''))} AS u{at}"
            for at, name in enumerate(unit)
        ]
        reads = [f"{cast(each, types, f't0.{identifier(each.name)}')} AS c{at}" for at, each in enumerate(columns)]
        keys = [
            f"{one_spelling(f't0.{identifier(name)}', types.get(name, ''))} AS {identifier(raw_name(name))}"
            for name in source.identities
        ]
        inner = f"SELECT {', '.join([*units, *reads, *keys])} FROM {rows}"  # noqa: S608
        shown = [f"u{at} AS {unit_name(at)}" for at in range(len(unit))]
        for at, each in enumerate(columns):
            value, number = clean(each, f"c{at}"), each.kind in {Kind.INTEGER, Kind.NUMBER}
            value = one_spelling(value, "DOUBLE") if number and id(source) in self.cuts else value
            shown.append(f"{value} AS {identifier(each.name)}")
        shown += [identifier(raw_name(name)) for name in source.identities]
        named = {f"u{at}": kinds.get(name, "") for at, name in enumerate(unit)}
        only = there(tuple(named), named) if named else "TRUE"
        only = f"CASE WHEN {self.ballast} THEN {only} END" if self.ballast else only
        found = f"SELECT {', '.join(shown)} FROM ({inner}) WHERE {only}"  # noqa: S608
        return self.before(found) if self.matched else f"{found} {HERE}"

    def before(self, text: str) -> str:
        """What is worked out once, before the whole: nothing in it looks at the rows around."""
        name = self.shared.setdefault(text, identifier(f"{OURS}{len(self.shared)}"))
        return f"SELECT * FROM {name}"  # noqa: S608

    def open(self, source: Open) -> str:
        """A public table; its columns as questions see them. Their bounds and keys are those of the file itself."""
        table = source.table
        columns = [replace(table.columns[name], bounds=None, keys=None) for name in self.read(source)]
        reads = [f"{cast(each, table.types)} AS c{at}" for at, each in enumerate(columns)] or ["1"]
        shown = [f"{clean(each, f'c{at}')} AS {identifier(each.name)}" for at, each in enumerate(columns)] or ["1"]
        inner = f"SELECT {', '.join(reads)} FROM {scan_of_public(table)}"  # noqa: S608
        return f"SELECT {', '.join(shown)} FROM ({inner})"  # noqa: S608

    def read(self, source: Open) -> list[str]:
        """The columns of a public table that are needed."""
        return [name for name in source.table.kinds if full(source, name) in self.needed]

    def subquery(self, relation: Relation, used: Iterable[Expression], number: int = 0) -> RelationScan:
        """A relation in FROM, of which some expressions are used; several in one place have numbers."""
        depth, names = self.depth + 10 + number, _names(used)
        return RelationScan(relation, self.files, names, None, depth, self.ballast, self.matched, self.shared)

    def per_unit(self, source: PerUnit) -> str:
        """Sums within one unit, on integers: no row of another unit can move their last digit."""
        used = [
            *source.keys,
            *(each for one in source.aggregates for each in (one.value, one.where) if each is not None),
        ]
        scan = self.subquery(source.relation, used)
        owner, relation = owner_of(source.relation), source.relation
        parts = range(len(unit_types(owner, self.files)))
        units = [f"{scan.unit(owner, at)} AS u{at}" for at in parts]
        keys = [f"{scan.key(each)} AS k{at}" for at, each in enumerate(source.keys)]
        sums = [f"{scan.aggregate(each, relation)} AS a{at}" for at, each in enumerate(source.aggregates)]
        keys += [
            f"{scan.raw(source.keys[int(name[1:])])} AS {identifier(raw_name(name))}" for name in source.identities
        ]
        by = ", ".join(str(at + 1) for at in range(len(units) + len(keys)))
        real = f" HAVING NOT bool_or({spare(scan.first)})" if scan.spared else ""
        inner = f"SELECT {', '.join([*units, *keys, *sums])} FROM {scan.body()} GROUP BY {by}{real}"  # noqa: S608
        shown = [f"u{at} AS {unit_name(at)}" for at in parts]
        who = {f"k{at}" for at, key in enumerate(source.keys) if key.type is Type.UNIT}
        for name, column in source.columns.items():
            value = clean(column, name) if column.kind is not Kind.TEXT else f"left({name}, {LONGEST_TEXT})"
            shown.append(f"{presence(name) if name in who else value} AS {identifier(name)}")
        shown += [identifier(raw_name(name)) for name in source.identities]
        return f"SELECT {', '.join(shown)} FROM ({inner})"  # noqa: S608

    def stacked(self, source: Stacked) -> str:
        """UNION ALL."""
        texts = []
        for at, (relation, values) in enumerate(source.parts):
            scan = self.subquery(relation, values, at)
            texts.append(scan.rows([f"{held} AS {name}" for name, held in scan.held(source, values).items()]))
        return " UNION ALL ".join(texts)

    def held(self, source: Stacked, values: Sequence[Expression]) -> dict[str, str]:
        """The columns of one part of a UNION ALL, by their names: its units, its values.

        −0.0 is spelled 0.0, since rows that are alike but for that tie where they are put in order (`cut`, `numbered`).
        """
        owner = owner_of(self.relation)
        shown = {unit_name(part): self.unit(owner, part) for part in range(len(unit_types(owner, self.files)))}
        for place, value in enumerate(values):
            column = f"c{place}"
            held = self.key(value)
            if column in source.columns and source.columns[column].kind is Kind.TEXT:  # also where it is a category
                held = f"left({held}, {LONGEST_TEXT})"
            shown[identifier(column)] = held
            if column in source.identities:
                shown[identifier(raw_name(column))] = self.raw(value)
        return shown

    def numbered(self, source: Numbered) -> str:
        """Rows with their numbers within one unit."""
        ((relation, values),) = source.parts
        scan = self.subquery(relation, [*values, *source.numbering.read])
        return number_rows(scan, source, values)

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


class PublicScan(RelationScan):
    """Public tables alone, each of which lies in memory as ``p0``, ``p1`` …, as `texts` read it."""

    def __init__(self, relation: Relation, wanted: Sequence[str]) -> None:
        super().__init__(relation, Files({}), wanted)
        self.spared = False
        self.wanted = wanted
        self.opened = [each for each in relation.sources if isinstance(each, Open)]

    def texts(self) -> dict[str, tuple[Open, list[str], str]]:
        """For each name in memory: its table, its columns, and the SELECT over that table alone that gives them."""
        return {
            f"p{at}": (each, self.read(each), f"SELECT DISTINCT * FROM ({self.open(each)})")  # noqa: S608
            for at, each in enumerate(self.opened)
        }

    def combinations(self) -> str:
        """All combinations of the wanted columns' values."""
        return f"SELECT DISTINCT {', '.join(self.columns[name] for name in self.wanted)} FROM {self.body()}"  # noqa: S608

    def item(self, source: Source) -> str:
        """A source in FROM."""
        return f"p{self.relation.sources.index(source)} AS {self.aliases[id(source)]}"


def step_of(value: Expression, relation: Relation) -> Fraction:
    """What values are rounded to before they are added within a unit: as in sums over all units."""
    columns = relation.columns
    found = bounded(value, columns.ranges)
    if found is None:
        raise RuntimeError(f"{written(value)} has no bounds.")
    low, high = map(Fraction, found)
    step = columns[value.name].step if isinstance(value, Column) else None
    if step is None and whole(value, columns.integers):
        step = Fraction(1)
    if step is not None and max(abs(low), abs(high)) < step * _MOST_STEPS:
        return step
    return default_step(low, high if low < high else low + 1)


def presence(shown: str) -> str:
    """Of who somebody is, whether it is there: nothing else is asked, and to print some moments in time is fatal."""
    return f"CASE WHEN {shown} IS NOT NULL THEN 'there' END"


def _read(relation: Relation) -> set[str]:
    """The columns that a relation reads itself, also those of the relation around it."""
    found = _names([relation.where, *(join.on for join in relation.joins)])
    return found.union(*(_read(match.relation) for match in relation.matches))


def _names(expressions: Iterable[Expression]) -> set[str]:
    return {name for each in expressions for name in columns_of(each)}
