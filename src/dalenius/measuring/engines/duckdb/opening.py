"""Opening DuckDB: a connection that can read the files it was given and nothing else, and whether there is room for it.

A question that cannot even start tells nothing about anybody, so nobody should pay for it. What a look takes is taken
once before anything is charged, and given back: a thread, handles of files, a statement on the engine's own connection;
and there must be memory (`check_can_start`). What can be promised is that all of it was there a moment before the
charge, not that it still is when the look begins: a failure after the charge stays charged (it could tell about the
data).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import EngineFailedError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LEAST = 192 * 2**20  # bytes of memory that must be there
_HANDLES = 16
_CGROUP = Path("/sys/fs/cgroup")
_PROBE = "SELECT count(*), sum(hash(i) % 1000), max(i % 77) FROM range(2000000) AS t(i)"
_RUNS = 9

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


def open_locked(
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
    connection.execute(f"SET GLOBAL allowed_paths = {path_list(files)}")
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET GLOBAL lock_configuration = true")
    return connection


def path_list(files: Sequence[Path]) -> str:
    """The paths as a list in SQL."""
    return f"[{', '.join(quoted(str(file)) for file in files)}]"


def quoted(text: str) -> str:
    """A text as a literal in SQL; DuckDB knows no escapes in it but the doubled quote."""
    return "'" + text.replace("'", "''") + "'"


# --- whether there is room


def check_can_start() -> None:
    """Refuses where a thread, handles or memory are missing, at no charge.

    Raises:
        EngineFailedError: One of them is.
    """
    handles: list[int] = []
    try:
        for _ in range(_HANDLES):
            handles.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 (those before a failure are given back)
        thread = threading.Thread(target=lambda: None, daemon=True)
        thread.start()
        thread.join()
    except (OSError, RuntimeError, MemoryError):
        raise cannot_start("No thread, or no handle of a file, is left.") from None
    finally:
        for each in handles:
            os.close(each)
    if available() < LEAST:
        raise cannot_start(f"It needs {LEAST // 2**20} MB of memory that nobody else uses.")


def cannot_start(why: str) -> EngineFailedError:
    """A refusal before anything is charged."""
    return EngineFailedError(
        "The engine cannot start now.", why=why, fix="Ask again later; tell the owner if it stays."
    )


def available() -> float:
    """Bytes of memory that this process could still take, as far as the system tells."""
    found = [_machine(), _container(), _process()]
    return min(found)


def _machine() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return float("inf")


def _container() -> float:
    """Of the control group, where it has a limit; what only caches files can be given back."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        most = int((_CGROUP / "memory.max").read_text())  # "max" is no number
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return most - int((_CGROUP / "memory.current").read_text()) + int(stat.get("inactive_file", 0))
    return float("inf")


def _process() -> float:
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return most - pages * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


def probe_seconds() -> float:
    """How fast this machine is: the least time of one aggregate over two million rows that are nobody's.

    The least, since others who work meanwhile only make it longer.
    """
    connection = open_locked(())
    taken = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        connection.execute(_PROBE).fetchall()
        taken.append(time.perf_counter() - start)
    connection.close()
    return min(taken)
