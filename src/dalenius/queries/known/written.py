"""A plan as JSON, and back: what an answer was measured by, kept with it.

A plan that is read back has the key under which its answer is stored, or it is not taken: then it is of another policy,
other data, other limits, or of a version of dalenius that planned otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from dalenius.measuring.expressions import Aggregate
from dalenius.measuring.plan import Measure, Plan, Question, Statistic, Table

MOST_CELLS = 2**16  # of one question; what more of them follows from is paid for


def can_write(plan: Plan) -> bool:
    """Whether anything could follow from its answer: its groups are public, and not too many."""
    return plan.selection is None and not plan.sets and len(plan.cells) <= MOST_CELLS


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """All that decides what is measured."""
    return {
        "where": expression_to_json(plan.where),
        "keys": list(map(expression_to_json, plan.keys)),
        "cells": [list(map(scalar_to_json, cell)) for cell in plan.cells],
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
    types = [each.type for each in keys]
    where = expression_of_json(data["where"])
    return Plan(
        Question(table, where, keys, ()),
        where,
        keys,
        tuple(tuple(map(scalar_of_json, cell, types)) for cell in data["cells"]),
        data["groups"],
        tuple(map(_statistic_of_json, data["statistics"])),
        {_aggregate(each): int(number) for each, number in data["answers"]},
        data["norm"],
        tuple(data["periods"]),
    )


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
