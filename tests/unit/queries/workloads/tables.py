"""One small table whose columns have all that workloads tell rows apart by; some of their cells are empty."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta

import pyarrow as pa

from dalenius.curator import Curator

POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
neighbors = "{neighbors}"
{more}
[budget]
epsilon = 900.0
delta = {delta}
accounting = "{accounting}"
[analysts.ana]
epsilon = 900.0
[analysts.bob]
epsilon = 900.0
[columns.sex]
type = "category"
keys = ["m", "f"]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
default = "west"
[columns.bmi]
type = "number"
bounds = [10, 60]
step = 0.1
[columns.pay]
type = "number"
bounds = [-100, 100]
step = 1
[columns.age]
type = "integer"
bounds = [0, 100]
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.smoker]
type = "boolean"
[columns.note]
type = "text"
[contribution]
rows = {rows}
{more_limits}
"""
UNITS, EACH = 60, 4

Protected = Callable[..., Curator]


def rows_of(seed: int = 1, units: int = UNITS, each: int = EACH) -> pa.Table:
    """So many rows of each unit."""
    chance = random.Random(seed)
    size = units * each
    return pa.table(
        {
            "person": [at % units for at in range(size)],
            "sex": [chance.choice(["m", "f", "x", None]) for _ in range(size)],
            "region": [chance.choice(["north", "south", "east", None]) for _ in range(size)],
            "bmi": [chance.choice([None, 25.0, *[round(chance.uniform(5, 45), 1)] * 6]) for _ in range(size)],
            "pay": [chance.choice([None, *[float(chance.randrange(-120, 120))] * 8]) for _ in range(size)],
            "age": [chance.choice([None, 18, *[chance.randrange(0, 110)] * 6]) for _ in range(size)],
            "day": [date(2024, 12, 20) + timedelta(days=chance.randrange(400)) for _ in range(size)],
            "smoker": [chance.choice([True, False, None]) for _ in range(size)],
            "note": [chance.choice(["abc", "b;c", "", None]) for _ in range(size)],
        }
    )
