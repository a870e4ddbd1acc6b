"""Trees of values for quantiles, and histograms: rows counted by group and leaf, each with the weight of its unit.

source … factors   as for sums (`statements.sums`), of one integer per row: 1 where it counts
weighed            what a row of each heavy unit weighs, ⌊S·C/k⌋; of all others, S
…                  weights summed over rows, by group and leaf; the nodes above the leaves are summed here

A unit's rows in the groups that count for it are n_g, k = ⌈‖n‖⌉ in the plan's norm; a row that does not count
(its value is NULL, its condition not true) is not among them. No row is dropped for being one of many: all of a heavy
unit's rows weigh less. `trees.largest` proves how much one unit's tree holds then, and so what adding or removing it
changes; exchanging it for another changes at most twice that, in L1 and in squared L2 alike, as no entry is negative.

With a limit of one row (`--rows 1`) every unit weighs about the same, whatever its number of rows: the median is then
that of people rather than of visits.

With a contribution index only the units that it calls heavy are weighed one by one:

plain              all rows that count, with their groups and leaves; each weighs 2²⁰
heavy … weighed    the steps above up to the weights, on the rows of heavy units alone
…                  by group and leaf: plain rows, and what those of heavy units weigh less

A unit that the index bounds within the limit has the factor 1, and is not in `weighed` by the general way either. So
the integers are the same, to the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.measuring.engines.duckdb.rendering import double, identifier
from dalenius.measuring.engines.duckdb.statements import IndexedSelect, no_number, run_indexed, source
from dalenius.measuring.engines.duckdb.statements.indexed_sums import IndexedSums, PlainRows
from dalenius.measuring.engines.duckdb.statements.sums import Compiler, with_steps
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.function_values import column_values
from dalenius.measuring.trees import SCALE, TreeLayout, nodes
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.statements import Runner, Select
    from dalenius.measuring.plan import Measure, Plan

KINDS = frozenset({"leaves"})
_NARROW = 4096  # values of a column


def run(plan: Plan, part: Select, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers, group by group, all nodes of the tree: by an index where there is a valid one."""
    rows = run_indexed(plan.table, engine, lambda index: _indexed_statement(plan, index, engine, salt), seconds)
    if rows is None:
        rows = engine.run(statement(plan, part, engine.scan, engine.columns, salt), seconds=seconds)
    return vectors(plan, part, rows)


