"""Trees of values for quantiles: rows counted by group and leaf, each with the weight of its unit.

source … factors   as for sums (`statements.sums`), of one integer per row: 1 where it counts
weighed            what a row of each heavy unit weighs, ⌊S·C/k⌋; of all others, S
…                  weights summed over rows, by group and leaf; the nodes above the leaves are summed here

A unit's rows in the groups that count for it are n_g, k = ⌈‖n‖⌉ in the plan's norm; a row that does not count
(its value is NULL, its condition not true) is not among them. No row is dropped for being one of many: all of a heavy
unit's rows weigh less. `trees.largest` proves how much one unit's tree holds then, and so what adding or removing it
changes; exchanging it for another changes at most twice that, in L1 and in squared L2 alike, as no entry is negative.

With a limit of one row (`--rows 1`) every unit weighs about the same, whatever its number of rows: the median is then
that of people rather than of visits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.measuring.engines.duckdb.rendering import double
from dalenius.measuring.engines.duckdb.statements import source
from dalenius.measuring.engines.duckdb.statements.running import no_number
from dalenius.measuring.engines.duckdb.statements.sums import Compiler, with_steps
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.trees import SCALE, TreeLayout, nodes

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements.running import Runner, Select
    from dalenius.measuring.plan import Measure, Plan

KINDS = frozenset({"leaves"})


def statement(plan: Plan, part: Select, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The whole SELECT."""
    return f"WITH {source.source_sql(plan.only(KINDS), scan, types, salt)},\n{part.sql}"


def run(plan: Plan, part: Select, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers: group by group, all nodes of the tree."""
    return vectors(plan, part, engine.run(statement(plan, part, engine.scan, engine.columns, salt), seconds=seconds))


def vectors(plan: Plan, part: Select, rows: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """The rows of the statement as vectors over all nodes."""
    places = {cell: at for at, cell in enumerate(plan.cells)}
    # Weights are below 2²⁰: int64 holds the sum over 2⁴² rows, more than any file has.
    counts = [
        np.zeros((len(plan.cells), TreeLayout.of(plan.measures[number]).leaves), dtype=np.int64)
        for number in part.measures
    ]
    for measure, *cell, leaf, weight in rows:
        at = places.get(tuple(cell))
        if at is None:  # a group that is not public is never shown
            continue
        if leaf is None or weight is None or not 0 <= leaf < counts[measure].shape[1]:
            raise no_number()
        counts[measure][at, leaf] += int(weight)
    return [nodes(each).reshape(-1).tolist() for each in counts]


class LeafCompiler(Compiler):
    """Writes the SELECT of a plan's quantiles. Cleaning, groups and factors are those of sums."""

    def sql(self) -> str:
        """All steps."""
        # Read twice. With no keys it is quicker to compute its few columns again than to keep them.
        again = {} if self.keys else {"kept": "NOT MATERIALIZED "}
        body = with_steps([*self.steps_to_factors(), ("weighed", self.weighed())], again)
        selects = "\nUNION ALL ".join(self.counted(number) for number in range(len(self.plan.measures)))
        return f"{body}\n{selects}"

    def more(self) -> list[str]:
        """Each row's leaf; NULL where it does not count."""
        return [f"{self.leaf(each)} AS l{number}" for number, each in enumerate(self.plan.measures)]

    def integer(self, measure: Measure) -> str:
        """1 for a row that counts."""
        return f"CASE WHEN {self.counts(measure)} THEN 1 ELSE 0 END"

    def counts(self, measure: Measure) -> str:
        """Whether a row counts: its condition is true, and it has a value."""
        shown = [] if measure.where == TRUE else [self.renderer.sql(measure.where)]
        return " AND ".join([*shown, f"{self.value(measure)} IS NOT NULL"])

    def value(self, measure: Measure) -> str:
        """What is looked at, before it is rounded."""
        if measure.value is None:
            raise RuntimeError("A measure of leaves has a value.")
        return self.renderer.sql(measure.value)

    def leaf(self, measure: Measure) -> str:
        """⌊(v − low)/size⌋ of v = ⌊x/step + ½⌋, in doubles: exact below 2⁵³; past it, still some leaf."""
        layout = TreeLayout.of(measure)
        step, low, high = double(float(measure.step)), double(layout.low), double(layout.high)
        rounded = f"greatest({low}, least({high}, floor({self.value(measure)} / {step} + 0.5e0)))"
        place = f"({rounded} - {low})" if layout.low else rounded
        place = place if layout.size == 1 else f"floor({place} / {double(layout.size)})"
        inside = f"greatest(0e0, least({double(layout.leaves - 1)}, {place}))"
        return f"CASE WHEN {self.counts(measure)} THEN CAST({inside} AS INTEGER) END"

    def weighed(self) -> str:
        """What one row of a heavy unit weighs, for each measure. Most units are light, and not in here."""
        numbers = range(len(self.plan.measures))
        weights = [
            f"CAST({self.truncated(f'{SCALE}::HUGEINT', f'p{at}', f'q{at}')} AS BIGINT) AS s{at}" for at in numbers
        ]
        heavy = " OR ".join(f"p{at} < q{at}" for at in numbers)
        return f"SELECT {', '.join([*self.units, *weights])} FROM factors WHERE {heavy}"  # noqa: S608

    def counted(self, number: int) -> str:
        """The rows of one measure, weighed, by group and leaf."""
        # Equal here is what GROUP BY calls equal: a heavy unit must not pass for a light one.
        same = " AND ".join(f"k.{unit} IS NOT DISTINCT FROM f.{unit}" for unit in self.units)
        joined = f"kept k LEFT JOIN weighed f ON {same}"
        if self.plan.groups is not None:
            here = " AND ".join(f"k.{each} = c.{each}" for each in [*self.units, *self.keys])
            joined += f" JOIN chosen c ON {here}"
        there = " AND ".join(f"k.{each} IS NOT NULL" for each in [*self.required, f"l{number}"])
        keys = [f"k.{key}" for key in self.keys]
        by = ", ".join([*keys, f"k.l{number}"])
        weight = f"sum(coalesce(f.s{number}, {SCALE}))"
        return f"SELECT {number} AS measure, {by}, {weight} FROM {joined} WHERE {there} GROUP BY {by}"  # noqa: S608
