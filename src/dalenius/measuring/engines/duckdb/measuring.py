"""Plans as SELECTs: what `Engine` promises, kept by whoever runs one SELECT on some files.

A plan is written as SQL here, when it is about to run. The analyst's text has no part in it; names of the policy and
constants do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.statements import (
    Select,
    batches,
    distinct,
    held_rows,
    indexed_sums,
    keys,
    leaves,
    sizes,
)
from dalenius.measuring.engines.duckdb.statements.leaves import KINDS, LeafCompiler
from dalenius.measuring.engines.duckdb.statements.pairs import HeldPairs
from dalenius.measuring.engines.duckdb.statements.sums import LINEAR, Compiler

if TYPE_CHECKING:
    from dalenius.measuring.batches import UnitBatch, UnitRows
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.duckdb.statements import Runner
    from dalenius.measuring.engines.engine import Prepared
    from dalenius.measuring.held_rows import HeldRows, RowBatch
    from dalenius.measuring.plan import Plan, Table

Run = Callable[["Plan", Select, "Runner", str, float], list[list[int]]]
RUNS: dict[str, Run] = {"sums": indexed_sums.run, "leaves": leaves.run, "distinct": distinct.run}


def selects_of(plan: Plan) -> tuple[Select, ...]:
    """The SELECTs that give a plan's measures; statistics of one kind share a SELECT."""
    parts = []
    if numbers := plan.numbers(LINEAR):
        parts.append(Select("sums", numbers, Compiler(plan.only(LINEAR)).sql()))
    if numbers := plan.numbers(KINDS):
        parts.append(Select("leaves", numbers, LeafCompiler(plan.only(KINDS)).sql()))
    parts += [distinct.part(plan, number) for number in plan.numbers({"distinct"})]
    return tuple(parts)


class Measuring:
    """For a class that is a `Runner`: all of `Engine`."""

    def ready(self) -> None:
        """Nothing is missing."""

    def prepare(self, table: Table, progress: Callable[[int, int, str], None]) -> str | Prepared:  # noqa: ARG002
        """Nothing to prepare."""
        return "none"

    def measure(
        self: Runner, plan: Plan, salt: str, *, seconds: float = 60.0, held: HeldPairs | None = None
    ) -> list[list[int]]:
        """As `Engine.measure`."""
        found: list[list[int]] = [[] for _ in plan.measures]
        for part in selects_of(plan):
            run = partial(indexed_sums.run, held=held) if held is not None and part.kind == "sums" else RUNS[part.kind]
            for number, vector in zip(part.measures, run(plan, part, self, salt, seconds), strict=True):
                found[number] = vector
        return found

    def lengths(self: Runner, plan: Plan, salt: str, *, seconds: float = 60.0) -> list[list[int]]:
        """As `Engine.lengths`."""
        return sizes.count_lengths(plan, self, salt, seconds)

    def hold(self: Runner, plan: Plan, salt: str, *, seconds: float = 60.0) -> HeldPairs:
        """The pairs of unit and key, counted when they are first asked for."""
        return HeldPairs(plan, self, salt, seconds)

    def weights(
        self: Runner, plan: Plan, salt: str, *, seconds: float = 60.0, held: HeldPairs | None = None
    ) -> tuple[list[Cell], list[int]]:
        """As `Engine.weights`."""
        return keys.weights(plan, self, salt, seconds, held)

    def sizes(self: Runner, table: Table, kind: str, column: str, *, seconds: float = 60.0) -> list[tuple[int, int]]:
        """As `Engine.sizes`."""
        return sizes.count_sizes(table, kind, column, self, seconds)

    def rows_within(self: Runner, table: Table, most: int, *, seconds: float = 60.0) -> tuple[int, int]:
        """As `Engine.rows_within`."""
        return sizes.rows_within(table, most, self, seconds)

    def batches(
        self: Runner, reading: UnitRows, salt: str, *, units: int, passes: int = 1, seconds: float = 60.0
    ) -> Iterator[UnitBatch]:
        """As `Engine.batches`."""
        return batches.read_batches(reading, self, salt, units=units, passes=passes, seconds=seconds)

    def held_rows(self: Runner, reading: HeldRows, salt: str, *, seconds: float = 60.0) -> Iterator[RowBatch]:
        """As `Engine.held_rows`."""
        return held_rows.read_rows(reading, self, salt, seconds=seconds)
