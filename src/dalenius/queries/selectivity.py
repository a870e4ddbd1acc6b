"""Which part of the rows a condition keeps, guessed from what is public. For previews alone: nothing rests on it.

Values are reckoned to spread evenly over declared keys, and over bounds as their mean says (`value_spread`). Whether a
condition keeps some units whole or some rows of each is told by how units' rows spread over its column, where that is
known. Dates and numbers are reckoned to differ from row to row; of all else that is not known whole units are kept,
which leaves longer vectors and so more noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Call, Column, Expression, Literal, Scalar, Type, columns_of, conjuncts
from dalenius.measuring.function_values import column_values
from dalenius.measuring.functions import ranges_of
from dalenius.measuring.value_spread import ValueSpread

if TYPE_CHECKING:
    from dalenius.tables.policy import Policy

_OTHERWISE = 1 / 3  # of a condition of which nothing is known
_LEAST = 1e-4
Means = Callable[[str], "tuple[float, float | None] | None"]
Groups = Callable[[str], "float | None"]


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of all units that keeps any row, and the part of its rows that each of those keeps."""

    units: float = 1.0
    rows: float = 1.0

    @property
    def share(self) -> float:
        """Of all rows."""
        return self.units * self.rows

    def __mul__(self, other: Kept) -> Kept:
        return Kept(self.units * other.units, self.rows * other.rows)


ALL = Kept()


def keeps(condition: Expression, policy: Policy, means: Means, groups: Groups) -> Kept:
    """What a condition keeps.

    Args:
        condition: Made total.
        policy: Of the table.
        means: The mean of a column, and how far its values differ (`ValueSpread.of`), where it is known.
        groups: Into how many of a column's values the rows of one unit fall, where that is known.
    """
    found = ALL
    for part in conjuncts(condition):
        share = max(_LEAST, _share(part, policy, means))
        if share >= 1:
            continue
        names = columns_of(part)
        reach = groups(*names) if len(names) == 1 else None
        units = share if reach is None else min(1.0, share * max(1.0, reach))
        found *= Kept(units, share / units)
    return found


def _share(part: Expression, policy: Policy, means: Means) -> float:
    if part == TRUE:
        return 1.0
    match part:
        case Literal():
            return 0.0
        case Column():
            return 0.5
        case Call(function="and", arguments=arguments):
            return math.prod(_share(each, policy, means) for each in arguments)
        case Call(function="or", arguments=arguments):
            return 1 - math.prod(1 - _share(each, policy, means) for each in arguments)
        case Call(function="not", arguments=(inner,)):
            return 1 - _share(inner, policy, means)
        case Call(function="is_null"):
            return 0.0
        case Call(function="eq", arguments=(Literal(), Column() as column) | (Column() as column, Literal())):
            return _of_values(column, 1, policy)
        case Call(function="in", arguments=(Column() as column, *listed)):
            return _of_values(column, len(listed), policy)
        case Call(function="lt" | "le", arguments=(Literal(value=value), Column() as column)):
            return 1 - _below(column, value, policy, means)
        case Call(function="lt" | "le", arguments=(Column() as column, Literal(value=value))):
            return _below(column, value, policy, means)
    return _OTHERWISE


def _of_values(column: Column, listed: int, policy: Policy) -> float:
    spec = policy.columns.get(column.name)
    values = None if spec is None else column_values(spec)
    return min(1.0, listed / len(values)) if values else _OTHERWISE


def _below(column: Column, value: Scalar, policy: Policy, means: Means) -> float:
    spec = policy.columns.get(column.name)
    if spec is None:
        return _OTHERWISE
    if column.type is Type.NUMBER:
        ends, at = ranges_of({column.name: spec}).get(column.name), value
    else:
        ends = None if spec.bounds is None else (_moment(spec.bounds.low), _moment(spec.bounds.high))
        at = _moment(value)
    if ends is None or not isinstance(at, int | float) or not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
        return _OTHERWISE
    mean, square = (means(column.name) if column.type is Type.NUMBER else None) or (None, None)
    place = (at - ends[0]) / (ends[1] - ends[0])
    # Far from the mean a guessed law says little: between that which says least and one of such values.
    return (ValueSpread.of(*ends, mean).below(place) + ValueSpread.of(*ends, mean, square).below(place)) / 2


def _moment(value: object) -> float:
    """A date as a number."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    return math.nan
