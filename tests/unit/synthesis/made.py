"""A small table with keys, numbers, times, truth values and absent values, protected under some budget."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.seeded_noise import seeded_noise

from dalenius.curator import Curator

COLUMNS = """
[columns.sex]
type = "category"
keys = ["m", "f"]
[columns."région"]
type = "text"
keys = ["nörd", "süd", "北", "it's"]
default = "süd"
[columns.bmi]
type = "number"
bounds = [10, 60]
step = 0.1
[columns.age]
type = "integer"
bounds = [0, 100]
default = 40
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.at]
type = "datetime"
bounds = ["2025-01-01T00:00:00", "2025-01-01T23:59:59"]
[columns.smoker]
type = "boolean"
[columns.wave]
type = "integer"
keys = [3, 1, 2]
[columns.country]
type = "category"
keys = ["only"]
default = "only"
[columns.note]
type = "text"
"""
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
{columns}
{contribution}
"""
SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("sex", pa.string()),
        ("région", pa.string()),
        ("bmi", pa.float64()),
        ("age", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("smoker", pa.bool_()),
        ("wave", pa.int64()),
        ("country", pa.string()),
        ("note", pa.string()),
    ]
)
MODELLED = ("sex", "région", "bmi", "age", "day", "at", "smoker", "wave", "country")


def some_rows(units: int = 150, each: int = 2, seed: int = 1) -> list[dict[str, Any]]:
    """So many rows of each unit; age says much about région, and nothing about anything else."""
    chance = random.Random(seed)
    found = []
    for person in range(units):
        for _ in range(each):
            place = chance.choice(["nörd", "süd", "北", "it's", None])
            age = round(chance.gauss(30 if place == "nörd" else 70, 8))
            found.append(
                {
                    "person": person,
                    "sex": chance.choice(["m", "f", "x", None]),
                    "région": place,
                    "bmi": chance.choice([None, chance.uniform(5, 65)]),
                    "age": chance.choice([None, age, age, age]),
                    "day": date(2024, 12, 20) + timedelta(days=chance.randrange(400)),
                    "at": datetime.fromisoformat("2025-01-01T00:00:00") + timedelta(seconds=chance.randrange(100_000)),
                    "smoker": chance.choice([True, False, None]),
                    "wave": chance.choice([1, 2, 3, 4]),
                    "country": "only",
                    "note": "abc",
                }
            )
    return found


def curator_of(
    folder: Path,
    rows: list[dict[str, Any]],
    *,
    contribution: str = "[contribution]\nrows = 2",
    accounting: str = "zcdp",
    neighbors: str = "add-remove",
    columns: str = COLUMNS,
) -> Curator:
    """A curator of these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "people.parquet")
    text = POLICY.format(
        contribution=contribution,
        accounting=accounting,
        neighbors=neighbors,
        columns=columns,
        delta=0 if accounting == "pure" else 1e-6,
    )
    (folder / "people.toml").write_text(text)
    curator = Curator(folder / "home")
    with seeded_noise():  # limits that are found by chance would make tests differ
        curator.protect(folder / "people.toml")
    return curator
