"""DuckDB as a backend of sources (`engines.sources.Backend`): its engines, kept open, and what it tells of a source."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.errors import EngineFailedError, SourceUnavailableError
from dalenius.measuring.engines.duckdb.connections import DuckDB, WarmConnection, renew_in_children
from dalenius.measuring.engines.duckdb.files import scan_of_files, schema
from dalenius.measuring.engines.duckdb.index import IndexFiles
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.public_values import lookup
from dalenius.measuring.engines.duckdb.rendering import identifier

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from dalenius.measuring.engines.sources import Columns
    from dalenius.measuring.plan import Table
    from dalenius.measuring.public import PublicTable
    from dalenius.tables.sources.fingerprint import Fingerprint

__all__ = ["check_decodes", "lookup", "pool", "repeats", "schema"]

_SECONDS = 3600.0  # the owner waits
_SMALL = 4 * 2**20  # bytes

T = TypeVar("T")


def pool(storage: Path | None) -> DuckDBPool:
    """A new pool of connections."""
    return DuckDBPool(storage=storage)


def check_decodes(fingerprint: Fingerprint, columns: Callable[[Columns], Sequence[str]]) -> None:
    """Reads all values of some columns once, and keeps none of them. In CSV files everything can be read as text.

    A Parquet file can hold a cell that fails in the scan itself, before any cast: a text that is no UTF-8, a time
    beyond the calendar. A question would then fail if and only if that row is there. So such a file is not protected.
    """
    with closing(DuckDB(fingerprint)) as engine:  # one connection for both
        wanted = columns(tuple(engine.columns.items()))
        if fingerprint.form != "parquet" or not wanted:
            return
        hashes = ", ".join(f"bit_xor(hash({identifier(name)}))" for name in wanted)
        try:
            engine.run(f"SELECT {hashes} FROM {engine.scan}", seconds=_SECONDS)  # noqa: S608
        except EngineFailedError:
            raise SourceUnavailableError(
                "Not every value of the source can be read.",
                why="A text that is not UTF-8, or a time beyond the calendar, makes reading fail; questions would too.",
                fix="Write the file again with such values removed or replaced.",
            ) from None


def repeats(fingerprint: Fingerprint, column: str) -> bool:
    """Whether some value of a column is there twice."""
    name = identifier(column)
    with closing(DuckDB(fingerprint)) as engine:
        counted = f"SELECT 1 FROM {engine.scan} WHERE {name} IS NOT NULL GROUP BY {name} HAVING count(*) > 1"  # noqa: S608
        return bool(engine.run(f"SELECT 1 FROM ({counted}) LIMIT 1", seconds=_SECONDS))  # noqa: S608


class DuckDBPool:
    """Warm engines by fingerprint; the least recently used of more than `most` are closed.

    Args:
        most: How many.
        storage: The folder of contribution indexes, if there is one.
    """

    def __init__(self, most: int = 16, storage: Path | None = None) -> None:
        self._most = most
        self._storage = storage
        self._engines: OrderedDict[object, DuckDB | MultiFile] = OrderedDict()
        self.forked()
        renew_in_children(self)

    def of(self, fingerprint: Fingerprint, table: Table | None = None) -> DuckDB:
        """The engine of this data version, new if there is none; with the index of a table, if it is named."""
        named = table is not None and self._storage is not None
        layout = IndexFiles(self._storage, table, fingerprint) if named else None  # type: ignore[arg-type]
        key = (fingerprint, layout.stem if layout is not None else "")
        return self._warm(key, lambda: DuckDB(fingerprint, threads=_threads(fingerprint), layout=layout))

    def over(
        self, table: Table, files: Mapping[str, Fingerprint], publics: Sequence[PublicTable]
    ) -> DuckDB | MultiTable:
        """The engine of what a table is made of: its own files, or several seen as one."""
        if table.direct:
            return self.of(files[table.policy.name], table)
        return MultiTable(table, files, publics, self)

    def several(self, fingerprints: Sequence[Fingerprint]) -> MultiFile:
        """The engine of several tables' files, new if there is none."""
        return self._warm(tuple(fingerprints), lambda: MultiFile(fingerprints, threads=_threads(*fingerprints)))

    def _warm(self, key: object, opened: Callable[[], T]) -> T:
        with self._lock:
            engine = self._engines.get(key)
            if engine is None:
                engine = self._engines[key] = opened()  # type: ignore[assignment]
            self._engines.move_to_end(key)
            while len(self._engines) > self._most:
                self._engines.popitem(last=False)[1].close()
            return engine  # type: ignore[return-value]

    def close(self) -> None:
        """Closes all of them."""
        with self._lock:
            while self._engines:
                self._engines.popitem()[1].close()

    def forked(self) -> None:
        """Starts anew, as a forked child must; the engines see to themselves."""
        self._lock = threading.Lock()


def _threads(*fingerprints: Fingerprint) -> int | None:
    """One for a small source: handing its few rows to others takes longer than reading them."""
    return 1 if sum(file.size for each in fingerprints for file in each.files) < _SMALL else None


class MultiFile(WarmConnection):
    """The files of several tables, on one warm connection that can open nothing else.

    Args:
        fingerprints: Their data versions.
        memory: The most that all its runs together may use.
        threads: How many it may use.
    """

    def __init__(self, fingerprints: Sequence[Fingerprint], *, memory: str = "2GB", threads: int | None = None) -> None:
        super().__init__(fingerprints, memory, threads)

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises what `DuckDB.run` does."""
        return self._run(sql, {}, seconds)


class MultiTable(Measuring):
    """A made-up table over the files of several. It never has a contribution index: that knows single tables."""

    index = None
    fingerprint = None

    def __init__(
        self,
        table: Table,
        fingerprints: Mapping[str, Fingerprint],
        publics: Sequence[PublicTable],
        engines: DuckDBPool,
    ) -> None:
        from dalenius.measuring.engines.duckdb.statements.relation import scan_of
        from dalenius.measuring.engines.duckdb.statements.units import Files

        files = (each.fingerprint for each in publics if each.fingerprint.files)
        self._engine = engines.several([*fingerprints.values(), *files])
        held = Files({name: _held(each) for name, each in fingerprints.items()})
        self.scan, self.columns = scan_of(table, held)

    def ready(self) -> None:
        """As `DuckDB.ready`."""
        self._engine.ready()

    def run(self, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises what `DuckDB.run` does."""
        return self._engine.run(sql, seconds=seconds)

    def stream(self, sql: str, *, rows: int, seconds: float = 60.0) -> Iterator[pa.RecordBatch]:
        """As `WarmConnection.stream`."""
        return self._engine.stream(sql, rows=rows, seconds=seconds)


@lru_cache(maxsize=256)
def _held(fingerprint: Fingerprint) -> tuple[str, Mapping[str, str]]:
    """The files of one data version, in FROM, and the types of their columns, which stay as they are."""
    return scan_of_files(fingerprint), MappingProxyType(dict(schema(fingerprint.paths, fingerprint.form)))
