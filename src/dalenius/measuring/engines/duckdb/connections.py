"""DuckDB, in this process: it runs the SQL that our compiler made, on the files of one data version.

What an analyst wrote never comes here. Still nothing is taken on trust: a connection opens its own files only, and
each statement is looked at before it runs, because a file that DuckDB may read it may also write. DuckDB's own error
messages may quote a row, so none of them is passed on.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dalenius.errors import EngineFailedError, EngineTimeoutError, InternalError
from dalenius.measuring.engines.duckdb.files import check_readable, scan_of_files, schema
from dalenius.measuring.engines.duckdb.index import Index, IndexFiles
from dalenius.measuring.engines.duckdb.measuring import Measuring
from dalenius.measuring.engines.duckdb.metering import Threads
from dalenius.measuring.engines.duckdb.opening import cannot_start, check_can_start, open_locked
from dalenius.measuring.engines.duckdb.statements.source import extent_sql
from dalenius.measuring.engines.engine import left, note

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection, Statement

    from dalenius.measuring.engines.duckdb.indexing import Built
    from dalenius.measuring.plan import Table
    from dalenius.tables.sources.fingerprint import Fingerprint

    Shape = Callable[[DuckDBPyConnection, Statement], "T"]

Rows = list[tuple[Any, ...]]

T = TypeVar("T")

# Since DuckDB 2.0 a WITH may hold a COPY or an INSERT, and the whole still counts as a SELECT. A text without these
# letters is free of them; in any other, which may only name a column so, the syntax tree tells. (Before 2.0 some
# PRAGMAs count as the SELECT that stands behind them.)
_MAY_WRITE = re.compile("copy|insert|update|delete|merge|pragma|query|json_execute", re.IGNORECASE)
_RUNS_MORE = {"query", "query_table", "json_execute_serialized_sql"}  # SQL in a string, which nobody has looked at
_READS = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_AGAIN = 0.05  # seconds
# To parse a statement takes DuckDB 2.0 a good part of its run on few rows, and often the same one runs several times.
_PARSED, _SHORT = 32, 20_000  # statements that a connection remembers, and characters of each


class WarmConnection:
    """A locked connection, opened when first needed, that any number of threads may use.

    Args:
        fingerprints: The data versions whose files it may read.
        memory: The most that all its runs together may use. Nothing spills to the disk.
        threads: How many it may use; by default one per core.
        more: Files that it may read besides, which need not be there.
    """

    whole = False  # as in `open_locked`
    _lock: threading.Lock
    _connection: DuckDBPyConnection | None
    _parsed: OrderedDict[str, Statement]
    _workers: Threads

    def __init__(
        self, fingerprints: Sequence[Fingerprint], memory: str, threads: int | None, more: Sequence[Path] = ()
    ) -> None:
        self._fingerprints = tuple(fingerprints)
        self._files = (*(path for each in fingerprints for path in each.paths), *more)
        self._memory = memory
        self._threads = threads
        self.forked()
        renew_in_children(self)

    def close(self) -> None:
        """Lets go of the connection. What still runs on it ends as usual; the next run would open a new one."""
        with self._lock:
            # Not closed: DuckDB refuses that while a cursor is busy, and frees it with the last cursor anyway.
            self._connection = None

    def ready(self) -> None:
        """Refuses where nothing could run now, before anything is charged; reads no row."""
        import duckdb

        check_can_start()
        try:
            cursor = self._cursor()
            try:
                cursor.execute("SELECT 1").fetchall()
            finally:
                cursor.close()
        except (duckdb.Error, MemoryError, RuntimeError):
            self._check()
            raise cannot_start("It does not take any statement.") from None

    def forked(self) -> None:
        """Starts anew, as a forked child must."""
        self._lock = threading.Lock()
        self._connection = None
        self._parsed = OrderedDict()
        self._workers = Threads()

    def _run(self, sql: str, tables: Mapping[str, pa.Table], seconds: float) -> Rows:
        return self._shaped(sql, tables, seconds, lambda cursor, statement: cursor.execute(statement).fetchall())

    def _shaped(self, sql: str, tables: Mapping[str, pa.Table], seconds: float, shape: Shape[T]) -> T:
        # DuckDB's errors are dropped before ours is raised, which would otherwise carry them as its context.
        cursor = self._cursor()
        try:
            statement = self._statement(cursor, sql)
            limit = _Limit(cursor, seconds)
            with self._workers.working():
                rows = _fetched(cursor, statement, tables, limit, shape)
        finally:
            cursor.close()
        note(sql, _outcome(limit, rows))
        return self._there(limit, rows, seconds)

    def stream(
        self, sql: str, tables: Mapping[str, pa.Table] | None = None, *, rows: int, seconds: float = 60.0
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one SELECT in columns, so many at a time. Raises what `DuckDB.run` does.

        ``seconds`` pass while the engine works, not while somebody looks at what it gave. Whoever stops early
        lets go of the iterator.
        """
        cursor, outcome, left_over = self._cursor(), "", seconds
        opened: list[Iterator[pa.RecordBatch]] = []
        try:
            statement = self._statement(cursor, sql)

            def step(cursor: DuckDBPyConnection, statement: Statement) -> list[pa.RecordBatch]:
                if not opened:
                    opened.append(iter(cursor.sql(statement).to_arrow_reader(rows)))
                return [each for each in [next(opened[0], None)] if each is not None]

            while True:
                limit, began = _Limit(cursor, left_over), time.monotonic()
                with self._workers.working():
                    found = _fetched(cursor, statement, {} if opened else tables or {}, limit, step)
                left_over -= time.monotonic() - began
                outcome = _outcome(limit, found)
                given = self._there(limit, found, seconds)
                if not given:
                    return
                outcome = "left"
                yield from given
        finally:
            cursor.close()
            if outcome:  # else it was refused, which is noted
                note(sql, outcome)

    def _there(self, limit: _Limit, rows: T | None, seconds: float) -> T:
        """The rows, if there are any; else why not, in words that hold nothing of them."""
        if limit.struck:
            raise EngineTimeoutError(
                "The engine took too long.",
                why=f"It was stopped after {seconds:g} seconds.",
                fix="Ask for less at once, or allow more time.",
            )
        if rows is None:
            self._check()
            raise EngineFailedError(
                "The engine could not compute the answer.",
                why="Its own message is held back because it could quote the data. It may have run out of memory.",
                fix="Check that the source is complete and readable, and that there is memory; then ask again.",
            )
        return rows

    def _statement(self, cursor: DuckDBPyConnection, sql: str) -> Statement:
        """As `_checked`, which depends on the text alone. DuckDB runs a copy of a statement: any cursor may have it."""
        with self._lock:
            found = self._parsed.pop(sql, None)
        found = found or _checked(cursor, sql)
        if found is None:
            note(sql, "refused")
            raise InternalError(
                "The compiler made SQL that may not run.",
                why="An engine runs one SELECT at a time, and none that writes.",
                fix="This is a bug of ours; report it without any data in it.",
            )
        if len(sql) <= _SHORT:
            with self._lock:
                self._parsed[sql] = found
                while len(self._parsed) > _PARSED:
                    self._parsed.popitem(last=False)
        return found

    def _check(self) -> None:
        """After some of DuckDB's errors nothing runs on a connection any more; then the next run opens a new one."""
        import duckdb

        connection = self._connection
        if connection is not None:
            try:
                connection.cursor().execute("SELECT 1")
            except duckdb.Error:
                self.close()

    def _cursor(self) -> DuckDBPyConnection:
        with self._lock:
            if self._connection is None:
                for each in self._fingerprints:
                    check_readable(each)
                with self._workers.opening():
                    self._connection = open_locked(
                        self._files, memory=self._memory, threads=self._threads, whole=self.whole
                    )
            return self._connection.cursor()


