"""A plan as JSON, and back: what an answer was measured by, kept with it.

A plan that is read back has the key under which its answer is stored, or it is not taken: then it is of another policy,
other data, other limits, or of a version of dalenius that planned otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dalenius.measuring.expression_json import (
    expression_of_json,
    expression_to_json,
    optional_of_json,
    optional_to_json,
    scalar_of_json,
    scalar_to_json,
)
from dalenius.measuring.expressions import Aggregate, Type
from dalenius.measuring.plan import Measure, Plan, Question, Statistic, Table

MOST_CELLS = 2**14  # of one question; what follows from more of them is paid for


def can_write(plan: Plan) -> bool:
    """Whether anything could follow from its answer: its groups are public, and not too many."""
    return plan.selection is None and not plan.sets and len(plan.cells) <= MOST_CELLS


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """All that decides what is measured."""
    return {
        "where": expression_to_json(plan.where),
        "keys": list(map(expression_to_json, plan.keys)),
        "cells": cells_to_json(plan.cells),
        "groups": plan.groups,
        "norm": plan.norm,
        "periods": list(plan.periods),
        "statistics": list(map(_statistic_to_json, plan.statistics)),
        "answers": [[expression_to_json(each), number] for each, number in plan.answers.items()],
    }


def plan_of_json(data: Mapping[str, Any], table: Table) -> Plan:
    """The plan, over a table as it is now.

    Raises:
        ValueError, KeyError, TypeError: It is none.
    """
    keys = tuple(map(expression_of_json, data["keys"]))
    where = expression_of_json(data["where"])
    return Plan(
        Question(table, where, keys, ()),
        where,
        keys,
        cells_of_json(data["cells"], [each.type for each in keys]),
        data["groups"],
        tuple(map(_statistic_of_json, data["statistics"])),
        {_aggregate(each): int(number) for each, number in data["answers"]},
        data["norm"],
        tuple(data["periods"]),
    )


def cells_to_json(cells: Sequence[tuple[Any, ...]]) -> list[Any]:
    """How many there are, and for each key its values, once each, and which of them each cell has.

    Written cell by cell, 2¹⁴ of them took a hundred times their stored size once they were read.

    >>> cells_to_json([("n", 1), ("n", 2), ("s", 1)])
    [3, [[['n', 's'], [0, 0, 1]], [[1, 2], [0, 1, 0]]]]
    """
    keys = []
    for column in zip(*cells, strict=True):
        places = {value: at for at, value in enumerate(dict.fromkeys(column))}
        keys.append([list(map(scalar_to_json, places)), [places[value] for value in column]])
    return [len(cells), keys]


def cells_of_json(data: Sequence[Any], types: Sequence[Type]) -> tuple[tuple[Any, ...], ...]:
    """As `cells_to_json` wrote them."""
    number, keys = data
    columns = []
    for (values, places), type_ in zip(keys, types, strict=True):
        read = [scalar_of_json(value, type_) for value in values]
        columns.append([read[place] for place in places])
    return tuple(zip(*columns, strict=True)) if columns else ((),) * number


def _aggregate(data: Any) -> Aggregate:
    found = expression_of_json(data)
    if not isinstance(found, Aggregate):
        raise TypeError("This is no aggregate.")
    return found


def _statistic_to_json(statistic: Statistic) -> dict[str, Any]:
    return {
        "kind": statistic.kind,
        "low": str(statistic.low),
        "high": str(statistic.high),
        "measures": list(map(_measure_to_json, statistic.measures)),
    }


def _statistic_of_json(data: Mapping[str, Any]) -> Statistic:
    measures = tuple(map(_measure_of_json, data["measures"]))
    return Statistic(data["kind"], measures, Fraction(data["low"]), Fraction(data["high"]))


def _measure_to_json(measure: Measure) -> dict[str, Any]:
    return {
        "kind": measure.kind,
        "value": optional_to_json(measure.value),
        "where": expression_to_json(measure.where),
        "step": str(measure.step),
        "whole": [
            str(each)
            for each in (measure.centre, measure.low, measure.high, measure.clip, measure.sensitivity, measure.width)
        ],
        "share": str(measure.share),
        "search": str(measure.search),
        "sets": measure.sets,
        "bits": measure.bits,
        "times": None if measure.times is None else _measure_to_json(measure.times),
    }


def _measure_of_json(data: Mapping[str, Any]) -> Measure:
    centre, low, high, clip, sensitivity, width = map(int, data["whole"])
    return Measure(
        data["kind"],
        optional_of_json(data["value"]),
        expression_of_json(data["where"]),
        Fraction(data["step"]),
        centre,
        low,
        high,
        clip,
        sensitivity,
        Fraction(data["share"]),
        width,
        None if data["times"] is None else _measure_of_json(data["times"]),
        Fraction(data["search"]),
        data["sets"],
        data["bits"],
    )
