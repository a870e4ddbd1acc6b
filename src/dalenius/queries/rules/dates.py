"""Dates and times: how their nodes of the syntax tree become expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Expression, Literal, Type, number, text
from dalenius.measuring.functions import PARTS, UNITS

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

_PART_NAMES = {"dayofweek": "dow", "weekday": "dow", "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week"}
_ABBREVIATED = {"y": "year", "yr": "year", "mon": "month", "w": "week", "d": "day", "h": "hour", "hr": "hour"}
_ABBREVIATED |= {"min": "minute", "m": "minute", "s": "second", "sec": "second"}
# Longest intervals: a hundred years. With the limit on nesting, no date leaves the engine's calendar.
_LONGEST = {
    "year": 100,
    "quarter": 400,
    "month": 1200,
    "week": 5300,
    "day": 36600,
    "hour": 878_400,
    "minute": 52_704_000,
    "second": 3_162_240_000,
}
_FORMAT = re.compile(r"(?:%[YmdHMSyj]|[^%])*")
PART_NODES = {
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "Week": "week",
    "Day": "day",
    "DayOfMonth": "day",
    "DayOfWeek": "dow",
    "DayOfWeekIso": "isodow",
    "DayOfYear": "doy",
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
}
# How long each unit of time is, in months or in seconds: buckets of other lengths begin at no round moment.
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def add(reader: Aggregating, node: Any) -> Expression:
    """a + b: of numbers, or a date and an interval or a number of days."""
    from sqlglot import exp

    for interval, other in ((node.expression, node.this), (node.this, node.expression)):
        if isinstance(interval, exp.Interval):
            return _moved(reader, node, other, interval, 1)
    one, other = reader.expression(node.this), reader.expression(node.expression)
    if one.type is Type.DATE and isinstance(other, Literal) and other.type is Type.NUMBER:
        days = number(reader.whole_number(node.expression, -36600, 36600))
        return reader.apply(node, "date_add", text("day"), one, days)
    texts = [each for each in (one, other) if each.type is Type.TEXT and not isinstance(each, Literal)]
    if texts and Type.NUMBER not in {one.type, other.type}:
        return reader.apply(node, "concat", one, other)  # as SQL Server has it
    return reader.apply(node, "add", one, other)


def subtract(reader: Aggregating, node: Any) -> Expression:
    """a - b: of numbers or dates, or a date and an interval or a number of days."""
    from sqlglot import exp

    if isinstance(node.expression, exp.Interval):
        return _moved(reader, node, node.this, node.expression, -1)
    one, other = reader.expression(node.this), reader.expression(node.expression)
    if one.type is Type.DATE and other.type is Type.DATE:
        return reader.apply(node, "date_diff", text("day"), other, one)
    if one.type is Type.DATE and isinstance(other, Literal) and other.type is Type.NUMBER:
        days = number(-reader.whole_number(node.expression, -36600, 36600))
        return reader.apply(node, "date_add", text("day"), one, days)
    return reader.apply(node, "sub", one, other)


def _moved(reader: Aggregating, node: Any, moment: Any, interval: Any, sign: int) -> Expression:
    said = interval.args.get("unit")
    unit = _unit(reader, interval, said.name if said is not None else "")
    count = reader.whole_number(interval.this, -_LONGEST[unit], _LONGEST[unit])
    found = reader.expression(moment)
    if isinstance(found, Literal):
        found = reader.time(node, found)
    return reader.apply(node, "date_add", text(unit), found, number(sign * count))


def refuse_interval(reader: Aggregating, node: Any) -> Expression:
    """Refuses an INTERVAL that stands alone."""
    raise reader.refused(node, "An INTERVAL is added to a date.", "Write d + INTERVAL 1 MONTH.")


def read_part(reader: Aggregating, node: Any, name: str, moment: Any) -> Expression:
    """EXTRACT and DATE_PART."""
    part = _PART_NAMES.get(name.lower(), name.lower())
    part = part if part in PARTS else _ABBREVIATED.get(part, part)
    if part not in PARTS:
        raise reader.refused(node, f"There is no part {name.lower()!r} of a date.", f"Use one of {', '.join(PARTS)}.")
    return reader.apply(node, "date_part", text(part), reader.expression(moment))


def truncate(reader: Aggregating, node: Any, name: str, moment: Any) -> Expression:
    """DATE_TRUNC."""
    return reader.apply(node, "date_trunc", text(_unit(reader, node, name)), reader.expression(moment))


def subtract_units(reader: Aggregating, node: Any) -> Expression:
    """DATE_DIFF."""
    said = node.args.get("unit")
    unit = _unit(reader, node, said.name if said is not None else "day")
    later, earlier = reader.expression(node.this), reader.expression(node.expression)
    return reader.apply(node, "date_diff", text(unit), earlier, later)


def subtract_whole_units(reader: Aggregating, node: Any) -> Expression:
    """DATE_SUB('hour', d, e): whole units that have passed between two moments."""
    said, earlier, later = (reader.expression(each) for each in node.expressions)
    unit = _unit(reader, node, str(said.value) if isinstance(said, Literal) else "")
    return reader.apply(node, "date_sub", text(unit), earlier, later)


def format_time(reader: Aggregating, node: Any) -> Expression:
    """STRFTIME."""
    format_ = reader.expression(node.args["format"])
    if not isinstance(format_, Literal) or not _FORMAT.fullmatch(str(format_.value)):
        raise reader.refused(node, "STRFTIME takes a format of %Y %m %d %H %M %S %y %j.", "Use '%Y-%m'.")
    moment = reader.time(node, reader.expression(node.this))
    if moment.type is Type.DATETIME:  # days and hours are public where the bounds of moments are
        shown = str(format_.value)
        if not re.search("%[HMS]", shown):
            moment = reader.apply(node, "to_date", moment)
        elif not re.search("%[MS]", shown):
            moment = reader.apply(node, "date_trunc", text("hour"), moment)
    return reader.apply(node, "strftime", moment, format_)


def time_bucket(reader: Aggregating, node: Any) -> Expression:
    """TIME_BUCKET, of one unit of time: buckets begin where that unit does (DuckDB counts weeks from a Monday too)."""
    from sqlglot import exp

    interval = node.this
    if not isinstance(interval, exp.Interval):
        raise reader.refused(node, "TIME_BUCKET takes an interval.", "Write TIME_BUCKET(INTERVAL 1 MONTH, d).")
    said = interval.args.get("unit")
    unit = _unit(reader, interval, said.name if said is not None else "")
    lengths = _MONTHS if unit in _MONTHS else _SECONDS
    length = lengths[unit] * reader.whole_number(interval.this, 1, 1_000_000)
    found = next((each for each, size in lengths.items() if size == length), None)
    if found is None:
        raise reader.refused(
            node,
            "TIME_BUCKET takes an interval of one unit of time.",
            "For quarters of an hour, group by DATE_TRUNC('hour', d) and FLOOR(MINUTE(d) / 15).",
        )
    return reader.apply(node, "date_trunc", text(found), reader.expression(node.expression))


def _weeks_of(node: Any, name: str) -> str | None:
    """DATE_TRUNC(d, WEEK), as it was typed: the parser takes the date for the unit there."""
    last: Any = node.this
    swapped = type(last).__name__ in {"Column", "Var"} and str(last.name).upper() == "WEEK"
    return f"DATE_TRUNC({name.lower()}, WEEK)" if swapped else None


def _unit(reader: Aggregating, node: Any, name: str) -> str:
    said = name.lower()
    unit = said if said in UNITS else said.removesuffix("s")
    unit = unit if unit in UNITS else _ABBREVIATED.get(unit, unit)
    if unit not in UNITS:
        fix = f"Use one of {', '.join(UNITS)}."
        if (weeks := _weeks_of(node, name)) is not None:
            why = "Weeks begin on a Sunday there, and on a Monday here."
            raise reader.refused(node, f"{weeks} is not supported.", f"Write DATE_TRUNC('week', {name.lower()}).", why)
        raise reader.refused(node, f"There is no unit of time {name.lower()!r}.", fix)
    return unit