class DuckDB(WarmConnection, Measuring):
    """The files of one data version, on one warm connection that can open nothing else.

    Args:
        fingerprint: The data version.
        memory: The most that all its runs together may use. Nothing spills to the disk.
        threads: How many it may use; by default one per core.
        layout: Where the contribution index lies, which need not be there; it may be read as well.
    """

    whole = True

    def __init__(
        self,
        fingerprint: Fingerprint,
        *,
        memory: str = "2GB",
        threads: int | None = None,
        layout: IndexFiles | None = None,
    ) -> None:
        held = layout.files if layout is not None and layout.usable else ()
        super().__init__([fingerprint], memory, threads, [file.path for file in held])
        self.fingerprint = fingerprint
        self.index = Index(layout, self.run) if layout is not None and held else None
        self._extents: dict[str, tuple[int, int]] = {}
        check_readable(fingerprint)

    @cached_property
    def scan(self) -> str:
        """All rows, as an item of FROM."""
        return scan_of_files(self.fingerprint)

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The type of each column, as DuckDB names it; in CSV all are VARCHAR."""
        return MappingProxyType(dict(schema(self.fingerprint.paths, self.fingerprint.form, opened=self._cursor)))

    def ready(self) -> None:
        """Refuses where nothing could run now, before anything is charged; reads no row."""
        super().ready()
        self.columns  # noqa: B018 (an unreadable file)

    def prepare(self, table: Table, progress: Callable[[int, int, str], None]) -> str | Built:
        """Builds the contribution index, unless there is none to build or the one at hand is good."""
        from dalenius.measuring.engines.duckdb.indexing import build_index

        if self.index is None:
            return "none"
        if self.index.whole(table, self.fingerprint) and self.index.readable():
            return "kept"
        return build_index(self.index.layout, self, progress)

    def run(self, sql: str, *, seconds: float = 60.0) -> Rows:
        """The rows of one SELECT; integers of any width are Python's.

        Raises:
            InternalError: The SQL is not one SELECT, or would write. Nothing ran.
            EngineTimeoutError: It was stopped after `seconds`.
            EngineFailedError: Whatever else went wrong.
        """
        return self._run(sql, {}, seconds)

    def extent(self, column: str, *, seconds: float = 60.0) -> tuple[int, int]:
        """How many rows there are, and how many bytes the texts of one column have; looked up once."""
        if column not in self._extents:
            ((rows, texts),) = self.run(extent_sql(self.scan, column, self.columns), seconds=seconds)
            self._extents[column] = (int(rows), int(texts))
        return self._extents[column]

    def arrow(self, sql: str, tables: Mapping[str, pa.Table] | None = None, *, seconds: float = 60.0) -> pa.Table:
        """The same in columns, which are not counted in the engine's memory; `tables` exist for this call only."""
        # Not `execute`, after which the rows would be copied once more.
        return self._shaped(
            sql, tables or {}, seconds, lambda cursor, statement: cursor.sql(statement).to_arrow_table()
        )


