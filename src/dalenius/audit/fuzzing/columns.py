"""Random columns: what a policy says of one, and what its rows hold, full of what breaks sums.

Values are Python's own, but for dates and datetimes, which are the integers that a file holds (days, microseconds):
Python's calendar is too small for what a file can say.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.errors import PolicyInvalidError
from dalenius.tables.columns import read_column
from dalenius.tables.policy import Bounds, Column, Kind

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Row = tuple[Any, ...]
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
KEYS = ("north", "south", "o'east", "", "ß", "NULL", "a|b", "12", "x" * 40)
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
STEPS = ("0.01", "0.3", "0.07", "1", "7", "1e-12", "0.125", "1e9", "0.0003", "33.3")
_INTEGERS = ((0, 1), (0, 100), (-10, 10), (-5, -1), (0, 2**31), (-(2**63), 2**63 - 1), (3, 3), (18, 110), (-3, 40))
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia")
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
_RANGES = {
    "BIGINT": (-(2**63), 2**63 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "UBIGINT": (0, 2**64 - 1),
}
UNITS: Mapping[str, list[Any]] = {  # who somebody may be, by the type in the file
    "BIGINT": [1, 2, 3, 0, -1, 2**63 - 1, -(2**63), 77, 2**53 + 1, 2**53],
    "VARCHAR": ["u1", "", " ", "o'x", "NaN", "ü", "u|1", "1", "1.0", "x" * 700],
    "DATE": list(_DAYS),
    "TIMESTAMP": [*_MICROS, 1, 2],
    "DOUBLE": [1.0, 0.0, math.inf, -math.inf, 1e308, 5e-324, -1.5, 0.1, 2.0**53, -1e-9],
}


# --- what a policy says


def draw_valid(draw: Callable[[], T]) -> T:
    """What is drawn, again where a policy's reader refuses it: a step that does not fit its bounds, and the like."""
    while True:
        try:
            return draw()
        except PolicyInvalidError:
            continue


def draw_column(random: Random) -> dict[str, Any]:
    """A column, as a policy spells it."""

    def draw() -> dict[str, Any]:
        kind = random.choice(tuple(STORAGES))
        found = {"type": kind} | _SPECS[kind](random)
        read_column("x", found, Path("/"))
        return found

    return draw_valid(draw)


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
            found["step"] = Decimal(random.choice(STEPS))
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


_SPECS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "category": _texts,
    "text": _texts,
    "date": _date,
    "datetime": _datetime,
}


# --- what rows hold


def draw_values(random: Random, column: Column, storage: str) -> list[Any]:
    """What the rows of one table hold in a column."""
    return [_draw_value(random, column, storage) for _ in range(random.choice((3, 10, 25)))]


def _draw_value(random: Random, column: Column, storage: str) -> Any:
    if random.random() < 0.1:
        return None
    meant = _draw_near(random, column) if random.random() < 0.7 else None
    match storage:
        case "VARCHAR":
            return random.choice(_TEXTS) if meant is None else _draw_text(random, meant)
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
    low, high = _RANGES[storage]
    if not isinstance(meant, int | float) or not math.isfinite(meant):
        return random.choice((low, high, 0, 1, low + 1, high - 1, 2, 3))
    return min(high, max(low, math.floor(meant)))


def _draw_near(random: Random, column: Column) -> Any:
    """A value near what the policy declares: inside, at an end, past it, between two steps."""
    if column.keys is not None and random.random() < 0.8:
        key = random.choice(column.keys)
        return datetime.combine(key, datetime.min.time()) if isinstance(key, date) else key
    bounds = column.bounds
    match column.kind:
        case Kind.INTEGER | Kind.NUMBER:
            if bounds is None:
                return random.choice(_FLOATS)
            return _draw_number(random, bounds, float(column.step or 1))
        case Kind.BOOLEAN:
            return random.random() < 0.5
        case Kind.DATE | Kind.DATETIME:
            if bounds is None:
                return _EPOCH + timedelta(days=18_262) + timedelta(hours=random.randint(0, 20_000))
            return _draw_moment(random, bounds)
    return random.choice(KEYS)


def _draw_number(random: Random, bounds: Bounds, step: float) -> float:
    low, high = float(bounds.low), float(bounds.high)
    inside = random.uniform(low, high)
    half = (math.floor(inside / step) + 0.5) * step if abs(inside / step) < 2**52 else inside
    return random.choice(
        (low, high, inside, half, half, high + step, low - step, high * 1e3, math.nextafter(half, low))
    )


def _draw_moment(random: Random, bounds: Bounds) -> datetime:
    low, high = (
        each if isinstance(each, datetime) else datetime.combine(each, datetime.min.time())
        for each in (bounds.low, bounds.high)
    )
    inside = low + timedelta(seconds=random.randint(0, int((high - low).total_seconds())))
    return random.choice((low, high, inside, inside, inside, high + timedelta(days=3)))


def _draw_text(random: Random, meant: Any) -> str:
    if isinstance(meant, datetime):
        return random.choice((meant.isoformat(sep=" "), meant.date().isoformat()))
    return random.choice((str(meant), str(meant), f" {meant} "))


def arrow_table(types: Mapping[str, str], rows: Sequence[Row]) -> pa.Table:
    """Rows in memory; ``types`` are those that a file would have, by column."""
    import pyarrow as pa

    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return pa.table(
        {name: arrow_array(values, type_) for (name, type_), values in zip(types.items(), columns, strict=True)}
    )


def arrow_array(values: Sequence[Any], storage: str) -> Any:
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
