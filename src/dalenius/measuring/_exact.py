"""The private door: a plan's exact integers, before any noise, and the rows of units as they are.

Only `answering` uses it on protected data, and learning will, after the charge is on disk; the fuzzer in `audit` uses
it on made-up tables. `app` may not import it (import-linter).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalenius.measuring.batches import UnitBatch, UnitRows
    from dalenius.measuring.engines.engine import Engine, Held
    from dalenius.measuring.held_rows import HeldRows, RowBatch
    from dalenius.measuring.plan import Plan


def exact(plan: Plan, engine: Engine, salt: str, *, seconds: float = 60.0, held: Held = None) -> list[list[int]]:
    """For each measure its exact integers: cell by cell, and in each as many as its width.

    ``held`` has what the search for keys counted, so that it is not counted again.
    """
    return engine.measure(plan, salt, seconds=seconds, held=held)


def exact_lengths(plan: Plan, engine: Engine, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
    """For each measure that finds its own clip: how many units there are by the length of their vector."""
    return engine.lengths(plan, salt, seconds=seconds)


def exact_batches(
    reading: UnitRows, engine: Engine, salt: str, *, units: int, passes: int = 1, seconds: float = 60.0
) -> Iterator[UnitBatch]:
    """The rows of units, so many units at a time: for learning, inside of a look and nowhere else.

    How many batches there are must not show, nor how long it takes to go through them (`measuring.batches`).
    """
    return engine.batches(reading, salt, units=units, passes=passes, seconds=seconds)


def exact_rows(reading: HeldRows, engine: Engine, salt: str, *, seconds: float = 60.0) -> Iterator[RowBatch]:
    """All rows in no order, each with how many its unit has: for tables of counts, inside of a look and nowhere else.

    How many batches there are must not show, nor how long it takes to go through them (`measuring.batches`).
    """
    return engine.held_rows(reading, salt, seconds=seconds)
