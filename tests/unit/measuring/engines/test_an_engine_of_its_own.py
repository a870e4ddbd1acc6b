"""An engine that nothing in src knows, made up here in one module: DuckDB's under another name. It protects, measures,
previews and releases, for one table and for several, and no other module changes for it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from tests.shop import Shop

from dalenius.errors import NotAllowedError
from dalenius.measuring._exact import exact_batches
from dalenius.measuring.batches import UnitRows
from dalenius.measuring.engines import sources
from dalenius.measuring.engines.duckdb import backend
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.expressions import Column, Type
from dalenius.measuring.plan import Plan

QUESTIONS = (
    "SELECT region, COUNT(*), AVG(age) FROM people GROUP BY region",
    "SELECT COUNT(*) FROM people p JOIN orders o ON o.user_id = p.user_id WHERE o.amount > 20",
    "SELECT status, COUNT(*) FROM orders GROUP BY status",
)


class Toy:
    """Passes everything on, and remembers what it measured."""

    def __init__(self, inner, measured: list[str]):
        self.inner, self.measured = inner, measured

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def measure(self, plan: Plan, salt: str, **options):
        self.measured.append(plan.canonical())
        return self.inner.measure(plan, salt, **options)

    def batches(self, reading: UnitRows, salt: str, **options):
        self.measured.append(f"rows of {reading.table.policy.name}")
        yield from self.inner.batches(reading, salt, **options)


class ToyPool(DuckDBPool):
    measured: list[str]

    def of(self, fingerprint, table=None):
        return Toy(super().of(fingerprint, table), self.measured)

    def over(self, table, files, publics):
        found = super().over(table, files, publics)
        return found if isinstance(found, Toy) else Toy(found, self.measured)  # of one table, `of` made it


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    """What the toy measured. It reads Parquet files here; CSV files stay DuckDB's."""
    toy, found = ModuleType("toy_engine"), list[str]()
    ToyPool.measured = found

    def pool(storage):
        return ToyPool(storage=storage)

    for name in backend.__all__:
        setattr(toy, name, pool if name == "pool" else getattr(backend, name))
    monkeypatch.setitem(sys.modules, "toy_engine", toy)
    monkeypatch.setitem(sources.BACKENDS, "parquet", "toy_engine")
    return found


def test_an_engine_is_a_module_and_a_line(measured, tmp_path):
    shop = Shop.protected(tmp_path)
    for question in QUESTIONS:
        shop.ana.preview(question, epsilon=1.0)
        assert shop.ana.ask(question, epsilon=1.0).rows
    assert len(measured) == len(QUESTIONS)


def test_it_gives_the_rows_of_units_too(measured, tmp_path):
    shop = Shop.protected(tmp_path)
    plan, reading = shop.planned("SELECT SUM(amount) FROM orders")
    rows = UnitRows(plan.table, (Column("amount", Type.NUMBER),), 2)
    found = list(exact_batches(rows, reading.engine(shop.curator.engines), "a salt", units=4))
    assert measured == ["rows of orders"]
    assert [len(each.tags) for each in found] == [4, 4, 1] and all(len(each.owners) <= 8 for each in found)


def test_tables_of_two_engines_are_not_asked_about_together(measured, tmp_path):
    """regions is a CSV file, which the toy does not read."""
    shop = Shop.protected(tmp_path)
    with pytest.raises(NotAllowedError) as caught:
        shop.ana.ask("SELECT COUNT(*) FROM people p JOIN regions r ON r.code = p.region", epsilon=1.0)
    assert "together" in caught.value.message and not measured
