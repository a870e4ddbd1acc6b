"""Writing a contribution index (`index`): one SELECT per file, by DuckDB, on a connection of the curator's own."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb import binding
from dalenius.measuring.engines.duckdb.index import CEILING, ENTRY, FEW_KEYS, NOTE, SECONDS, IndexFile, IndexFiles
from dalenius.measuring.engines.duckdb.opening import open_locked, path_list, quoted
from dalenius.measuring.engines.duckdb.rendering import Renderer, double, identifier
from dalenius.measuring.engines.duckdb.statements.pairs import pair_rows
from dalenius.measuring.engines.duckdb.statements.source import cast, clean, extent_sql, there
from dalenius.measuring.expressions import columns_of
from dalenius.measuring.periods import unit_part
from dalenius.measuring.plan import require
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from dalenius.measuring.engines.duckdb.statements import Runner
    from dalenius.measuring.plan import Table

_SMALL = 2**52  # steps of one value, which need no look whether they fit
_ROOT = 2**31  # of rows in one key: the square of what is larger is beyond the ceiling anyway

Progress = Callable[[int, int, str], None]  # files written, files in all, what comes next


@dataclass(frozen=True)
class Built:
    """What was written: seconds by file ("rows and totals", "keys of region", "pairs of product"), and bytes."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    size: int = 0


def build_index(layout: IndexFiles, engine: Runner, progress: Progress | None = None) -> Built:
    """Writes the index of a table, and removes the table's older ones; all of its files, or none.

    Cleaning is that of questions (`statements.source`), so the same rows belong to the same units. Files are the
    owner's alone (0600, the folder 0700); each is written under another name and then renamed, the one that questions
    look for first coming last.

    Args:
        layout: Where it lies, and what it is about.
        engine: Knows the table's files and their types; only read here.
        progress: Told before each file.

    Raises:
        EngineFailedError: The disk is full, the folder cannot be written, or a unit's type cannot be kept in a file.
    """
    import duckdb

    if not layout.usable:
        raise _failed("The source is CSV, or the path of the home contains one of * ? [.")
    taken: dict[str, float] = {}
    try:
        layout.storage.mkdir(mode=0o700, exist_ok=True)
        layout.storage.chmod(0o700)
        with _fresh(layout) as fresh:
            connection = open_locked([*layout.fingerprint.paths, *fresh.values()])
            try:
                writer = _Writer(layout, engine, connection, fresh)
                for at, file in enumerate(layout.files):
                    name = _named(file)
                    if progress is not None:
                        progress(at, len(layout.files), name)
                    start = time.perf_counter()
                    writer.write(file)
                    taken[name] = time.perf_counter() - start
            finally:
                connection.close()
            size = sum(path.stat().st_size for path in fresh.values())
            for file in reversed(layout.files):
                fresh[file].replace(file.path)
        for path in layout.others():
            path.unlink(missing_ok=True)
    except (OSError, duckdb.Error):
        # DuckDB's own message may quote a row.
        raise _failed("The disk may be full, the folder not writable, or memory too small.") from None
    if progress is not None:
        progress(len(layout.files), len(layout.files), "")
    return Built(taken, size)


def _failed(why: str) -> EngineFailedError:
    return EngineFailedError(
        "The contribution index could not be written.",
        why=why,
        fix="Questions give the same answers without it, only slower; to have it, mend this and protect again.",
    )


def _named(file: IndexFile) -> str:
    return {
        "units": "rows and totals",
        "keys": f"keys of {file.column}",
        "pairs": f"pairs of {file.column}",
        "weights": f"weights of {file.column}",
    }[file.kind]


