"""A small data set of three protected tables and two public ones, protected by a real curator.

people (unit user_id) · orders (unit user_id, key order_id) · items (by path, through orders) · regions and products
(public). Some orders have no user, some items no order or one that is not there: their rows belong to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tests.whole import exact_steps

from dalenius import Curator
from dalenius.analyst import Analyst
from dalenius.errors import DaleniusError
from dalenius.measuring.plan import Limits, Plan
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask
from dalenius.releasing.snapshot import Snapshot

BUDGET = """
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.ana]
epsilon = 50.0
"""
PEOPLE = """
[table]
name = "people"
source = "people.parquet"
unit = "user_id"
dataset = "shop"
{budget}
[columns.age]
type = "integer"
bounds = [0, 100]
[columns.region]
type = "category"
keys = ["n", "s", "e", "w"]
[columns.smoker]
type = "boolean"
default = false
[columns.note]
type = "text"
[contribution]
rows = 1
[public]
tables = { regions = "regions.csv", products = { source = "products.parquet" } }
"""
ORDERS = """
[table]
name = "orders"
source = "orders.parquet"
unit = "user_id"
dataset = "shop"
[columns.amount]
type = "number"
bounds = [0, 100]
step = 0.5
[columns.status]
type = "category"
keys = ["open", "done"]
[columns.region]
type = "category"
keys = ["n", "s", "e", "w"]
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.note]
type = "text"
[contribution]
rows = {rows}
totals = { amount = 1000 }
"""
ITEMS = """
[table]
name = "items"
source = "items.parquet"
unit = { path = "order_id -> orders.order_id -> orders.user_id" }
dataset = "shop"
[columns.sku]
type = "category"
keys = ["a", "b", "c"]
[columns.quantity]
type = "integer"
bounds = [0, 10]
[columns.price]
type = "number"
bounds = [0, 50]
step = 0.5
[contribution]
rows = {rows}
"""
REGIONS = "code,name,tax\nn,North,1\ns,South,2\ne,East,3\nw,West,4\n"


def data() -> dict[str, pa.Table]:
    """The tables: 12 people, 30 orders (3 of nobody), 60 items (8 of nobody)."""
    first = date(2025, 1, 1)
    people = {
        "user_id": [*range(1, 12), None],
        "age": [20 + 5 * at for at in range(12)],
        "region": ["nse"[at % 3] for at in range(12)],
        "smoker": [None if at % 5 == 4 else at % 2 == 0 for at in range(12)],
        "note": [None if at % 4 == 3 else f"word {at % 3}" for at in range(12)],
    }
    orders = {
        "order_id": list(range(100, 130)),
        "user_id": [None if at % 10 == 9 else 1 + (at * 5) % 9 for at in range(30)],
        "amount": [(7 * at % 60) / 2 if at % 7 else None for at in range(30)],
        "status": ["open" if at % 3 else "done" for at in range(30)],
        "region": ["nsew"[at % 4] for at in range(30)],
        "day": [first + timedelta(days=11 * at) for at in range(30)],
        "note": [None if at % 6 == 5 else f"word {at % 3}" for at in range(30)],
    }
    items = {
        "item_id": list(range(60)),
        "order_id": [None if at % 15 == 14 else 999 if at % 15 == 13 else 100 + (at * 7) % 30 for at in range(60)],
        "sku": ["abc"[at % 3] for at in range(60)],
        "quantity": [at % 6 for at in range(60)],
        "price": [(at * 3 % 40) / 2 for at in range(60)],
    }
    return {"people": pa.table(people), "orders": pa.table(orders), "items": pa.table(items)}


PRODUCTS = pa.table(
    {"sku": ["a", "a", "b", "c", None], "kind": ["food", "gift", "food", "tool", "tool"], "cost": [1, 2, 3, 4, 5]}
)


def written(
    folder: Path, tables: Mapping[str, pa.Table] | None = None, *, rows: int = 1000, budget: str = BUDGET
) -> list[Path]:
    """The files and the policies, in a folder."""
    for name, table in (data() if tables is None else tables).items():
        pq.write_table(table, folder / f"{name}.parquet")
    pq.write_table(PRODUCTS, folder / "products.parquet")
    (folder / "regions.csv").write_text(REGIONS)
    files = []
    for name, text in (("people", PEOPLE), ("orders", ORDERS), ("items", ITEMS)):
        files.append(folder / f"{name}.toml")
        files[-1].write_text(text.replace("{budget}", budget).replace("{rows}", str(rows)))
    return files


def questions(text: str) -> list[str]:
    """Those that stand between semicolons on lines of their own."""
    return [" ".join(each.split()) for each in text.split("\n;\n")]


@dataclass
class Shop:
    """A curator over the data set, with ways to look at plans and at integers before noise."""

    curator: Curator
    folder: Path

    @classmethod
    def protected(cls, folder: Path, tables: Mapping[str, pa.Table] | None = None, **changes: Any) -> Shop:
        """The data set, protected under a home in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        curator = Curator(folder / "home")
        curator.protect(*written(folder, tables, **changes), yes=True)
        return cls(curator, folder)

    @classmethod
    def of(cls, folder: Path, tables: Mapping[str, tuple[pa.Table, str]]) -> Shop:
        """Any tables, each with its policy (all but name and source), protected at once."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for name, (table, policy) in tables.items():
            pq.write_table(table, folder / f"{name}.parquet")
            files.append(folder / f"{name}.toml")
            files[-1].write_text(f'[table]\nname = "{name}"\nsource = "{name}.parquet"\n{policy}')
        curator = Curator(folder / "home")
        curator.protect(*files, yes=True)
        return cls(curator, folder)

    @property
    def ana(self) -> Analyst:
        """Who asks."""
        return self.curator.analyst("ana")

    def planned(self, sql: str, limits: Limits | None = None) -> tuple[Plan, Snapshot]:
        """The plan that `ask` would run, and what it reads."""
        found = plan_ask(self.ana._asker, Ask(sql, limits=limits or Limits(search=0)))
        return found.plan, found.snapshot

    def plan(self, sql: str, limits: Limits | None = None) -> Plan:
        """The plan alone."""
        return self.planned(sql, limits)[0]

    def key(self, sql: str) -> str:
        """Under which its answer is stored."""
        plan, reading = self.planned(sql)
        return plan.key(reading.data_version)

    def exact(self, sql: str, limits: Limits | None = None) -> list[list[Fraction]]:
        """The plan's integers before noise, measure by measure, in rows and steps."""
        return self.integers(*self.planned(sql, limits))

    def integers(self, plan: Plan, reading: Snapshot) -> list[list[Fraction]]:
        """The same of a plan that is there already."""
        return exact_steps(plan, reading.engine(self.curator.engines), "a salt")

    def count(self, sql: str, limits: Limits | None = None) -> int:
        """The one integer of a question with one measure and no groups."""
        ((found,),) = self.exact(sql, limits)
        return int(found)

    def plain(self, sql: str) -> list[tuple[Any, ...]]:
        """What plain DuckDB says, on the rows that belong to somebody."""
        with duckdb.connect() as connection:
            for name in ("people", "orders"):
                connection.execute(
                    f"CREATE VIEW {name} AS SELECT * FROM '{self.folder}/{name}.parquet' WHERE user_id IS NOT NULL"
                )
            connection.execute(
                f"CREATE VIEW items AS SELECT i.* FROM '{self.folder}/items.parquet' i "
                "WHERE order_id IN (SELECT order_id FROM orders)"
            )
            connection.execute(f"CREATE VIEW regions AS SELECT * FROM '{self.folder}/regions.csv'")
            connection.execute(f"CREATE VIEW products AS SELECT * FROM '{self.folder}/products.parquet'")
            return connection.execute(sql).fetchall()

    def error(self, sql: str) -> DaleniusError:
        """Why a question is refused."""
        try:
            self.plan(sql)
        except DaleniusError as error:
            return error
        raise AssertionError(f"not refused: {sql}")
