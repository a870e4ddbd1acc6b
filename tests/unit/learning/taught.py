"""A small table in which age and region say much about income, protected under some budget."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.seeded_noise import seeded_noise

from dalenius.curator import Curator

POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
neighbors = "{neighbors}"
[budget]
epsilon = 900.0
delta = {delta}
accounting = "{accounting}"
[analysts.ana]
epsilon = 900.0
[analysts.bob]
epsilon = 900.0
[columns.income]
type = "category"
keys = ["low", "high"]
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south"]
default = "north"
[columns.smoker]
type = "boolean"
default = false
[columns.visits]
type = "integer"
bounds = [0, 20]
default = 0
[columns.spent]
type = "number"
bounds = [0, 1000]
[columns.amount]
type = "number"
[columns.grade]
type = "category"
keys = ["a", "b", "c"]
[columns.alone]
type = "category"
keys = ["one"]
default = "one"
[columns.note]
type = "text"
{contribution}
"""
FEATURES = ("age", "region", "smoker", "visits", "spent", "grade", "alone")


def some_people(units: int = 400, each: int = 1, seed: int = 1) -> list[dict[str, Any]]:
    """So many rows of each unit."""
    chance = random.Random(seed)
    found = []
    for person in range(units):
        for _ in range(each):
            age = chance.randint(18, 90)
            region = chance.choice(["north", "south", None])
            rich = age + (30 if region == "south" else 0) + chance.gauss(0, 6) > 65
            found.append(
                {
                    "person": person,
                    "income": "high" if rich else "low",
                    "age": chance.choice([age, age, age, None]) if person % 9 == 0 else age,
                    "region": region,
                    "smoker": chance.choice([True, False, None]),
                    "visits": min(20, int(chance.expovariate(0.3))),
                    "spent": max(0.0, min(1000.0, age * 10 + chance.gauss(0, 30))),
                    "amount": chance.uniform(0, 9),
                    "grade": "abc"[min(2, age // 30)],
                    "alone": "one",
                    "note": "x",
                }
            )
    return found


def curator_of(
    folder: Path,
    rows: list[dict[str, Any]],
    *,
    contribution: str = "",
    accounting: str = "zcdp",
    neighbors: str = "add-remove",
    delta: float = 1e-5,
) -> Curator:
    """A curator of these rows; without a declared limit of rows `protect` counts units with noise."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "people.parquet")
    text = POLICY.format(
        contribution=contribution,
        accounting=accounting,
        neighbors=neighbors,
        delta=0 if accounting == "pure" else delta,
    )
    (folder / "people.toml").write_text(text)
    curator = Curator(folder / "home")
    with seeded_noise():  # limits that are found by chance would make tests differ
        curator.protect(folder / "people.toml")
    return curator
