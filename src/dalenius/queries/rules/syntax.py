"""How each node of the syntax tree becomes an expression: a table from node to reader, for `resolve`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import FALSE, NULL, TRUE, Expression, Literal, Type, number, text
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.measuring.functions import decimal, whole
from dalenius.measuring.patterns import PatternError, check_pattern
from dalenius.measuring.work import LONGEST_TEXT
from dalenius.queries.rules import dates
from dalenius.queries.rules.aggregated import aggregate_nodes, function_of
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.ways import way_around

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

Read = Callable[["Aggregating", Any], Expression]

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

    from dalenius.queries.rules import sets

    found: dict[Any, Read] = {
        exp.Paren: lambda reader, node: reader.expression(node.this),
        exp.Column: lambda reader, node: reader.column(node),
        exp.Literal: _literal,
        exp.Boolean: lambda _, node: TRUE if node.this else FALSE,
        exp.Null: lambda _, __: NULL,
        exp.Neg: lambda reader, node: reader.apply(node, "neg", reader.expression(node.this)),
        exp.Not: lambda reader, node: reader.apply(node, "not", reader.expression(node.this)),
        exp.Add: dates.add,
        exp.Sub: dates.subtract,
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
        exp.Left: lambda reader, node: _end(reader, node, "left"),
        exp.Right: lambda reader, node: _end(reader, node, "right"),
        exp.StrPosition: _position,
        exp.RegexpLike: _regexp,
        exp.RegexpILike: _regexp,
        exp.RegexpFullMatch: _regexp,
        exp.SimilarTo: _regexp,
        exp.SplitPart: _split,
        exp.Substring: lambda reader, node: _cut(
            reader, node, "substring", node.args.get("start"), node.args.get("length")
        ),
        exp.Replace: _replace,
        exp.Concat: _concat,
        exp.DPipe: _joined,
        exp.Extract: lambda reader, node: dates.read_part(reader, node, node.this.name, node.expression),
        exp.TimestampTrunc: lambda reader, node: dates.truncate(reader, node, node.args["unit"].name, node.this),
        exp.DateTrunc: lambda reader, node: dates.truncate(reader, node, node.args["unit"].name, node.this),
        exp.WidthBucket: _width_bucket,
        exp.DateBin: dates.time_bucket,
        exp.DateDiff: dates.subtract_units,
        exp.TimeToStr: dates.format_time,
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Anonymous: _by_name,
        exp.Grouping: sets.grouping,
        exp.GroupingId: sets.grouping,
        exp.Filter: lambda reader, node: reader.filtered(node),
        exp.Interval: dates.refuse_interval,
    }
    for name, function in _BINARY.items():
        found[getattr(exp, name)] = _binary(function)
    for name, function in _SEARCHES.items():
        found[getattr(exp, name)] = _found(function)
    for name, function in _UNARY.items():
        found[getattr(exp, name)] = _unary(function)
    for name, part in dates.PART_NODES.items():
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
    "Atan2": "atan2",
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
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "asin",
    "Acos": "acos",
    "Atan": "atan",
    "Lower": "lower",
    "Upper": "upper",
    "Length": "length",
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
LONGEST_TRIMMED = 10  # characters that TRIM takes off


def _binary(function: str) -> Read:
    return lambda reader, node: reader.apply(
        node, function, reader.expression(node.this), reader.expression(node.expression)
    )


def _unary(function: str) -> Read:
    return lambda reader, node: reader.apply(node, function, reader.expression(node.this))


def _named_part(part: str) -> Read:
    return lambda reader, node: dates.read_part(reader, node, part, node.this)


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
    return reader.apply(node, "round", value, number(reader.whole_number(digits, -15, 15)))


def _trim(reader: Aggregating, node: Any) -> Expression:
    position = str(node.args.get("position") or "").upper()
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    said, value = node.args.get("expression"), reader.expression(node.this)
    if said is None:
        return reader.apply(node, function, value)
    what = f"{function.upper()} takes the characters in quotes."
    needle = _needle(reader, node, said, what, f"Write {function.upper()}(a, '*').")
    if len(needle) > LONGEST_TRIMMED:
        raise reader.refused(node, f"{function.upper()} takes at most {LONGEST_TRIMMED} characters.", "Nest it.")
    return reader.apply(node, function, value, text("".join(sorted(set(needle)))))


def _end(reader: Aggregating, node: Any, function: str) -> Expression:
    """LEFT and RIGHT; of a negative number, all but so many."""
    count = reader.whole_number(node.expression, -1_000_000, 1_000_000)
    return reader.apply(node, function, reader.expression(node.this), number(count))


def _position(reader: Aggregating, node: Any) -> Expression:
    """POSITION, STRPOS, INSTR, CHARINDEX: where a text begins in another, from 1; 0 where it is not there."""
    what, fix = "The text that is looked for stands in quotes.", "Write STRPOS(a, 'x')."
    needle = text(_needle(reader, node, node.args["substr"], what, fix))
    return reader.apply(node, "position", reader.expression(node.this), needle)


def _regexp(reader: Aggregating, node: Any) -> Expression:
    """REGEXP_MATCHES, REGEXP_FULL_MATCH, SIMILAR TO and ~*: all of them look for a part, with ^ and $ for the whole."""
    from sqlglot import exp

    ways = "Write REGEXP_MATCHES(a, 'x') for a part of a text, REGEXP_FULL_MATCH(a, 'x') for all of it."
    shown = _needle(reader, node, node.expression, "A regular expression stands in quotes.", ways)
    if isinstance(node, exp.RegexpLike) and "start" not in node.meta:
        raise reader.refused(node, "~ matches all of a text in DuckDB, and a part of it in Postgres.", ways)
    if isinstance(node, exp.SimilarTo) and set("%_") & set(shown):
        raise reader.refused(node, "SIMILAR TO with % or _ means another thing in DuckDB than in Postgres.", ways)
    flag = node.args.get("flag") or node.args.get("options")
    if flag is not None and (not isinstance(flag, exp.Literal) or flag.name not in {"i", "c", ""}):
        raise reader.refused(node, "Of the options of a regular expression only 'i' is read.", "Leave the others out.")
    folded = isinstance(node, exp.RegexpILike) or shown.startswith("(?i)") or (flag is not None and flag.name == "i")
    pattern = shown.removeprefix("(?i)")
    if isinstance(node, exp.RegexpFullMatch | exp.SimilarTo):
        pattern = f"^(?:{pattern})$"
    pattern = "(?i)" * folded + pattern
    try:
        check_pattern(pattern)
    except PatternError as error:
        way = "Use a simpler one, or LIKE, CONTAINS and STARTS_WITH; see docs/reference/sql.md."
        raise reader.invalid(node, f"The regular expression {shown!r} cannot be used.", str(error), way) from None
    return reader.apply(node, "regexp", reader.expression(node.this), text(pattern))


def _split(reader: Aggregating, node: Any) -> Expression:
    """SPLIT_PART: a part between separators, from 1, or from the end where its number is negative."""
    fix = "Write SPLIT_PART(a, '-', 1)."
    separator = _needle(reader, node, node.args["delimiter"], "SPLIT_PART takes a separator in quotes.", fix)
    part = reader.whole_number(node.args["part_index"], -1000, 1000)
    if not separator or not part:
        raise reader.invalid(node, "SPLIT_PART has no such part.", "It counts from 1, between separators.", fix)
    return reader.apply(node, "split_part", reader.expression(node.this), text(separator), number(part))


def _cut(reader: Aggregating, node: Any, function: str, *places: Any) -> Expression:
    numbers = [number(reader.whole_number(each, 0, 1_000_000)) for each in places if each is not None]
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
    parts = [_as_text(reader, each) for each in node.expressions]
    # CONCAT passes over NULL, unlike ||
    found = parts[0]
    for at, each in enumerate(parts):
        solid = reader.apply(node, "coalesce", each, text(""))
        found = solid if at == 0 else reader.apply(node, "concat", found, solid)
    return found


def _joined(reader: Aggregating, node: Any) -> Expression:
    """a || b: one of them may be a number, a date or a truth value."""
    parts = [reader.expression(each) for each in (node.this, node.expression)]
    if any(each.type is Type.TEXT for each in parts):
        parts = [_as_text(reader, each) for each in (node.this, node.expression)]
    return reader.apply(node, "concat", *parts)


def _as_text(reader: Aggregating, node: Any) -> Expression:
    """A value as DuckDB puts it into a text; a number of the question as it is written there."""
    from sqlglot import exp

    found = reader.expression(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        return text(node.name)
    if found.type not in {Type.NUMBER, Type.DATE, Type.DATETIME, Type.BOOLEAN}:
        return found
    return reader.apply(node, "to_text", found)


def _cast(reader: Aggregating, node: Any) -> Expression:
    name = node.args["to"].this
    name = name.name if hasattr(name, "name") else str(name)
    function = next((each for each, types in _CASTS.items() if name in types.split()), None)
    if function is None:
        raise reader.refused(
            node, f"There is no cast to {_type_named(node)}.", "Cast to DOUBLE, INTEGER, VARCHAR, DATE or TIMESTAMP."
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
    if function == "to_integer" and value.type is Type.NUMBER and not whole(value, reader.integers):
        exact = decimal(value, reader.integers) and not _has_double(node.this)
        function = "to_integer" if exact else "round_even"
    return reader.apply(node, function, value)


def _type_named(node: Any) -> str:
    """A type as it was typed, where the parser knows no other name for it."""
    to = node.args["to"]
    return str(to.args.get("kind") or (to.this.name if hasattr(to.this, "name") else to.this))


def _has_double(node: Any) -> bool:
    """Whether a value is worked out in doubles, by its text alone: 25 / 10.0 and 25e-1 are, 2.5 is not."""
    from sqlglot import exp

    def is_double(each: Any) -> bool:
        if isinstance(each, exp.Literal):
            return not each.is_string and "e" in each.name.lower()
        to = each.args["to"].this if isinstance(each, exp.Cast) else None
        return isinstance(each, exp.Div) or getattr(to, "name", "") in {"DOUBLE", "FLOAT", "REAL"}

    return any(map(is_double, node.walk(prune=lambda each: isinstance(each, exp.Predicate))))


def _by_name(reader: Aggregating, node: Any) -> Expression:
    name, arguments = str(node.this).lower(), node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        said = reader.expression(arguments[0])
        return dates.read_part(reader, node, str(said.value) if isinstance(said, Literal) else "", arguments[1])
    if name in {"isodow", "hour", "minute", "second", "dayofmonth", "weekday"} and len(arguments) == 1:
        return dates.read_part(reader, node, name, arguments[0])
    if name in _NAMED_SEARCHES and len(arguments) == 2:
        return _found(_NAMED_SEARCHES[name])(reader, node)
    if name in _NAMED and len(arguments) == _NAMED[name][1]:
        return reader.apply(node, _NAMED[name][0], *(reader.expression(each) for each in arguments))
    if function_of(node) is not None:
        return reader.aggregated(node)
    if name in {"var_samp", "variance", "stddev_samp"}:
        raise reader.refused(node, f"{name} has another number of arguments.", "Give one.")
    why, fix = way_around(name)
    raise QuestionRefusedError(f"The function {node.this} is not known.", why=why, fix=fix, at=place(node, reader.text))


def _width_bucket(reader: Aggregating, node: Any) -> Expression:
    """The class of a number, as a choice between three cases; NULL stays NULL, since no case is about it.

    WIDTH_BUCKET(x, low, high, n) is 0 below ``low``, n + 1 from ``high`` on, and between them the number of one of n
    classes of equal width, from 1.
    """
    value = reader.expression(node.this)
    if value.type is not Type.NUMBER:
        raise reader.mismatch(node, "number", value.type.value)
    low, high = (_constant(reader, node, part) for part in ("min_value", "max_value"))
    count = reader.whole_number(node.args["num_buckets"], 1, MOST_CELLS)
    if not low < high or not math.isfinite((high - low) * count):
        raise reader.invalid(
            node,
            "WIDTH_BUCKET needs two ends.",
            "The first must be below the second.",
            "Write WIDTH_BUCKET(x, 0, 9, 3).",
        )

    def applied(function: str, *arguments: Expression) -> Expression:
        return reader.apply(node, function, *arguments)

    above = applied("mul", applied("sub", value, number(low)), number(count))
    place = applied("floor", applied("div", above, number(high - low)))
    # Just below an end the quotient may round up to the next class; the ends decide, not the rounding.
    inside = applied("greatest", number(0), applied("least", number(count - 1), place))
    return applied(
        "case",
        applied("lt", value, number(low)),
        number(0),
        applied("lt", value, number(high)),
        applied("add", inside, number(1)),
        applied("ge", value, number(high)),
        number(count + 1),
        NULL,
    )


def _constant(reader: Aggregating, node: Any, part: str) -> float:
    found = reader.expression(node.args.get(part))
    if not isinstance(found, Literal) or not isinstance(found.value, float):
        raise reader.refused(node, "WIDTH_BUCKET takes numbers as its ends.", "Write WIDTH_BUCKET(x, 0, 100, 10).")
    return found.value
