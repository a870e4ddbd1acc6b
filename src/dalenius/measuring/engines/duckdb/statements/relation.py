"""A relation as an item of FROM: every row with its unit, every column within its policy.

Units are compared here, in every join and every EXISTS, whatever the question says (`relations`). A row that belongs to
nobody is gone before anything is joined. What is compared as a unit or as a key on the way to one is the value in the
file, not the one that the policy cleans.

A table with a path reads its unit along it, unless the question joins it on the path's own key: where l_orderkey is
the o_orderkey of a row of orders, that row is the one on the path, because o_orderkey is unique (`protect` checks it),
and its unit is the one that the path leads to. Then the unit is taken from there (`_Scan.lender`), and the path is not
walked a second time.

Which rows of a table a question keeps must not decide which parts of its files are read, or which rows carry their
ballast (`work`). DuckDB moves conditions down to where rows are read, and leaves out what their statistics rule out; it
needs to, since joins are written as conditions. So each protected table ends with a LIMIT that no table reaches, or,
within EXISTS, is a CTE before the whole: conditions move below neither. Each row has done its ballast by then. Anywhere
within EXISTS DuckDB takes a LIMIT, or a random number, for a reason to pair everything with everything: conditions
about one table alone are therefore in such a CTE too, with their ballast, and those that are left have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.ballast import heavier
from dalenius.measuring.engines.duckdb.rendering import Renderer, double, identifier
from dalenius.measuring.engines.duckdb.statements.comparable import check_comparable
from dalenius.measuring.engines.duckdb.statements.source import cast, clean, text_lengths, there
from dalenius.measuring.engines.duckdb.statements.spare import (
    HERE,
    OURS,
    equal,
    hidden,
    no_spare,
    passing,
    spare,
    with_spare,
    without,
)
from dalenius.measuring.expressions import TRUE, Aggregate, Call, Column, Expression, Type, columns_of, written
from dalenius.measuring.functions import bounded, whole
from dalenius.measuring.relations import Join, Match, Open, Owned, PerUnit, Relation, Source, Stacked, full
from dalenius.measuring.repeats import compares, cuts
from dalenius.measuring.texts import LONGEST_TEXT
from dalenius.measuring.work import Work, sifted_by, sifting
from dalenius.tables.policy import Kind
from dalenius.tables.values import default_step, too_fine

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.public import Lookup
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable

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
    relation = table.relation
    if relation.single:
        return _PathScan(table, files).sql()
    check_comparable(relation, files)
    return _Scan(relation, files, table.policy.columns, ballast=heavier(Work(table.work))).sql(table)


def scan_of_public(table: PublicTable) -> str:
    """The files of a public table, in FROM: all tables of a question are of one engine (`sources.Engines.over`)."""
    lookup: Lookup = table.lookup  # type: ignore[assignment]
    return lookup.scan


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


def raw_type(relation: Relation, name: str, files: Files) -> str:
    """The type, in its file, of a column that says who somebody is; ``name`` is its full name."""
    found = [(source, each) for source in relation.sources for each in source.identities if full(source, each) == name]
    match found:
        case [(Owned(table=table), each)]:
            return files.types(table.policy.name).get(each, "")
        case [(PerUnit(relation=inner, keys=values), each)] | [(Stacked(parts=((inner, values), *_)), each)]:
            value = values[int(each[1:])]
            return raw_type(inner, value.name, files) if isinstance(value, Column) else ""
    return ""


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
        text = f"(SELECT {', '.join(shown)} FROM {self.joined()} {HERE})"  # noqa: S608
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
        outer: _Scan | None = None,
        depth: int = 0,
        ballast: str = "",
        matched: bool = False,
        shared: dict[str, str] | None = None,
        negated: bool = False,
    ) -> None:
        self.relation, self.files, self.outer, self.depth = relation, files, outer, depth
        self.ballast, self.matched, self.negated = ballast, matched, negated  # whether it stands within [NOT] EXISTS
        self.spared = matched or len(relation.joins) > 1 or bool(relation.matches)
        self.shared: dict[str, str] = {} if shared is None else shared  # what stands before the whole, by its text
        self.aliases = {id(source): f"s{depth}_{at}" for at, source in enumerate(relation.sources)}
        self.cuts = cuts(relation, inside=outer is not None and compares(relation))
        self.lenders: dict[int, tuple[_Scan, Source]] = {}
        for join in relation.joins:
            lender = self.lender(join)
            if lender is not None:
                self.lenders[id(join.source)] = lender
        columns: dict[str, str] = {} if outer is None else dict(outer.columns)
        for source in relation.sources:
            for name in (*source.columns, *source.identities):
                columns[full(source, name)] = f"{self.aliases[id(source)]}.{identifier(name)}"
            for name in source.identities:
                columns[raw(full(source, name))] = f"{self.aliases[id(source)]}.{identifier(raw(name))}"
            if isinstance(source, Owned) and not source.table.policy.path:  # then u0, u1 … are those very columns
                for at, name in enumerate(source.table.policy.unit):
                    columns[raw(full(source, name))] = self.unit(source, at)
        self.columns: dict[str, str] = columns
        own = {
            full(each, name): spec
            for each in relation.sources
            if not isinstance(each, Open)
            for name, spec in each.columns.items()
        }
        self.lengths: dict[str, int] = text_lengths(own) | (outer.lengths if outer is not None else {})
        public = frozenset(
            full(each, name) for each in relation.sources if isinstance(each, Open) for name in each.columns
        )
        renderer = partial(_Renderer, columns, relation.columns.integers, lengths=self.lengths, listed=public)
        self.renderer, self.apart = renderer(random=not matched), renderer()
        self.needed = {*used, *_read(relation)}

    # --- the whole

    def sql(self, table: Table) -> tuple[str, dict[str, str]]:
        """The rows with their units and all columns of the made-up policy."""
        owner, policy = _owner(self.relation), table.policy
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
        shown, type_ = self.columns[raw(name)], raw_type(self.relation, name, self.files).upper()
        if type_.startswith("TIME"):
            return f"CASE WHEN {shown} IS NOT NULL THEN hash({shown}) END"
        return f"({shown} + 0e0)" if type_ in {"FLOAT", "DOUBLE"} else shown

    def rows(self, shown: Sequence[str]) -> str:
        """All rows, and what is shown of each."""
        if self.spared:
            return without([*shown], self.body(), self.first)
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

    def condition(self, part: Expression, joined: str = "") -> str:
        """A condition, which spare rows fulfil. As a key of a join, if it is one: their keys are NULL.

        ``joined``: the item whose LEFT join it stands in.
        """
        if not self.spared:
            return self.renderer.sql(part)
        match part:
            case Call(function="eq", arguments=(one, other)):
                sides = {each: self.reads(each) for each in (one, other)}
                if all(sides.values()) and not sides[one] & sides[other]:
                    return self.keys(sides, joined)
        own = self.reads(part).intersection(self.aliases.values())
        return passing(self.renderer.sql(part), min(own or self.reads(part), default=self.first))

    def keys(self, sides: Mapping[Expression, set[str]], joined: str = "") -> str:
        """That two values are equal and there. The second is asked of one side alone, best of a column in it.

        Of a LEFT join, it is asked of the joined side: DuckDB tries nothing below the other, and rows whose key is NULL
        would meet all of the joined side that have none either. In WHERE, of a side that a LEFT join may leave NULL, so
        that DuckDB sees that it may not: rows would all meet before that is tried.
        """
        shown = {
            each: self.renderer.sql(each) if isinstance(each, Column) else hidden(self.renderer.sql(each), min(aliases))
            for each, aliases in sides.items()
        }
        own = set(self.aliases.values())
        lefts = {self.aliases[id(each.source)] for each in self.relation.joins if each.left}

        def unfit(each: Expression) -> tuple[bool, ...]:
            first = sides[each] != {joined} if joined else not sides[each] & lefts
            return (first, not sides[each] <= own, not isinstance(each, Column))

        asked = min(sides, key=unfit)
        return f"{equal(*shown.values())} AND {passing(f'({shown[asked]} IS NOT NULL)', min(sides[asked]))}"

    def reads(self, expression: Expression) -> set[str]:
        """The items that an expression reads, also of those around."""
        return {self.columns[name].split(".", 1)[0] for name in columns_of(expression)}

    @property
    def first(self) -> str:
        """An item whose row is there in every row, so that it is the spare one wherever all are."""
        return self.aliases[id(next(each.source for each in self.relation.joins if not each.left))]

    def sifted(self, parts: Sequence[Expression]) -> list[str]:
        """Conditions about one table: as they are, or as one that begins with their ballast (`work`)."""
        texts, ballast = list(map(self.apart.sql, parts)), heavier(sifted_by(self.relation, parts))
        return [f"CASE WHEN {ballast} THEN ({' AND '.join(texts)}) END"] if ballast else texts

    def is_apart(self, at: int) -> bool:
        """Whether conditions about a source alone are tried before it is joined: within EXISTS, unless it is LEFT."""
        return self.matched and not self.relation.joins[at].left

    def inner_conditions(self) -> list[str]:
        """All inner sources with units have one and the same."""
        owned = [each.source for each in self.relation.joins if not each.left and not isinstance(each.source, Open)]
        found = [said for each in owned[1:] if (said := self.same(owned[0], each))]
        if self.spared:
            inner = [self.aliases[id(each.source)] for each in self.relation.joins if not each.left]
            found += [f"({spare(self.first)} = {spare(each)})" for each in inner if each != self.first]
        if self.outer is not None:
            around = (no_spare if self.negated else spare)(self.outer.first)
            found.append(f"({spare(self.first)} = {around})")
        return found

    def left_conditions(self, join: Join) -> list[str]:
        """What a LEFT join asks for, and one unit on both sides."""
        parts = [self.condition(each, self.aliases[id(join.source)]) for each in _parts(join.on)]
        if self.spared:
            parts.append(f"({spare(self.first)} = {spare(self.aliases[id(join.source)])})")
        found = [" AND ".join(parts) or "TRUE"]
        if not isinstance(join.source, Open):
            found.append(self.same(_owner(self.relation), join.source))
        return list(filter(None, found))

    def same(self, one: Source, other: Source) -> str:
        """That two sources speak of one unit; nothing where both take it from the same row."""
        parts = range(len(unit_types(one, self.files)))
        pairs = [(self.unit(one, at), self.unit(other, at)) for at in parts]
        return " AND ".join(equal(*pair) for pair in pairs if pair[0] != pair[1])

    def unit(self, source: Source, at: int) -> str:
        """A part of a source's unit."""
        if id(source) in self.lenders:
            scan, lender = self.lenders[id(source)]
            return scan.unit(lender, at)
        return f"{self.aliases[id(source)]}.{unit_name(at)}"

    def lender(self, join: Join) -> tuple[_Scan, Source] | None:
        """The source whose unit is that of a table with a path, because both have the path's first key in common.

        None for one that is cut: its rows are counted by unit before they are joined.
        """
        source = join.source
        if not isinstance(source, Owned) or not source.table.policy.path or id(source) in self.cuts:
            return None
        hop = source.table.policy.path[0]
        mine, key = full(source, hop.column), f"{hop.table.lower()}.{hop.key}"
        tied = {
            name
            for part in _parts(join.on if join.left else self.relation.where)
            for pair in [_units(part)]
            if mine in pair
            for name in pair - {mine}
        }
        scan: _Scan | None = self
        while scan is not None:  # in EXISTS, also those around
            for each in scan.relation.joins:
                other = each.source
                shared = any(full(other, name) in tied and key in held for name, held in other.identities.items())
                if shared and not each.left and not scan.borrows(other, source):
                    return scan, other
            scan = scan.outer
        return None

    def borrows(self, one: Source, other: Source) -> bool:
        """Whether a source has its unit from another, or is it."""
        while one is not other and id(one) in self.lenders and self.lenders[id(one)][0] is self:
            one = self.lenders[id(one)][1]
        return one is other

    def match(self, match: Match) -> str:
        """[NOT] EXISTS, within one unit where the inner relation has units."""
        inner = _Scan(match.relation, self.files, (), self, self.depth + 1, "", True, self.shared, match.negated)
        same = []
        if match.relation.owner is not None:
            mine, theirs = _owner(self.relation), match.relation.owner
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

        In the order of what is in them, so that no other unit's rows decide which: those that tie are alike. Only the
        rows of units that have more are put in order; hardly any has.
        """
        most = self.cuts.get(id(source))
        if most is None:
            return text
        units = ", ".join(unit_name(at) for at in range(len(unit_types(source, self.files))))
        if id(source) in self.lenders and isinstance(source, Owned):  # rows of one key are of one unit
            units = identifier(raw(source.table.policy.path[0].column))
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
        rows = path_joins(source.table, self.files, "t") if walked else f"{self.files.scan(policy.name)} AS t0"
        columns = [each for each in policy.columns.values() if full(source, each.name) in self.needed]
        units = [f"t{len(walked)}.{identifier(name)} AS u{at}" for at, name in enumerate(unit)]
        reads = [f"{cast(each, types, f't0.{identifier(each.name)}')} AS c{at}" for at, each in enumerate(columns)]
        keys = [f"t0.{identifier(name)} AS {identifier(raw(name))}" for name in source.identities]
        inner = f"SELECT {', '.join([*units, *reads, *keys])} FROM {rows}"  # noqa: S608
        shown = [f"u{at} AS {unit_name(at)}" for at in range(len(unit))]
        shown += [f"{clean(each, f'c{at}')} AS {identifier(each.name)}" for at, each in enumerate(columns)]
        shown += [identifier(raw(name)) for name in source.identities]
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

    def per_unit(self, source: PerUnit) -> str:
        """Sums within one unit, on integers: no row of another unit can move their last digit."""
        used = [
            *source.keys,
            *(each for one in source.aggregates for each in (one.value, one.where) if each is not None),
        ]
        depth, used_names = self.depth + 10, _names(used)
        scan = _Scan(source.relation, self.files, used_names, None, depth, self.ballast, self.matched, self.shared)
        owner, relation = _owner(source.relation), source.relation
        parts = range(len(unit_types(owner, self.files)))
        units = [f"{scan.unit(owner, at)} AS u{at}" for at in parts]
        keys = [f"{scan.key(each)} AS k{at}" for at, each in enumerate(source.keys)]
        sums = [f"{scan.aggregate(each, relation)} AS a{at}" for at, each in enumerate(source.aggregates)]
        keys += [f"{scan.raw(source.keys[int(name[1:])])} AS {identifier(raw(name))}" for name in source.identities]
        by = ", ".join(str(at + 1) for at in range(len(units) + len(keys)))
        real = f" HAVING NOT bool_or({spare(scan.first)})" if scan.spared else ""
        inner = f"SELECT {', '.join([*units, *keys, *sums])} FROM {scan.body()} GROUP BY {by}{real}"  # noqa: S608
        shown = [f"u{at} AS {unit_name(at)}" for at in parts]
        who = {f"k{at}" for at, key in enumerate(source.keys) if key.type is Type.UNIT}
        for name, column in source.columns.items():
            value = clean(column, name) if column.kind is not Kind.TEXT else f"left({name}, {LONGEST_TEXT})"
            shown.append(f"{presence(name) if name in who else value} AS {identifier(name)}")
        shown += [identifier(raw(name)) for name in source.identities]
        return f"SELECT {', '.join(shown)} FROM ({inner})"  # noqa: S608

    def stacked(self, source: Stacked) -> str:
        """UNION ALL."""
        texts = []
        for at, (relation, values) in enumerate(source.parts):
            depth = self.depth + 10 + at
            names = _names(values)
            scan = _Scan(relation, self.files, names, None, depth, self.ballast, self.matched, self.shared)
            owner = _owner(relation)
            parts = range(len(unit_types(owner, self.files)))
            shown = [f"{scan.unit(owner, part)} AS {unit_name(part)}" for part in parts]
            for place, value in enumerate(values):
                column = f"c{place}"
                held = scan.renderer.sql(value)
                if (
                    column in source.columns and source.columns[column].kind is Kind.TEXT
                ):  # of categories too, which are read as they are
                    held = f"left({held}, {LONGEST_TEXT})"
                shown.append(f"{held} AS {identifier(column)}")
                if column in source.identities:
                    shown.append(f"{scan.raw(value)} AS {identifier(raw(column))}")
            texts.append(scan.rows(shown))
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


class Publics(_Scan):
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
    if step is not None and not too_fine(step, low, high):  # whole numbers beyond 2⁵³: in steps of 1 they overflow
        return step
    if whole(value, columns.integers) and max(abs(low), abs(high)) < 2**53:
        return Fraction(1)
    return default_step(low, high if low < high else low + 1)


def presence(shown: str) -> str:
    """Of who somebody is, whether it is there: nothing else is asked, and to print some moments in time is fatal."""
    return f"CASE WHEN {shown} IS NOT NULL THEN 'there' END"


def raw(name: str) -> str:
    """The name under which a column's value in the file is kept, beside the one that its policy cleans."""
    return f"{name}{OURS}as it is"


