"""Bucket functions, which the expression language has no word for: written out in what it has.

WIDTH_BUCKET(x, low, high, n) is 0 below ``low``, n + 1 from ``high`` on, and between them the number of one of n
classes of equal width, from 1. TIME_BUCKET(INTERVAL 1 MONTH, d) is DATE_TRUNC('month', d).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import NULL, Expression, Literal, Type, number, text
from dalenius.measuring.function_values import MOST_CELLS
from dalenius.queries.rules.syntax import _unit, _whole

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

# How long each unit of time is, in months or in seconds: buckets of other lengths begin at no round moment.
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def width_bucket(reader: Aggregating, node: Any) -> Expression:
    """The class of a number, as a choice between three cases; NULL stays NULL, since no case is about it."""
    value = reader.expression(node.this)
    if value.type is not Type.NUMBER:
        raise reader.mismatch(node, "number", value.type.value)
    low, high = (_constant(reader, node, part) for part in ("min_value", "max_value"))
    count = _whole(reader, node.args["num_buckets"], 1, MOST_CELLS)
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


def time_bucket(reader: Aggregating, node: Any) -> Expression:
    """Buckets of one unit of time, which begin where that unit does (DuckDB counts weeks from a Monday too)."""
    from sqlglot import exp

    interval = node.this
    if not isinstance(interval, exp.Interval):
        raise reader.refused(node, "TIME_BUCKET takes an interval.", "Write TIME_BUCKET(INTERVAL 1 MONTH, d).")
    said = interval.args.get("unit")
    unit = _unit(reader, interval, said.name if said is not None else "")
    lengths = _MONTHS if unit in _MONTHS else _SECONDS
    length = lengths[unit] * _whole(reader, interval.this, 1, 1_000_000)
    found = next((each for each, size in lengths.items() if size == length), None)
    if found is None:
        raise reader.refused(
            node,
            "TIME_BUCKET takes an interval of one unit of time.",
            "For quarters of an hour, group by DATE_TRUNC('hour', d) and FLOOR(MINUTE(d) / 15).",
        )
    return reader.apply(node, "date_trunc", text(found), reader.expression(node.expression))


def _constant(reader: Aggregating, node: Any, part: str) -> float:
    found = reader.expression(node.args.get(part))
    if not isinstance(found, Literal) or not isinstance(found.value, float):
        raise reader.refused(node, "WIDTH_BUCKET takes numbers as its ends.", "Write WIDTH_BUCKET(x, 0, 100, 10).")
    return found.value
