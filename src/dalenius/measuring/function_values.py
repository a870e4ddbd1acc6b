"""All values that an expression can have, where they are public: by its shape, or by the engine itself.

A column's values are its declared keys, or those between its bounds. Where the values of the inside of a function are
known, those of the outside are. That is for keys of number columns, whose own values are too many: FLOOR(x / 10) has
few, by the bounds of x; FLOOR(x / 10) * 10 has as many, and no others. Every list here holds all values that a row can
give, and hardly more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from dalenius.measuring.expressions import Call, Column, Expression, Literal, Scalar, Type
from dalenius.measuring.functions import Range, bounded, branches, conditions, ranges_of, whole
from dalenius.tables import policy as tables
from dalenius.tables.policy import Kind

Columns = Mapping[str, tables.Column]
MOST_CELLS = 100_000  # groups of a question
MOST = 200_000  # values of one expression


# --- columns, and what follows from shapes


def column_values(column: tables.Column) -> list[Scalar] | None:
    """All values that a column can have, in order; None where they are not public or too many."""
    if column.public_keys is not None:
        return [_scalar(key) for key in column.public_keys]
    if column.bounds is None:
        return None
    low, high = column.bounds.low, column.bounds.high
    if column.kind is Kind.INTEGER and high - low < MOST_CELLS:
        return [float(value) for value in range(low, high + 1)]
    if column.kind is Kind.DATE and (high - low).days < MOST_CELLS:
        return [low + timedelta(days=day) for day in range((high - low).days + 1)]
    return None


def _scalar(key: tables.Value) -> Scalar:
    return float(key) if isinstance(key, int) and not isinstance(key, bool) else key  # type: ignore[return-value]


def values_of(key: Expression, columns: Columns) -> list[Scalar] | None:
    """All values that an expression can have, or more, by its shape alone; None where they are not public."""
    match key:
        case Literal(value=value):
            return [] if value is None else [value]
        case Column(name=name):
            return column_values(columns[name])
        case Call(function="case"):
            return _union(_reachable(key, ranges_of(columns)), columns)
        case Call(function="coalesce", arguments=arguments):
            return _union(arguments, columns)
        case Call(function="finite", arguments=(inner,)):
            return values_of(inner, columns)
        case Call(function="date_part", arguments=(Literal(value="year"), Column(name=name))):
            return _years(columns[name])
        case Call(function="date_trunc", arguments=(Literal(value=unit), Column(name=name))):
            return _truncations(str(unit), columns[name])
        case Call(function="to_date", arguments=(Column(name=name),)):
            return _truncations("day", columns[name], days=True)
        case Call(type=Type.BOOLEAN):
            return [False, True]
        case Call():
            integers = frozenset(name for name, each in columns.items() if each.kind is Kind.INTEGER)
            ranges = ranges_of(columns)
            found = _image_values(key, columns, ranges, integers)
            if found is None and key.type is Type.NUMBER and whole(key, integers):
                return _whole_range(bounded(key, ranges))
            return found
    return None


def _years(column: tables.Column) -> list[Scalar] | None:
    bounds = column.bounds
    return None if bounds is None else [float(year) for year in range(bounds.low.year, bounds.high.year + 1)]


def _whole_range(found: Range | None) -> list[Scalar] | None:
    if found is None or found[1] - found[0] > 2 * MOST_CELLS:
        return None
    return [float(value) for value in range(math.ceil(found[0]), math.floor(found[1]) + 1)]


def _union(parts: Sequence[Expression], columns: Columns) -> list[Scalar] | None:
    found: dict[Scalar, None] = {}
    for part in parts:
        values = values_of(part, columns)
        if values is None:
            return None
        found.update(dict.fromkeys(values))
    return sorted(found, key=sort_key)


def _truncations(unit: str, column: tables.Column, *, days: bool = False) -> list[Scalar] | None:
    """The beginnings of all units of time between a datetime's bounds."""
    if column.kind is not Kind.DATETIME or column.bounds is None:
        return None
    low, high = column.bounds.low, column.bounds.high
    seconds = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604_800}
    if (high - low).total_seconds() / seconds.get(unit, 86400) > 2 * MOST_CELLS:
        return None
    moments = dict.fromkeys(_floored(unit, low + timedelta(seconds=at)) for at in _marks(unit, low, high, seconds))
    return [moment.date() if days else moment for moment in moments]


