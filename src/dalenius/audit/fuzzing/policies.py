"""Random policies, with all that a policy can say about units, columns and contributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from dalenius.errors import PolicyInvalidError
from dalenius.ledger.budgets import Accounting, Budget
from dalenius.measuring.plan import Table
from dalenius.tables.columns import read_column
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_tree

NAME = "made"
PERIODS = ("week", "month", "quarter", "year")
# How a column of each kind may lie in a file, as DuckDB names types.
STORAGES = {
    "integer": ("BIGINT", "BIGINT", "INTEGER", "SMALLINT", "UBIGINT", "DOUBLE", "VARCHAR"),
    "number": ("DOUBLE", "DOUBLE", "DOUBLE", "FLOAT", "BIGINT", "DECIMAL(18,3)", "VARCHAR"),
    "boolean": ("BOOLEAN", "BOOLEAN", "INTEGER", "VARCHAR"),
    "category": ("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "DATE", "TIMESTAMP"),
    "text": ("VARCHAR", "VARCHAR", "VARCHAR", "DOUBLE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
    "date": ("DATE", "DATE", "TIMESTAMP", "VARCHAR"),
    "datetime": ("TIMESTAMP", "TIMESTAMP", "DATE", "TIMESTAMP WITH TIME ZONE", "VARCHAR"),
}
UNIT_STORAGES = ("BIGINT", "BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE", "DATE", "TIMESTAMP")
KEYS = ("north", "south", "o'east", "", "ß", "NULL", "a|b", "12", "x" * 40)
_NAMES: tuple[str, ...] = (
    "x",
    "y",
    "Age",
    "select",
    "größe",
    "two words",
    'quo"te',
    "from",
    "amount",
    "k1",
    "w0",
    "seed",
)
_NAMES += ("n", "m", "key", "c0", "u1", "t0")  # as our own statements call things
_NUMBERS = (
    ("0", "1"),
    ("-1", "1"),
    ("0", "5000"),
    ("-1e6", "1e6"),
    ("0", "1e-9"),
    ("-1e100", "1e100"),
    ("0.1", "0.3"),
    ("-7.5", "-2.25"),
    ("1e15", "1000000000000010"),
    ("-0.001", "1e12"),
)
_STEPS = ("0.01", "0.3", "0.07", "1", "7", "1e-12", "0.125", "1e9", "0.0003", "33.3")
_INTEGERS = ((0, 1), (0, 100), (-10, 10), (-5, -1), (0, 2**31), (-(2**63), 2**63 - 1), (3, 3), (18, 110), (-3, 40))
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia")


@dataclass(frozen=True)
class Shape:
    """A policy, how its columns lie in the file, what kind of file that is, and whether it gets an index."""

    policy: Policy
    table: Table
    storages: Mapping[str, str]
    form: str = "memory"
    indexed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of the file: those of the unit first."""
        return tuple(self.storages)

    def without(self, column: str) -> Shape:
        """The shape with one column of the policy less; it stays in the file."""
        columns = {name: each for name, each in self.policy.columns.items() if name != column}
        policy = replace(self.policy, columns=columns)
        return replace(self, policy=policy, table=replace(self.table, policy=policy))


def shape(random: Random, form: str) -> Shape:
    """A policy that its reader accepts."""
    while True:
        try:
            return _shape(random, form)
        except PolicyInvalidError:  # a step that does not fit its bounds, and the like: drawn again
            continue


def _shape(random: Random, form: str) -> Shape:
    unit = ("person", "household")[: random.choice((1, 1, 2))]
    columns = {name: column_spec(random) for name in random.sample(_NAMES, random.randint(2, 6))}
    accounting = random.choice(("zcdp", "pure"))
    budget: dict[str, Any] = {"epsilon": 3, "accounting": accounting}
    budget |= {"delta": Decimal("1e-6")} if accounting == "zcdp" else {}
    dated = [name for name, each in columns.items() if each["type"] in {"date", "datetime"} and "bounds" in each]
    if dated and random.random() < 0.15:
        budget["period"] = {
            "column": random.choice(dated),
            "every": random.choice(("week", "month", "quarter", "year")),
        }
    tree = {
        "table": {
            "name": NAME,
            "source": f"{NAME}.csv" if form == "csv" else f"{NAME}.parquet",
            "unit": list(unit),
            "neighbors": random.choice(("add-remove", "substitute")),
        },
        "budget": budget,
        "columns": columns,
        "contribution": _contribution(random, columns),
    }
    policy = read_tree(tree, Path("/"))
    storages = {name: random.choice(UNIT_STORAGES) for name in unit}
    storages |= {name: random.choice(STORAGES[each.kind.value]) for name, each in policy.columns.items()}
    if form == "csv":
        storages = dict.fromkeys(storages, "VARCHAR")
    return Shape(policy, _table(policy), storages, form)


