"""Whose a row is: units, and the keys that lead to them, as they lie in the files.

They are compared without any conversion of ours. Where two columns have different types, the engine would convert one
of them, and fail on a row whose value has no counterpart: an error that depends on somebody's row (ATTACKS, H6). So
such a question is refused from the types alone, which are public (`check_comparable`), before it is charged.

A table with a path reads its unit along it, unless the question joins it on the path's own key: where l_orderkey is
the o_orderkey of a row of orders, that row is the one on the path, because o_orderkey is unique (`protect` checks it),
and its unit is the one that the path leads to. Then the unit is taken from there (`UnitScope.lender`), and the path is
not walked a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dalenius.errors import NotAllowedError
from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, Type, columns_of, walk
from dalenius.measuring.join_fanout import compares, cuts
from dalenius.measuring.relations import Join, Open, Owned, PerUnit, Relation, Source, Stacked, full
from dalenius.tables.compatibility import comparable

OURS = "\x1f"  # columns of policies are printable: none has a name with this in it


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


def unit_types(source: Source, files: Files) -> list[str]:
    """The types of a source's unit columns, as they lie in the file."""
    match source:
        case Owned(table=table):
            last = table.policy.path[-1].table if table.policy.path else table.policy.name
            return [files.types(last)[name] for name in table.policy.unit]
        case PerUnit(relation=relation):
            return unit_types(owner_of(relation), files)
        case Stacked(parts=parts):
            return unit_types(owner_of(parts[0][0]), files)
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


def owner_of(relation: Relation) -> Source:
    """The source whose units a relation's rows have."""
    if relation.owner is None:
        raise RuntimeError("A relation without units was compiled.")
    return relation.owner


def raw_name(name: str) -> str:
    """The name under which a column's value in the file is kept, beside the one that its policy cleans."""
    return f"{name}{OURS}as it is"


def unit_name(at: int) -> str:
    """The name of a part of the unit, which no column has."""
    return identifier(f"{OURS}u{at}")


def parts_of_and(condition: Expression) -> tuple[Expression, ...]:
    """The conditions that all must hold."""
    if isinstance(condition, Call) and condition.function == "and":
        return condition.arguments
    return () if condition == TRUE else (condition,)


class UnitScope:
    """What a relation's columns and units are called in its SELECT.

    Args:
        relation: What is written.
        files: Where its tables lie.
        outer: The scope around it, where it stands within EXISTS.
        depth: Tells the names of nested ones apart.
    """

    def __init__(self, relation: Relation, files: Files, outer: UnitScope | None, depth: int) -> None:
        self.relation, self.files, self.outer, self.depth = relation, files, outer, depth
        self.aliases = {id(source): f"s{depth}_{at}" for at, source in enumerate(relation.sources)}
        self.cuts = cuts(relation, inside=outer is not None and compares(relation))
        self.lenders: dict[int, tuple[UnitScope, Source]] = {}
        for join in relation.joins:
            lender = self.lender(join)
            if lender is not None:
                self.lenders[id(join.source)] = lender
        columns: dict[str, str] = {} if outer is None else dict(outer.columns)
        for source in relation.sources:
            for name in (*source.columns, *source.identities):
                columns[full(source, name)] = f"{self.aliases[id(source)]}.{identifier(name)}"
            for name in source.identities:
                columns[raw_name(full(source, name))] = f"{self.aliases[id(source)]}.{identifier(raw_name(name))}"
            if isinstance(source, Owned) and not source.table.policy.path:  # then u0, u1 … are those very columns
                for at, name in enumerate(source.table.policy.unit):
                    columns[raw_name(full(source, name))] = self.unit(source, at)
        self.columns: dict[str, str] = columns

    def reads(self, expression: Expression) -> set[str]:
        """The items that an expression reads, also of those around."""
        return {self.columns[name].split(".", 1)[0] for name in columns_of(expression)}

    @property
    def first(self) -> str:
        """An item whose row is there in every row, so that it is the spare one wherever all are."""
        return self.aliases[id(next(each.source for each in self.relation.joins if not each.left))]

    def unit(self, source: Source, at: int) -> str:
        """A part of a source's unit."""
        if id(source) in self.lenders:
            scan, lender = self.lenders[id(source)]
            return scan.unit(lender, at)
        return f"{self.aliases[id(source)]}.{unit_name(at)}"

    def lender(self, join: Join) -> tuple[UnitScope, Source] | None:
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
            for part in parts_of_and(join.on if join.left else self.relation.where)
            for pair in [_compared_units(part)]
            if mine in pair
            for name in pair - {mine}
        }
        scan: UnitScope | None = self
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


