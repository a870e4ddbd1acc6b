"""Questions as people type them (`data/typed_queries`), and the small made-up shop that they are about.

Each file is one manner of typing. A question ends with a semicolon at the end of a line; remarks before it say what
must happen, and without one it is answered, with the values of plain DuckDB where the noise is negligible:

    -- refused: A | B     it is not safe, or means nothing; the refusal has these words (message, reason and way out)
    -- not yet: A | B     it is safe, and refused with these words all the same
    -- duckdb: SELECT …   what DuckDB itself is asked, where it does not understand the question
    -- unlike: why        values are not compared
    -- later              not asked for yet: passed over
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
from tests.shop import Shop

FOLDER = Path(__file__).parent / "data/typed_queries"
DIALECTS = {"bigquery": "bigquery", "tsql": "tsql", "postgres": "postgres"}  # what sqlglot calls them

PEOPLE = """unit = "person_id"
dataset = "shop"
[budget]
epsilon = 1e19
delta = 1e-6
[analysts.ana]
epsilon = 1e19
[columns.name]
type = "text"
[columns.sex]
type = "category"
keys = ["f", "m", "x"]
[columns.age]
type = "integer"
bounds = [0, 110]
[columns.height]
type = "number"
bounds = [40, 230]
step = 0.1
[columns.region]
type = "category"
keys = ["n", "s", "e", "w"]
[columns.born]
type = "date"
bounds = ["1920-01-01", "2024-12-31"]
[columns.joined]
type = "datetime"
bounds = ["2020-01-01T00:00:00", "2025-12-31T23:59:59"]
[columns.smoker]
type = "boolean"
[columns.balance]
type = "number"
bounds = [-500, 500]
step = 0.01
[contribution]
rows = 1
[public]
tables = { regions = "regions.csv" }
"""
ORDERS = """unit = "person_id"
dataset = "shop"
[columns.order_id]
type = "integer"
bounds = [1, 1_000_000]
[columns.day]
type = "date"
bounds = ["2024-01-01", "2025-12-31"]
[columns.placed]
type = "datetime"
bounds = ["2024-01-01T00:00:00", "2025-12-31T23:59:59"]
[columns.amount]
type = "number"
bounds = [-100, 500]
step = 0.01
[columns.quantity]
type = "integer"
bounds = [0, 20]
[columns.status]
type = "category"
keys = ["open", "paid", "sent", "returned"]
[columns.product]
type = "category"
keys = ["tea", "coffee", "käse", "pen"]
[columns.ship_to]
type = "category"
keys = ["n", "s", "e", "w"]
[columns.note]
type = "text"
[columns.gift]
type = "boolean"
[contribution]
rows = 20
"""
REGIONS = "code,name,country,population\nn,North,A,1200\ns,South,A,3400\ne,East,B,800\nw,West,C,5600\n"
NAMES = (
    *("Ann Lee", "Zoë Ångström", "李雷", "bob", "Carla Straße", "Émile Zola", "Ann", "O'Neil", "İpek", "Ann Lee"),
    *("dora  ", "🙂", "Bob Ross", None, "Max", "anna"),
)
NOTES = (None, "gift card", "50% off", "", " gift ", "snake_case", "Maß 7", "GIFT", "7", "*star*", "a gift, carded")


def data() -> dict[str, pa.Table]:
    """16 people, 60 orders: NULLs, ties, refunds, leap days, letters of several alphabets."""
    days = [date(1960, 2, 29), date(1980, 12, 31), date(2000, 2, 29), date(2000, 3, 1), date(1995, 7, 14)]
    people = {
        "person_id": list(range(1, 17)),
        "name": list(NAMES),
        "sex": ["fmx"[at % 3] if at % 7 else "f" for at in range(16)],
        "age": [None if at == 11 else 5 + 7 * at % 83 for at in range(16)],
        "height": [None if at % 6 == 5 else (1500 + 61 * at % 480) / 10 for at in range(16)],
        "region": [None if at % 8 == 7 else "nsew"[at * at % 4] if at % 5 else "w" for at in range(16)],
        "born": [days[at % 5] + timedelta(days=at // 5 * 365) for at in range(16)],
        "joined": [_moment(date(2020 + at % 5, 1 + at % 12, 1 + at), at, 30, 0) for at in range(16)],
        "smoker": [None if at % 6 == 4 else at % 3 == 0 for at in range(16)],
        "balance": [((at * 3571) % 4000 - 2000) / 100 for at in range(16)],
    }
    first = date(2024, 1, 3)
    starts = [first + timedelta(days=at * 57 // 5) for at in range(59)]
    when = [*starts[:30], date(2024, 2, 29), *starts[30:]]
    orders = {
        "order_id": list(range(100, 160)),
        "person_id": [1 + (at * 7) % 13 for at in range(60)],
        "day": when,
        "placed": [_moment(d, at * 5 % 24, at * 7 % 60, at % 60) for at, d in enumerate(when)],
        "amount": [None if at % 11 == 10 else ((at * 1999) % 12000 - 2000) / 100 for at in range(60)],
        "quantity": [at * at % 7 for at in range(60)],
        "status": [("open", "paid", "sent", "returned", "paid")[at % 5] for at in range(60)],
        "product": [("tea", "coffee", "käse", "pen")[at * 3 % 4] if at % 9 else "tea" for at in range(60)],
        "ship_to": ["nsew"[at * 5 % 3] for at in range(60)],
        "note": [NOTES[at % len(NOTES)] for at in range(60)],
        "gift": [at % 4 == 1 for at in range(60)],
    }
    return {"people": pa.table(people), "orders": pa.table(orders)}


def _moment(day: date, hour: int, minute: int, second: int) -> datetime:
    return datetime.combine(day, time(hour, minute, second))


@dataclass(frozen=True, slots=True)
class Typed:
    """A question and what must happen with it."""

    manner: str
    number: int
    text: str
    refused: tuple[str, ...] = ()
    not_yet: tuple[str, ...] = ()
    duckdb: str = ""
    unlike: str = ""
    later: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What its refusal must say; none where it is answered."""
        return self.refused or self.not_yet

    @property
    def name(self) -> str:
        """For people who look for it."""
        return f"{self.manner}-{self.number}"


