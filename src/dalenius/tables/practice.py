"""Made-up rows for practice: from the policy alone, so they say nothing about anyone."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from random import SystemRandom
from typing import Any

from dalenius.errors import InputError, SourceUnavailableError
from dalenius.tables.policy import Bounds, Column, Kind, Policy
from dalenius.tables.sources.homes import check_output

MOST = 10_000_000
_ROWS_PER_UNIT = 3
_CHANCE = SystemRandom()
_YEAR = 2025


def practice_rows(policy: Policy, count: int) -> dict[str, list[Any]]:
    """So many rows, by column: uniform between bounds and over keys. Units have three rows on average."""
    if not 1 <= count <= MOST:
        raise InputError(f"Practice rows are 1 to {MOST:,}.", why="They are made in memory.", fix="Ask for fewer.")
    units = max(1, count // _ROWS_PER_UNIT)
    found: dict[str, list[Any]] = {}
    for name in policy.owner:
        column = policy.columns.get(name)
        named = _maker(column) if column else lambda: f"unit {_CHANCE.randrange(units) + 1}"
        found[name] = [named() for _ in range(count)]
    for name, column in policy.columns.items():
        if name not in found:
            made = _maker(column)
            found[name] = [made() for _ in range(count)]
    return found


def write_rows(rows: dict[str, list[Any]], file: Path) -> None:
    """Writes them as CSV or Parquet, by the file's ending."""
    ending = file.suffix.lower()
    if ending not in {".csv", ".parquet"}:
        raise InputError(
            f"Practice rows cannot be written to {file.name}.",
            why="The ending decides the form: .csv or .parquet.",
            fix="Name a file such as practice.csv.",
        )
    check_output(file)
    try:
        if ending == ".csv":
            with file.open("w", newline="", encoding="utf-8") as out:
                writer = csv.writer(out, lineterminator=os.linesep)
                writer.writerow(rows)
                writer.writerows(zip(*rows.values(), strict=True))
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(rows), file)
    except OSError:
        raise SourceUnavailableError(
            f"{file.name} cannot be written.",
            why="Its folder is missing, or this user may not write there.",
            fix="Name another file.",
        ) from None


def _maker(column: Column) -> Callable[[], Any]:
    """What draws one value of a column."""
    keys, bounds = column.public_keys, column.bounds
    if keys is not None:
        return lambda: _CHANCE.choice(keys)
    match column.kind:
        case Kind.INTEGER:
            low, high = (bounds.low, bounds.high) if bounds else (0, 99)
            return lambda: _CHANCE.randint(low, high)
        case Kind.NUMBER:
            return _number(column)
        case Kind.DATE:
            first, last = _ends(bounds, date(_YEAR, 1, 1), date(_YEAR, 12, 31))
            return lambda: first + timedelta(days=_CHANCE.randint(0, (last - first).days))
        case Kind.DATETIME:
            start, end = _ends(bounds, datetime(_YEAR, 1, 1), datetime(_YEAR, 12, 31))  # noqa: DTZ001 (local to the zone)
            seconds = int((end - start).total_seconds())
            return lambda: start + timedelta(seconds=_CHANCE.randint(0, seconds))
        case _:
            return lambda: _CHANCE.choice(("alpha", "beta", "gamma", "delta", "epsilon"))


def _number(column: Column) -> Callable[[], float]:
    if column.bounds is None or column.step is None:
        return lambda: round(_CHANCE.uniform(0, 100), 2)
    low, step = column.bounds.low, column.step
    steps = (column.bounds.high - low) // step
    return lambda: float(low + step * _CHANCE.randint(0, int(steps)))


def _ends(bounds: Bounds | None, low: Any, high: Any) -> tuple[Any, Any]:
    return (bounds.low, bounds.high) if bounds else (low, high)
