"""How each node of the syntax tree becomes an expression: a table from node to reader, for `resolve`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import FALSE, NULL, TRUE, Expression, Literal, Type, number, text
from dalenius.measuring.functions import PARTS, UNITS
from dalenius.measuring.work import LONGEST_TEXT
from dalenius.queries.rules.aggregated import aggregate_nodes, function_of

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

Read = Callable[["Aggregating", Any], Expression]

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
_CASTS = {
    "to_integer": "TINYINT SMALLINT INT BIGINT INT128 HUGEINT UTINYINT USMALLINT UINT UBIGINT UINT128",
    "to_number": "DOUBLE FLOAT DECIMAL REAL",
    "to_text": "TEXT VARCHAR CHAR NVARCHAR NCHAR",
    "to_boolean": "BOOLEAN",
    "to_date": "DATE DATE32",
    "to_datetime": "TIMESTAMP TIMESTAMPNTZ DATETIME",
}


def readers() -> Mapping[type, Read]:
    """The table."""
    from sqlglot import exp

    from dalenius.queries.rules import buckets, sets

    found: dict[Any, Read] = {
        exp.Paren: lambda reader, node: reader.expression(node.this),
        exp.Column: lambda reader, node: reader.column(node),
        exp.Literal: _literal,
        exp.Boolean: lambda _, node: TRUE if node.this else FALSE,
        exp.Null: lambda _, __: NULL,
        exp.Neg: lambda reader, node: reader.apply(node, "neg", reader.expression(node.this)),
        exp.Not: lambda reader, node: reader.apply(node, "not", reader.expression(node.this)),
        exp.Add: _added,
        exp.Sub: _subtracted,
        exp.Between: _between,
        exp.In: _in,
        exp.Is: _is,
        exp.NullSafeEQ: _null_safe,
        exp.NullSafeNEQ: lambda reader, node: reader.apply(node, "not", _null_safe(reader, node)),
        exp.Like: lambda reader, node: _like(reader, node, "like"),
        exp.ILike: lambda reader, node: _like(reader, node, "ilike"),
        exp.Case: _case,
        exp.If: _if,
        exp.Coalesce: lambda reader, node: _many(reader, node, "coalesce"),
        exp.Least: lambda reader, node: _many(reader, node, "least"),
        exp.Greatest: lambda reader, node: _many(reader, node, "greatest"),
        exp.Log: _logarithm,
        exp.Round: _round,
        exp.Trim: _trim,
        exp.Left: lambda reader, node: _cut(reader, node, "left", node.expression),
        exp.Right: lambda reader, node: _cut(reader, node, "right", node.expression),
        exp.Substring: lambda reader, node: _cut(
            reader, node, "substring", node.args.get("start"), node.args.get("length")
        ),
        exp.Replace: _replace,
        exp.Concat: _concat,
        exp.Extract: lambda reader, node: _part(reader, node, node.this.name, node.expression),
        exp.TimestampTrunc: lambda reader, node: _truncated(reader, node, node.args["unit"].name, node.this),
        exp.DateTrunc: lambda reader, node: _truncated(reader, node, node.args["unit"].name, node.this),
        exp.WidthBucket: buckets.width_bucket,
        exp.DateBin: buckets.time_bucket,
        exp.DateDiff: _difference,
        exp.TimeToStr: _formatted,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Anonymous: _by_name,
        exp.Grouping: sets.grouping,
        exp.GroupingId: sets.grouping,
        exp.Filter: lambda reader, node: reader.filtered(node),
        exp.Interval: _stray_interval,
    }
    for name, function in _BINARY.items():
        found[getattr(exp, name)] = _binary(function)
    for name, function in _SEARCHES.items():
        found[getattr(exp, name)] = _found(function)
    for name, function in _UNARY.items():
        found[getattr(exp, name)] = _unary(function)
    for name, part in _PART_NODES.items():
        if hasattr(exp, name):
            found[getattr(exp, name)] = _named_part(part)
    for cls in (*(getattr(exp, name) for name in _AGGREGATES), *aggregate_nodes()):
        found[cls] = lambda reader, node: reader.aggregated(node)
    return found


_AGGREGATES = (  # those with a syntax of their own; the others are functions of `measuring.statistics`
    *("Count", "CountIf", "Median", "Quantile", "ApproxQuantile", "PercentileCont", "PercentileDisc", "WithinGroup"),
)
_BINARY = {
    "And": "and",
    "Or": "or",
    "EQ": "eq",
    "NEQ": "ne",
    "LT": "lt",
    "LTE": "le",
    "GT": "gt",
    "GTE": "ge",
    "Mul": "mul",
    "Div": "div",
    "IntDiv": "intdiv",
    "Mod": "mod",
    "Pow": "power",
    "Nullif": "nullif",
    "DPipe": "concat",
}
_SEARCHES = {"Contains": "contains", "StartsWith": "starts_with", "EndsWith": "ends_with"}
_UNARY = {
    "Abs": "abs",
    "Sign": "sign",
    "Floor": "floor",
    "Ceil": "ceil",
    "Trunc": "trunc",
    "Sqrt": "sqrt",
    "Ln": "ln",
    "Exp": "exp",
    "Lower": "lower",
    "Upper": "upper",
    "Length": "length",
}
_PART_NODES = {
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
_NAMED = {  # functions that the parser has no node for
    "strlen": ("length", 1),
    "len": ("length", 1),
    "ltrim": ("ltrim", 1),
    "rtrim": ("rtrim", 1),
    "log2": ("log2", 1),
    "log10": ("log10", 1),
    "ln": ("ln", 1),
}
_NAMED_SEARCHES = {"prefix": "starts_with", "suffix": "ends_with", "ends_with": "ends_with"}
LONGEST_LITERAL = 150  # characters of a text in quotes: fewer than texts are cut at, so that none equals half a text
LONGEST_PATTERN = 100  # of what is looked for in others


def _binary(function: str) -> Read:
    return lambda reader, node: reader.apply(
        node, function, reader.expression(node.this), reader.expression(node.expression)
    )


def _unary(function: str) -> Read:
    return lambda reader, node: reader.apply(node, function, reader.expression(node.this))


def _named_part(part: str) -> Read:
    return lambda reader, node: _part(reader, node, part, node.this)


def _literal(reader: Aggregating, node: Any) -> Expression:
    if node.is_string:
        if len(node.name) > LONGEST_LITERAL:
            raise reader.invalid(
                node,
                "A text in quotes is too long.",
                f"It may have {LONGEST_LITERAL} characters: texts are cut at {LONGEST_TEXT} where one looks into them.",
                "Shorten it.",
            )
        return text(node.name)
    try:
        value = float(node.name)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise reader.invalid(node, "This number cannot be read.", "It is not a finite number.", "Correct it.")
    return number(value)


def _between(reader: Aggregating, node: Any) -> Expression:
    value = reader.expression(node.this)
    low, high = reader.expression(node.args["low"]), reader.expression(node.args["high"])
    return reader.apply(node, "and", reader.apply(node, "ge", value, low), reader.apply(node, "le", value, high))


def _in(reader: Aggregating, node: Any) -> Expression:
    values = [reader.expression(each) for each in node.expressions]
    if not values or not all(isinstance(each, Literal) for each in values):
        raise reader.refused(node, "IN takes a list of values.", "Write the values themselves: x IN (1, 2).")
    return reader.apply(node, "in", reader.expression(node.this), *values)


def _is(reader: Aggregating, node: Any) -> Expression:
    from sqlglot import exp

    value, other = reader.expression(node.this), node.expression
    if isinstance(other, exp.Null):
        return reader.apply(node, "is_null", value)
    if isinstance(other, exp.Boolean):
        # NULL is neither: IS TRUE never gives NULL
        truth = reader.apply(node, "eq", value, TRUE if other.this else FALSE)
        return reader.apply(node, "coalesce", truth, FALSE)
    raise reader.refused(node, "IS takes NULL, TRUE or FALSE.", "Use = for values.")


def _null_safe(reader: Aggregating, node: Any) -> Expression:
    one, other = reader.expression(node.this), reader.expression(node.expression)
    equal = reader.apply(node, "coalesce", reader.apply(node, "eq", one, other), FALSE)
    both = reader.apply(node, "and", reader.apply(node, "is_null", one), reader.apply(node, "is_null", other))
    return reader.apply(node, "or", equal, both)


def _like(reader: Aggregating, node: Any, function: str) -> Expression:
    shown = _needle(reader, node, node.expression, "LIKE takes a pattern in quotes.", "Write a LIKE 'x%'.")
    if "\\" in shown:
        raise reader.refused(node, "A backslash in a pattern is not supported.", "Use CONTAINS.")
    # One form for one meaning, and runs of % cost the engine a look at the rest of the text each.
    pattern = re.sub("%+", "%", shown)
    if "_" in pattern and pattern.rstrip("%").count("%") > 1:
        raise reader.refused(
            node,
            "A pattern with _ and several % is not supported.",
            "Write two conditions: a LIKE '%x_y%' AND a LIKE '%z%'.",
        )
    found = reader.apply(node, function, reader.expression(node.this), text(pattern))
    return reader.apply(node, "not", found) if node.args.get("negate") else found


def _needle(reader: Aggregating, node: Any, written: Any, what: str, fix: str) -> str:
    """A text that is looked for in others: it stands there itself, and is short (`work`)."""
    from sqlglot import exp

    while isinstance(written, exp.Paren):
        written = written.this
    if not isinstance(written, exp.Literal) or not written.is_string:
        raise reader.refused(node, what, fix)
    if len(written.name) > LONGEST_PATTERN:
        raise reader.refused(
            node,
            "What is looked for in texts is too long.",
            f"Shorten it to {LONGEST_PATTERN} characters.",
        )
    return str(written.name)


def _found(function: str) -> Read:
    """CONTAINS and the like."""

    def read(reader: Aggregating, node: Any) -> Expression:
        one, other = (node.this, node.expression) if not isinstance(node.this, str) else node.expressions
        what = f"{function.upper()} looks for a text in quotes."
        needle = text(_needle(reader, node, other, what, f"Write {function.upper()}(a, 'x')."))
        return reader.apply(node, function, reader.expression(one), needle)

    return read


def _case(reader: Aggregating, node: Any) -> Expression:
    subject = reader.expression(node.this) if node.this is not None else None
    parts: list[Expression] = []
    for each in node.args["ifs"]:
        condition = reader.expression(each.this)
        parts.append(condition if subject is None else reader.apply(each, "eq", subject, condition))
        parts.append(reader.expression(each.args["true"]))
    default = node.args.get("default")
    return reader.apply(node, "case", *parts, reader.expression(default) if default is not None else NULL)


def _if(reader: Aggregating, node: Any) -> Expression:
    otherwise = node.args.get("false")
    return reader.apply(
        node,
        "case",
        reader.expression(node.this),
        reader.expression(node.args["true"]),
        reader.expression(otherwise) if otherwise is not None else NULL,
    )


def _many(reader: Aggregating, node: Any, function: str) -> Expression:
    arguments = [reader.expression(each) for each in (node.this, *node.expressions)]
    return reader.apply(node, function, *arguments)


def _logarithm(reader: Aggregating, node: Any) -> Expression:
    if node.expression is None:  # DuckDB's LOG is to base 10
        return reader.apply(node, "log10", reader.expression(node.this))
    base = reader.expression(node.this)
    bases = {2.0: "log2", 10.0: "log10"}
    if not isinstance(base, Literal) or base.value not in bases:
        raise reader.refused(node, "LOG takes base 2 or 10.", "Use LN, LOG2 or LOG10.")
    return reader.apply(node, bases[base.value], reader.expression(node.expression))  # type: ignore[index]


def _round(reader: Aggregating, node: Any) -> Expression:
    digits = node.args.get("decimals")
    value = reader.expression(node.this)
    if digits is None:
        return reader.apply(node, "round", value)
    return reader.apply(node, "round", value, number(_whole(reader, digits, -15, 15)))


def _trim(reader: Aggregating, node: Any) -> Expression:
    position = str(node.args.get("position") or "").upper()
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    return reader.apply(node, function, reader.expression(node.this))


def _cut(reader: Aggregating, node: Any, function: str, *places: Any) -> Expression:
    numbers = [number(_whole(reader, each, 0, 1_000_000)) for each in places if each is not None]
    return reader.apply(node, function, reader.expression(node.this), *numbers)


def _replace(reader: Aggregating, node: Any) -> Expression:
    said = [node.args.get(part) for part in ("expression", "replacement")]
    needles = [
        _needle(reader, node, each, "REPLACE takes two short texts in quotes.", "Write them out.") for each in said
    ]
    parts = [text(each) for each in needles]
    before, after = map(len, needles)
    if after > max(before, 10):  # one row's text must not grow much, or its length shows in the time it takes
        raise reader.refused(node, "REPLACE cannot put a long text in the place of a short one.", "Shorten it.")
    return reader.apply(node, "replace", reader.expression(node.this), *parts)


def _concat(reader: Aggregating, node: Any) -> Expression:
    parts = [reader.expression(each) for each in node.expressions]
    # CONCAT passes over NULL, unlike ||
    found = parts[0]
    for place, each in enumerate(parts):
        solid = reader.apply(node, "coalesce", each, text(""))
        found = solid if place == 0 else reader.apply(node, "concat", found, solid)
    return found


def _added(reader: Aggregating, node: Any) -> Expression:
    from sqlglot import exp

    for interval, other in ((node.expression, node.this), (node.this, node.expression)):
        if isinstance(interval, exp.Interval):
            return _moved(reader, node, other, interval, 1)
    one, other = reader.expression(node.this), reader.expression(node.expression)
    if one.type is Type.DATE and isinstance(other, Literal) and other.type is Type.NUMBER:
        days = number(_whole(reader, node.expression, -36600, 36600))
        return reader.apply(node, "date_add", text("day"), one, days)
    return reader.apply(node, "add", one, other)


def _subtracted(reader: Aggregating, node: Any) -> Expression:
    from sqlglot import exp

    if isinstance(node.expression, exp.Interval):
        return _moved(reader, node, node.this, node.expression, -1)
    one, other = reader.expression(node.this), reader.expression(node.expression)
    if one.type is Type.DATE and other.type is Type.DATE:
        return reader.apply(node, "date_diff", text("day"), other, one)
    if one.type is Type.DATE and isinstance(other, Literal) and other.type is Type.NUMBER:
        days = number(-_whole(reader, node.expression, -36600, 36600))
        return reader.apply(node, "date_add", text("day"), one, days)
    return reader.apply(node, "sub", one, other)


def _moved(reader: Aggregating, node: Any, moment: Any, interval: Any, sign: int) -> Expression:
    said = interval.args.get("unit")
    unit = _unit(reader, interval, said.name if said is not None else "")
    count = _whole(reader, interval.this, -_LONGEST[unit], _LONGEST[unit])
    found = reader.expression(moment)
    if isinstance(found, Literal):
        found = reader.time(node, found)
    return reader.apply(node, "date_add", text(unit), found, number(sign * count))


def _stray_interval(reader: Aggregating, node: Any) -> Expression:
    raise reader.refused(node, "An INTERVAL is added to a date.", "Write d + INTERVAL 1 MONTH.")


def _part(reader: Aggregating, node: Any, name: str, moment: Any) -> Expression:
    part = _PART_NAMES.get(name.lower(), name.lower())
    part = part if part in PARTS else _ABBREVIATED.get(part, part)
    if part not in PARTS:
        raise reader.refused(node, f"There is no part {name!r} of a date.", f"Use one of {', '.join(PARTS)}.")
    return reader.apply(node, "date_part", text(part), reader.expression(moment))


def _truncated(reader: Aggregating, node: Any, name: str, moment: Any) -> Expression:
    return reader.apply(node, "date_trunc", text(_unit(reader, node, name)), reader.expression(moment))


def _difference(reader: Aggregating, node: Any) -> Expression:
    said = node.args.get("unit")
    unit = _unit(reader, node, said.name if said is not None else "day")
    later, earlier = reader.expression(node.this), reader.expression(node.expression)
    return reader.apply(node, "date_diff", text(unit), earlier, later)


def _unit(reader: Aggregating, node: Any, name: str) -> str:
    said = name.lower()
    unit = said if said in UNITS else said.removesuffix("s")
    unit = unit if unit in UNITS else _ABBREVIATED.get(unit, unit)
    if unit not in UNITS:
        raise reader.refused(node, f"There is no unit of time {name!r}.", f"Use one of {', '.join(UNITS)}.")
    return unit


def _formatted(reader: Aggregating, node: Any) -> Expression:
    format_ = reader.expression(node.args["format"])
    if not isinstance(format_, Literal) or not _FORMAT.fullmatch(str(format_.value)):
        raise reader.refused(node, "STRFTIME takes a format of %Y %m %d %H %M %S %y %j.", "Use '%Y-%m'.")
    moment = reader.time(node, reader.expression(node.this))
    return reader.apply(node, "strftime", moment, format_)


def _cast(reader: Aggregating, node: Any) -> Expression:
    name = node.args["to"].this
    name = name.name if hasattr(name, "name") else str(name)
    function = next((each for each, types in _CASTS.items() if name in types.split()), None)
    if function is None:
        raise reader.refused(
            node, f"There is no cast to {name}.", "Cast to DOUBLE, INTEGER, VARCHAR, DATE or TIMESTAMP."
        )
    value = reader.expression(node.this)
    if isinstance(value, Literal) and isinstance(value.value, str) and function in {"to_date", "to_datetime"}:
        return reader.typed(node, value, Type.DATE if function == "to_date" else Type.DATETIME)
    same = {"to_number": Type.NUMBER, "to_text": Type.TEXT, "to_boolean": Type.BOOLEAN, "to_date": Type.DATE}
    same |= {"to_datetime": Type.DATETIME}
    if value.type is same.get(function):
        return value
    if value.type is Type.NUMBER and function in {"to_date", "to_datetime"}:
        raise reader.mismatch(node, "text", "number")
    if value.type in {Type.DATE, Type.DATETIME, Type.BOOLEAN} and function in {"to_number", "to_integer"}:
        if value.type is Type.BOOLEAN:
            return reader.apply(node, "case", value, number(1), reader.apply(node, "not", value), number(0), NULL)
        raise reader.mismatch(node, "text", value.type.value)
    if value.type in {Type.DATE, Type.DATETIME} and function == "to_boolean":
        raise reader.mismatch(node, "text", value.type.value)
    return reader.apply(node, function, value)


def _by_name(reader: Aggregating, node: Any) -> Expression:
    name, arguments = str(node.this).lower(), node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        said = reader.expression(arguments[0])
        return _part(reader, node, str(said.value) if isinstance(said, Literal) else "", arguments[1])
    if name in {"isodow", "hour", "minute", "second", "dayofmonth", "weekday"} and len(arguments) == 1:
        return _part(reader, node, name, arguments[0])
    if name in _NAMED_SEARCHES and len(arguments) == 2:
        return _found(_NAMED_SEARCHES[name])(reader, node)
    if name in _NAMED and len(arguments) == _NAMED[name][1]:
        return reader.apply(node, _NAMED[name][0], *(reader.expression(each) for each in arguments))
    if function_of(node) is not None:
        return reader.aggregated(node)
    if name in {"var_samp", "variance", "stddev_samp"}:
        raise reader.refused(node, f"{name} has another number of arguments.", "Give one.")
    raise reader.refused(
        node, f"The function {node.this} is not known.", "See docs/reference/sql.md for what can be asked."
    )


def _whole(reader: Aggregating, node: Any, least: int, most: int) -> int:
    """A whole number that stands in the question itself."""
    found = reader.expression(node)
    value = found.value if isinstance(found, Literal) else None
    if isinstance(value, str):
        value = float(value) if re.fullmatch(r"-?\d{1,12}", value.strip()) else None
    if not isinstance(value, float) or not value.is_integer() or not least <= value <= most:
        raise reader.invalid(
            node, "Here a whole number is needed.", f"It must lie between {least:,} and {most:,}.", "Write it out."
        )
    return int(value)
