"""How each node of the syntax tree becomes an expression: a table from node to reader, for `resolve`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import FALSE, NULL, TRUE, Expression, Literal, Type, number, text
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.measuring.work import LONGEST_TEXT
from dalenius.queries.rules import casts, dates, texts
from dalenius.queries.rules.aggregated import aggregate_nodes, function_of
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.ways import way_around

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

Read = Callable[["Aggregating", Any], Expression]


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
        exp.Like: lambda reader, node: texts.match_like(reader, node, "like"),
        exp.ILike: lambda reader, node: texts.match_like(reader, node, "ilike"),
        exp.Case: _case,
        exp.If: _if,
        exp.Coalesce: lambda reader, node: _many(reader, node, "coalesce"),
        exp.Least: lambda reader, node: _many(reader, node, "least"),
        exp.Greatest: lambda reader, node: _many(reader, node, "greatest"),
        exp.Log: _logarithm,
        exp.Round: _round,
        exp.Trim: texts.trim,
        exp.Left: lambda reader, node: texts.cut_end(reader, node, "left"),
        exp.Right: lambda reader, node: texts.cut_end(reader, node, "right"),
        exp.StrPosition: texts.position,
        exp.RegexpLike: texts.match_expression,
        exp.RegexpILike: texts.match_expression,
        exp.RegexpFullMatch: texts.match_expression,
        exp.SimilarTo: texts.match_expression,
        exp.SplitPart: texts.split,
        exp.Initcap: texts.capitals,
        exp.Substring: lambda reader, node: texts.substring(
            reader, node, "substring", node.args.get("start"), node.args.get("length")
        ),
        exp.Replace: texts.replace,
        exp.Concat: texts.concat,
        exp.DPipe: texts.join,
        exp.Extract: lambda reader, node: dates.read_part(reader, node, node.this.name, node.expression),
        exp.TimestampTrunc: lambda reader, node: dates.truncate(reader, node, node.args["unit"].name, node.this),
        exp.DateTrunc: lambda reader, node: dates.truncate(reader, node, node.args["unit"].name, node.this),
        exp.WidthBucket: _width_bucket,
        exp.DateBin: dates.time_bucket,
        exp.DateDiff: dates.subtract_units,
        exp.TimeToStr: dates.format_time,
        exp.Cast: casts.cast,
        exp.TryCast: casts.cast,
        exp.Anonymous: _by_name,
        exp.Grouping: sets.grouping,
        exp.GroupingId: sets.grouping,
        exp.Filter: lambda reader, node: reader.filtered(node),
        exp.Interval: dates.refuse_interval,
    }
    for name, function in _BINARY.items():
        found[getattr(exp, name)] = _binary(function)
    for name, function in _SEARCHES.items():
        found[getattr(exp, name)] = texts.search(function)
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
    "ApproxQuantiles",
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
    dates_ = {each.type for each in arguments} & {Type.DATE, Type.DATETIME}
    if function in {"least", "greatest"} and len(arguments) == 2 and dates_:
        return _extreme(reader, node, function, *arguments)
    return reader.apply(node, function, *arguments)


def _extreme(reader: Aggregating, node: Any, function: str, one: Expression, other: Expression) -> Expression:
    """LEAST and GREATEST of two dates: of one that is there and NULL, that one."""

    def applied(name: str, *arguments: Expression) -> Expression:
        return reader.apply(node, name, *arguments)

    first = applied("le" if function == "least" else "ge", one, other)
    missing = [applied("is_null", other), one, applied("is_null", one), other]
    return applied("case", *missing, first, one, other)


def _logarithm(reader: Aggregating, node: Any) -> Expression:
    if node.expression is None:  # DuckDB's LOG is to base 10
        return reader.apply(node, "log10", reader.expression(node.this))
    base = reader.expression(node.this)
    bases = {2.0: "log2", 10.0: "log10"}
    if not isinstance(base, Literal) or not isinstance(base.value, float) or base.value <= 0 or base.value == 1:
        raise reader.refused(node, "LOG takes a number as its base.", "Write LOG(3, x), LN(x), LOG2(x) or LOG10(x).")
    if base.value not in bases:
        inner = reader.apply(node, "log10", reader.expression(node.expression))
        return reader.apply(node, "div", inner, number(math.log10(base.value)))
    return reader.apply(node, bases[base.value], reader.expression(node.expression))


def _round(reader: Aggregating, node: Any) -> Expression:
    digits = node.args.get("decimals")
    value = reader.expression(node.this)
    if digits is None:
        return reader.apply(node, "round", value)
    return reader.apply(node, "round", value, number(reader.whole_number(digits, -15, 15)))


def _by_name(reader: Aggregating, node: Any) -> Expression:
    name, arguments = str(node.this).lower(), node.expressions
    if name in {"date_part", "datepart"} and len(arguments) == 2:
        said = reader.expression(arguments[0])
        return dates.read_part(reader, node, str(said.value) if isinstance(said, Literal) else "", arguments[1])
    if name in {"isodow", "hour", "minute", "second", "dayofmonth", "weekday"} and len(arguments) == 1:
        return dates.read_part(reader, node, name, arguments[0])
    if name in {"date_sub", "datesub"} and len(arguments) == 3:
        return dates.subtract_whole_units(reader, node)
    if name in _NAMED_SEARCHES and len(arguments) == 2:
        return texts.search(_NAMED_SEARCHES[name])(reader, node)
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
