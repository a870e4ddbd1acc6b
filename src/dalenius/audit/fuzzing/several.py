"""Where made-up data sets are run: in memory, or through real files as protected tables would be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.databases import Rows, arrow_tables
from dalenius.measuring.engines.duckdb.connections import Pool, Public
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.public import Lookup
from dalenius.measuring.engines.duckdb.statements.relation import Files, scan_of
from dalenius.measuring.engines.duckdb.view import View
from dalenius.measuring.public import PublicTable, looked_up, public_table
from dalenius.owner.paths import check_paths, check_units
from dalenius.tables.policy import PublicSpec
from dalenius.tables.registry import Version
from dalenius.tables.sources.fingerprint import Fingerprint, fingerprint

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.audit.fuzzing.schemas import Schema
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Table

_NOWHERE = Fingerprint("parquet", ())


@cache
def connection() -> Public:
    """The one that all made-up tables share."""
    return Public(threads=1)


class Held:
    """Tables in memory, under names that no question can say."""

    def __init__(self, tables: Mapping[str, pa.Table], mark: str) -> None:
        self.scans = {name: f"{mark}_{at}" for at, name in enumerate(tables)}
        self.tables = {self.scans[name]: each for name, each in tables.items()}

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT over them."""
        # To register a table takes about as long as to read it: only those that are named.
        named = {name: table for name, table in self.tables.items() if name in sql}
        return connection().run(sql, named, seconds=seconds)


class Memory(Held, Measuring):
    """All tables of a data set, and the public ones, in memory; what a plan's own table is, is said by `of`."""

    index = None

    def __init__(self, schema: Schema, rows: Rows, publics: Held) -> None:
        super().__init__(arrow_tables(schema.storages, rows), "file")
        self.tables |= publics.tables
        self.schema = schema
        self.scan = ""
        self.columns: Mapping[str, str] = {}

    def of(self, table: Table) -> Engine:
        """The engine of one table, or of several as one."""
        if table.direct:
            name = table.policy.name
            self.scan, self.columns = self.scans[name], self.schema.storages[name]
        else:
            held = {name: (scan, self.schema.storages[name]) for name, scan in self.scans.items()}
            self.scan, self.columns = scan_of(table, Files(held))
        return self


class OnDisk:
    """The same through Parquet files."""

    def __init__(self, schema: Schema, rows: Rows, folder: Path, engines: Pool) -> None:
        self._fingerprints = {
            name: written(each, folder / f"{name}.parquet")
            for name, each in arrow_tables(schema.storages, rows).items()
        }
        self._engines = engines

    def of(self, table: Table) -> Engine:
        """The engine of one table, or of several as one."""
        if table.direct:
            return self._engines.of(self._fingerprints[table.policy.name], table)
        publics = tuple(table.relation.publics())
        return View(table, {name: self._fingerprints[name] for name in table.reads}, publics, self._engines)


def publics_of(schema: Schema, rows: Rows, folder: Path) -> tuple[Held, dict[str, PublicTable]]:
    """The public tables, in the form that the schema asks for."""
    tables = arrow_tables(schema.publics, rows)
    held = Held(tables, "public")
    if schema.form == "memory":
        return held, {
            name: looked_up(name, _NOWHERE, Lookup(types, held.scans[name], held))
            for name, types in schema.publics.items()
        }
    found = {}
    for name, table in tables.items():
        path = folder / f"public {name}.parquet"
        found[name] = public_table(PublicSpec(name, (str(path),)), written(table, path))
    return held, found


def accepted(schema: Schema, rows: Rows, folder: Path) -> None:
    """Refuses what `protect` would: paths through keys that are not unique.

    Raises:
        DaleniusError: The rows cannot be protected.
    """
    versions = {}
    for name, table in arrow_tables(schema.storages, rows).items():
        policy = schema.tables[name].policy
        found = written(table, folder / f"accepted {name}.parquet")
        versions[name] = Version(name, policy.dataset, policy.text, policy.version, 1, found)
    check_units(versions, set(versions))
    check_paths(versions, set(versions))


def written(table: pa.Table, path: Path) -> Fingerprint:
    """The table as a file."""
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return fingerprint([str(path)])
