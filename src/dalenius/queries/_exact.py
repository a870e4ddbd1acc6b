"""The private door: a plan's exact integers, before any noise.

Only `answering` uses it on protected data, after the charge is on disk; the fuzzer in `audit` uses it on made-up
tables. `app` may not import it (import-linter).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dalenius.errors import EngineFailedError
from dalenius.queries.plan import Plan
from dalenius.queries.rules.compile import statement


class Engine(Protocol):
    """What computes: it knows its files and runs one SELECT."""

    @property
    def scan(self) -> str:
        """The files, in FROM."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The types of their columns."""

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """Runs generated SQL."""


def exact(plan: Plan, engine: Engine, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
    """For each measure its exact integers, one per cell; groups without rows are 0."""
    rows = engine.run(statement(plan, engine.scan, engine.columns, salt), seconds=seconds)
    width = len(plan.keys)
    places = {cell: at for at, cell in enumerate(plan.cells)}
    found = [[0] * len(plan.cells) for _ in plan.measures]
    for row in rows:
        at = places.get(tuple(row[:width]))
        if at is None:  # a group that is not public is never shown
            continue
        for measure, value in enumerate(row[width:]):
            if value is None:
                if width or len(rows) != 1:
                    raise EngineFailedError(
                        "The engine failed.", why="It gave no number where one was expected.", fix="Report it as a bug."
                    )
                continue  # a sum over no units at all
            found[measure][at] += int(value)
    return found
