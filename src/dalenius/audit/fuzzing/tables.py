"""Random tables full of what breaks sums, and a neighbour of each.

Values are Python's own, but for dates and datetimes, which are the integers that a file holds (days, microseconds):
Python's calendar is too small for what a file can say.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzzing.policies import KEYS, Shape
from dalenius.tables.policy import Bounds, Column, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]
_EPOCH = datetime.fromisoformat("1970-01-01")

# fmt: off
_FLOATS: Sequence[float] = (
    0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -5e-324, 0.5, -0.5, 2.5, 1e15, 2.0**53,
    sys.float_info.max, sys.float_info.min, 1.0, -1.0, 3.0, 1e-9, -12345.678,
)
_TEXTS: Sequence[str] = (
    "", " ", "'", '"', "o'clock", "ab,cd", "x;y", "a\nb", "ß", "İ", "é", "😀" * 3, "%", "_", "\\", "NULL", "null",
    "nan", "NaN", "inf", "-Infinity", "1e400", "-1e308", "1_000", "0x10", " 5 ", "5", "-0.0", "½", "true", "f",
    "infinity", "epoch", "-infinity", "294246-12-31", "294247-01-10 04:00:54", "5877642-06-25 (BC)", "2020-02-30",
    "290000-01-01 (BC)", "5881580-07-10", "2021-05-06", "2021-05-06 07:08:09.5", "9999-12-31 23:59:59.999999",
    "2021-05-06T07:08:09+14:00", "0001-01-01", "0000-01-01", "x" * 3000, "\u0000", "\u202e", "a|b", "A", "ZZ",
)
# fmt: on
_DAYS = (0, -1, 2**31 - 1, -(2**31) + 1, 2**31 - 2, -(2**31), -719_162, -719_163, 2_932_896, 2_932_897, 106_751_991)
_MICROS = (0, -1, 2**63 - 1, -(2**63) + 1, 2**63 - 2, -(2**63), 253_402_300_799_999_999, -62_135_596_800_000_001)
_LIMITS = {
    "BIGINT": (-(2**63), 2**63 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "UBIGINT": (0, 2**64 - 1),
}


POOLS: Mapping[str, list[Any]] = {  # who somebody is, by the type in the file
    "BIGINT": [1, 2, 3, 0, -1, 2**63 - 1, -(2**63), 77, 2**53 + 1, 2**53],
    "VARCHAR": ["u1", "", " ", "o'x", "NaN", "ü", "u|1", "1", "1.0", "x" * 700],
    "DATE": list(_DAYS),
    "TIMESTAMP": [*_MICROS, 1, 2],
    "DOUBLE": [1.0, 0.0, math.inf, -math.inf, 1e308, 5e-324, -1.5, 0.1, 2.0**53, -1e-9],
}


@dataclass(frozen=True)
class Pair:
    """A table and its neighbour: some rows in both, the victim's in the first, ``instead`` in the second.

    Attributes:
        nobody: The victim's rows have no unit: they belong to nobody, and must change nothing.
    """

    shape: Shape
    others: tuple[Row, ...]
    victim: tuple[Row, ...]
    instead: tuple[Row, ...]
    nobody: bool = False

    @property
    def first(self) -> tuple[Row, ...]:
        """The table with the victim."""
        return self.others + self.victim

    @property
    def second(self) -> tuple[Row, ...]:
        """Its neighbour."""
        return self.others + self.instead

    def with_(self, **changes: Any) -> Pair:
        """The pair with some parts replaced."""
        return replace(self, **changes)


def pair(random: Random, shape: Shape) -> Pair:
    """A table and its neighbour."""
    palettes = {name: palette(random, column, shape.storages[name]) for name, column in shape.policy.columns.items()}
    people = _people(random, shape, 8)
    period = shape.policy.budget.period if shape.policy.budget is not None else None

    def rows(person: Row, count: int, fixed: dict[str, Any] | None = None) -> list[Row]:
        held = fixed or {}
        return [
            spelled(random, person)
            + tuple(held[name] if name in held else random.choice(values) for name, values in palettes.items())
            for _ in range(count)
        ]

    # In a budget per period the unit is the person-period: all rows of one share the value that tells it.
    single = {period.column: random.choice(palettes[period.column])} if period is not None else None
    nobody = random.random() < 0.15
    victim = rows(_no_one(random, shape) if nobody else people[0], _amount(random), single)
    others = [row for person in people[2 : random.randint(2, 7)] for row in rows(person, random.randint(1, 6))]
    if random.random() < 0.2:
        others += rows(_no_one(random, shape), 3)
    instead = []
    if shape.policy.neighbors is Neighbors.SUBSTITUTE and not nobody:
        instead = rows(people[1], _amount(random), single)
    random.shuffle(others)
    return Pair(shape, tuple(others), tuple(victim), tuple(instead), nobody)


def shuffled(random: Random, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows in another order."""
    return tuple(random.sample(rows, len(rows)))


