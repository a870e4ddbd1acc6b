"""That units and keys can be compared as they lie in the files, before a question is charged.

They are compared without any conversion of ours. Where two columns have different types, the engine would convert one
of them, and fail on a row whose value has no counterpart: an error that depends on somebody's row (ATTACKS, H6). So
such a question is refused from the types alone, which are public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError
from dalenius.measuring.expressions import Call, Column, Expression, Type, walk
from dalenius.measuring.relations import Open, Owned, PerUnit, Relation, Source, Stacked, full
from dalenius.tables.compatibility import comparable

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements.relation import Files


def check_comparable(relation: Relation, files: Files) -> None:
    """Refuses a relation that compares units, or keys on the way to them, of different types."""
    types: dict[str, str] = {}
    for each in reversed(list(relation.within())):  # what is inside a subquery before the subquery itself
        for source in each.sources:
            types |= {full(source, name): _type(source, name, types, files) for name in source.identities}
    for each in relation.within():
        for one, other in _pairs(each):
            _check(one, other, types[one], types[other])
    for first, *others in filter(None, _together(relation, None)):
        for source in others:
            for one_type, other_type in zip(_unit(first, files), _unit(source, files), strict=True):
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


def _pairs(relation: Relation) -> Iterator[tuple[str, str]]:
    """All comparisons of columns that say whose a row is."""
    for condition in (relation.where, *(join.on for join in relation.joins)):
        for part in walk(condition):
            match part:
                case Call(arguments=(Column(name=one, type=Type.UNIT), Column(name=other, type=Type.UNIT))):
                    yield one, other
    for source in relation.sources:
        if isinstance(source, Stacked):
            yield from _stacked([values for _, values in source.parts])


def _stacked(parts: Sequence[Sequence[Expression]]) -> Iterator[tuple[str, str]]:
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


def _unit(source: Source, files: Files) -> list[str]:
    from dalenius.measuring.engines.duckdb.statements.relation import unit_types

    return unit_types(source, files)


def _check(one: str, other: str, one_type: str, other_type: str) -> None:
    if one_type and other_type and not comparable(one_type, other_type):
        raise NotAllowedError(
            f"{one!r} and {other!r} say who somebody is in different types ({one_type} and {other_type}).",
            why="They are compared as they lie in the files, and a conversion could fail on somebody's row.",
            fix="Ask the owner to write both columns in one type; until then ask about each table by itself.",
        )
