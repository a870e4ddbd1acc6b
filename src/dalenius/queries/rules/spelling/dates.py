"""Dates and times in other words, and with the arguments in BigQuery's or SQL Server's order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.choices import case
from dalenius.queries.rules.spelling.formats import day_name, month_name

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

# Units of time as BigQuery and SQL Server call them; weeks begin on other days there, but for ISO's.
_UNITS = {
    **{each: each for each in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "yy": "year",
    "yyyy": "year",
    "qq": "quarter",
    "q": "quarter",
    "mm": "month",
    "m": "month",
    "dd": "day",
    "d": "day",
    "hh": "hour",
    "mi": "minute",
    "n": "minute",
    "ss": "second",
    "s": "second",
    "isoweek": "week",
    "iso_week": "week",
    "isowk": "week",
    "isoww": "week",
}
_PARTS = {**_UNITS, "dayofyear": "doy", "dy": "doy", "y": "doy"}
_WEEKDAYS = frozenset({"weekday", "dw"})
_TYPES = {
    "DATE": "DATE",
    "DATETIME": "TIMESTAMP",
    "DATETIME2": "TIMESTAMP",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "BIGINT": "INTEGER",
    "FLOAT": "DOUBLE",
    "FLOAT64": "DOUBLE",
    "NUMERIC": "DOUBLE",
    "BIGNUMERIC": "DOUBLE",
    "VARCHAR": "VARCHAR",
    "NVARCHAR": "VARCHAR",
    "CHAR": "VARCHAR",
    "MONEY": "DOUBLE",
    "NUMBER": "DOUBLE",
}
_ISO = frozenset({"%Y-%m-%d", "%F", "YYYY-MM-DD", "yyyy-MM-dd"})


def _unit(node: Any) -> str | None:
    """The unit of time that a bare word names."""
    from sqlglot import exp

    bare = isinstance(node, exp.Var) or (isinstance(node, exp.Column) and not node.table)
    return _UNITS.get(node.name.lower()) if bare else None


def cast(node: Any, type_: str) -> Any:
    """CAST(node AS type)."""
    from sqlglot import exp

    return exp.Cast(this=node, to=exp.DataType.build(type_, dialect="duckdb"))


_SINCE_ZERO = frozenset({"year", "quarter", "month", "day"})  # units that are cut by counting from day 0


def _moved(moment: Any, count: Any, unit: str, *, back: bool = False) -> Any:
    from sqlglot import exp

    while isinstance(count, exp.Paren):
        count = count.this
    sign = "-" if isinstance(count, exp.Neg) else ""
    said = count.this if sign else count
    if not isinstance(said, exp.Literal):
        return None
    interval = exp.Interval(this=exp.Literal.string(sign + said.name), unit=exp.var(unit))
    kind = exp.Sub if back else exp.Add
    return exp.Paren(this=kind(this=moment, expression=interval))


def truncate(node: Any, known: Known) -> Any:
    """DATE_TRUNC(d, MONTH) → DATE_TRUNC('month', d)."""
    from sqlglot import exp

    first, last = node.args.get("unit"), node.this
    unit = None if known.quoted_units else _unit(last)
    if unit is None or last.name.lower() in known.columns or (_unit(first) and first.name.lower() not in known.columns):
        return None
    moment = exp.column(first.name.lower()) if isinstance(first, exp.Var) else first
    return exp.TimestampTrunc(this=moment, unit=exp.var(unit))


def truncate_datetime(node: Any, _: Known) -> Any:
    """DATETIME_TRUNC(d, MONTH) → DATE_TRUNC('month', d)."""
    from sqlglot import exp

    unit = _unit(node.args.get("unit"))
    return None if unit is None else exp.TimestampTrunc(this=node.this, unit=exp.var(unit))


def subtract(node: Any, known: Known) -> Any:
    """DATE_DIFF(a, b, DAY) → DATE_DIFF('day', b, a)."""
    from sqlglot import exp

    first, last = node.args.get("unit"), node.this
    unit = None if known.quoted_units else _unit(last)
    if first is None or unit is None:
        return None
    named = _unit(first) is not None and first.name.lower() not in known.columns
    if named and last.name.lower() in known.columns:
        return None
    if _unit(first) is None and isinstance(first, exp.Var):
        first = exp.column(first.name.lower())
    if isinstance(first, exp.Var):
        if last.name.lower() in known.columns:
            return None
        first = exp.column(first.name.lower())
    return exp.DateDiff(this=first, expression=node.expression, unit=exp.var(unit))


def subtract_moments(node: Any, _: Known) -> Any:
    """DATETIME_DIFF(a, b, HOUR) → DATE_DIFF('hour', b, a); TIMESTAMP_DIFF counts whole hours, as DATE_SUB does."""
    from sqlglot import exp

    unit = _unit(node.args.get("unit"))
    if isinstance(node, exp.TimestampDiff) and unit is not None:
        return passed(unit, node.expression, node.this)
    return None if unit is None else exp.DateDiff(this=node.this, expression=node.expression, unit=exp.var(unit))


def passed(unit: str, earlier: Any, later: Any) -> Any:
    """Whole units between two moments."""
    from sqlglot import exp

    return exp.Anonymous(this="date_sub", expressions=[exp.Literal.string(unit), earlier, later])


def add(node: Any, _: Known) -> Any:
    """DATE_ADD(d, INTERVAL 1 MONTH) and its likes → d + INTERVAL 1 MONTH."""
    return _with_interval(node.this, node.expression, back=False)


def take_off(node: Any, _: Known) -> Any:
    """TIMESTAMP_SUB(d, INTERVAL 1 DAY) and its likes → d - INTERVAL 1 DAY."""
    return _with_interval(node.this, node.expression, back=True)


def take_off_named(node: Any, _: Known) -> Any:
    """DATE_SUB(d, INTERVAL 1 YEAR) → d - INTERVAL 1 YEAR."""
    return _with_interval(*node.expressions, back=True)


def _with_interval(moment: Any, interval: Any, *, back: bool) -> Any:
    from sqlglot import exp

    if not isinstance(interval, exp.Interval):
        return None
    kind = exp.Sub if back else exp.Add
    return exp.Paren(this=kind(this=moment, expression=interval))


def add_units(node: Any, _: Known) -> Any:
    """DATEADD(day, 30, d) → d + INTERVAL 30 DAY; DATEADD(month, DATEDIFF(month, 0, d), 0) → DATE_TRUNC('month', d)."""
    from sqlglot import exp

    said, count, moment = node.expressions
    unit, inner = _unit(said), unwrapped(count)
    # Day 0 is 1900-01-01, which begins a year; weeks of SQL Server begin on a Sunday, and it is a Monday.
    if isinstance(inner, exp.DateDiff) and unit in _SINCE_ZERO and _unit(inner.args.get("unit")) == unit:
        zeros = [isinstance(each, exp.Literal) and each.name == "0" for each in (inner.expression, moment)]
        return exp.TimestampTrunc(this=inner.this, unit=exp.var(unit)) if all(zeros) else None
    return None if unit is None else _moved(moment, count, unit)


def part(node: Any, _: Known) -> Any:
    """DATEPART(year, d) → EXTRACT(year FROM d); of a week, Sunday is the first day."""
    from sqlglot import exp

    said, moment = node.expressions
    if not isinstance(said, exp.Column) or said.table:
        return None
    name = said.name.lower()
    if name in _WEEKDAYS:
        dow = exp.Extract(this=exp.var("dow"), expression=moment)
        return exp.Paren(this=exp.Add(this=dow, expression=exp.Literal.number(1)))
    return exp.Extract(this=exp.var(_PARTS[name]), expression=moment) if name in _PARTS else None


def part_name(node: Any, known: Known) -> Any:
    """DATENAME(month, d), DATENAME(weekday, d) → English names, by CASE; other parts as texts."""
    from sqlglot import exp

    said, moment = node.expressions
    if not isinstance(said, exp.Column):
        return None
    if said.name.lower() in _WEEKDAYS:
        return day_name(moment)
    if _UNITS.get(said.name.lower()) == "month":
        return month_name(moment)
    found = part(node, known)
    return None if found is None else cast(found, "VARCHAR")


def extract(node: Any, known: Known) -> Any:
    """EXTRACT(epoch FROM d) → whole seconds since 1970; EXTRACT(isoweek FROM d) → EXTRACT(week FROM d)."""
    from sqlglot import exp

    difference = unwrapped(node.expression)
    if isinstance(difference, exp.Sub) and not isinstance(difference.expression, exp.Interval):
        return _part_of_difference(node.this.name.lower(), difference)
    match node.this.name.upper():
        case "DATE":
            return cast(node.expression, "DATE")
        case "TIME":
            return cast(node.expression, "TIME")
        case "EPOCH":
            return _seconds(node.expression)
        case "DECADE" | "CENTURY" as name:
            years: Any = exp.Extract(this=exp.var("year"), expression=node.expression)
            if name == "CENTURY":
                years = exp.Paren(this=exp.Add(this=years, expression=exp.Literal.number(99)))
            by = exp.Literal.number(10 if name == "DECADE" else 100)
            return exp.Paren(this=exp.IntDiv(this=years, expression=by))
        case "ISOWEEK":
            return exp.Extract(this=exp.var("week"), expression=node.expression)
        case "ISOYEAR":  # that of the week's Thursday
            monday = exp.TimestampTrunc(this=node.expression, unit=exp.var("week"))
            thursday = exp.Add(this=monday, expression=exp.Interval(this=exp.Literal.string("3"), unit=exp.var("DAY")))
            return exp.Extract(this=exp.var("year"), expression=exp.Paren(this=thursday))
        case "YEAR" if isinstance(node.expression, exp.Anonymous) and len(node.expression.expressions) == 2:
            return _full_years(node.expression, known)
    return None


def unwrapped(node: Any) -> Any:
    """What stands in parentheses."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _part_of_difference(name: str, difference: Any) -> Any:
    """EXTRACT(epoch FROM a - b) and EXTRACT(day FROM a - b), of two moments: whole seconds, whole days."""
    unit = {"epoch": "second", "day": "day", "days": "day"}.get(name)
    if unit is None:
        return None
    return passed(unit, cast(difference.expression, "TIMESTAMP"), cast(difference.this, "TIMESTAMP"))