def _table(policy: Policy) -> Table:
    spec = policy.budget
    assert spec is not None  # noqa: S101 (drawn above)
    every = spec.period.every if spec.period is not None else None
    budget = Budget(
        spec.epsilon, spec.delta, Accounting(spec.accounting), ", ".join(policy.unit), policy.neighbors, every
    )
    return Table(policy, budget, spec.period)


def _contribution(random: Random, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.97:
        found["rows"] = random.choice((1, 2, 3, 5, 7, 13, 20))
    if random.random() < 0.6:
        found["groups"] = random.randint(1, 5)
    summable = [name for name, each in columns.items() if each["type"] in {"integer", "number"} and "bounds" in each]
    totals = {
        name: random.choice((1, 10, 999)) if columns[name]["type"] == "integer" else Decimal(random.choice(_STEPS))
        for name in summable
        if random.random() < 0.25
    }
    return found | ({"totals": totals} if totals else {})


def column_spec(random: Random) -> dict[str, Any]:
    """A column, as a policy spells it."""
    while True:
        kind = random.choice(tuple(STORAGES))
        found = {"type": kind} | _LIMITS[kind](random)
        try:
            read_column("x", found, Path("/"))
        except PolicyInvalidError:
            continue
        return found


def _integer(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    low, high = random.choice(_INTEGERS)
    if random.random() < 0.9:
        found["bounds"] = [low, high]
        if random.random() < 0.3:
            found["step"] = random.choice((1, 2, 3, 7))
    if random.random() < 0.2:
        found["keys"] = sorted({random.randint(low, min(high, low + 50)) for _ in range(4)})
    if random.random() < 0.3:
        found["default"] = random.choice(found.get("keys", [low, high, 0]))
    return found


def _number(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    low, high = map(Decimal, random.choice(_NUMBERS))
    if random.random() < 0.92:
        found["bounds"] = [low, high]
        if random.random() < 0.5:
            found["step"] = Decimal(random.choice(_STEPS))
    if random.random() < 0.3:
        found["default"] = random.choice((low, high, Decimal(0)))
    return found


def _texts(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.7:
        found["keys"] = random.sample(KEYS, random.randint(1, 6))
    if random.random() < 0.3:
        found["default"] = random.choice(found.get("keys", list(KEYS)))
    return found


def _boolean(random: Random) -> dict[str, Any]:
    return {"default": random.random() < 0.5} if random.random() < 0.4 else {}


def _date(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    low = date(1, 1, 1) if random.random() < 0.05 else date(2019, 1, 1) + timedelta(random.randint(0, 2000))
    high = low + timedelta(random.choice((0, 20, 40, 300, 800)))
    if random.random() < 0.85:
        found["bounds"] = [low, high]
    if random.random() < 0.15:
        found["keys"] = sorted({low + timedelta(random.randint(0, (high - low).days)) for _ in range(3)})
    if random.random() < 0.2:
        found["default"] = random.choice(found.get("keys", [low, high]))
    return found


def _datetime(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    low = datetime.fromisoformat("2019-01-01T07:30") + timedelta(hours=random.randint(0, 50_000))
    high = low + timedelta(minutes=random.choice((0, 1, 3000, 60_000, 700_000)))
    if random.random() < 0.85:
        found["bounds"] = [low, high]
    if random.random() < 0.2:
        found["default"] = random.choice([low, high])
    if random.random() < 0.5:
        found["zone"] = random.choice(_ZONES)
    return found


_LIMITS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "category": _texts,
    "text": _texts,
    "date": _date,
    "datetime": _datetime,
}