def _compared_units(part: Expression) -> frozenset[str]:
    """The two columns of a = b that say who somebody is, or lead to it."""
    match part:
        case Call(function="eq", arguments=(Column(name=one, type=Type.UNIT), Column(name=other, type=Type.UNIT))):
            return frozenset({one, other})
    return frozenset()


def check_comparable(relation: Relation, files: Files) -> None:
    """Refuses a relation that compares units, or keys on the way to them, of different types."""
    types: dict[str, str] = {}
    for each in reversed(list(relation.within())):  # what is inside a subquery before the subquery itself
        for source in each.sources:
            types |= {full(source, name): _type(source, name, types, files) for name in source.identities}
    for each in relation.within():
        for one, other in _compared_columns(each):
            _check(one, other, types[one], types[other])
    for first, *others in filter(None, _together(relation, None)):
        for source in others:
            for one_type, other_type in zip(unit_types(first, files), unit_types(source, files), strict=True):
                _check(first.name, source.name, one_type, other_type)


def _type(source: Source, name: str, types: Mapping[str, str], files: Files) -> str:
    """The type of a column that says whose a row is, as it lies in the file."""
    if isinstance(source, Owned):
        return files.types(source.table.policy.name)[name]
    if isinstance(source, Open):
        return source.table.types[name]
    at = int(name[1:])
    inner = source.keys[at] if isinstance(source, PerUnit) else source.parts[0][1][at]
    return types[inner.name] if isinstance(inner, Column) else ""


def _compared_columns(relation: Relation) -> Iterator[tuple[str, str]]:
    """All comparisons of columns that say whose a row is."""
    for condition in (relation.where, *(join.on for join in relation.joins)):
        for part in walk(condition):
            match part:
                case Call(arguments=(Column(name=one, type=Type.UNIT), Column(name=other, type=Type.UNIT))):
                    yield one, other
    for source in relation.sources:
        if isinstance(source, Stacked):
            yield from _stacked_columns([values for _, values in source.parts])


def _stacked_columns(parts: Sequence[Sequence[Expression]]) -> Iterator[tuple[str, str]]:
    """The columns of UNION ALL that stand below one another and say whose a row is."""
    for column in zip(*parts, strict=True):
        named = [each.name for each in column if isinstance(each, Column) and each.type is Type.UNIT]
        yield from ((named[0], each) for each in named[1:])


def _together(relation: Relation, around: Source | None) -> Iterator[list[Source]]:
    """Sources whose units the statement compares: those of one relation, with the ones around an EXISTS."""
    owned: list[Source] = [each for each in relation.sources if not isinstance(each, Open)]
    yield [around, *owned] if around is not None else owned
    for source in owned:
        if isinstance(source, PerUnit):
            yield from _together(source.relation, None)
        elif isinstance(source, Stacked):
            for part, _ in source.parts:
                yield from _together(part, None)
            yield [owner for part, _ in source.parts if (owner := part.owner) is not None]
    for match in relation.matches:
        yield from _together(match.relation, relation.owner)


def _check(one: str, other: str, one_type: str, other_type: str) -> None:
    if one_type and other_type and not comparable(one_type, other_type):
        raise NotAllowedError(
            f"{one!r} and {other!r} say who somebody is in different types ({one_type} and {other_type}).",
            why="They are compared as they lie in the files, and a conversion could fail on somebody's row.",
            fix="Ask the owner to write both columns in one type; until then ask about each table by itself.",
        )
