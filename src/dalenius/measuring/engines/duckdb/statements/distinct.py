"""Counts and sums of distinct values: each unit keeps a limited number of pairs of group and value, counted once.

source, clean   as for sums
kept            rows that count and have a value, with their groups
pairs           each unit's pairs of group and value, once
chosen          at most K of them per unit, by a keyed hash
…               per group, the number of different values among all that were chosen, or their sum

Neighbours and sensitivity. Let P(u) be the pairs that unit u keeps. They depend on u's own rows and on the secret seed
alone, and |P(u)| ≤ K. The answer for group g is the number of pairs of g in the union of all P(u). Adding a unit v
makes the union larger by the pairs of P(v) that are not in it yet: the vector of answers grows by some a ≥ 0 with
Σa ≤ K. So Δ1 = K, and Σa² ≤ (Σa)² gives Δ2² = K² (reached where all new pairs are in one group). Where v is exchanged
for w, let a be what v adds to the table without both, and b what w adds to it: the answers differ by a − b, with
‖a − b‖₁ ≤ 2K; and since a, b ≥ 0 have ⟨a, b⟩ ≥ 0, ‖a − b‖² ≤ ‖a‖² + ‖b‖² ≤ 2K².

With s grouping sets (`rules.sets`) a unit keeps at most K pairs in each, so that the above holds for the answers of
each: s times Δ1, and s times Δ2², as squares add up over the sets.

Of sums every pair adds floor(v/step + ½), between ±M, in place of 1: all of the above holds times M, or M²
(`statistics.distinct_sum`). Where values of both signs are exchanged, ‖a − b‖² ≤ 4K²M².
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from dalenius.measuring.engines.duckdb.statements import Select, source, sums
from dalenius.measuring.expressions import TRUE, Expression
from dalenius.measuring.limits.ladder import rungs
from dalenius.measuring.plan import Plan

if TYPE_CHECKING:
    from dalenius.measuring.engines.duckdb.statements import Runner


def part(plan: Plan, number: int) -> Select:
    """The SELECT that gives one measure."""
    return Select("distinct", (number,), PairStatement(_alone(plan, number)).sql())


def statement(plan: Plan, part: Select, scan: str, types: Mapping[str, str], salt: str) -> str:
    """The whole SELECT."""
    return f"WITH {source.source_sql(_alone(plan, part.measures[0]), scan, types, salt)},\n{part.sql}"


def run(plan: Plan, part: Select, engine: Runner, salt: str, seconds: float) -> list[list[int]]:
    """The measure's exact integers, one per cell; groups without rows are 0."""
    places = {cell: at for at, cell in enumerate(plan.cells)}
    found = [0] * len(plan.cells)
    for *key, count in engine.run(statement(plan, part, engine.scan, engine.columns, salt), seconds=seconds):
        at = places.get(tuple(key))
        if at is not None:  # a group that is not public is never shown
            found[at] += int(count)
    return [found]


def ladder(plan: Plan, number: int, engine: Runner, salt: str, seconds: float) -> list[int]:
    """The values in all groups together, counted at each limit of the measure's ladder (`limits.ladder`)."""
    alone = _alone(plan, number)
    read = source.source_sql(alone, engine.scan, engine.columns, salt)
    (row,) = engine.run(f"WITH {read},\n{PairStatement(alone).ladder()}", seconds=seconds)
    return [int(count) for count in row]


def _alone(plan: Plan, number: int) -> Plan:
    """The plan with one measure; its limit is on pairs, and chosen by the seed that otherwise chooses groups."""
    measure = plan.measures[number]
    statistic = next(each for each in plan.statistics if any(one is measure for one in each.measures))
    alone = replace(statistic, measures=(measure,))
    return replace(plan, statistics=(alone,), answers={}, groups=measure.clip)


class PairStatement:
    """Writes the SELECT of one measure. Methods are the steps."""

    def __init__(self, plan: Plan) -> None:
        self.compiler = sums.Compiler(plan)
        (self.measure,) = plan.measures
        self.plan = plan
        self.units, self.keys = self.compiler.units, self.compiler.keys

    def sql(self) -> str:
        """All steps."""
        body = sums.with_steps([*self.paired(), ("chosen", self.chosen())])
        if not self.measure.primitive.pairs:
            counted = ", ".join([*self.keys, "count(DISTINCT v)"])
            return f"{body}\nSELECT {counted} FROM chosen{sums.grouped_by(self.keys)}"
        names = ", ".join([*self.keys, "v"])
        summed = ", ".join([*self.keys, f"coalesce(sum({self.compiler.scaled(self.measure, 'v')}), 0)"])
        return f"{body}\nSELECT {summed} FROM (SELECT DISTINCT {names} FROM chosen){sums.grouped_by(self.keys)}"  # noqa: S608

    def ladder(self) -> str:
        """The steps for many limits at once: a value counts from the best place on that it has with any unit."""
        names = ", ".join([*self.keys, "v"])
        first = f"SELECT {names}, min(place) AS place FROM placed GROUP BY {names}"  # noqa: S608
        body = sums.with_steps([*self.paired(), ("placed", self.placed()), ("first", first)])
        counts = ", ".join(f"count(*) FILTER (WHERE place <= {rung})" for rung in rungs(self.measure.clip))
        return f"{body}\nSELECT {counts} FROM first"

    def paired(self) -> list[tuple[str, str]]:
        """The steps up to `pairs`."""
        return [("clean", self.compiler.clean()), ("kept", self.kept()), ("pairs", self.pairs())]

    def kept(self) -> str:
        """The rows that count, with their groups and values. −0.0 and 0.0 are one value, as they are one key."""
        compiler, plan = self.compiler, self.plan
        parts = [*compiler.grouped(), f"{compiler.key(cast('Expression', self.measure.value))} AS v", "seed"]
        conditions = [compiler.renderer.sql(each) for each in (plan.where, self.measure.where) if each != TRUE]
        where = compiler.counting(conditions)
        return f"SELECT {', '.join(parts)} FROM {compiler.rows()}{where}"  # noqa: S608

    def pairs(self) -> str:
        """Each unit's pairs, once. NULL is no value, and a row without a group is in none."""
        names = [*self.units, *self.keys, "v"]
        there = [*self.keys, "v", *(["period"] if self.compiler.period is not None else [])]
        where = " AND ".join(f"{each} IS NOT NULL" for each in there)
        return f"SELECT {', '.join(names)}, min(seed) AS seed FROM kept WHERE {where} GROUP BY {', '.join(names)}"  # noqa: S608

    def chosen(self) -> str:
        """At most K pairs of a unit, by a keyed hash: fixed, whatever the order of rows, not the analyst's choice."""
        return f"SELECT {', '.join([*self.keys, 'v'])} FROM ({self.placed()})"  # noqa: S608

    def placed(self) -> str:
        """The first K pairs of a unit, each with its place."""
        names = [*self.keys, "v"]
        order = source.hash_order("seed", names)
        own = ", ".join([*self.units, *self.keys[: bool(self.plan.sets)]])  # K in each grouping set
        return (
            f"SELECT {', '.join(names)}, row_number() OVER (PARTITION BY {own} ORDER BY {order}) "  # noqa: S608
            f"AS place FROM pairs QUALIFY place <= {self.measure.clip}"
        )
