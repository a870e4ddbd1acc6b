"""What the question itself says about every row that counts: its conditions, and what public tables allow.

Of the groups that public keys give, many may be impossible: with r_name = 'ASIA', a nation of Europe has no rows,
whoever is in the data. Only the question and public tables are looked at, so which groups are left out tells nothing
about anyone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from dalenius.measuring.cache import WeightedCache, weight_of
from dalenius.measuring.canonical import call
from dalenius.measuring.domains import MOST_VALUES, Facts, most_cells
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, columns_of, conjuncts
from dalenius.measuring.relations import Join, Open, Relation, full

if TYPE_CHECKING:
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable

_KEPT: WeightedCache[tuple[tuple[Cell, ...] | None]] = WeightedCache(MOST_VALUES)
MOST_ROWS = 2**18  # of public tables joined with one another, and of each of them


def facts_about(table: Table, where: Expression, keys: Iterable[Expression]) -> Facts:
    """What holds for all rows of a question on ``table``, as far as it concerns its keys."""
    read = frozenset().union(*map(columns_of, keys))
    if not read:
        return Facts(_parts(where))
    relation = table.relation
    parts = (*_parts(relation.where), *_parts(where))
    return Facts(parts, tuple(_joint(relation, parts, read)))


def _parts(condition: Expression) -> tuple[Expression, ...]:
    return () if condition == TRUE else conjuncts(condition)


def _joint(
    relation: Relation, parts: tuple[Expression, ...], read: frozenset[str]
) -> Iterable[tuple[tuple[str, ...], tuple[Cell, ...]]]:
    """For each public table with keys, and those joined to it: all combinations of the keys' values."""
    # A row that LEFT JOIN did not find has NULL instead.
    waiting = {each.source.name: each for each in relation.joins if isinstance(each.source, Open) and not each.left}
    for name in list(waiting):
        if name not in waiting or not read.intersection(_columns(waiting[name])):
            continue
        chosen = _around(waiting.pop(name), waiting, parts)
        columns = frozenset().union(*map(_columns, chosen))
        wanted = tuple(sorted(read & columns))
        where = call("and", *(each for each in parts if columns_of(each) and columns_of(each) <= columns))
        found = _combinations(Relation(tuple(chosen), where), wanted)
        if found is not None:
            yield wanted, found


def _columns(join: Join) -> frozenset[str]:
    return frozenset(full(join.source, name) for name in join.source.columns)


def _around(first: Join, waiting: dict[str, Join], parts: Iterable[Expression]) -> list[Join]:
    """A public table and those that equalities tie to it, as long as few rows come of it; they no longer wait."""
    chosen, rows = [first], _table(first).rows
    while True:
        own = frozenset().union(*map(_columns, chosen))
        for name, join in waiting.items():
            tied = _tied(join, own, parts)
            if tied and rows * max(1, _table(join).multiplicity(sorted(tied))) <= MOST_ROWS:
                rows *= max(1, _table(join).multiplicity(sorted(tied)))
                chosen.append(waiting.pop(name))
                break
        else:
            return chosen


def _tied(join: Join, own: frozenset[str], parts: Iterable[Expression]) -> set[str]:
    """The columns of a table that must equal one of ``own``."""
    mine, found = {full(join.source, name): name for name in join.source.columns}, set[str]()
    for part in parts:
        match part:
            case Call(function="eq", arguments=(Column(name=one), Column(name=other))):
                for side, rest in ((one, other), (other, one)):
                    if side in mine and rest in own:
                        found.add(mine[side])
    return found


def _table(join: Join) -> PublicTable:
    return cast("Open", join.source).table


def _combinations(relation: Relation, wanted: tuple[str, ...]) -> tuple[Cell, ...] | None:
    """All combinations of some columns' values; None where there are too many. Kept: files are read for it."""
    from dalenius.measuring.engines.sources import reference

    # Public tables joined; the same text on the same files is the same.
    text, files = relation.written(), sorted((each.name, each.fingerprint.content) for each in relation.publics())
    key = (text, *files, wanted)
    kept = _KEPT.get(key)
    if kept is None:
        found = reference().public_combinations(relation, wanted, most_cells(len(wanted)), MOST_ROWS)
        kept = (found,)
        _KEPT.put(key, kept, weight_of(found or ()) + weight_of([(text,)]))
    return kept[0]