def _marks(unit: str, low: datetime, high: datetime, seconds: Mapping[str, int]) -> list[float]:
    step, span = seconds.get(unit, 86400), (high - low).total_seconds()
    return [*(at * step for at in range(int(span // step) + 1)), span]


def _floored(unit: str, moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return moment.replace(second=0, microsecond=0)
        case "second":
            return moment.replace(microsecond=0)
    return day


def sort_key(value: Any) -> tuple[int, Any]:
    """Orders values of one key; of several types, type by type."""
    ranks = {bool: 0, float: 1, int: 1, str: 2, datetime: 3, date: 3}
    return ranks.get(type(value), 4), value


# --- values of functions, by the engine


def _image_values(
    key: Call, columns: Columns, ranges: Mapping[str, Range], integers: frozenset[str]
) -> list[Scalar] | None:
    """All values of a function by those of its argument, or by its bounds; None where neither tells."""
    varying = list(dict.fromkeys(each for each in key.arguments if not isinstance(each, Literal)))
    inside = values_of(varying[0], columns) if len(varying) == 1 else None
    if inside is not None and len(inside) <= MOST:
        return _image(key, varying[0], inside, integers)
    match key:
        case Call(
            function="sub", arguments=(one, Call(function="mod", arguments=(other, Literal(value=float() as by))))
        ):
            if one == other and by:
                return _multiples(bounded(one, ranges), abs(by))
        case Call(function="round" | "to_integer" | "round_even", arguments=(one, *digits)) if one.type is Type.NUMBER:
            return _rounded(key, bounded(one, ranges), digits)
    return None


def _image(key: Call, inside: Expression, given: Sequence[Scalar], integers: frozenset[str]) -> list[Scalar]:
    """The values of ``key`` where its argument ``inside`` has each of the values ``given``, or none."""
    import pyarrow as pa

    from dalenius.measuring.engines.sources import reference

    # −0.0 equals 0.0 but may be another text
    given = [*given, None, *([-0.0] if 0.0 in given and inside.type is Type.NUMBER else [])]
    found = reference().image(key, inside, pa.array(given, arrow_type(inside.type)), whole=whole(inside, integers))
    return sorted(dict.fromkeys(each for each in found if is_sayable(each, key.type)))


def _reachable(case: Call, ranges: Mapping[str, Range]) -> list[Expression]:
    """The values of a `case`, without those whose condition no row can meet."""
    *chosen, otherwise = branches(case)
    kept = [each for each, when in zip(chosen, conditions(case), strict=True) if not _never(when, ranges)]
    return [*kept, otherwise]


def _never(condition: Expression, ranges: Mapping[str, Range]) -> bool:
    """Whether a comparison is true for no values between the bounds."""
    if not isinstance(condition, Call) or condition.function not in {"lt", "le"}:
        return False
    if any(each.type is not Type.NUMBER for each in condition.arguments):
        return False
    less, more = (bounded(each, ranges) for each in condition.arguments)
    if less is None or more is None:
        return False
    return less[0] >= more[1] if condition.function == "lt" else less[0] > more[1]


def _multiples(found: Range | None, step: float) -> list[Scalar] | None:
    """x − x % step: what remains is exact (fmod), so the difference is a multiple of the step, rounded once."""
    if found is None:
        return None
    first, last = (math.trunc(Fraction(each) / Fraction(step)) for each in found)
    if last - first > MOST or max(abs(first), abs(last)) >= 2**53:  # past that, they are no doubles
        return None
    return [float(at) * step + 0.0 for at in range(first, last + 1)]


def _rounded(key: Call, found: Range | None, digits: Sequence[Expression]) -> list[Scalar] | None:
    """ROUND never falls: its values lie between those of the bounds, 10^−digits apart."""
    if found is None:
        return None
    ends = _image(key, key.arguments[0], list(found), frozenset())
    places = int(digits[0].value) if digits and isinstance(digits[0], Literal) else 0  # type: ignore[arg-type]
    scale = 10 ** abs(places)
    steps = [float(end) * scale if places > 0 else float(end) / scale for end in ends]  # type: ignore[arg-type]
    if not steps or not all(abs(each) < 2**53 for each in steps) or steps[-1] - steps[0] > MOST:
        return None
    marks = range(round(steps[0]), round(steps[-1]) + 1)
    return [at / scale if places > 0 else float(at * scale) for at in marks]


def is_sayable(value: Any, type_: Type) -> bool:
    """Whether there is a value to show: finite, and of dates one within the years 1 to 9999 (others come as texts)."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is not None and not (isinstance(value, str) and type_ in {Type.DATE, Type.DATETIME})


def arrow_type(type_: Type) -> Any:
    """What values of a type are in memory."""
    import pyarrow as pa

    kinds = {Type.NUMBER: pa.float64(), Type.BOOLEAN: pa.bool_(), Type.DATE: pa.date32()}
    return kinds.get(type_, pa.timestamp("us") if type_ is Type.DATETIME else pa.string())
