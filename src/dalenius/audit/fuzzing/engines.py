"""Where made-up tables are run: in memory, or through real files as a protected table would be."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.policies import NAME
from dalenius.audit.fuzzing.tables import Row, arrow
from dalenius.measuring.engines.duckdb.connections import DuckDB, Public
from dalenius.measuring.engines.duckdb.index import Layout
from dalenius.measuring.engines.duckdb.indexing import build
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.tables.sources.fingerprint import fingerprint

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.policies import Shape
    from dalenius.measuring.engines.engine import Engine


@cache
def _connection() -> Public:
    return Public(threads=1)


class Memory(Measuring):
    """A made-up table in memory."""

    scan = NAME
    index = None

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


def indexed(shape: Shape, plain: Engine, folder: Path, stale: Engine | None = None) -> DuckDB:
    """The same files with a contribution index: their own, or that of other files, which must not be used.

    Args:
        shape: The policy.
        plain: The engine of the files.
        folder: Where the index may lie.
        stale: The engine, with an index, of other files: its index is put in the place of theirs.
    """
    if not isinstance(plain, DuckDB):
        raise TypeError("Only files have an index.")
    layout = Layout(folder, shape.table, plain.fingerprint)
    if stale is None:
        build(layout, plain)
    elif isinstance(stale, DuckDB) and stale.index is not None:
        for own, other in zip(layout.files, stale.index.layout.files, strict=True):
            shutil.copyfile(other.path, own.path)
    return DuckDB(plain.fingerprint, threads=1, layout=layout)


def texts(rows: Sequence[Row]) -> list[list[str | None]]:
    """The rows for people. Dates and datetimes are days and microseconds since 1970: some have no other form."""
    return [[None if value is None else str(value) for value in row] for row in rows]