def year(node: Any, known: Known) -> Any:
    """YEAR(AGE(d, e)) → full years between dates."""
    from sqlglot import exp

    return _full_years(node.this, known) if isinstance(node.this, exp.Anonymous) else None


def part_of_age(node: Any, known: Known) -> Any:
    """DATE_PART('year', AGE(d, e)) → full years between dates."""
    from sqlglot import exp

    parts = node.expressions
    difference = unwrapped(parts[1])
    if isinstance(difference, exp.Sub) and not isinstance(difference.expression, exp.Interval):
        return _part_of_difference(parts[0].name.lower(), difference)
    if parts[0].name.lower() != "year" or not isinstance(parts[1], exp.Anonymous):
        return part(node, known)
    return _full_years(parts[1], known)


def _full_years(age: Any, known: Known) -> Any:
    """The years of AGE(a, b): those between the dates, one less where the later one's birthday is still to come.

    Times of day would decide about birthdays too, so that only what is surely a date is taken.
    """
    from sqlglot import exp

    if str(age.this).upper() != "AGE" or len(age.expressions) != 2:
        return None
    if not all(is_day(each, known) for each in age.expressions):
        return None
    later, earlier = (cast(each, "DATE") for each in age.expressions)

    def between(one: Any, other: Any) -> Any:
        difference = exp.DateDiff(this=other.copy(), expression=one.copy(), unit=exp.var("year"))
        late = exp.LT(this=_birthday(other), expression=_birthday(one))
        less = case(None, [(late, exp.Literal.number(1))], exp.Literal.number(0))
        return exp.Paren(this=exp.Sub(this=difference, expression=less))

    forward = exp.GTE(this=later.copy(), expression=earlier.copy())
    return case(
        None,
        [
            (forward, between(earlier, later)),
            (exp.LT(this=later.copy(), expression=earlier.copy()), exp.Neg(this=between(later, earlier))),
        ],
    )


