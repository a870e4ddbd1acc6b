"""Whether joined tables speak of the same people, and what one unit then adds at most.

That units are equal is enforced by the statement itself (`statements.relation`): soundness does not rest on what is
worked out here. But a question that joins on something else would silently get another answer than it asked for, so it
is refused: every two protected tables must be tied by equal units, or by equal keys on the way to one.

Limits: where every other table is joined by a key that is unique in it, each row of the first table comes once, and
its limits hold. Otherwise rows are repeated, and the limit of rows is multiplied by how often. A wrong guess here costs
accuracy, never privacy: what one unit adds is clipped to the limit whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.errors import NotAllowedError, QuestionRefusedError
from dalenius.measuring.expressions import Column, Expression, Type, conjuncts
from dalenius.measuring.join_fanout import check_fanout, compares, keys_of, limit_of, meets_one, pair_of
from dalenius.measuring.listed import is_listed
from dalenius.measuring.plan import Found, Table
from dalenius.measuring.relations import Join, Open, Owned, PerUnit, Relation, Source, full, same_unit
from dalenius.queries.rules.parse import as_written
from dalenius.tables.policy import Column as Spec
from dalenius.tables.policy import Contribution, Kind, Period, Policy

if TYPE_CHECKING:
    from dalenius.errors import Place

MOST_ROWS = 2**40  # of one unit in a join, as far as limits are concerned


def check_relation(
    relation: Relation,
    identities: Mapping[str, frozenset[str]],
    parts: int,
    at: Place | None,
    places: Mapping[str, Place] | None = None,
) -> None:
    """Refuses joins of people with others, and rows that belong to nobody; ``places``: where each source stands."""
    places = places or {}
    _check_datasets(relation, at)
    owner = relation.owner
    if owner is None:
        _refuse_public(relation, at)
        return
    tied, waiting = [owner], [each for each in relation.joins if each.source is not owner]
    inner = conjuncts(relation.where)
    while True:
        ready = [
            join
            for join in waiting
            if isinstance(join.source, Open)
            or any(
                _tied(join.source, one, conjuncts(join.on) if join.left else inner, identities, parts) for one in tied
            )
        ]
        if not ready:
            break
        tied += [join.source for join in ready if not isinstance(join.source, Open)]
        waiting = [join for join in waiting if join not in ready]
    if waiting:
        _refuse_tie(waiting[0].source, owner, places.get(waiting[0].source.name, at))
    _check_public(relation, at, places)
    check_fanout(relation, at)
    for match in relation.matches:
        check_match(match.relation, owner, identities, parts, at, places)


def check_match(
    inner: Relation,
    outer: Source,
    identities: Mapping[str, frozenset[str]],
    parts: int,
    at: Place | None,
    places: Mapping[str, Place],
) -> None:
    """Refuses an EXISTS about other people's rows."""
    if inner.owner is None:
        _check_only_public(inner, at)
        _refuse_public(inner, at)
        check_fanout(inner, at)
        hidden = next((each.relation.owner for each in inner.matches if each.relation.owner is not None), None)
        if hidden is not None:  # nothing there says whose rows they would have to be
            _refuse_tie(hidden, outer, at)
        for match in inner.matches:
            check_match(match.relation, outer, identities, parts, at, places)
        return
    check_relation(inner, identities, parts, at, places)
    check_fanout(inner, at, inside=compares(inner))
    mine = {full(each, name) for each in inner.sources for name in each.identities}
    shared: set[str] = set()
    for part in conjuncts(inner.where):
        pair = pair_of(part)
        if pair is not None and (pair[0] in mine) != (pair[1] in mine):
            shared |= identities.get(pair[0], frozenset()) & identities.get(pair[1], frozenset())
    if not same_unit(shared, parts):
        _refuse_tie(inner.owner, outer, places.get(inner.owner.name, at))


def _tied(
    one: Source,
    other: Source,
    conditions: Sequence[Expression],
    identities: Mapping[str, frozenset[str]],
    parts: int,
) -> bool:
    """Whether conditions say that two sources speak of one unit."""
    mine, theirs = ({full(each, name) for name in each.identities} for each in (one, other))
    shared: set[str] = set()
    for part in conditions:
        pair = pair_of(part)
        if pair is not None and ((pair[0] in mine and pair[1] in theirs) or (pair[0] in theirs and pair[1] in mine)):
            shared |= identities[pair[0]] & identities[pair[1]]
    return same_unit(shared, parts)


# --- refusals


