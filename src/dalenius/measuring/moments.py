"""A few moments that stand for all others: of a datetime's values a question can tell only few apart.

A datetime has too many values for each to be tried. But DATE_TRUNC('day', t) and CAST(t AS DATE) are the same for all
moments of one day, EXTRACT(hour FROM t) for all of one hour, and a comparison with a constant changes its truth at that
constant alone. So time falls into pieces on which all keys and all conditions are the same: they begin where a day (or
hour, …) begins, at each constant, and just behind it. The beginning of each piece is tried, and stands for all of it;
whatever a row holds, its group is among those that are found. Only the policy and the question are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import Call, Column, Expression, Literal, Type, columns_of
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.tables import policy as tables

_NEXT = timedelta(microseconds=1)  # datetimes are read to the microsecond
_STEPS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_STEPS |= {"second": timedelta(seconds=1)}
_COARSEST, *_FINER = _STEPS  # all longer units of time, and parts of dates, are the same throughout a day
_FORMATS = {"%H": "hour", "%M": "minute", "%S": "second"}
_FIRST, _LAST = datetime.combine(date.min, time.min), datetime.combine(date.max, time.max)
_LONGEST = {"year": 366, "quarter": 92, "month": 31, "week": 7}  # days


@dataclass(frozen=True)
class Grain:
    """How finely an expression tells moments apart: one step apart, and by the constants that it compares them with."""

    step: str = _COARSEST
    cuts: frozenset[datetime] = frozenset()

    def with_(self, other: Grain) -> Grain:
        """That of both."""
        steps = [*_STEPS]
        return Grain(max(self.step, other.step, key=steps.index), self.cuts | other.cuts)


def stand_ins(
    column: tables.Column,
    keys: Sequence[Expression],
    conditions: Sequence[Expression],
    name: str,
    most: int,
    *,
    always: bool = False,
) -> tuple[list[datetime], list[Expression]] | None:
    """Moments that stand for all that a column can hold, and the conditions whose truth they tell.

    Args:
        column: A datetime.
        keys: What is to be tried on them.
        conditions: What holds for all rows that count; those that tell moments too finely apart are left out.
        name: How these call the column.
        most: How many moments there may be.
        always: Also where no condition is about the column.

    Returns:
        None where no condition is about the column, a key tells too many moments apart, or they have no end.
    """
    if column.kind is not Kind.DATETIME or column.bounds is None:
        return None
    grain = Grain()
    for key in keys:
        own = _grain(key, name, listed=True)
        if own is None:
            return None
        grain = grain.with_(own)
    low, high = _narrowed(column.bounds.low, column.bounds.high, conditions, name)
    told = [(each, own) for each in conditions if (own := _grain(each, name)) is not None]
    rougher = [(each, own) for each, own in told if grain.with_(own).step == grain.step]
    for kept in (told, rougher):
        whole = reduce(Grain.with_, (own for _, own in kept), grain)
        if (high - low) / _STEPS[whole.step] + 2 * len(whole.cuts) < most:
            break
    else:
        return None
    usable = [each for each, _ in kept]
    if not always and not any(name in columns_of(each) for each in usable):
        return None
    points = {low, *([column.default] if isinstance(column.default, datetime) else [])}
    points |= {each for cut in whole.cuts for each in _at(cut)}
    points |= set(_beginnings(low, high, whole.step))
    inside = {each for each in points if low <= each <= high or each == column.default}
    return sorted(inside), usable


def _at(cut: datetime) -> list[datetime]:
    return [cut, cut + _NEXT] if cut < _LAST else [cut]


def _beginnings(low: datetime, high: datetime, step: str) -> list[datetime]:
    """Of all days, hours … after the first that begins past ``low``."""
    length, midnight = _STEPS[step], datetime.combine(low.date(), time())
    first, count = (low - midnight) // length + 1, (high - low) // length + 1
    last = (_LAST - midnight) // length
    return [midnight + at * length for at in range(first, min(first + count, last + 1))]


# --- how finely an expression looks


def _grain(expression: Expression, name: str, *, listed: bool = False) -> Grain | None:
    """How finely it tells moments of a column apart; None: as finely as they are.

    ``listed``: it is a key. Texts of moments are none that are listed, whatever is known of these.
    """
    match expression:
        case Column(name=own):
            return None if own == name else Grain()
        case Call(function="date_trunc" | "date_part", arguments=(Literal(value=str() as unit), Column(name=own))):
            return Grain(unit if unit in _FINER else _COARSEST) if own == name else Grain()
        case Call(function="to_date" | "is_null", arguments=(Column(),)):
            return Grain()
        case Call(function="strftime", arguments=(Column(name=own), Literal(value=str() as form))):
            if own != name:
                return Grain()
            found = [step for sign, step in _FORMATS.items() if sign in form]
            return None if listed else Grain(found[-1] if found else _COARSEST)
        case Call(function="eq" | "ne" | "lt" | "le" | "in", arguments=arguments) if Column(name, _T) in arguments:
            others = [_constant(each) for each in arguments if each != Column(name, _T)]
            return None if None in others else Grain(cuts=frozenset(each for each in others if each is not None))
        case Call(arguments=arguments):
            whole: Grain | None = Grain()
            for each in arguments:
                own_grain = _grain(each, name, listed=listed)
                whole = None if whole is None or own_grain is None else whole.with_(own_grain)
            return whole
    return Grain()


_T = Type.DATETIME


def _constant(expression: Expression) -> datetime | None:
    """The moment that a constant is; None where it is none, or varies."""
    import pyarrow as pa

    from dalenius.measuring.engines.sources import reference

    if expression.type not in {Type.DATE, Type.DATETIME} or columns_of(expression):
        return None
    value = expression.value if isinstance(expression, Literal) else None
    if isinstance(expression, Call):  # TIMESTAMP '2025-03-01' + INTERVAL 1 MONTH
        (value,) = reference().evaluated(expression, pa.table({"place": [0]}), [])
    if isinstance(value, datetime):
        return value
    return datetime.combine(value, time()) if isinstance(value, date) else None


# --- what conditions leave


def _narrowed(low: datetime, high: datetime, conditions: Sequence[Expression], name: str) -> tuple[datetime, datetime]:
    """The span that plain comparisons leave: every moment for which all conditions hold is in it."""
    for part in conditions:
        match part:
            case Call(function="lt" | "le" as function, arguments=(one, other)):
                after, before = _lower(other, one, name), _upper(one, other, name)
                strict = _NEXT if function == "lt" else timedelta(0)
                low = max(low, after + strict) if after is not None and after < _LAST else low
                if before is not None:
                    exact = isinstance(one, Column) and before > _FIRST
                    high = min(high, before - strict if exact else before)
            case Call(function="eq", arguments=(one, other)):
                for inner, given in ((one, other), (other, one)):
                    low = max(low, _lower(inner, given, name) or low)
                    high = min(high, _upper(inner, given, name) or high)
            case Call(function="in", arguments=(inner, *given)):
                ends = [(_lower(inner, each, name), _upper(inner, each, name)) for each in given]
                known = [(first, last) for first, last in ends if first is not None and last is not None]
                if len(known) == len(ends):
                    low, high = max(low, min(known)[0]), min(high, max(last for _, last in known))
    return low, high


def _lower(inner: Expression, given: Expression, name: str) -> datetime | None:
    """The earliest moment at which ``inner`` is not before ``given``: cutting moves none forward."""
    return _constant(given) if _cut_at(inner, name) is not None else None


def _upper(inner: Expression, given: Expression, name: str) -> datetime | None:
    """A moment past which ``inner`` is after ``given``."""
    unit = _cut_at(inner, name)
    moment = _constant(given) if unit is not None else None
    if moment is None or not unit:
        return moment
    length = _STEPS.get(unit) or timedelta(days=_LONGEST[unit])
    return moment + length if moment <= _LAST - length else _LAST


def _cut_at(expression: Expression, name: str) -> str | None:
    """To what unit of time it cuts the column; empty where it is the column; None: it is something else."""
    match expression:
        case Column(name=own) if own == name:
            return ""
        case Call(function="to_date", arguments=(Column(name=own),)) if own == name:
            return "day"
        case Call(function="date_trunc", arguments=(Literal(value=str() as unit), Column(name=own))) if own == name:
            return unit
    return None
