"""What a question's own conditions leave of the values that a column can have.

`WHERE zip IN (10115, 10117)` leaves two groups of a million, and `WHERE name = 'Ann'` one of a text that has no keys at
all: whatever the rows hold, those that count have one of these values. Only the question and the policy are looked at,
so which groups there are tells nothing about anyone. Conditions that are more involved are tried afterwards, on the
values that are left (`domains`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from dalenius.measuring.expressions import Call, Column, Expression, Literal
from dalenius.tables import policy as tables
from dalenius.tables.policy import Bounds, Kind

_LISTED = frozenset({Kind.INTEGER, Kind.DATE, Kind.CATEGORY, Kind.TEXT})


def narrow_columns(
    columns: Mapping[str, tables.Column], names: Iterable[str], conditions: Sequence[Expression]
) -> dict[str, tables.Column]:
    """The columns of these names, with the keys and bounds that are left where all conditions hold."""
    return {name: _narrowed(columns[name], name, conditions) for name in names}


def _narrowed(column: tables.Column, name: str, conditions: Sequence[Expression]) -> tables.Column:
    if column.kind not in _LISTED:
        return column
    found = column
    for part in conditions:
        listed = _listed(part, name)
        if listed is not None:
            found = _among(found, listed)
        elif column.kind in {Kind.INTEGER, Kind.DATE} and found.bounds is not None:
            found = _between(found, part, name)
    return found


def _listed(part: Expression, name: str) -> list[Any] | None:
    """The values that a condition leaves of a column; None: it lists none."""
    match part:
        case Call(function="eq" | "in", arguments=(Column(name=one), *values)) if one == name:
            given = values
        case Call(function="eq", arguments=(Literal() as value, Column(name=one))) if one == name:
            given = [value]
        case Call(function="or", arguments=alternatives):
            found = [_listed(each, name) for each in alternatives]
            return None if None in found else [value for each in found for value in each or ()]
        case _:
            return None
    if not all(isinstance(each, Literal) for each in given):
        return None
    return [each.value for each in given if isinstance(each, Literal) and each.value is not None]


def _among(column: tables.Column, listed: Sequence[Any]) -> tables.Column:
    """The column with those of its values that are listed."""
    if column.public_keys is not None:
        kept = tuple(each for each in column.public_keys if each in listed)
    elif column.kind is Kind.INTEGER:
        whole = sorted({int(each) for each in listed if isinstance(each, float) and each.is_integer()})
        kept = tuple(each for each in whole if _within(each, column.bounds))
    elif column.kind is Kind.DATE:
        days = sorted({each for each in listed if isinstance(each, date) and not isinstance(each, datetime)})
        kept = tuple(each for each in days if _within(each, column.bounds))
    else:
        kept = tuple(sorted({each for each in listed if isinstance(each, str)}))
    return replace(column, keys=kept) if kept else column


def _within(value: Any, bounds: Bounds | None) -> bool:
    return bounds is None or bool(bounds.low <= value <= bounds.high)


def _between(column: tables.Column, part: Expression, name: str) -> tables.Column:
    """The column within one more end; where nothing would be left, as it is."""
    match part:
        case Call(function="lt" | "le" as function, arguments=(Column(name=one), Literal(value=end))) if one == name:
            upper = True
        case Call(function="lt" | "le" as function, arguments=(Literal(value=end), Column(name=one))) if one == name:
            upper = False
        case _:
            return column
    if column.bounds is None or isinstance(end, datetime) or not isinstance(end, float | date):
        return column
    limit: Any = end
    if column.kind is Kind.INTEGER:
        if not isinstance(end, float) or not math.isfinite(end):
            return column
        limit = math.floor(end) if upper else math.ceil(end)
        if function == "lt" and limit == end:
            limit += -1 if upper else 1
    elif not isinstance(end, date):
        return column
    low, high = column.bounds.low, column.bounds.high
    low, high = (low, min(high, limit)) if upper else (max(low, limit), high)
    return replace(column, bounds=Bounds(low, high)) if low <= high else column