def arrow(shape: Shape, rows: Sequence[Row]) -> pa.Table:
    """The rows in memory."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(shape.names)
    return pa.table(
        {name: array(values, storage) for (name, storage), values in zip(shape.storages.items(), columns, strict=True)}
    )


def array(values: Sequence[Any], storage: str) -> Any:
    """A column in memory, of the type that a file would give it."""
    import pyarrow as pa

    if storage == "DATE":
        return pa.array(values, pa.int32()).view(pa.date32())
    if storage.startswith("TIMESTAMP"):
        zone = "UTC" if "ZONE" in storage else None
        return pa.array(values, pa.int64()).view(pa.timestamp("us", zone))
    types = {
        "DOUBLE": pa.float64(),
        "FLOAT": pa.float32(),
        "BIGINT": pa.int64(),
        "INTEGER": pa.int32(),
        "SMALLINT": pa.int16(),
        "UBIGINT": pa.uint64(),
        "BOOLEAN": pa.bool_(),
        "VARCHAR": pa.string(),
        "DECIMAL(18,3)": pa.decimal128(18, 3),
    }
    return pa.array(values, types[storage])


# --- units


def _people(random: Random, shape: Shape, count: int) -> list[Row]:
    """Different units; two columns may share a value, never both."""
    pools = dict(POOLS)
    if shape.form == "csv":
        pools["VARCHAR"] = ["u1", "u 2", ",", "o'x", "NaN", "ü", 'q"q', "1", "1.0", "null"]
    drawn = [random.sample(pools[shape.storages[name]], count) for name in shape.policy.unit]
    if len(drawn) > 1 and random.random() < 0.5:
        drawn[1] = [drawn[1][0]] * count
    return list(zip(*drawn, strict=True))


def _no_one(random: Random, shape: Shape) -> Row:
    at = random.randrange(len(shape.policy.unit))
    found: list[Any] = list(_people(random, shape, 1)[0])
    storage = shape.storages[shape.policy.unit[at]]
    odd = {"DOUBLE": math.nan, "VARCHAR": "x" * 3000}.get(storage)  # no number, and a text without measure
    found[at] = odd if odd is not None and random.random() < 0.6 else None
    return tuple(found)


def spelled(random: Random, person: Row) -> Row:
    """The unit as a row may hold it: zero has two forms."""
    return tuple(random.choice((0.0, -0.0)) if isinstance(each, float) and each == 0 else each for each in person)


def _amount(random: Random) -> int:
    return random.choice((1, 1, 2, 3, 5, 8, 20, 20, 60, 250))


# --- values


def palette(random: Random, column: Column, storage: str) -> list[Any]:
    """What the rows of one table hold in a column."""
    return [_value(random, column, storage) for _ in range(random.choice((3, 10, 25)))]


def _value(random: Random, column: Column, storage: str) -> Any:
    if random.random() < 0.1:
        return None
    meant = _meant(random, column) if random.random() < 0.7 else None
    match storage:
        case "VARCHAR":
            return random.choice(_TEXTS) if meant is None else _written(random, meant)
        case "BOOLEAN":
            return random.random() < 0.5
        case "DOUBLE" | "FLOAT":
            value = float(meant) if isinstance(meant, int | float | Decimal) else random.choice(_FLOATS)
            return value if storage == "DOUBLE" or abs(value) < 3e38 or not math.isfinite(value) else math.inf
        case "DATE":
            return (meant.date() - _EPOCH.date()).days if isinstance(meant, datetime) else random.choice(_DAYS)
        case "TIMESTAMP" | "TIMESTAMP WITH TIME ZONE":
            return (
                (meant - _EPOCH) // timedelta(microseconds=1) if isinstance(meant, datetime) else random.choice(_MICROS)
            )
        case "DECIMAL(18,3)":
            value = float(meant) if isinstance(meant, int | float) else random.choice((1e14, -1e14, 0.5, 0.001, 0))
            return Decimal(str(round(min(9e14, max(-9e14, value)), 3)))
    low, high = _LIMITS[storage]
    if not isinstance(meant, int | float) or not math.isfinite(meant):
        return random.choice((low, high, 0, 1, low + 1, high - 1, 2, 3))
    return min(high, max(low, math.floor(meant)))


def _meant(random: Random, column: Column) -> Any:
    """A value near what the policy declares: inside, at an end, past it, between two steps."""
    if column.keys is not None and random.random() < 0.8:
        key = random.choice(column.keys)
        return datetime.combine(key, datetime.min.time()) if isinstance(key, date) else key
    bounds = column.bounds
    match column.kind:
        case Kind.INTEGER | Kind.NUMBER:
            if bounds is None:
                return random.choice(_FLOATS)
            return _near(random, bounds, float(column.step or 1))
        case Kind.BOOLEAN:
            return random.random() < 0.5
        case Kind.DATE | Kind.DATETIME:
            if bounds is None:
                return _EPOCH + timedelta(days=18_262) + timedelta(hours=random.randint(0, 20_000))
            return _moment(random, bounds)
    return random.choice(KEYS)


def _near(random: Random, bounds: Bounds, step: float) -> float:
    low, high = float(bounds.low), float(bounds.high)
    inside = random.uniform(low, high)
    half = (math.floor(inside / step) + 0.5) * step if abs(inside / step) < 2**52 else inside
    return random.choice(
        (low, high, inside, half, half, high + step, low - step, high * 1e3, math.nextafter(half, low))
    )


def _moment(random: Random, bounds: Bounds) -> datetime:
    low, high = (
        each if isinstance(each, datetime) else datetime.combine(each, datetime.min.time())
        for each in (bounds.low, bounds.high)
    )
    inside = low + timedelta(seconds=random.randint(0, int((high - low).total_seconds())))
    return random.choice((low, high, inside, inside, inside, high + timedelta(days=3)))


def _written(random: Random, meant: Any) -> str:
    if isinstance(meant, datetime):
        return random.choice((meant.isoformat(sep=" "), meant.date().isoformat()))
    return random.choice((str(meant), str(meant), f" {meant} "))
