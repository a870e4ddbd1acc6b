"""Priced by accuracy: the least ε at which every column is as exact as asked. Uses what previews use, so it is free."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dalenius.accounting import parameters
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.expressions import Aggregate
from dalenius.queries.preview import noise_error
from dalenius.queries.rules.price import priced
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.plan import Output, Plan

_LOWEST, _HIGHEST = 1e-6, 1e3
_PRECISION = 1e-4  # of ε, relative


def epsilon_for(plan: Plan, error: float | Mapping[str, float], confidence: float) -> float:
    """The least ε at which noise errors are at most ``error``: one for all columns, or one per named column."""
    wanted = _wanted(plan, error)

    def exact_enough(epsilon: float) -> bool:
        found = priced(plan, epsilon)
        return all(
            (each := noise_error(plan, output.expression, found, confidence)) is not None and each <= most
            for output, most in wanted
        )

    if not exact_enough(_HIGHEST):
        raise QuestionRefusedError(
            "No price makes the answer that exact.",
            why="Values are rounded to steps, and averages need enough rows.",
            fix="Ask for a larger error.",
        )
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if exact_enough(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _wanted(plan: Plan, error: float | Mapping[str, float]) -> list[tuple[Output, float]]:
    outputs = {each.name: each for each in plan.question.outputs if isinstance(each.expression, Aggregate)}
    if not outputs:
        raise InputError(
            "No column can be priced by its error.",
            why="Only plain aggregates can; arithmetic on them has an error that depends on the answer.",
            fix="Give an epsilon.",
        )
    if not isinstance(error, Mapping):
        most = float(parameters.positive(error, "error"))
        return [(each, most) for each in outputs.values()]
    if not error:
        raise InputError(
            "No error is given.", why="It is a price: the least ε that gives it.", fix="Name a column and its error."
        )
    for name in error:
        if name not in outputs:
            meant = nearest(name, outputs)
            raise InputError(
                f"There is no column {name!r} to price.",
                why=f"The question has {', '.join(outputs)}.",
                fix=f"Did you mean {meant!r}?" if meant else "Name one of them.",
            )
    return [(outputs[name], float(parameters.positive(most, "error"))) for name, most in error.items()]
