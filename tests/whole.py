"""Exact integers as numbers of rows and steps, however finely they were counted (`measuring.measures`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.measuring._exact import exact

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Plan


def in_steps(plan: Plan, integers: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    """What each integer stands for: whole where nobody was scaled down."""
    return [
        [Fraction(value, 2**measure.bits) for value in values]
        for measure, values in zip(plan.measures, integers, strict=True)
    ]


def exact_steps(plan: Plan, engine: Engine, salt: str) -> list[list[Fraction]]:
    """A plan's exact integers, in rows and steps."""
    return in_steps(plan, exact(plan, engine, salt))
