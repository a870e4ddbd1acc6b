"""A DuckDB connection that can open the files it was given, and nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# A Parquet file's least and largest value leave NaN out; an optimizer that trusts them takes NaN for a number. And what
# one side of a join holds must not decide which rows of the other are read: the time would tell it. Nor must conditions
# move into CTEs, which are there to keep them out (`statements.relation`).
_OPTIMIZERS = "disabled_optimizers = 'statistics_propagation,join_filter_pushdown,cte_filter_pusher'"
# GLOBAL, because a cursor does not inherit what was set for its connection alone.
_SETTINGS = (
    "temp_directory = ''",  # rows of people must not spill to the disk; it cannot be set later
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "allow_persistent_secrets = false",
    "python_enable_replacements = false",  # else a table that is missing is looked for among Python's variables
    "preserve_insertion_order = false",
    _OPTIMIZERS,
)

# A forked child has DuckDB's objects without its threads. To free them there crashes or hangs, even at exit.
_LIVE: weakref.WeakSet[DuckDBPyConnection] = weakref.WeakSet()


def _forked() -> None:
    for connection in list(_LIVE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # never freed here
    _LIVE.clear()


os.register_at_fork(after_in_child=_forked)


def locked(
    files: Sequence[Path], *, memory: str | None = None, threads: int | None = None, whole: bool = False
) -> DuckDBPyConnection:
    """A new connection in memory; its settings can no longer be changed.

    DuckDB would let it write the files too: whoever takes statements from elsewhere must look at them first.

    Args:
        files: Absolute paths, allowed by the letter. When it reads, DuckDB takes one with `*`, `?` or `[` in it for a
            pattern all the same, so `schema` refuses those.
        memory: The most it may use, as "2GB"; by default most of the machine's.
        threads: How many it may use; by default one per core.
        whole: Every row is read before a condition is tried. Otherwise DuckDB leaves out parts of a Parquet file whose
            least and largest values do not fit, and one unit with an extreme value in each part decides whether all of
            them are read. Joins that are written as conditions need the optimizer that this switches off.
    """
    import duckdb

    connection = duckdb.connect(":memory:", config={} if threads is None else {"threads": threads})
    _LIVE.add(connection)
    for setting in _SETTINGS:
        connection.execute(f"SET GLOBAL {setting}")
    if whole:
        connection.execute(f"SET GLOBAL {_OPTIMIZERS[:-1]},filter_pushdown'")
    if memory is not None:
        connection.execute(f"SET GLOBAL memory_limit = {quoted(memory)}")
    with contextlib.suppress(duckdb.Error):  # a build without time zones has none to set
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET GLOBAL allowed_paths = {listed(files)}")
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")
    return connection


def listed(files: Sequence[Path]) -> str:
    """The paths as a list in SQL."""
    return f"[{', '.join(quoted(str(file)) for file in files)}]"


def quoted(text: str) -> str:
    """The text as a string in SQL."""
    return "'" + text.replace("'", "''") + "'"
