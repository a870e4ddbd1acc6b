"""The fifth pass: which groups, which exact integers, and how much one unit can change them.

The family of each aggregate (`measuring.statistics`) says which measures it needs, and builds them under the limits
that hold for this question; what a limit does, and what one unit can then change, is in `measuring.measures`. With
grouping sets a unit's vector goes over the groups of all sets, and is clipped as a whole; `sets` says at what.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dalenius.errors import InputError
from dalenius.ledger.budgets import Accounting
from dalenius.measuring.building import Builder, Tightened
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Aggregate, Column, Expression, columns_of, written
from dalenius.measuring.function_values import column_values
from dalenius.measuring.measures import refine
from dalenius.measuring.periods import charged_periods, paying_periods, within_periods
from dalenius.measuring.plan import Limits, Plan, SelectionPlan, Table, require
from dalenius.measuring.statistics import family_for
from dalenius.measuring.statistics.family import StatisticRequest
from dalenius.queries.public_facts import facts_about
from dalenius.queries.rules.clause import check_options
from dalenius.queries.rules.sets import lay_out_groups
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.queries.rules import Stage

FEWEST_KEYS, MOST_KEYS, USUAL_KEYS = 16, 200, 32  # on which one unit weighs while they are found
Limit = TypeVar("Limit", int, Fraction)


def bound_measures(stage: Stage) -> Stage:
    """The plan without its prices and its SQL."""
    question, safe = require(stage.question), require(stage.safe)
    table = question.table
    limits = tighten_limits(table, stage.limits)
    first = question.places.get(question.aggregates[0])
    read = charged_periods(table, safe.where)
    periods = paying_periods(table, read)
    norm = "l1" if table.budget.accounting is Accounting.PURE else "l2"
    columns = table.policy.columns
    possible = partial(facts_about, table, safe.where)
    groups = lay_out_groups(question.sets, safe.keys, columns, first, pure=norm == "l1", possible=possible)
    selection = _selection(table, [groups.own[each] for each in groups.hidden], limits, stage.limits)
    if selection is not None and groups.sets:
        selection = replace(selection, sets=groups.hidden)
    said = check_options(require(stage.options), found=selection is not None)
    if selection is not None and any(map(_counts_units, question.aggregates)):
        limits = replace(limits, groups=selection.cap)  # ones in a limited number of groups
    builder = Builder(
        table.policy,
        limits,
        groups.sizes,
        norm,
        table.budget.neighbors,
        [found_norm(table, each) for each in groups.own],
        table.unit,
    )
    shared: dict[tuple[str, ...], list[Aggregate]] = {}
    for each in question.aggregates:
        shared.setdefault(_identity(each, *safe.values[each]), []).append(each)
    statistics = {}
    for identity, aggregates in shared.items():
        one = aggregates[0]
        value, where = safe.values[one]
        wanted = StatisticRequest(tuple(aggregates), value, safe.others.get(one), where, question.places.get(one))
        statistics[identity] = family_for(one.kind).build(builder, wanted)
    # The order in which columns were asked for does not matter to what is measured.
    order = sorted(statistics)
    numbers = {each: order.index(identity) for identity, aggregates in shared.items() for each in aggregates}
    plan = Plan(
        question,
        call("and", safe.where, within_periods(table, read)),
        groups.keys,
        groups.cells,
        limits.groups if limits.groups is not None and limits.groups < groups.finest else None,
        tuple(statistics[identity] for identity in order),
        {each: numbers[each] for each in question.aggregates},
        norm,
        periods,
        selection,
        notes=(
            *_notes(table, question.aggregates, read),
            *_both_pay(read, periods),
            *_unseen(table, question.aggregates),
            *_kept(table, stage.limits),
            *builder.notes,
            *question.notes,
            *said,
        ),
        sets=groups.sets,
    )
    return stage.with_(plan=refine(plan))


def _identity(aggregate: Aggregate, value: Expression | None, where: Expression) -> tuple[str, ...]:
    """What it is measured by: aggregates of one family with the same arguments, rows and limit share a statistic."""
    arguments = ", ".join(written(each) for each in (value, aggregate.other) if each is not None)
    limit = () if aggregate.limit is None else (str(aggregate.limit),)
    return family_for(aggregate.kind).name, arguments, written(where), *limit


def _counts_units(aggregate: Aggregate) -> bool:
    return family_for(aggregate.kind).counts_units


def _notes(table: Table, aggregates: Sequence[Aggregate], periods: tuple[str, ...]) -> tuple[str, ...]:
    if periods != ("",) and any(map(_counts_units, aggregates)):
        return (f"Each period has its own units: somebody in two periods counts twice ({', '.join(table.unit)}).",)
    return ()


def _both_pay(read: tuple[str, ...], periods: tuple[str, ...]) -> tuple[str, ...]:
    others = [each for each in periods if each not in read]
    if not others:
        return ()
    shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return (f"It is charged to {shown} too: some of these rows were counted there before the policy's bounds changed.",)


def _unseen(table: Table, aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """Says that the limit of rows is the least there is, since the noise at `protect` hid all units."""
    found = table.found
    if found is None or table.policy.contribution.rows is not None or found.rows > 1 or "rows" in found.clipped:
        return ()
    if not table.relation.single:  # whose limits were worked out, not seen
        return ()
    if all(map(_counts_units, aggregates)):
        return ()
    unit = " + ".join(table.unit)
    why = "there are too few of them to see privately how many rows they have"
    return (f"Only 1 row of one {unit} counts: {why}. The owner can declare it: [contribution] rows.",)


def _kept(table: Table, asked: Limits) -> tuple[str, ...]:
    """Says which limits that were asked for are none, since the table's own are lower."""
    declared, found = table.policy.contribution, table.found
    rows = declared.rows if declared.rows is not None or found is None else found.rows
    totals = {**(found.totals if found else {}), **declared.totals}
    pairs: list[tuple[str, Fraction | int | None, Fraction | int | None]] = [
        ("rows", asked.rows, rows),
        ("groups", asked.groups, declared.groups),
        *((f"the total of {name}", value, totals.get(name)) for name, value in asked.totals.items()),
    ]
    return tuple(
        f"The table's own limit of {what} is lower than the one you gave, and holds: {float(own):,.10g}."
        for what, value, own in pairs
        if value is not None and own is not None and value > own
    )


