"""The integers of simple plans worked out row by row in Python, as the definition says, to compare with the engine's.

A wrong step, a NULL that counts or a value past its bounds may stay within the claimed sensitivity, since a unit's
whole contribution is clipped; but what was measured is then not what the plan says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dalenius.audit.fuzzing.policies import Shape
from dalenius.audit.fuzzing.tables import Row, arrow
from dalenius.measuring.canonical import call
from dalenius.measuring.engines.duckdb.statements.sums import LINEAR, Compiler
from dalenius.measuring.expressions import TRUE, Column
from dalenius.measuring.plan import Measure, Plan, Statistic
from dalenius.measuring.work import LONGEST_BYTES
from dalenius.tables.policy import Column as Declared
from dalenius.tables.policy import Kind

# Where Python and the engine convert to a double alike beyond doubt.
_STORAGES = frozenset({"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT", "UBIGINT"})


def expected(plan: Plan, shape: Shape, rows: Sequence[Row]) -> list[int] | None:
    """Each measure's integer over the whole table; None where the plan is not simple enough."""
    if plan.keys or plan.where != TRUE or plan.periods != ("",):
        return None
    for statistic in plan.statistics:
        if statistic.statement not in LINEAR:
            return None
        if not all(_simple(each, shape) for each in _values(statistic)) or not _unconditional(statistic):
            return None
    read = sorted({each.name for statistic in plan.statistics for each in _values(statistic)})
    values = arrow(shape, rows).select(read).to_pylist() if read else [{}] * len(rows)  # as the file's types hold them
    units: dict[Row, list[dict[str, Any]]] = {}
    for row, held in zip(rows, values, strict=True):
        unit = row[: len(shape.policy.unit)]
        if not any(map(_nobody, unit)):
            units.setdefault(unit, []).append(held)
    totals = [0] * len(plan.measures)
    for own in units.values():
        for at, value in enumerate(_contribution(plan, shape, own)):
            totals[at] += value
    for number in plan.numbers({"distinct"}):
        measure = plan.measures[number]
        name = measure.value.name if isinstance(measure.value, Column) else ""
        found = _distinct(measure, name, shape, units.values())
        if found is None:
            return None
        totals[number] = found
    return totals


def _nobody(part: Any) -> bool:
    """Whether a part of a unit makes the row nobody's: NULL, no number, or a text without measure."""
    if isinstance(part, str):
        return len(part.encode()) > LONGEST_BYTES
    return part is None or (isinstance(part, float) and math.isnan(part))


def _values(statistic: Statistic) -> tuple[Any, ...]:
    """What a row must have to count: one value, two or none."""
    return tuple(dict.fromkeys(each.value for each in statistic.measures if each.value is not None))


def _unconditional(statistic: Statistic) -> bool:
    """Averages and covariances count the rows that have a value; every other condition is left to the engine."""
    present = call("and", *(call("not", call("is_null", each)) for each in _values(statistic)))
    match statistic.kind:
        case "moments":
            return all(each.where == TRUE for each in statistic.measures[1:])
        case "covariance":
            return all(each.where == present for each in statistic.measures)
    return all(each.where == TRUE for each in statistic.measures)


def _distinct(measure: Measure, name: str, shape: Shape, units: Iterable[Sequence[dict[str, Any]]]) -> int | None:
    """How many values there are; None where a unit has more than count, and a hash chooses."""
    found: set[float | None] = set()
    for own in units:
        values = {_clean(shape.policy.columns[name], row[name]) for row in own} - {None}
        if len(values) > measure.clip:
            return None
        found |= values
    return len(found)


def _simple(value: Any, shape: Shape) -> bool:
    if not isinstance(value, Column) or shape.storages[value.name] not in _STORAGES:
        return False
    return shape.policy.columns[value.name].kind in {Kind.INTEGER, Kind.NUMBER}  # 1 and 3 are one boolean


def _contribution(plan: Plan, shape: Shape, rows: Sequence[dict[str, Any]]) -> list[int]:
    found: list[int] = []
    linear = plan.only(LINEAR)
    most = (
        Compiler(linear).most if linear.statistics else 0
    )  # entries beyond it are clamped, so that their squares can be summed
    for statistic in plan.statistics:
        needed = _values(statistic)
        sums = [sum(_integer(measure, needed, shape, row) for row in rows) for measure in statistic.measures]
        sums = [max(-most, min(most, each)) for each in sums]
        if statistic.kind in {"units", "distinct"}:
            found.append(1)
            continue
        factors = [
            Fraction(measure.clip, abs(each))
            for measure, each in zip(statistic.measures, sums, strict=True)
            if abs(each) > measure.clip
        ]
        factor = min([Fraction(1), *factors])
        found += [math.trunc(each * factor) for each in sums]
    return found


def _integer(measure: Measure, needed: Sequence[Column], shape: Shape, row: dict[str, Any]) -> int:
    """floor(x/step + ½) − centre, within the bounds; 0 where there is no value."""
    values = {each: _clean(shape.policy.columns[each.name], row[each.name]) for each in needed}
    if None in values.values():
        return 0
    if measure.value is None:
        return 1
    if measure.kind in {"square", "product"}:
        return _scaled(measure, values) * _scaled(measure.times or measure, values)
    return _scaled(measure, values)


def _scaled(measure: Measure, values: Mapping[Any, float | None]) -> int:
    ratio = (values[measure.value] or 0.0) / float(measure.step) + 0.5
    return min(measure.high, max(measure.low, math.floor(ratio) - measure.centre))


def _clean(column: Declared, value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and math.isfinite(number):
        number = float(math.floor(number + 0.5)) if column.kind is Kind.INTEGER else number
        if column.bounds is not None:
            number = max(float(column.bounds.low), min(float(column.bounds.high), number))
        if column.keys is None or number in {float(key) for key in column.keys}:  # type: ignore[arg-type]
            return number
    return None if column.default is None else float(column.default)  # type: ignore[arg-type]