def _check_datasets(relation: Relation, at: Place | None) -> None:
    tables = list(relation.tables())
    other = next((each for each in tables if each.policy.dataset != tables[0].policy.dataset), None)
    if other is not None:
        one, two = tables[0].policy, other.policy
        raise NotAllowedError(
            f"Tables {one.name!r} and {two.name!r} are not of one data set.",
            why="Protected tables join only where they hold the same people, who then pay once from one budget.",
            fix=f"Ask about each, or ask the owner whether {two.name!r} belongs to data set {one.dataset!r}.",
            at=at,
        )


def _refuse_public(relation: Relation, at: Place | None) -> None:
    kept = next((each for each in relation.joins if not isinstance(each.source, Open)), None)
    if kept is not None:
        raise QuestionRefusedError(
            f"LEFT JOIN would keep rows of {_shown(relation.sources[0])} that belong to nobody.",
            why="Every row that is counted must belong to a unit; here the other table may leave it out.",
            fix=f"Put {_shown(kept.source)} first, or write JOIN.",
            at=at,
        )


def _check_only_public(inner: Relation, at: Place | None) -> None:
    """An EXISTS over public rows has no unit of its own that rows of people in it could be compared with."""
    people = next(inner.tables(), None)
    if people is not None:
        raise QuestionRefusedError(
            f"Rows of {people.policy.name!r} stand behind a public table in EXISTS or IN.",
            why="It is then not plain whose they are.",
            fix=f"Put {people.policy.name!r} first in FROM of the subquery, or write an EXISTS of its own for it.",
            at=at,
        )


def _shown(source: Source) -> str:
    """A source as people know it."""
    if isinstance(source, Owned | Open):
        name = source.table.policy.name if isinstance(source, Owned) else source.table.name
        if isinstance(source, Open) and is_listed(source.table):
            return f"the list {source.called!r}"
        return repr(name if source.name in {"", name} else source.called or name)
    return "the subquery"


def _refuse_tie(source: Source, owner: Source, at: Place | None) -> None:
    one, other = map(_shown, (owner, source))
    tables = [each for each in (owner, source) if isinstance(each, Owned) and each.name]
    ways = [
        f"{as_written(each.called or each.table.policy.name)}.{name}" for each in tables for name in each.identities
    ]
    raise QuestionRefusedError(
        f"The join of {one} and {other} does not say that they are about the same unit.",
        why="Protected tables join on equal units only, or on keys that lead to them; else one person's rows would "
        "meet another's.",
        fix=f"Add the condition that their units are equal ({', '.join(ways)})." if ways else "Join on the unit.",
        at=at,
    )


def _check_public(relation: Relation, at: Place | None, places: Mapping[str, Place]) -> None:
    for join in relation.joins:
        if isinstance(join.source, Open) and not keys_of(join, relation):
            if is_listed(join.source.table):
                raise QuestionRefusedError(
                    f"Nothing ties the list {join.source.called!r} to the other tables.",
                    why="Without an equality, every row would meet every value of it.",
                    fix="Write ON t.x = k.x; for classes of numbers, CASE WHEN x BETWEEN 0 AND 17 THEN 'a' … END.",
                    at=places.get(join.source.name, at),
                )
            raise QuestionRefusedError(
                f"Nothing ties public table {join.source.table.name!r} to the others.",
                why="Without an equality, every row would meet every row of it.",
                fix=f"Join it on a key, as in ON a.region = regions.code{_of_days(join.source)}.",
                at=places.get(join.source.name, at),
            )


def _of_days(source: Open) -> str:
    """How a moment meets a day of a public table: types must be the same."""
    names = [name for name, each in source.columns.items() if each.kind is Kind.DATE]
    return f", or CAST(a.t AS DATE) = {as_written(source.table.name)}.{as_written(names[0])}" if names else ""


# --- limits


@dataclass(frozen=True)
class JoinLimits:
    """What one unit adds to a relation at most, as far as is known."""

    rows: int | None
    first: Owned | None
    times: int
    totals: Mapping[str, Fraction] = field(default_factory=dict)
    declared: bool = True