def unit_name(at: int) -> str:
    """The name of a part of the unit, which no column has."""
    return identifier(f"{OURS}u{at}")


def _read(relation: Relation) -> set[str]:
    """The columns that a relation reads itself, also those of the relation around it."""
    found = _names([relation.where, *(join.on for join in relation.joins)])
    return found.union(*(_read(match.relation) for match in relation.matches))


def _parts(condition: Expression) -> tuple[Expression, ...]:
    """The conditions that all must hold."""
    if isinstance(condition, Call) and condition.function == "and":
        return condition.arguments
    return () if condition == TRUE else (condition,)


def _units(part: Expression) -> frozenset[str]:
    """The two columns of a = b that say who somebody is, or lead to it."""
    match part:
        case Call(function="eq", arguments=(Column(name=one, type=Type.UNIT), Column(name=other, type=Type.UNIT))):
            return frozenset({one, other})
    return frozenset()


def _names(expressions: Iterable[Expression]) -> set[str]:
    return {name for each in expressions for name in columns_of(each)}


class _Renderer(Renderer):
    """As elsewhere; columns that say who somebody is are compared as they lie in the file."""

    def sql(self, expression: Expression) -> str:
        """The expression as SQL."""
        if isinstance(expression, Column) and expression.type is Type.UNIT:
            return self.columns[raw(expression.name)]
        return super().sql(expression)