def typed() -> list[Typed]:
    """All of them."""
    return [each for file in sorted(FOLDER.glob("*.sql")) for each in _read(file)]


def _read(file: Path) -> Iterator[Typed]:
    said: dict[str, Any] = {}
    lines: list[str] = []
    number = 0
    for line in file.read_text(encoding="utf-8").splitlines():
        word, _, rest = line.removeprefix("-- ").partition(": ")
        if not lines and line.startswith("-- ") and word in {"refused", "not yet", "duckdb", "unlike", "later"}:
            words = tuple(rest.split(" | ")) if word in {"refused", "not yet"} else rest or True
            said[word.replace(" ", "_")] = words
        elif line and (lines or not line.startswith("-- ")):
            lines.append(line)
            if line.endswith(";"):
                number += 1
                yield Typed(file.stem, number, "\n".join(lines).removesuffix(";"), **said)
                said, lines = {}, []


def protected(folder: Path) -> Shop:
    """The shop, under a curator of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "regions.csv").write_text(REGIONS)
    tables = data()
    return Shop.of(folder, {"people": (tables["people"], PEOPLE), "orders": (tables["orders"], ORDERS)})


def plain(question: Typed) -> list[tuple[Any, ...]]:
    """What DuckDB says of the rows themselves."""
    import sqlglot

    text = question.duckdb
    if not text:
        dialect = DIALECTS.get(question.manner, "duckdb")
        text = question.text
        if dialect != "duckdb":
            text = sqlglot.transpile(text, read=dialect, write="duckdb")[0]
    regions = pyarrow.csv.read_csv(pa.BufferReader(REGIONS.encode()))
    with duckdb.connect() as connection:
        for name, rows in {**data(), "regions": regions}.items():
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
            for schema in ("shop", "public", "dbo", "PUMS"):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                connection.execute(f"CREATE VIEW {schema}.{name} AS SELECT * FROM main.{name}")
        return connection.execute(text).fetchall()