class Public(WarmConnection):
    """A connection without any file, for what is public: declared keys, and values that were released."""

    def __init__(self, *, memory: str = "2GB", threads: int | None = None) -> None:
        super().__init__((), memory, threads)

    def run(self, sql: str, tables: Mapping[str, pa.Table] | None = None, *, seconds: float = 60.0) -> Rows:
        """The rows of one SELECT, in which `tables` exist for this call only. Raises what `DuckDB.run` does."""
        return self._run(sql, tables or {}, seconds)


# A forked child inherits locks that nobody there will release, and connections without their threads. This is
# registered after the hook in `opening`, which keeps those connections from being freed.
_LIVE: weakref.WeakSet[Forking] = weakref.WeakSet()


class Forking(Protocol):
    """What has locks or connections, which a forked child cannot use."""

    def forked(self) -> None:
        """Starts anew, in a child."""


def renew_in_children(each: Forking) -> None:
    """Has it start anew in every forked child."""
    _LIVE.add(each)


def _forked() -> None:
    for each in list(_LIVE):
        each.forked()


os.register_at_fork(after_in_child=_forked)

_PUBLIC = Public()


def public() -> Public:
    """The one that all of this process share."""
    return _PUBLIC


class _Limit:
    """Interrupts a cursor that is still busy after some seconds, or at the question's own end (`engine.within`)."""

    def __init__(self, cursor: DuckDBPyConnection, seconds: float) -> None:
        self.struck = False
        self._cursor = cursor
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._timer = threading.Timer(left(seconds), self._strike)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over.set()

    def _strike(self) -> None:
        while not self._over.is_set():
            with self._lock:
                if not self._over.is_set():
                    self.struck = True
                    self._cursor.interrupt()
            self._over.wait(_AGAIN)  # DuckDB forgets an interrupt that came before the query began


def _checked(cursor: DuckDBPyConnection, sql: str) -> Statement | None:
    """The statement, if it is one SELECT that writes nothing."""
    import duckdb

    try:
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return None
        if _MAY_WRITE.search(sql):
            found = cursor.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": sql}).fetchall()
            tree = json.loads(found[0][0])
            if tree["error"] or not _only_reads(tree):
                return None
    except (duckdb.Error, ValueError):  # ValueError: a kind of statement that DuckDB's Python side does not know
        return None
    return statements[0]


def _only_reads(tree: Any) -> bool:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            kind = node.get("type")
            if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _READS:
                return False
            if str(node.get("function_name")).lower() in _RUNS_MORE:
                return False
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return True


def _outcome(limit: _Limit, rows: object) -> str:
    """What became of a statement, for its record."""
    return "late" if limit.struck else "failed" if rows is None else "done"


def _fetched(
    cursor: DuckDBPyConnection, statement: Statement, tables: Mapping[str, pa.Table], limit: _Limit, shape: Shape[T]
) -> T | None:
    """The rows, or nothing after an error of any kind."""
    try:
        with limit:
            for name, table in tables.items():
                cursor.register(name, table)
            return shape(cursor, statement)
    except Exception as error:  # noqa: BLE001 - not only DuckDB's own: a value that Python cannot hold has its say too
        stopped_by_user = isinstance(error, RuntimeError) and str(error) == "Query interrupted"
    if stopped_by_user:  # DuckDB swallows the exception of a signal, and raises this one in its place
        raise KeyboardInterrupt
    return None
