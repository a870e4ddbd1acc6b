"""The engine's types of a release's columns: those that DuckDB has for such keys and aggregates on the rows.

They are told by the plan. The outer part is tried on empty tables before anything is charged; were types taken from
values, whatever takes whole numbers only would pass there, and fail on an average once it is paid for. Whole numbers
stay whole, so that `n // 2`, `ROUND(n, 1)` and `n::VARCHAR` give what they give on the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Aggregate, Column, Expression, Type, walk
from dalenius.measuring.functions import whole
from dalenius.queries.postprocess import whole_keys
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan

_TYPES = {Type.TEXT: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE", Type.DATETIME: "TIMESTAMP"}
_COUNTS = frozenset({"count", "units", "distinct"})
_KEEP = {"sum": "HUGEINT", "min": "BIGINT", "max": "BIGINT"}  # of whole numbers
_RANGES = {"BIGINT": 2**63, "HUGEINT": 2**127}


def column_types(plan: Plan, values: Sequence[Sequence[Any]]) -> list[str]:
    """The types of all columns of a release.

    Args:
        plan: What was asked.
        values: Column by column all values that it has, in copies, too; noise may be larger than a type holds.
    """
    return [
        _holding(_type(plan, output.expression), found)
        for output, found in zip(plan.question.outputs, values, strict=True)
    ]


def _type(plan: Plan, expression: Expression) -> str:
    if expression.type is not Type.NUMBER:
        return _TYPES.get(expression.type, "VARCHAR")
    if isinstance(expression, Aggregate):
        if expression.kind in _COUNTS:
            return "BIGINT"
        return _KEEP.get(expression.kind, "DOUBLE") if _of_whole(plan, expression) else "DOUBLE"
    aggregates = frozenset(each for each in walk(expression) if isinstance(each, Aggregate))
    known = (each for each in aggregates if _type(plan, each) != "DOUBLE")
    return "BIGINT" if whole(expression, frozenset(), frozenset[Expression]((*known, *whole_keys(plan)))) else "DOUBLE"


def _of_whole(plan: Plan, aggregate: Aggregate) -> bool:
    """Whether what it gathers are whole numbers to DuckDB: in whole steps, and of no column that is of type number."""
    steps = [each.step for each in plan.statistics[plan.answers[aggregate]].measures]
    numbers = {name for name, each in plan.table.policy.columns.items() if each.kind is Kind.NUMBER}
    parts = () if aggregate.value is None else walk(aggregate.value)
    doubles = any(isinstance(each, Column) and each.name in numbers for each in parts)
    return not doubles and all(each.denominator == 1 for each in steps)


def _holding(type_: str, values: Sequence[Any]) -> str:
    """A type that holds all of these values."""
    if type_ not in _RANGES:
        return type_
    known = [each for each in values if each is not None]
    if not all(isinstance(each, int) for each in known):
        return "DOUBLE"  # as where groups were scaled up to a total
    sizes = [name for name, most in _RANGES.items() if all(-most <= each < most for each in known)]
    return type_ if type_ in sizes else sizes[-1] if sizes else "DOUBLE"
