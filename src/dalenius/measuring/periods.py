"""Budgets per period: which periods a question reads, and is charged to in full.

With `period = { column = "when", every = "month" }` the unit is the person-month. A question is charged to every month
between the bounds of the column, or between those that its WHERE allows; rows outside of the charged months are not
read, so that the charge always covers what was looked at.

A policy with other bounds moves rows to other months: what lay past the last one was counted in it, and has a month of
its own now. Such rows were paid for where they were. So whoever reads them in their new month pays from both: all that
was ever learned about a row is in the total of each month that it was counted in. This holds until the owner declares
new people: a refresh leaves rows of before among those that it brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dalenius.errors import NotAllowedError
from dalenius.measuring.expressions import TRUE, Call, Column, Expression, Literal, Type, conjuncts
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import EarlierPeriods, Table
    from dalenius.tables.policy import Column as Spec

WHOLE = ("",)
MOST = 1000


def charged_periods(
    table: Table, where: Expression, reader: str = "The question", fix: str = "Restrict the time in WHERE."
) -> tuple[str, ...]:
    """The labels of the periods that a question reads, in order; ``reader`` and ``fix`` word the refusal."""
    if table.budget.period is None:
        return WHOLE
    first, last = _span(table, where)
    every = table.budget.period
    found = list(dict.fromkeys(_label(day, every) for day in _days(first, last, every)))
    if len(found) > MOST:
        raise NotAllowedError(
            f"{reader} reads more than {MOST} periods.", why="It is charged to every one of them.", fix=fix
        )
    return tuple(found)


def paying_periods(table: Table, read: tuple[str, ...]) -> tuple[str, ...]:
    """The periods that pay for reading some: these, and those in which their rows were counted under other policies.

    Args:
        table: With what is known of earlier policies for the same people.
        read: As `charged_periods` gives them.
    """
    every = table.budget.period
    if read == WHOLE or every is None:
        return read
    now = table.policy.columns[_column(table).name]
    before = {
        label for each in table.relation.tables() for one in each.moved for label in _before(one, now, read, every)
    }
    return tuple(sorted({*read, *before}))


def _before(earlier: EarlierPeriods, now: Spec, read: tuple[str, ...], every: str) -> Iterator[str]:
    """The periods, of those that were charged, in which rows of these periods may have been."""
    was = earlier.column
    if was.bounds is None or now.bounds is None or replace(was, **_placing(now)) != now:
        yield from earlier.charged  # read in another way altogether: any of them
        return
    # What lies beyond a bound is counted at it, and may lie anywhere beyond.
    first = date.min if read[0] <= _label(_day(now.bounds.low), every) else _beginning(read[0], every)
    after = _after(_beginning(read[-1], every), every)
    beyond = after is None or read[-1] >= _label(_day(now.bounds.high), every)
    last = date.max if after is None or beyond else after - timedelta(days=1)
    ends = [_label(min(max(day, _day(was.bounds.low)), _day(was.bounds.high)), every) for day in (first, last)]
    yield from (label for label in earlier.charged if ends[0] <= label <= ends[1] and now.bounds != was.bounds)
    if isinstance(now.default, date) and isinstance(was.default, date) and _label(_day(now.default), every) in read:
        yield from {_label(_day(was.default), every)} & earlier.charged


def _placing(column: Spec) -> dict[str, Any]:
    """What of a column decides only where a value is counted."""
    return {"name": column.name, "bounds": column.bounds, "default": column.default}


def within_periods(table: Table, periods: tuple[str, ...]) -> Expression:
    """The condition that a row lies in one of the charged periods."""
    if periods == WHOLE:
        return TRUE
    column, every = _column(table), table.budget.period or ""
    first, last = _beginning(periods[0], every), _after(_beginning(periods[-1], every), every)
    if column.type is Type.DATE:
        low: Expression = Literal(first, Type.DATE)
        high: Expression = Literal(date.max if last is None else last - timedelta(days=1), Type.DATE)
        return Call(
            "and", (Call("le", (low, column), Type.BOOLEAN), Call("le", (column, high), Type.BOOLEAN)), Type.BOOLEAN
        )
    low = Literal(datetime.combine(first, datetime.min.time()), Type.DATETIME)
    after = Call("le", (low, column), Type.BOOLEAN)
    if last is None:  # no column holds a moment after the last year
        return after
    high = Literal(datetime.combine(last, datetime.min.time()), Type.DATETIME)
    return Call("and", (after, Call("lt", (column, high), Type.BOOLEAN)), Type.BOOLEAN)


def unit_part(table: Table) -> Expression | None:
    """What names a row's period, as a part of its unit."""
    if table.budget.period is None:
        return None
    column = _column(table)
    return Call("date_trunc", (Literal(table.budget.period, Type.TEXT), column), column.type)


def _column(table: Table) -> Column:
    policy = table.policy
    if table.period is None or table.period.column not in policy.columns:
        raise NotAllowedError(
            f"Table {policy.name!r} has no column that tells the period.",
            why="Its data set has a budget per period.",
            fix="Ask the owner to declare the column in this table too.",
        )
    name = table.period.column
    return Column(name, Type.DATE if policy.columns[name].kind is Kind.DATE else Type.DATETIME)


def _span(table: Table, where: Expression) -> tuple[date, date]:
    """The first and last day that can be read: the column's bounds, narrowed by plain comparisons in WHERE."""
    column = _column(table)
    bounds = table.policy.columns[column.name].bounds
    if bounds is None:
        raise NotAllowedError(
            f"The column {column.name!r} that tells the period has no bounds.",
            why="Without them, a question would be charged to periods without end.",
            fix="Ask the owner to declare its bounds.",
        )
    low, high = _day(bounds.low), _day(bounds.high)
    for part in conjuncts(where):
        match part:
            case Call(function="le" | "lt", arguments=(Literal(value=date() as value), Column(name=name))):
                low = max(low, _day(value)) if name == column.name else low
            case Call(function="le" | "lt", arguments=(Column(name=name), Literal(value=date() as value))):
                high = min(high, _day(value)) if name == column.name else high
            case (
                Call(function="eq", arguments=(Literal(value=date() as value), Column(name=name)))
                | Call(function="eq", arguments=(Column(name=name), Literal(value=date() as value)))
            ):
                if name == column.name:
                    low, high = max(low, _day(value)), min(high, _day(value))
    return low, max(low, high)


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _days(first: date, last: date, every: str) -> Iterator[date]:
    day: date | None = _beginning(_label(first, every), every)
    while day is not None and day <= last:
        yield day
        day = _after(day, every)


def _label(day: date, every: str) -> str:
    """A period's name in the ledger; names sort as the periods do."""
    match every:
        case "year":
            return f"{day.year:04}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "week":
            return (day - timedelta(days=day.weekday())).isoformat()
    return day.isoformat()


def _beginning(label: str, every: str) -> date:
    match every:
        case "year":
            return date(int(label), 1, 1)
        case "quarter":
            return date(int(label[:4]), 3 * int(label[-1]) - 2, 1)
        case "month":
            return date(int(label[:4]), int(label[5:]), 1)
    return date.fromisoformat(label)


def _after(day: date, every: str) -> date | None:
    """The beginning of the next period; None: the calendar ends."""
    match every:
        case "year" | "quarter" | "month":
            months = day.year * 12 + day.month - 1 + {"year": 12, "quarter": 3, "month": 1}[every]
            return date(months // 12, months % 12 + 1, 1) if months // 12 <= date.max.year else None
    step = timedelta(days=7 if every == "week" else 1)
    return day + step if day <= date.max - step else None
