"""A policy with every kind of column, plans over it, and an engine whose table is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from dalenius.errors import DaleniusError
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.plan import Limits, Plan, Question, Table, require
from dalenius.owner.protect import budget_of
from dalenius.queries.rules import RULES, Stage, plan_question
from dalenius.queries.rules.resolve import resolve_names
from dalenius.tables.reading import read_text

POLICY = """
[table]
name = "visits"
source = "/data/visits.parquet"
unit = {unit}
neighbors = "{neighbors}"
[budget]
epsilon = 3.0
{delta}
accounting = "{accounting}"
{period}
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.child]
type = "integer"
keys = [0, 1, 2]
default = 0
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.change]
type = "number"
bounds = [-10, 10]
step = 0.5
[columns.free]
type = "number"
[columns.smoker]
type = "boolean"
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.at]
type = "datetime"
bounds = ["2025-01-30 10:00:00", "2025-03-02 09:30:00"]
[columns.note]
type = "text"
[columns."odd name"]
type = "integer"
bounds = [-3, 3]
[contribution]
{contribution}
"""
CONTRIBUTION = "rows = 10\ngroups = 2\ntotals = { amount = 8000 }"


@dataclass(frozen=True)
class Asker:
    """Plans questions about a made-up table under one policy."""

    table: Table

    def plan(self, sql: str, limits: Limits | None = None) -> Plan:
        return plan_question(sql, {"visits": self.table}, limits)

    def stage(self, sql: str, passes: int) -> Stage:
        stage = Stage(sql, {"visits": self.table})
        for rule in RULES[:passes]:
            stage = rule(stage)
        return stage

    def question(self, sql: str) -> Question:
        return require(self.stage(sql, RULES.index(resolve_names) + 1).question)

    def error(self, sql: str, limits: Limits | None = None) -> DaleniusError:
        with pytest.raises(DaleniusError) as caught:
            self.plan(sql, limits)
        return caught.value


@dataclass
class Memory(Measuring):
    """An engine over one Arrow table, which keeps no files."""

    table: pa.Table
    types: Mapping[str, str] = field(default_factory=dict)
    scan: str = "rows"
    index: None = None
    ran: list[str] = field(default_factory=list)

    @property
    def columns(self) -> Mapping[str, str]:
        return self.types

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        self.ran.append(sql)
        return public().run(sql, {"rows": self.table}, seconds=seconds)

    def stream(self, sql: str, *, rows: int, seconds: float = 60.0) -> Iterator[pa.RecordBatch]:
        self.ran.append(sql)
        return public().stream(sql, {"rows": self.table}, rows=rows, seconds=seconds)


@pytest.fixture(scope="session")
def asker() -> Callable[..., Asker]:
    """`asker(accounting=…, neighbors=…, …)`: who plans under such a policy; or under a whole policy's text."""

    def made(
        text: str = POLICY,
        *,
        unit: str = '"user_id"',
        neighbors: str = "add-remove",
        accounting: str = "zcdp",
        period: str = "",
        contribution: str = CONTRIBUTION,
    ) -> Asker:
        filled = text
        for name, value in {
            "unit": unit,
            "neighbors": neighbors,
            "accounting": accounting,
            "delta": "" if accounting == "pure" else "delta = 1e-6",
            "period": period,
            "contribution": contribution,
        }.items():
            filled = filled.replace("{" + name + "}", value)
        policy = read_text(filled)
        budget = budget_of(policy)
        assert budget is not None
        return Asker(Table(policy, budget, policy.budget.period if policy.budget else None))

    return made


@pytest.fixture(scope="session")
def visits(asker: Callable[..., Asker]) -> Asker:
    """Who plans under the usual policy: zCDP, add/remove, one unit column."""
    return asker()


@pytest.fixture(scope="session")
def memory() -> type[Memory]:
    """`memory(arrow_table)`: an engine over it."""
    return Memory