def statement(plan: Plan, part: Select, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The whole SELECT."""
    return f"WITH {source.source_sql(plan.only(KINDS), scan, types, salt)},\n{part.sql}"


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
    return [
        (nodes(each) if plan.measures[number].primitive.tree else each).reshape(-1).tolist()
        for number, each in zip(part.measures, counts, strict=True)
    ]


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


# --- with a contribution index


def _indexed_statement(plan: Plan, index: Index, engine: Runner, salt: str) -> IndexedSelect | None:
    """The SELECT that uses an index; None where that is of no help."""
    if plan.sets:
        return None
    own = plan.only(KINDS)
    heavy = HeavyLeaves(own, index)
    if plan.groups is not None or heavy.bounds is None:  # which groups count for a unit takes all of its rows
        return None
    sql = PlainLeaves(own, nobody=index.nobody).whole(engine.scan, engine.columns, salt, heavy)
    return IndexedSelect(sql, index.looked_at(heavy.bounds))


class HeavyLeaves(IndexedSums, LeafCompiler):
    """The rows of heavy units: what each weighs less than a row of any other."""

    def steps(self, scan: str, types: Mapping[str, str], salt: str) -> list[tuple[str, str]]:
        """All steps up to the weights."""
        return [*self.heavy_steps(scan, types, salt), ("weighed", self.weighed())]

    def less(self, number: int) -> str:
        """What the rows of one measure weigh, beyond what they were counted for, by group and leaf."""
        # Equal here is what GROUP BY calls equal: a heavy unit must not pass for a light one.
        same = " AND ".join(f"k.{unit} IS NOT DISTINCT FROM f.{unit}" for unit in self.units)
        by = ", ".join([*(f"k.{key}" for key in self.keys), f"k.l{number}"])
        there = " AND ".join(f"k.{each} IS NOT NULL" for each in [*self.keys, f"l{number}", *self._timed()])
        return (
            f"SELECT {number} AS measure, {by}, sum(f.s{number} - {SCALE}) FROM kept k JOIN weighed f ON {same} "  # noqa: S608
            f"WHERE {there} GROUP BY {by}"
        )

    def _timed(self) -> list[str]:
        return ["period"] if self.period is not None else []


class PlainLeaves(PlainRows, LeafCompiler):
    """All rows, each at full weight."""

    def whole(self, scan: str, types: Mapping[str, str], salt: str, heavy: HeavyLeaves) -> str:
        """The whole SELECT."""
        casts, where = self.casts(types), self.owned(types)
        read = f"SELECT {', '.join([*casts, '1 AS n'])} FROM {scan}{where}"  # noqa: S608
        if self.columns and not self.ballast and all(self._narrow(name, types) for name in self.columns):
            # Few different values, and little to do with each: counted as they lie in the file, cleaned afterwards.
            short = [source.shortened(self.plan.table.policy.columns[name], types) for name in self.columns]
            held = f"(SELECT {', '.join(short)} FROM {scan}{where})"  # noqa: S608
            raw, rows = ", ".join(map(identifier, self.columns)), "n"
            while rows in map(str.lower, self.columns):  # a name that no column has
                rows += "_"
            counted = f"SELECT {raw}, count(*) AS {rows} FROM {held} GROUP BY {raw}"  # noqa: S608
            read = f"SELECT {', '.join([*casts, f'{rows} AS n'])} FROM ({counted})"  # noqa: S608
        plain = f"WITH source AS ({read}), clean AS ({self.clean()}) {self.kept()}"
        # The rows of heavy units are few. Kept once found, as in `indexed_sums`.
        how = {"plain": "NOT MATERIALIZED ", "source": "MATERIALIZED "}
        body = with_steps([("plain", plain), *heavy.steps(scan, types, salt)], how)
        numbers = range(len(self.plan.measures))
        selects = [each for number in numbers for each in (self.full(number), heavy.less(number))]
        return f"WITH {body}\n" + "\nUNION ALL ".join(selects)

    def _narrow(self, name: str, types: Mapping[str, str]) -> bool:
        """Whether a column has few values, and equal ones are equal as texts too (0.0 and −0.0 are not)."""
        column = self.plan.table.policy.columns[name]
        double_ = types.get(name, "").upper() in {"FLOAT", "DOUBLE", "REAL"}
        numeric = column.kind in {Kind.INTEGER, Kind.NUMBER}
        return 0 < len(column_values(column) or ()) <= _NARROW and (numeric or not double_)

    def full(self, number: int) -> str:
        """The rows of one measure by group and leaf, as if nobody were heavy."""
        by = ", ".join([*self.keys, f"l{number}"])
        there = " AND ".join(f"{each} IS NOT NULL" for each in [*self.keys, f"l{number}"])
        return f"SELECT {number} AS measure, {by}, {SCALE} * sum(n) FROM plain WHERE {there} GROUP BY {by}"  # noqa: S608

    def clean(self) -> str:
        """Every column within its policy; no unit."""
        columns = self.plan.table.policy.columns
        parts = [f"{source.clean(columns[name], column)} AS {column}" for name, column in self.columns.items()]
        return f"SELECT {', '.join([*parts, 'n'])} FROM source"  # noqa: S608

    def kept(self) -> str:
        """The rows that count, with their groups and leaves."""
        parts = [f"{self.key(key)} AS {name}" for key, name in zip(self.plan.keys, self.keys, strict=True)]
        return f"SELECT {', '.join([*parts, *self.more(), 'n'])} FROM clean{self.kept_only()}"  # noqa: S608
