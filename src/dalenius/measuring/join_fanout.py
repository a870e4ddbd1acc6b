"""What becomes of one row in a join: a question whose work explodes for one person would tell of that person.

Limits clip what a unit adds after the join. But where n rows of a unit meet n others, k tables make n to the power of k
rows before that: with one heavy unit in the data a question would run out of time or memory, and without it would not.
That is seen, whatever noise the answer has. So where several sources repeat one another's rows, all but the one with
the largest limit give only as many rows of a unit as their limit says, chosen by what is in them
(`statements.relation`); the choice is a function of the unit's own rows, so a relation stays separable. One row then
becomes at most the product of the other limits, and of how often public tables repeat it: a public number, which is
bounded here. The work for a unit stays within that multiple of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import Call, Column, Expression, Type, columns_of, conjuncts
from dalenius.measuring.relations import Join, Numbered, Open, Owned, PerUnit, Relation, Source, Stacked, full

if TYPE_CHECKING:
    from dalenius.errors import Place

MOST = 10**4  # rows that become of one
ABOVE = 16  # of them, those that a cut above a limit may make: each is paid for by every row (`rules.work`)


def row_limits(relation: Relation, *, inside: bool = False) -> dict[int, int | None]:
    """How many rows of one unit take part, by the id of each source that is cut; None: nothing says how many.

    Args:
        relation: Whose sources.
        inside: It stands in an EXISTS that `compares`: each row around meets all of its rows, so that all are cut.
    """
    wide = _repeating(relation)
    limits = {id(each): limit_of(each) for each in wide}
    widest = max(wide, key=lambda each: limits[id(each)] or 0, default=None)
    return {each: limit for each, limit in limits.items() if inside or each != id(widest)}


def cuts(relation: Relation, *, inside: bool = False) -> dict[int, int]:
    """Where each source that is cut is cut: at its limit, or above it as far as the work allows.

    A limit may be too low for some units; clipping then takes from them in proportion, but a cut would change what
    EXISTS says of them. So what is left of `ABOVE` is shared out.
    """
    limits = {each: limit for each, limit in row_limits(relation, inside=inside).items() if limit is not None}
    spare = ABOVE // max(1, fanout(relation, inside=inside))
    factor = max(1, math.floor(spare ** (1 / len(limits)) + 1e-9)) if limits else 1
    return {each: limit * factor for each, limit in limits.items()}


def compares(relation: Relation) -> bool:
    """Whether the relation of an EXISTS compares its rows with those around in more than who they belong to."""
    own = {full(each, name) for each in relation.sources for name in (*each.columns, *each.identities)}
    parts = (part for each in (relation.where, *(join.on for join in relation.joins)) for part in conjuncts(each))
    return any(columns_of(part) - own for part in parts if pair_of(part) is None)


def limit_of(source: Source) -> int | None:
    """How many rows of a source one unit has at most, as far as its owner says or was found."""
    if isinstance(source, Owned):
        declared, found = source.table.policy.contribution.rows, source.table.found
        return declared if declared is not None or found is None else found.rows
    return None if isinstance(source, Open) else source.rows


def check_fanout(relation: Relation, at: Place | None, *, inside: bool = False) -> None:
    """Refuses a join, or an EXISTS, that could make too many rows of one."""
    names = ", ".join(dict.fromkeys(map(_shown, relation.sources)))
    if None in row_limits(relation, inside=inside).values():
        raise QuestionRefusedError(
            f"Rows of {names} all meet one another.",
            why="How many one unit has is not limited, so one person could make the question run forever.",
            fix="Ask the owner for [contribution] rows, or group each by the unit first.",
            at=at,
        )
    made = fanout(relation, inside=inside)
    if made > MOST:
        raise QuestionRefusedError(
            f"The join of {names} repeats rows too often.",
            why=f"One row could become {made:,}, more than {MOST:,}: the time that it takes would tell of it.",
            fix="Join on keys that are unique in the other table, or group each table by the unit first.",
            at=at,
        )


def _shown(source: Source) -> str:
    return source.called if isinstance(source, Open) and not source.table.fingerprint.files else source.name


def fanout(relation: Relation, *, inside: bool = False, really: bool = False) -> int:
    """How many rows become of one row of one source, at most; ``really``: by where sources are cut, not by limits."""
    limits = (cuts if really else row_limits)(relation, inside=inside)
    found = math.prod(each or 1 for each in limits.values()) * _copies(relation)
    for join in relation.joins:
        match join.source:
            case PerUnit(relation=inner) if not _one_row(join.source):
                found *= fanout(inner, really=really)
            case Stacked(parts=parts):
                found *= sum(fanout(inner, really=really) for inner, _ in parts)
    # Each EXISTS is gone through for every row; one that only asks for equal units is looked up at once.
    compared = [each.relation for each in relation.matches if compares(each.relation)]
    return found * max(1, sum(fanout(each, inside=True, really=really) for each in compared))


def _copies(relation: Relation) -> int:
    """How often public tables repeat a row: each joined by what is equal to something of those before it."""
    waiting, found = [(each, each.source) for each in relation.joins if isinstance(each.source, Open)], 1
    while waiting:
        sizes = []
        for join, source in waiting:
            later = {full(each, name) for _, each in waiting if each is not source for name in each.columns}
            sizes.append(max(1, source.table.multiplicity(sorted(keys_of(join, relation, later, first=True)))))
        found *= min(sizes)
        del waiting[sizes.index(min(sizes))]
    return found


def keys_of(join: Join, relation: Relation, later: Collection[str] = (), *, first: bool = False) -> set[str]:
    """The columns of a source that are equal to something of other sources, but those whose columns come later.

    ``first``: by the time that rows meet. WHERE is tried after LEFT joins: it ties none of their sources to others, nor
    others to them, before that.
    """
    source, found = join.source, set[str]()
    mine = {full(source, name): name for name in source.columns}
    parts = (*conjuncts(relation.where), *conjuncts(join.on))
    if first:
        parts = conjuncts(join.on if join.left else relation.where)
    if first and not join.left:
        lefts = [each.source for each in relation.joins if each.left]
        later = {*later, *(full(each, name) for each in lefts for name in each.columns)}
    for part in parts:
        match part:
            case Call(function="eq", arguments=(one, other)):
                for side, rest in ((one, other), (other, one)):
                    others = columns_of(rest) - mine.keys()
                    if isinstance(side, Column) and side.name in mine and others and others.isdisjoint(later):
                        found.add(mine[side.name])
    return found


def pair_of(part: Expression) -> tuple[str, str] | None:
    """The two columns of a = b that say who somebody is."""
    match part:
        case Call(function="eq", arguments=(Column(name=one, type=Type.UNIT), Column(name=other, type=Type.UNIT))):
            return one, other
    return None


def _repeating(relation: Relation) -> list[Source]:
    """The sources whose rows meet all of one another's within a unit: no key of their own ties them to one before."""
    waiting = [each for each in relation.joins if not isinstance(each.source, Open) and not _one_row(each.source)]
    placed, wide = list[Source](), list[Source]()
    while waiting:
        tied = next((each for each in waiting if meets_one(each, relation, placed)), None)
        if tied is None:
            # Best one that nothing else leads to.
            others = {id(each): [one.source for one in waiting if one is not each] for each in waiting}
            tied = next((each for each in waiting if not meets_one(each, relation, others[id(each)])), waiting[0])
            wide.append(tied.source)
        placed.append(tied.source)
        waiting.remove(tied)
    return wide


