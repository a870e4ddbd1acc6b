"""Groups that have to be found: the weights of their keys, without noise, compared on neighbours.

What the selection claims (`mechanisms.key_selection`): one unit changes the weights by at most Δ2², and keys that only
it has, m of them, weigh at most ⌊2²⁰/√m⌋ each, with m no more than the cap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Type
from dalenius.measuring.plan import Plan, require
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection

if TYPE_CHECKING:
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine

Weights = Mapping["Cell", int]
_KINDS = {Type.NUMBER: float, Type.BOOLEAN: bool, Type.TEXT: str, Type.DATE: date, Type.DATETIME: datetime}


class UnsayableError(Exception):
    """A key that no answer could show, or that is there twice."""


def weighed(plan: Plan, engine: Engine, salt: str, seconds: float) -> Weights:
    """The weight of every key that occurs."""
    cells, found = engine.weights(plan, salt, seconds=seconds)
    for cell in cells:
        for key, value in zip(plan.keys, cell, strict=True):
            if type(value) is not _KINDS[key.type] or (isinstance(value, float) and not math.isfinite(value)):
                raise UnsayableError(f"{key.type.value} as {type(value).__name__}")
    if len(set(cells)) < len(cells):
        raise UnsayableError("one key, twice")
    return dict(zip(cells, found, strict=True))


def broken(plan: Plan, first: Weights, second: Weights, *, nobody: bool) -> tuple[str, str, str] | None:
    """What is broken, what was claimed and what was seen; None where the weights are as they should be."""
    moved = sum((first.get(key, 0) - second.get(key, 0)) ** 2 for key in first.keys() | second.keys())
    if nobody and first != second:
        return "nobody", "0", str(moved)
    claimed = KeySelection(1, 0.5, 1, plan.neighbors).squared_sensitivity
    if moved > claimed:
        return "difference", str(claimed), str(moved)
    for here, there in ((first, second), (second, first)):
        lone = [weight for key, weight in here.items() if key not in there]
        most = WEIGHT if not lone else math.isqrt(WEIGHT**2 // len(lone))
        if len(lone) > require(plan.selection).cap or max(lone, default=0) > most:
            return "lone", f"{most} each", str(max(lone))
    return None


def too_long(alone: Weights) -> tuple[str, str, str] | None:
    """As `broken`, for a table with one unit alone."""
    length = sum(weight * weight for weight in alone.values())
    return ("unit", str(WEIGHT**2), str(length)) if length > WEIGHT**2 else None


def union(*tables: Mapping[Any, int]) -> tuple[Cell, ...]:
    """All keys of some tables, each once, in an order that is theirs."""
    from dalenius.measuring.domains import in_order

    return in_order(frozenset().union(*tables))