def is_day(node: Any, known: Known) -> bool:
    """Whether a value is surely a date, without a time of day."""
    from sqlglot import exp

    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Cast):
        return bool(node.args["to"].this is exp.DataType.Type.DATE)
    if isinstance(node, exp.Literal):
        return bool(node.is_string) and ":" not in node.name
    return isinstance(node, exp.Column) and node.name.lower() in known.days


def _birthday(moment: Any) -> Any:
    from sqlglot import exp

    month = exp.Extract(this=exp.var("month"), expression=moment.copy())
    day = exp.Extract(this=exp.var("day"), expression=moment.copy())
    return exp.Add(this=exp.Mul(this=month, expression=exp.Literal.number(100)), expression=day)


def seconds(node: Any, _: Known) -> Any:
    """EPOCH(d), UNIX_SECONDS(d) → whole seconds since 1970."""
    return _seconds(node.this)


def _seconds(moment: Any) -> Any:
    from sqlglot import exp

    start = cast(exp.Literal.string("1970-01-01 00:00:00"), "TIMESTAMP")
    return exp.DateDiff(this=cast(moment, "TIMESTAMP"), expression=start, unit=exp.var("second"))


def last_day(node: Any, _: Known) -> Any:
    """LAST_DAY(d), EOMONTH(d) → the day before the next month begins."""
    from sqlglot import exp

    moment = node.this if isinstance(node, exp.LastDay) else node.expressions[0]
    unit = node.args.get("unit")
    if unit is not None and _unit(unit) != "month":
        return None
    first = exp.TimestampTrunc(this=cast(moment, "DATE"), unit=exp.var("month"))
    return _moved(_moved(first, exp.Literal.number(1), "month"), exp.Literal.number(1), "day", back=True)