def limits_of(relation: Relation) -> JoinLimits:
    """The least limit of rows that any table's own limit gives."""
    found: list[JoinLimits] = []
    for join in relation.joins:
        source, rows = join.source, limit_of(join.source)
        if isinstance(source, Open) or join.left or rows is None:
            continue
        times = _times(join, relation)
        owned = source if isinstance(source, Owned) else None
        totals = _totals(owned, times) if owned is not None else {}
        found.append(JoinLimits(min(rows * times, MOST_ROWS), owned, times, totals))
    if not found:
        return JoinLimits(None, None, 1)
    best = min(found, key=lambda each: (each.rows or 0, each.times, each.first.name if each.first else ""))
    totals = {name: value for each in found for name, value in each.totals.items()}
    declared = all(
        each.table.policy.contribution.rows is not None for each in relation.sources if isinstance(each, Owned)
    ) and not any(isinstance(each, PerUnit) for each in relation.sources)
    return replace(best, declared=declared, totals=totals)


def _totals(source: Owned, times: int) -> dict[str, Fraction]:
    policy, found = source.table.policy, source.table.found
    totals = {**(found.totals if found else {}), **policy.contribution.totals}
    return {full(source, name): value * times for name, value in totals.items()}


def _times(base: Join, relation: Relation) -> int:
    """How many rows become of one of ``base``, at most.

    The others are joined one after the other. One that is tied to those before by a key of its own repeats nothing;
    that it is tied to one which comes later does not help.
    """
    inside, times = [base.source], 1
    left = [each for each in relation.joins if each is not base]
    for join in [each for each in left if isinstance(each.source, Open)]:
        times *= max(1, join.source.table.multiplicity(sorted(keys_of(join, relation))))  # type: ignore[union-attr]
        left.remove(join)
    while left:
        following = next((each for each in left if meets_one(each, relation, inside)), None)
        if following is None:
            following = min(left, key=lambda each: limit_of(each.source) or MOST_ROWS)
            times *= limit_of(following.source) or MOST_ROWS
        left.remove(following)
        inside.append(following.source)
    return times


# --- the made-up table


def join_table(relation: Relation, at: Place | None = None) -> Table:
    """The relation as one table: its columns, its unit and its limits."""
    tables = list(relation.tables())
    first, known = tables[0], limits_of(relation)
    policy, budget = first.policy, first.budget
    contributions = [each.policy.contribution for each in tables]
    groups = [each.groups for each in contributions if each.groups is not None]
    units = [each.units for each in contributions if each.units is not None]
    made_up = Policy(
        " + ".join(dict.fromkeys(each.policy.name for each in tables)),
        (),
        _unit_names(len(policy.unit), relation),
        policy.neighbors,
        policy.dataset,
        columns=relation.columns,
        contribution=Contribution(
            known.rows if known.declared else None,
            min(groups, default=None),
            dict(known.totals) if known.declared else {},
            max(units, default=None),
        ),
        time=policy.time,
    )
    found = None if known.declared or known.rows is None else _found(known)
    return Table(made_up, budget, _period(relation, tables, at), found, made_of=relation)


def narrow_table(table: Table, used: Iterable[Column]) -> Table:
    """The made-up table with those columns alone that a question reads."""
    columns = {}
    for each in used:
        # Who somebody is can only be there or not.
        unit = each.type is Type.UNIT and each.name not in table.policy.columns
        columns[each.name] = Spec(each.name, Kind.TEXT) if unit else table.policy.columns[each.name]
    return replace(table, policy=replace(table.policy, columns=columns))


def _unit_names(parts: int, relation: Relation) -> tuple[str, ...]:
    mark = "unit"
    while any(name.startswith(mark) for name in relation.columns):
        mark += "'"
    return tuple(f"{mark} {at}" for at in range(parts))


def _found(known: JoinLimits) -> Found:
    """Limits that were found for the tables, as those of the relation."""
    own = known.first.table.found if known.first is not None else None
    rows = known.rows or 1
    if own is None or known.first is None:
        return Found(rows, known.totals)
    once = known.times == 1
    return Found(
        rows,
        known.totals,
        {full(known.first, name): value for name, value in own.norms.items()} if once else {},
        own.units,
        own.row_count * known.times,
        {full(known.first, name): value for name, value in own.distinct.items()},
        {},
    )


def _period(relation: Relation, tables: Sequence[Table], at: Place | None) -> Period | None:
    """The column that tells the period, where budgets have one."""
    period = tables[0].period
    if tables[0].budget.period is None or period is None:
        return period
    owned = [each for inner in relation.within() for each in inner.sources if not isinstance(each, Open)]
    if len(owned) != 1 or not isinstance(owned[0], Owned) or tables[0].through:
        raise NotAllowedError(
            "Tables whose budget is per period cannot be joined with one another.",
            why="A unit is one person in one period; rows of different periods belong to different units.",
            fix="Ask about one of them; it can be joined with public tables.",
            at=at,
        )
    return Period(full(owned[0], period.column), period.every)
