"""The integers of simple plans worked out row by row in Python, as the definition says, to compare with the engine's.

A wrong step, a NULL that counts or a value past its bounds may stay within the claimed sensitivity, since a unit's
whole contribution is clipped; but what was measured is then not what the plan says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dalenius.audit.fuzzing.policies import Shape
from dalenius.audit.fuzzing.tables import Row, arrow
from dalenius.queries.expressions import TRUE, Column
from dalenius.queries.plan import Measure, Plan
from dalenius.queries.statements.sums import LINEAR, Compiler
from dalenius.tables.policy import Column as Declared
from dalenius.tables.policy import Kind

# Where Python and the engine convert to a double alike beyond doubt.
_STORAGES = frozenset({"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT", "UBIGINT"})


def expected(plan: Plan, shape: Shape, rows: Sequence[Row]) -> list[int] | None:
    """Each measure's integer over the whole table; None where the plan is not simple enough."""
    if plan.keys or plan.where != TRUE or plan.periods != ("",):
        return None
    for statistic in plan.statistics:
        if statistic.kind not in LINEAR:
            return None
        for measure in statistic.measures:
            if measure.value is not None and not _simple(measure.value, shape):
                return None
            # Averages count the rows whose value is not NULL; every other condition is left to the engine.
            if measure.where != TRUE and statistic.kind != "moments":
                return None
        summed = statistic.measures[-1]
        if statistic.kind == "moments" and summed.where != TRUE:
            return None
    read = sorted({each.value.name for each in plan.measures if isinstance(each.value, Column)})
    values = arrow(shape, rows).select(read).to_pylist() if read else [{}] * len(rows)  # as the file's types hold them
    units: dict[Row, list[dict[str, Any]]] = {}
    for row, held in zip(rows, values, strict=True):
        unit = row[: len(shape.policy.unit)]
        if not any(each is None or (isinstance(each, float) and math.isnan(each)) for each in unit):
            units.setdefault(unit, []).append(held)
    totals = [0] * len(plan.measures)
    for own in units.values():
        for at, value in enumerate(_contribution(plan, shape, own)):
            totals[at] += value
    return totals


def _simple(value: Any, shape: Shape) -> bool:
    return isinstance(value, Column) and shape.storages[value.name] in _STORAGES


def _contribution(plan: Plan, shape: Shape, rows: Sequence[dict[str, Any]]) -> list[int]:
    found: list[int] = []
    most = Compiler(plan).most  # entries beyond it are clamped, so that their squares can be summed
    for statistic in plan.statistics:
        summed = statistic.measures[-1].value
        sums = [sum(_integer(measure, summed, shape, row) for row in rows) for measure in statistic.measures]
        sums = [max(-most, min(most, each)) for each in sums]
        if statistic.kind == "units":
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


def _integer(measure: Measure, summed: Any, shape: Shape, row: dict[str, Any]) -> int:
    """floor(x/step + ½) − centre, within the bounds; 0 where there is no value."""
    if not isinstance(summed, Column):
        return 1
    value = _clean(shape.policy.columns[summed.name], row[summed.name])
    if value is None:
        return 0
    if measure.value is None:
        return 1
    ratio = value / float(measure.step) + 0.5
    found = min(measure.high, max(measure.low, math.floor(ratio) - measure.centre))
    return found if measure.kind == "sum" else found * found


def _clean(column: Declared, value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and math.isfinite(number):
        number = float(math.floor(number + 0.5)) if column.kind is Kind.INTEGER else number
        if column.bounds is not None:
            number = max(float(column.bounds.low), min(float(column.bounds.high), number))
        if column.keys is None or number in {float(key) for key in column.keys}:  # type: ignore[arg-type]
            return number
    return None if column.default is None else float(column.default)  # type: ignore[arg-type]