def make_date(node: Any, _: Known) -> Any:
    """MAKE_DATE(2024, 2, 29), DATE(2024, 2, 29), DATEFROMPARTS(2024, 2, 29) → DATE '2024-02-29'; DATE(x) is a cast."""
    from sqlglot import exp

    if isinstance(node, exp.Date):
        parts = [each for each in (node.this, node.args.get("zone"), *node.expressions) if each is not None]
        if len(parts) == 1:
            return cast(parts[0], "DATE")
    else:
        parts = [node.args.get(each) for each in ("year", "month", "day")]
    if len(parts) == 3 and isinstance(parts[0], exp.Year) and isinstance(parts[1], exp.Month):
        first = isinstance(parts[2], exp.Literal) and parts[2].name == "1"
        same = parts[0].this == parts[1].this
        return exp.TimestampTrunc(this=cast(parts[0].this, "DATE"), unit=exp.var("month")) if first and same else None
    if len(parts) != 3 or not all(isinstance(each, exp.Literal) and each.name.isdigit() for each in parts):
        return None
    if any(len(each.name) > most for each, most in zip(parts, (4, 2, 2), strict=True)):
        return None
    year_, month, day = (int(each.name) for each in parts)
    return cast(exp.Literal.string(f"{year_:04}-{month:02}-{day:02}"), "DATE")


def read_date(node: Any, _: Known) -> Any:
    """TO_DATE('2024-02-29'), PARSE_DATE('%Y-%m-%d', a) → a cast; where the format is that of ISO."""
    parts = list(node.expressions)
    if len(parts) == 2:
        said = [each for each in parts if each.name in _ISO]
        parts = [each for each in parts if each not in said]
    return cast(parts[0], "DATE") if len(parts) == 1 else None


def convert(node: Any, _: Known) -> Any:
    """CONVERT(date, a) → CAST(a AS DATE); types of BigQuery are read, too."""
    from sqlglot import exp

    to = node.args["to"]
    if to.this is not exp.DataType.Type.USERDEFINED:
        return None
    said = str(to.args.get("kind") or "")
    if said.upper() in _TYPES:
        return cast(node.this, _TYPES[said.upper()])
    type_ = _TYPES.get(node.this.name.upper()) if isinstance(node.this, exp.Column | exp.Anonymous) else None
    if type_ is None or not re.fullmatch(r"\w+(\.\w+)?", said):
        return None
    name, table = said.rpartition(".")[2], said.rpartition(".")[0]
    return cast(exp.column(name, table or None), type_)


def read_moment(node: Any, _: Known) -> Any:
    """TIMESTAMP('2024-02-29 12:00:00') → a cast."""
    return cast(node.this, "TIMESTAMP") if not node.expression else None
