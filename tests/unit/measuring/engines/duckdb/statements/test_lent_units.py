"""A table with a path takes its unit from a row that it is joined to on the path's key; else it walks the path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import public
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.statements.relation import scan_of
from dalenius.measuring.engines.duckdb.statements.units import Files
from dalenius.measuring.plan import Plan, Table
from dalenius.owner.protect import budget_of
from dalenius.queries.rules import plan_question
from dalenius.tables.reading import read_text

ORDERS = """
[table]
name = "orders"
source = "/data/orders.parquet"
unit = "customer"
dataset = "shop"
[budget]
epsilon = 3.0
delta = 1e-6
[columns.urgent]
type = "boolean"
[contribution]
rows = 100
"""
ITEMS = """
[table]
name = "items"
source = "/data/items.parquet"
unit = { path = "order -> orders.order -> orders.customer" }
dataset = "shop"
[columns.price]
type = "integer"
bounds = [0, 100]
[contribution]
rows = 100
"""
# Order 4 is nobody's; item 9's order does not exist; order 5 has no items.
DATA = {
    "orders": {
        "order": [1, 2, 3, 4, 5],
        "customer": [10, 10, 20, None, 20],
        "urgent": [True, False, True, True, False],
    },
    "items": {"order": [1, 1, 2, 3, 3, 4, 9, None], "price": [5, 7, 11, 13, 17, 19, 23, 29]},
}
ROWS = {name: pa.table(columns) for name, columns in DATA.items()}
TYPES = {
    "orders": {"order": "BIGINT", "customer": "BIGINT", "urgent": "BOOLEAN"},
    "items": {"order": "BIGINT", "price": "BIGINT"},
}


@dataclass
class Engine(Measuring):
    """What runs a plan over a made-up table."""

    scan: str
    columns: dict[str, str]
    index: None = None
    ran: list[str] = field(default_factory=list)

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        return public().run(sql, {f"rows_{name}": table for name, table in ROWS.items()}, seconds=seconds)


def tables() -> dict[str, Table]:
    orders, items = read_text(ORDERS), read_text(ITEMS)
    budget = budget_of(orders)
    assert budget is not None
    first = Table(orders, budget)
    return {"orders": first, "items": Table(items, budget, through={"orders": first})}


def asked(sql: str) -> tuple[Plan, Engine]:
    plan = plan_question(sql, tables())
    return plan, Engine(*scan_of(plan.table, Files({name: (f"rows_{name}", each) for name, each in TYPES.items()})))


@pytest.mark.parametrize(
    ("sql", "reads", "numbers"),
    [
        # on the path's own key: orders are read once
        ("SELECT SUM(price) FROM items i JOIN orders o ON i.order = o.order", 1, [53]),
        ("SELECT SUM(price) FROM orders o, items i WHERE o.order = i.order AND urgent", 1, [42]),
        ("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT * FROM items i WHERE i.order = o.order)", 1, [3]),
        ("SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT * FROM items i WHERE i.order = o.order)", 1, [1]),
        # one of two occurrences walks the path for both
        ("SELECT COUNT(*) FROM items a JOIN items b ON a.order = b.order", 1, [9]),
        # rows that are cut by unit (`join_fanout`), a table that may be left out, another key: the table walks its path
        ("SELECT COUNT(*) FROM orders o LEFT JOIN items i ON i.order = o.order", 2, [6]),
        (
            """SELECT COUNT(*) FROM items a
            WHERE EXISTS (SELECT * FROM items b WHERE b.order = a.order AND b.price > a.price)""",
            2,
            [2],
        ),
        (
            """SELECT COUNT(*) FROM orders o, items a, items b
            WHERE a.order = o.order AND b.order = a.order AND a.price < b.price""",
            2,
            [2],
        ),
        ("SELECT COUNT(*) FROM items i LEFT JOIN orders o ON i.order = o.order", 2, [5]),
        ("SELECT COUNT(*) FROM items", 1, [5]),
        (
            """SELECT COUNT(*) FROM orders o JOIN (
                SELECT o2.customer, i.price FROM items i JOIN orders o2 ON o2.order = i.order
            ) t ON t.customer = o.customer""",
            3,
            [10],
        ),
    ],
)
def test_the_path_is_walked_where_no_row_lends_its_unit(sql, reads, numbers):
    plan, engine = asked(sql)
    assert engine.scan.count("rows_orders") == reads
    assert [vector[0] for vector in exact(plan, engine, "salt")] == numbers


def test_a_lent_unit_is_that_of_the_path():
    """One unit's limit cuts off the same with either way to its rows."""
    for sql in (
        "SELECT COUNT(DISTINCT customer) FROM items i JOIN orders o ON i.order = o.order",
        "SELECT COUNT(DISTINCT o.customer) FROM orders o, items i WHERE i.order = o.order AND price > 0",
    ):
        plan, engine = asked(sql)
        assert exact(plan, engine, "salt") == [[2]]
