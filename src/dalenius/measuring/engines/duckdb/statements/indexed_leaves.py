"""Trees of values with a contribution index: only the units that the index calls heavy are weighed one by one.

plain              all rows that count, with their groups and leaves; each weighs 2²⁰
heavy … weighed    the steps of `leaves` up to the weights, on the rows of heavy units alone
…                  by group and leaf: plain rows, and what those of heavy units weigh less

A unit that the index bounds within the limit has the factor 1, and is not in `weighed` by the general way either. So
the integers are the same, to the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dalenius.measuring.engines.duckdb.rendering import identifier
from dalenius.measuring.engines.duckdb.statements import leaves, source
from dalenius.measuring.engines.duckdb.statements.indexed_sums import IndexedSums, PlainRows
from dalenius.measuring.engines.duckdb.statements.leaves import KINDS, LeafCompiler
from dalenius.measuring.engines.duckdb.statements.running import IndexedSelect, run_indexed
from dalenius.measuring.engines.duckdb.statements.sums import with_steps
from dalenius.measuring.function_values import column_values
from dalenius.measuring.trees import SCALE
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.index import Index
    from dalenius.measuring.engines.duckdb.statements.running import Runner, Select
    from dalenius.measuring.plan import Plan

_NARROW = 4096  # values of a column


def run(plan: Plan, part: Select, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """Each measure's exact integers: with the index where there is a valid one, else the general way."""
    rows = run_indexed(plan.table, engine, lambda index: statement(plan, index, engine, salt), seconds)
    return leaves.run(plan, part, engine, salt, seconds) if rows is None else leaves.vectors(plan, part, rows)


def statement(plan: Plan, index: Index, engine: Runner, salt: str) -> IndexedSelect | None:
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