@contextlib.contextmanager
def _fresh(layout: IndexFiles) -> Iterator[dict[IndexFile, Path]]:
    """A new, empty, private file for each; what is still there in the end is removed."""
    fresh = {file: layout.storage / f".{file.path.name}.{os.getpid()}" for file in layout.files}
    try:
        for path in fresh.values():
            path.unlink(missing_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield fresh
    finally:
        for path in fresh.values():
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


class _Writer:
    """Writes the files of one index."""

    def __init__(
        self, layout: IndexFiles, engine: Runner, connection: DuckDBPyConnection, fresh: Mapping[IndexFile, Path]
    ) -> None:
        self.layout = layout
        self.table: Table = layout.table
        self.engine = engine
        self.connection = connection
        self.fresh = fresh
        self.part = unit_part(self.table)
        self.units = [f"u{at}" for at in range(len(self.table.policy.unit))]
        self.grouped = [*self.units, *(["period"] if self.part is not None else [])]

    def write(self, file: IndexFile) -> None:
        """One file, with its identity in it."""
        pairs = self.layout.file("pairs", file.column) if file.column else None
        if file.kind == "units":
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE units AS {self.rows_and_totals()}")
            sums = binding.sums_note(self.table, self.layout.bounded, self.engine.scan, self.rows)
            self.copy(file, "SELECT * FROM units", {"nobody": str(self.nobody()), binding.NOTE: sums})
            self.connection.execute("DROP TABLE units")
            self.check_types(file)
        elif file.kind == "pairs":
            self.hidden(file)
        elif file.kind == "keys" and pairs is None:
            grouped = ", ".join(self.grouped)
            counted = self.counted(file.column)
            self.copy(file, f"SELECT {grouped}, {self.norms()} FROM ({counted}) GROUP BY {grouped}")  # noqa: S608

    def copy(self, file: IndexFile, sql: str, notes: Mapping[str, str] | None = None) -> None:
        said = {NOTE: file.identity, **(notes or {})}
        shown = ", ".join(f"{name}: {quoted(value)}" for name, value in said.items())
        options = f"FORMAT parquet, USE_TMP_FILE false, KV_METADATA {{{shown}}}"
        self.connection.execute(f"COPY ({sql}) TO {quoted(str(self.fresh[file]))} ({options})")

    def check_types(self, file: IndexFile) -> None:
        """A unit whose type a file cannot keep would be compared as another one."""
        scan = f"read_parquet({path_list([self.fresh[file]])}, hive_partitioning = false)"
        kept = {row[0]: row[1] for row in self.connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}  # noqa: S608
        if any(kept[f"u{at}"] != self.engine.columns[name] for at, name in enumerate(self.table.policy.unit)):
            raise _failed("A unit's type cannot be kept in a Parquet file.")

    # --- what is counted

    def cleaned(self, *columns: str) -> str:
        """WITH clean AS …: the rows that belong to somebody, their units, and some columns within their policy."""
        names = self.read(*columns)
        policy, short = self.table.policy, {name: f"c{at}" for at, name in enumerate(names)}
        reads = [f"{identifier(name)} AS {unit}" for name, unit in zip(policy.unit, self.units, strict=True)]
        reads += [f"{cast(policy.columns[name], self.engine.columns)} AS {each}" for name, each in short.items()]
        kept = [*self.units, *(f"{clean(policy.columns[name], each)} AS {each}" for name, each in short.items())]
        held = f"SELECT {', '.join(reads)} FROM {self.engine.scan} WHERE {there(policy.unit, self.engine.columns)}"  # noqa: S608
        held = f"SELECT {', '.join(kept)} FROM ({held})"  # noqa: S608
        if self.part is not None:
            period = Renderer(short).sql(self.part)
            held = f"SELECT *, {period} AS period FROM ({held}) WHERE {period} IS NOT NULL"  # noqa: S608
        return f"WITH clean AS ({held}) "

    def nobody(self) -> int:
        """1 where some rows belong to nobody, else 0."""
        sql = f"SELECT (SELECT count(*) FROM {self.engine.scan}) - (SELECT coalesce(sum(n), 0) FROM units)"  # noqa: S608
        ((found,),) = self.connection.execute(sql).fetchall()
        return int(found != 0)

    def rows_and_totals(self) -> str:
        names, read = self.layout.totals, self.read(*self.layout.totals)
        parts = [*self.grouped, "count(*) AS n"]
        parts += [f"{self.total(name, f'c{read.index(name)}', CEILING)} AS t{at}" for at, name in enumerate(names)]
        return f"{self.cleaned(*names)} SELECT {', '.join(parts)} FROM clean GROUP BY {', '.join(self.grouped)}"  # noqa: S608

    def total(self, name: str, value: str, most: int) -> str:
        """Σ of what a question adds, floor(x/step + ½) in doubles, without its sign; or the most that is held."""
        column = self.table.policy.columns[name]
        bounds, step = require(column.bounds), float(column.step or 1)
        rounded = f"floor({value} / {double(step)} + 0.5e0)"
        rounded = rounded if bounds.low >= 0 else f"abs({rounded})"
        if max(abs(bounds.low), abs(bounds.high)) / step > _SMALL:
            # Not of NULL, of which least() would make the ceiling.
            rounded = f"CASE WHEN {value} IS NOT NULL THEN least({double(CEILING)}, {rounded}) END"
        return f"CAST(least(coalesce(sum(CAST({rounded} AS BIGINT)), 0), {most}) AS BIGINT)"

    def norms(self) -> str:
        """What a file of keys holds of a unit: Σn², Σt² of each total, and the number of keys."""
        # Decimals: 62 bits would be too few for what one row can hold, and no question may depend on who does.
        wide = "CAST(sum(CAST({0} AS HUGEINT) * {0}) AS DECIMAL(38, 0))"
        totals = (f"{wide.format(f't{at}')} AS s{at}" for at in range(len(self.layout.totals)))
        return ", ".join([_norm("n", "norm2"), *totals, "count(*) AS m"])

    def counted(self, column: str) -> str:
        """The rows of each unit in each key, and the totals of its rows there."""
        names, read = self.layout.totals, self.read(column, *self.layout.totals)
        totals = (f"{self.total(name, f'c{read.index(name)}', ENTRY)} AS t{at}" for at, name in enumerate(names))
        by = ", ".join([*self.grouped, "key"])
        return f"SELECT {', '.join([by, 'count(*) AS n', *totals])} FROM ({self.keyed(column, *names)}) GROUP BY {by}"  # noqa: S608

    def keyed(self, column: str, *names: str) -> str:
        """The rows that have a key, with some other columns."""
        read = self.read(column, *names)
        key = f"c{read.index(column)}"
        # −0.0 and 0.0 are one group, as they are in questions
        shown = f"({key} + 0e0)" if self.table.policy.columns[column].kind in {Kind.INTEGER, Kind.NUMBER} else key
        values = dict.fromkeys(f"c{read.index(name)}" for name in names)
        shown_ = ", ".join([*self.grouped, f"{shown} AS key", *values])
        return f"{self.cleaned(column, *names)} SELECT {shown_} FROM clean WHERE {key} IS NOT NULL"  # noqa: S608

    def read(self, *columns: str) -> list[str]:
        """The columns that are read for some, in the order of their numbers."""
        return sorted({*columns, *(columns_of(self.part) if self.part is not None else ())})

    def hidden(self, file: IndexFile) -> None:
        """The three files of a category whose keys are not public, from pairs that are counted once.

        They are counted in memory where they may be (`statements.pairs`), else by DuckDB. Keys are numbered first: to
        count by numbers is a good deal faster than by texts. Totals are left out, for the same reason.
        """
        kept = f"WITH kept AS (SELECT u0, key FROM ({self.keyed(file.column)}))"  # noqa: S608
        policy, types = self.table.policy, self.engine.columns
        pairs = pair_rows(self.fetch, kept, ["key"], policy.unit, types, self.extent) if self.part is None else None
        if pairs is None:
            self.grouped_by_code(file)
            return
        keys, weights = (self.layout.file(kind, file.column) for kind in ("keys", "weights"))
        tables = {"p": pairs.many(FEW_KEYS), "q": pairs.norms(), "w": pairs.shared(), "codes": pairs.codes}
        for name, table in tables.items():
            self.connection.register(name, table)
        self.copy(require(keys), "SELECT u0, norm2, m FROM q")
        units = "SELECT code, m, CAST(sum(units) AS BIGINT) AS units FROM w GROUP BY code, m"
        self.copy(require(weights), f"SELECT key, m, units FROM ({units}) JOIN codes USING (code)")  # noqa: S608
        self.copy(file, "SELECT u0, key, n, m FROM p JOIN codes USING (code)")
        for name in tables:
            self.connection.unregister(name)

    def rows(self, sql: str, *, seconds: float = SECONDS) -> list[tuple[Any, ...]]:  # noqa: ARG002 (the owner waits)
        """The rows of a SELECT."""
        return self.connection.execute(sql).fetchall()

    def extent(self) -> tuple[int, int]:
        """How many rows the table has, and how many bytes the texts of its units."""
        ((rows, texts),) = self.connection.execute(
            extent_sql(self.engine.scan, self.table.policy.unit[0], self.engine.columns)
        ).fetchall()
        return int(rows), int(texts)

    def fetch(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a SELECT over some tables besides."""
        cursor = self.connection.cursor()
        for name, table in tables.items():
            cursor.register(name, table)
        return cursor.sql(sql).to_arrow_table()

    def grouped_by_code(self, file: IndexFile) -> None:
        """The same by DuckDB alone."""
        keys, weights = (self.layout.file(kind, file.column) for kind in ("keys", "weights"))
        grouped = ", ".join(self.grouped)
        same = " AND ".join(f"p.{each} = q.{each}" for each in self.grouped)
        own = ", ".join(f"p.{each}" for each in self.grouped)
        kept = self.keyed(file.column)
        for name, sql in {
            "codes": f"SELECT key, row_number() OVER () AS code FROM (SELECT DISTINCT key FROM ({kept}))",  # noqa: S608
            "p": f"SELECT {grouped}, code, count(*) AS n FROM ({kept}) JOIN codes USING (key) GROUP BY {grouped}, code",  # noqa: S608
            "q": f"SELECT {grouped}, {_norm('n', 'norm2')}, count(*) AS m FROM p GROUP BY {grouped}",  # noqa: S608
        }.items():
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")
        self.copy(require(keys), "SELECT * FROM q")
        counted = f"SELECT p.code, q.m, count(*) AS units FROM p JOIN q ON {same} GROUP BY p.code, q.m"  # noqa: S608
        self.copy(require(weights), f"SELECT key, m, units FROM ({counted}) JOIN codes USING (code)")  # noqa: S608
        many = f"p JOIN (SELECT * FROM q WHERE m > {FEW_KEYS}) AS q ON {same} JOIN codes ON p.code = codes.code"  # noqa: S608
        self.copy(file, f"SELECT {own}, key, p.n, q.m FROM {many}")  # noqa: S608
        for name in ("codes", "p", "q"):
            self.connection.execute(f"DROP TABLE {name}")


def _norm(column: str, name: str) -> str:
    short = f"least({column}, {_ROOT})"  # the square of which still has 64 bits, and is the ceiling
    return f"CAST(least(sum({short} * {short}), {CEILING}) AS BIGINT) AS {name}"
