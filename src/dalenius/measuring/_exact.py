"""The private door: a plan's exact integers, before any noise.

Only `answering` uses it on protected data, after the charge is on disk; the fuzzer in `audit` uses it on made-up
tables. `app` may not import it (import-linter).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.statements import distinct, light, light_leaves

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements.pairs import Held
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Part, Plan

Run = Callable[["Plan", "Part", "Engine", str, float], list[list[int]]]
RUNS: dict[str, Run] = {"sums": light.run, "leaves": light_leaves.run, "distinct": distinct.run}


def exact(plan: Plan, engine: Engine, salt: str, *, seconds: float = 60.0, held: Held | None = None) -> list[list[int]]:
    """For each measure its exact integers: cell by cell, and in each as many as its width.

    ``held`` has the pairs of unit and key that the search for keys counted, so that they are not counted again.
    """
    found: list[list[int]] = [[] for _ in plan.measures]
    for part in plan.parts:
        run = partial(light.run, held=held) if held is not None and part.kind == "sums" else RUNS[part.kind]
        for number, vector in zip(part.measures, run(plan, part, engine, salt, seconds), strict=True):
            found[number] = vector
    return found


def exact_lengths(plan: Plan, engine: Engine, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
    """For each measure that finds its own clip: how many units there are by the length of their vector."""
    from dalenius.measuring.engines.duckdb.statements import lengths

    return lengths.histograms(plan, engine, salt, seconds)
