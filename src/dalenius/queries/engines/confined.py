"""SQL that an analyst shaped, on public files, in a process of its own.

DuckDB's memory limit does not count long texts, so one statement could take all of the machine's memory. Hence a
child process: it knows nothing of the home, has an empty environment, can open the public files only, and has hard
limits of memory and time that end it alone. What comes back is plain values or the kind of what went wrong; DuckDB's
own words stay in the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from dalenius.errors import EngineFailedError, EngineTimeoutError

MEMORY = "1GB"
_BEYOND = 2 * 2**30  # bytes of address space beyond what the process has before it begins: the limit, and as much
_LONGEST = 2**24  # bytes of an answer
_THREADS = 2
_STEP = 200  # rows fetched at a time
_CELL = 24  # bytes of a cell that is no text, about
_START = 20.0  # seconds that a busy machine may take to begin
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a process may need to start at all
_AT_ONCE = 2  # questions that run at once; the others wait, so that memory has an end
_CHILD = "import sys; sys.path[:] = {path!r}; from dalenius.queries.engines.confined import main; main()"


_TURN = threading.BoundedSemaphore(_AT_ONCE)


def _forked() -> None:
    global _TURN  # noqa: PLW0603 (a forked child inherits turns that nobody there gives back)
    _TURN = threading.BoundedSemaphore(_AT_ONCE)


os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True)
class Outcome:
    """Columns and rows; or why there are none.

    Attributes:
        columns: Names.
        rows: The first of them.
        cut: Whether there were more.
        refused: What of the statement may not run.
        failed: The kind of DuckDB's error: "BinderException" …
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    cut: bool = False
    refused: str | None = None
    failed: str | None = None


def run(
    sql: str,
    views: Mapping[str, str],
    files: Sequence[Path],
    columns: Collection[str],
    *,
    most: int,
    seconds: float,
) -> Outcome:
    """Runs one SELECT, after `public_checks` has looked at it.

    Args:
        sql: Written by us from the syntax tree of a question.
        views: The tables that it may read: names, and what stands behind them in FROM.
        files: What may be opened.
        columns: The names of all their columns.
        most: So many rows at most.
        seconds: After that it is stopped.

    Raises:
        EngineTimeoutError: It was stopped.
        EngineFailedError: The process ended without an answer, most likely for lack of memory.
    """
    task = {
        "sql": sql,
        "views": dict(views),
        "files": [str(file) for file in files],
        "columns": sorted(columns),
        "most": most,
        "seconds": seconds,
    }
    code = _CHILD.format(path=[each for each in sys.path if each and Path(each).is_absolute()])
    try:
        with _TURN:
            done = _started(code, task, seconds)
    except subprocess.TimeoutExpired:
        raise _late(seconds) from None
    except OSError:
        done = None
    found = _decoded(done.stdout) if done is not None and done.returncode == 0 else None
    if found is None:
        raise EngineFailedError(
            "The engine could not compute the answer.",
            why="Its process ended without one; most likely the question needs more memory than it may have.",
            fix="Ask for less at once.",
        )
    if found.failed == "late":
        raise _late(seconds)
    return found


def _started(code: str, task: Mapping[str, Any], seconds: float) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(  # noqa: S603 (our own interpreter; the question goes by stdin)
        [sys.executable, "-I", "-c", code],
        input=json.dumps(task).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        timeout=seconds + _START,
        check=False,
    )


def main() -> None:
    """What the child does: reads its task, confines itself, runs, writes what it found."""
    task = json.load(sys.stdin.buffer)
    sys.stdout.buffer.write(json.dumps(_found(task)).encode())
    sys.stdout.flush()
    os._exit(0)  # whatever still runs in the engine ends here


def _found(task: Mapping[str, Any]) -> dict[str, Any]:
    import duckdb

    from dalenius.queries.engines.locked import locked
    from dalenius.queries.public_checks import refused

    connection = locked([Path(file) for file in task["files"]], memory=MEMORY, threads=_THREADS)
    for name, scan in task["views"].items():
        connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {scan}')  # noqa: S608
    _confine(task["seconds"])
    late = threading.Event()

    def strike() -> None:
        late.set()
        connection.interrupt()

    timer = threading.Timer(task["seconds"], strike)
    timer.daemon = True
    timer.start()
    try:
        parsed = connection.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": task["sql"]}).fetchall()
        words = refused(json.loads(parsed[0][0]), {name.lower() for name in task["views"]}, set(task["columns"]))
        if words is not None:
            return {"refused": words}
        result = connection.execute(task["sql"])
        return _rows(result, task["most"])
    except (duckdb.Error, MemoryError, RuntimeError, ValueError, OverflowError) as error:
        return {"failed": "late" if late.is_set() else type(error).__name__}
    finally:
        timer.cancel()


def _rows(result: Any, most: int) -> dict[str, Any]:
    names = [each[0] for each in result.description]
    rows: list[list[Any]] = []
    size = 0
    for row in _fetched(result):
        cells = [_encoded(cell) for cell in row]
        size += sum(len(each) if isinstance(each, str) else _CELL for each in cells)
        if len(rows) == most or size > _LONGEST:
            return {"columns": names, "rows": rows, "cut": True}
        rows.append(cells)
    return {"columns": names, "rows": rows, "cut": False}


def _fetched(result: Any) -> Iterator[Sequence[Any]]:
    types = [str(each[1]) for each in result.description]
    if not any("TIMESTAMP WITH TIME ZONE" in type_ for type_ in types):
        while batch := result.fetchmany(_STEP):
            yield from batch
        return
    # DuckDB makes Python's points in time with a package that need not be there; Arrow does without.
    import warnings

    warnings.simplefilter("ignore")  # about the copy that this makes
    reader = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_record_batch
    for found in reader(_STEP):
        columns = [column.to_pylist() for column in found.columns]
        for at in [place for place, type_ in enumerate(types) if type_ in {"HUGEINT", "UHUGEINT"}]:
            columns[at] = [None if each is None else int(each) for each in columns[at]]
        yield from zip(*columns, strict=True)


def _confine(seconds: float) -> None:
    """Hard limits, where the system has them: they end this process, and nothing else."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limits = {
            resource.RLIMIT_AS: now + _BEYOND,
            resource.RLIMIT_CPU: int(_THREADS * (seconds + _START)),
            resource.RLIMIT_FSIZE: 0,  # no file grows; stdout is a pipe
            resource.RLIMIT_CORE: 0,
        }
        for which, limit in limits.items():
            hard = resource.getrlimit(which)[1]
            least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(which, (least, least))


def _encoded(value: Any) -> Any:
    """A cell in JSON: what it cannot say is a pair of kind and text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else {"float": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
        case bytes():
            return value.hex()
    return str(value)


_READERS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def _value(cell: Any) -> Any:
    if isinstance(cell, dict):
        ((kind, text),) = cell.items()
        return _READERS[kind](text)
    return cell


def _decoded(content: bytes) -> Outcome | None:
    try:
        found = json.loads(content)
        return Outcome(
            tuple(found.get("columns", ())),
            tuple(tuple(_value(cell) for cell in row) for row in found.get("rows", ())),
            bool(found.get("cut")),
            found.get("refused"),
            found.get("failed"),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _late(seconds: float) -> EngineTimeoutError:
    return EngineTimeoutError(
        "The engine took too long.", why=f"It was stopped after {seconds:g} seconds.", fix="Ask for less at once."
    )
