"""Where made-up tables are run: in memory, or through real files as a protected table would be."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.policies import NAME
from dalenius.audit.fuzzing.tables import Row, arrow
from dalenius.queries.engines.duckdb import DuckDB, Public
from dalenius.tables.fingerprint import fingerprint

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.policies import Shape
    from dalenius.queries.engines.engine import Engine


@cache
def _connection() -> Public:
    return Public(threads=1)


class Memory:
    """A made-up table in memory."""

    scan = NAME

    def __init__(self, shape: Shape, rows: Sequence[Row]) -> None:
        self.columns: Mapping[str, str] = shape.storages
        self._table = arrow(shape, rows)

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over it."""
        return _connection().run(sql, {NAME: self._table}, seconds=seconds)


def engine(shape: Shape, rows: Sequence[Row], file: Path) -> Engine:
    """The rows, in the form that the shape asks for; ``file`` (without its ending) is where a file may lie."""
    if shape.form == "memory":
        return Memory(shape, rows)
    path = file.with_suffix(f".{shape.form}")
    if shape.form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(arrow(shape, rows), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerow(shape.names)
            writer.writerows(rows)
    return DuckDB(fingerprint([str(path)]), threads=1)


def texts(rows: Sequence[Row]) -> list[list[str | None]]:
    """The rows for people. Dates and datetimes are days and microseconds since 1970: some have no other form."""
    return [[None if value is None else str(value) for value in row] for row in rows]
