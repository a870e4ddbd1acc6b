"""Times of day, and how much time lies between two moments: read as numbers, texts and moments, which are there."""

from __future__ import annotations

import re
from datetime import time
from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.dates import cast, unwrapped

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

_EXACT = frozenset({"week", "day", "hour", "minute", "second"})  # units that are always equally long
_SHORT = frozenset({"hour", "minute", "second"})
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def compare_times(node: Any, _: Known) -> Any:
    """placed::TIME >= '12:00' → seconds since midnight ≥ 43200."""
    from sqlglot import exp

    parts = {name: node.args.get(name) for name in ("this", "expression", "low", "high") if node.args.get(name)}
    if not any(_is_time(each) and not _clock(each.this) for each in parts.values()):
        return None
    for name, each in parts.items():
        clock = _clock(each.this if _is_time(each) else each)
        if clock is not None:
            node.set(name, exp.Literal.number(clock))
        elif _is_time(each):
            node.set(name, _since_midnight(each.this))
        else:
            return None
    return node


def _is_time(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Cast) and node.args["to"].this is exp.DataType.Type.TIME


def _clock(node: Any) -> int | None:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or not node.is_string or not _CLOCK.fullmatch(node.name):
        return None
    try:
        found = time.fromisoformat(node.name.zfill(5 if node.name.count(":") == 1 else 8))
    except ValueError:
        return None
    return found.hour * 3600 + found.minute * 60 + found.second


def _since_midnight(moment: Any) -> Any:
    from sqlglot import exp

    def times(name: str, by: int) -> Any:
        return exp.Mul(
            this=exp.Extract(this=exp.var(name), expression=moment.copy()), expression=exp.Literal.number(by)
        )

    seconds_ = exp.Extract(this=exp.var("second"), expression=moment.copy())
    whole = exp.Add(this=exp.Add(this=times("hour", 3600), expression=times("minute", 60)), expression=seconds_)
    return exp.Paren(this=whole)


def time_of_day(node: Any, _: Known) -> Any:
    """DATE_TRUNC('hour', t)::TIME → '12:00:00'; EXTRACT(hour FROM t::TIME) → EXTRACT(hour FROM t)."""
    from sqlglot import exp

    if not _is_time(node) or isinstance(node.this, exp.Literal):
        return None
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    named = isinstance(around, exp.Extract) and around.this.name.lower() in _SHORT
    if named or isinstance(around, exp.Hour | exp.Minute | exp.Second):
        return node.this
    inner = unwrapped(node.this)
    if isinstance(around, exp.Predicate) or not isinstance(inner, exp.TimestampTrunc | exp.DateTrunc):
        return None
    unit = inner.args.get("unit")
    if unit is None or unit.name.lower() not in _SHORT:
        return None
    return exp.TimeToStr(this=inner, format=exp.Literal.string("%H:%M:%S"))


def read_time(node: Any, _: Known) -> Any:
    """TIME(t) → t::TIME."""
    return cast(node.this, "TIME") if node.this is not None and len(node.args) == 1 else None


def compare_differences(node: Any, _: Known) -> Any:
    """a - b > INTERVAL '12 hours' → a > b + INTERVAL '12 hours'."""
    from sqlglot import exp

    for side, other in (("this", "expression"), ("expression", "this")):
        difference, interval = unwrapped(node.args.get(side)), node.args.get(other)
        if not isinstance(difference, exp.Sub) or not isinstance(interval, exp.Interval):
            continue
        unit = interval.args.get("unit")
        name = unit.name.lower().removesuffix("s") if unit is not None else ""
        if isinstance(difference.expression, exp.Interval) or name not in _EXACT:
            return None
        start = cast(difference.expression, "TIMESTAMP")
        moved = exp.Paren(this=exp.Add(this=start, expression=interval.copy()))
        return type(node)(**{side: cast(difference.this, "TIMESTAMP"), other: moved})
    return None
