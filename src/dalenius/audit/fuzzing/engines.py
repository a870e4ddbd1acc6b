"""Where made-up data sets are run: in memory, or through real files as protected tables would be."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dalenius.audit.fuzzing.columns import Row, arrow_table
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.engines.duckdb.connections import DuckDB, Public
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.indexing import build_index
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.public_values import DuckDBLookup
from dalenius.measuring.engines.duckdb.statements.relation import scan_of
from dalenius.measuring.engines.duckdb.statements.units import Files
from dalenius.measuring.public import PublicTable, looked_up, public_table
from dalenius.owner.paths import check_paths, check_units
from dalenius.tables.policy import PublicSpec
from dalenius.tables.registry import Version
from dalenius.tables.sources.fingerprint import Fingerprint, fingerprint

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.audit.fuzzing.data_sets import TableRows
    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Table

SALT = "not a secret: the tables are made up"
_NOWHERE = Fingerprint("parquet", ())


class DataEngines(Protocol):
    """Gives the engine for each plan about one data set."""

    def of(self, table: Table) -> Engine:
        """The engine of one table, or of several as one."""


# --- in memory


@cache
def _connection() -> Public:
    """The one that all made-up tables share."""
    return Public(threads=1)


class MemoryTables:
    """Tables in memory, under names that no question can say."""

    def __init__(self, storages: Mapping[str, Mapping[str, str]], rows: TableRows, mark: str) -> None:
        self.scans = {name: f"{mark}_{at}" for at, name in enumerate(storages)}
        self.tables = {self.scans[name]: arrow_table(types, rows.get(name, ())) for name, types in storages.items()}

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over them."""
        return _connection().run(sql, self._named(sql), seconds=seconds)

    def stream(self, sql: str, *, rows: int, seconds: float = 60.0) -> Iterator[pa.RecordBatch]:
        """The same in columns, so many rows at a time."""
        return _connection().stream(sql, self._named(sql), rows=rows, seconds=seconds)

    def _named(self, sql: str) -> dict[str, pa.Table]:
        """To register a table takes about as long as to read it: only those that a statement names."""
        return {name: table for name, table in self.tables.items() if name in sql}


class MemoryEngine(Measuring):
    """What a plan needs of tables in memory."""

    index = None

    def __init__(self, tables: MemoryTables, scan: str, columns: Mapping[str, str]) -> None:
        self.scan, self.columns, self.run, self.stream = scan, columns, tables.run, tables.stream


class InMemory:
    """All tables of a data set, and the public ones, in memory."""

    def __init__(self, schema: Schema, rows: TableRows, publics: MemoryTables | None = None) -> None:
        self._tables = MemoryTables(schema.storages, rows, "file")
        self._held = {name: (scan, schema.storages[name]) for name, scan in self._tables.scans.items()}
        self._tables.tables |= publics.tables if publics is not None else {}

    def of(self, table: Table) -> Engine:
        """As `DataEngines.of`."""
        known = self._held[table.policy.name] if table.direct else scan_of(table, Files(self._held))
        return MemoryEngine(self._tables, *known)


# --- through files


class OnDisk:
    """The files of a data set, by table, in the engines that a curator would use."""

    def __init__(self, files: Mapping[str, Fingerprint], engines: DuckDBPool) -> None:
        self.files, self._engines = files, engines

    def of(self, table: Table) -> Engine:
        """As `DataEngines.of`."""
        files = {name: self.files[name] for name in table.reads}
        return self._engines.over(table, files, tuple(table.relation.publics()))


def open_data(schema: Schema, rows: TableRows, folder: Path, publics: MemoryTables, engines: DuckDBPool) -> DataEngines:
    """The rows of a data set, in the form that its schema asks for; ``folder`` is where its files may lie."""
    if schema.form == "memory":
        return InMemory(schema, rows, publics)
    return OnDisk(write_data(schema, rows, folder), engines)


def write_data(schema: Schema, rows: TableRows, folder: Path) -> dict[str, Fingerprint]:
    """A file for each table."""
    found = {}
    for name, types in schema.storages.items():
        if schema.form == "csv":
            found[name] = _write_csv(types, rows.get(name, ()), folder / f"{name}.csv")
        else:
            found[name] = write_parquet(arrow_table(types, rows.get(name, ())), folder / f"{name}.parquet")
    return found


def _write_csv(types: Mapping[str, str], rows: Sequence[Row], path: Path) -> Fingerprint:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(types)
        writer.writerows(rows)
    return fingerprint([str(path)])


def write_parquet(table: pa.Table, path: Path) -> Fingerprint:
    """The table as a file."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return fingerprint([str(path)])


def with_index(table: Table, plain: Engine, folder: Path, stale: Engine | None = None) -> DuckDB:
    """The same files with a contribution index: their own, or that of other files, which must not be used.

    Args:
        table: What the index is about.
        plain: The engine of the files.
        folder: Where the index may lie.
        stale: The engine, with an index, of other files: its index is put in the place of theirs.
    """
    if not isinstance(plain, DuckDB):
        raise TypeError("Only files have an index.")
    layout = IndexFiles(folder, table, plain.fingerprint)
    if stale is None:
        build_index(layout, plain)
    elif isinstance(stale, DuckDB) and stale.index is not None:
        for own, other in zip(layout.files, stale.index.layout.files, strict=True):
            shutil.copyfile(other.path, own.path)
    return DuckDB(plain.fingerprint, threads=1, layout=layout)


def open_publics(schema: Schema, rows: TableRows, folder: Path) -> tuple[MemoryTables, dict[str, PublicTable]]:
    """The public tables, in the form that the schema asks for; and in memory in any case."""
    held = MemoryTables(schema.publics, rows, "public")
    found = {}
    for name, types in schema.publics.items():
        if schema.form == "memory":
            found[name] = looked_up(name, _NOWHERE, DuckDBLookup(types, held.scans[name], held.run))
        else:
            path = folder / f"public {name}.parquet"
            found[name] = public_table(
                PublicSpec(name, (str(path),)), write_parquet(held.tables[held.scans[name]], path)
            )
    return held, found


def check_protectable(schema: Schema, rows: TableRows, folder: Path) -> None:
    """Refuses what `protect` would: paths through keys that are not unique.

    Raises:
        DaleniusError: The rows cannot be protected.
    """
    versions = {}
    for name, found in write_data(schema, rows, folder).items():
        policy = schema.tables[name].policy
        versions[name] = Version(name, policy.dataset, policy.text, policy.version, 1, found)
    check_units(versions, set(versions))
    check_paths(versions, set(versions))