def tighten_limits(table: Table, asked: Limits) -> Tightened:
    """The limits that hold for this question: the policy's, or lower ones."""
    policy, declared, found = table.policy, table.policy.contribution, table.found
    totals = {**(found.totals if found else {}), **declared.totals}
    rows = declared.rows if declared.rows is not None or found is None else found.rows
    for name, value in asked.totals.items():
        column = policy.columns.get(name)
        if column is None or not column.summable:
            meant = nearest(name, [each for each, spec in policy.columns.items() if spec.summable])
            raise InputError(
                f"There is no total of {name!r} to limit.",
                why="A total needs a number column with bounds.",
                fix=f"Did you mean {meant!r}?" if meant else "Name a column that can be summed.",
            )
        totals[name] = _lower(f"total {name}", value, totals.get(name)) or value
    typical = None
    if found is not None and declared.rows is None and asked.rows is None:
        typical = -(-2 * max(1, found.row_count) // max(1, found.units))
    groups, distinct = _lower("groups", asked.groups, declared.groups), found.distinct if found else {}
    return Tightened(_lower("rows", asked.rows, rows), groups, totals, distinct, typical)


def _lower(what: str, asked: Limit | None, declared: Limit | None) -> Limit | None:
    if asked is None:
        return declared
    if asked <= 0:
        raise InputError(
            f"The limit {what} must be above 0.", why="A unit must be able to add something.", fix="Raise it."
        )
    return asked if declared is None or asked <= declared else declared


def _selection(
    table: Table, hidden: Sequence[Sequence[Expression]], limits: Tightened, asked: Limits
) -> SelectionPlan | None:
    """How the keys are found: on how many of them a unit weighs, and how many units a group must have.

    ``hidden`` are the keys of each grouping set whose groups are not public; a unit weighs on those of all together.
    """
    if not hidden:
        return None
    units = max(table.policy.contribution.units or 0, asked.units or 0)
    if limits.groups is not None:
        return SelectionPlan(min(limits.groups * len(hidden), MOST_KEYS), units)
    known, most = table.found.distinct if table.found is not None else {}, 0
    for keys in hidden:
        read = frozenset().union(*map(columns_of, keys))
        caps = [known.get(name) or len(column_values(table.policy.columns[name]) or ()) for name in read]
        most += math.prod(caps) if all(caps) else USUAL_KEYS
    return SelectionPlan(max(FEWEST_KEYS, min(most, MOST_KEYS)), units)


def found_norm(table: Table, keys: Sequence[Expression]) -> int | None:
    """The least norm of a unit's rows that was found over one of the keys; finer groups only shorten the vector."""
    norms = table.found.norms if table.found and table.policy.contribution.rows is None else {}
    return min((norms[key.name] for key in keys if isinstance(key, Column) and key.name in norms), default=None)