def meets_one(join: Join, relation: Relation, others: Sequence[Source]) -> bool:
    """Whether a row of others meets at most one of this source, since it has a key of this one."""
    source = join.source
    if not others:
        return False
    inner = {each.source.name for each in relation.joins if not each.left}
    theirs = {full(each, name) for each in others if join.left or each.name in inner for name in each.identities}
    equal = set[str]()
    for part in conjuncts(join.on if join.left else relation.where):
        for mine, other in _both_ways(pair_of(part)):
            if other in theirs:
                equal.add(mine)
    return any(key and {full(source, name) for name in key} <= equal for key in _unique(source))


def _both_ways(pair: tuple[str, str] | None) -> tuple[tuple[str, str], ...]:
    return () if pair is None else (pair, pair[::-1])


def _unique(source: Source) -> Iterator[set[str]]:
    """The sets of a source's columns that no two of its rows share."""
    if isinstance(source, Owned):
        own = source.table.policy.name.lower()
        for name, names in source.identities.items():
            if f"{own}.{name}" in names:  # a path leads through it, hence it was checked
                yield {name}
    elif isinstance(source, PerUnit) and len(source.identities) == len(source.keys):
        yield {name for name, names in source.identities.items() if not any(each.startswith("unit ") for each in names)}


def _one_row(source: Source) -> bool:
    """Whether a unit has one row by construction."""
    if isinstance(source, Numbered):
        return source.numbering.most == 1 and not source.numbering.keys
    if not isinstance(source, PerUnit) or len(source.identities) < len(source.keys):
        return False
    return all(any(each.startswith("unit ") for each in names) for names in source.identities.values())
