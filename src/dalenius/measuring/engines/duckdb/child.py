"""What the child of `confined` does: reads its task, confines itself, runs one statement, writes what it found.

Its limits hold by construction, whatever the statement asks for: DuckDB's own limit of memory, and one of the whole
process' address space for what DuckDB does not count (long texts); processor time; no file that grows; and an answer
whose size is counted in the bytes that are sent, while it is made. Whatever is left, the parent ends by a kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

LONGEST = 4 * 2**20  # bytes of an answer's cells, in JSON and UTF-8
BEGUN = b"+"  # sent when the statement begins: from here on its seconds count
_BEYOND = 192 * 2**20  # bytes of address space that the engine may take beyond its own limit
_THREADS = 2
_FILES = 64  # handles
_NICE = 10  # free work gives way to answers that have to leave in time
_STEP = 200  # rows fetched at a time
_LARGE = 2**16  # bytes of a row; such rows are fetched one by one


def main() -> None:
    """The whole life of the child."""
    task = json.load(sys.stdin.buffer)
    _give_way()
    found = _found(task)
    sys.stdout.buffer.write(found)
    sys.stdout.flush()
    os._exit(0)  # whatever still runs in the engine ends here


def _found(task: Mapping[str, Any]) -> bytes:
    import duckdb

    from dalenius.measuring.engines.duckdb.given import load_tables
    from dalenius.measuring.engines.duckdb.opening import open_locked
    from dalenius.measuring.engines.duckdb.public_checks import refused

    connection = open_locked([Path(file) for file in task["files"]], memory=f"{task['memory']}B", threads=_THREADS)
    for name, scan in task["views"].items():
        connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {scan}')  # noqa: S608
    load_tables(connection, task.get("given", ()))
    confine(task["seconds"], task["memory"])
    sys.stdout.buffer.write(BEGUN)
    sys.stdout.flush()
    late = threading.Event()

    def strike() -> None:
        late.set()
        connection.interrupt()

    timer = threading.Timer(task["seconds"], strike)
    timer.daemon = True
    timer.start()
    carry = task.get("carry")
    statements = (
        [task["sql"], *(each for each in (carry["base"], carry["at_once"]) if each)] if carry else [task["sql"]]
    )
    names = {each["name"] for each in task.get("given", ())}
    tables = {name.lower() for name in (*task["views"], *names, *(f"{name} copies" for name in names))}
    try:
        for sql in statements:
            parsed = connection.execute("SELECT json_serialize_sql($sql::VARCHAR)", {"sql": sql}).fetchall()
            words = refused(json.loads(parsed[0][0]), tables, set(task["columns"]))
            if words is not None:
                return json.dumps({"refused": words}).encode()
        result = connection.execute(task["sql"])
        return _rows(result, task["most"]) if not carry else _carried(connection, task, result)
    except (duckdb.Error, MemoryError, RuntimeError, ValueError, OverflowError) as error:
        return json.dumps({"failed": "late" if late.is_set() else type(error).__name__}).encode()
    finally:
        timer.cancel()


def _rows(result: Any, most: int, kept: list[Sequence[Any]] | None = None) -> bytes:
    """The answer in JSON. It has an end in bytes as they are sent: a character may be one, four or six of them.

    Its rows are put into ``kept``, too.
    """
    names = _json([each[0] for each in result.description])
    rows: list[bytes] = []
    size, cut = len(names), False
    for row in _fetched(result):
        line = b"[%s]" % b",".join([_json(_encoded(cell)) for cell in row])
        size += len(line) + 1
        if len(rows) == most or size > LONGEST:
            cut = True
            break
        rows.append(line)
        if kept is not None:
            kept.append(row)
    ends = b"true" if cut else b"false"
    return b'{"columns":%s,"rows":[%s],"cut":%s,"size":%d}' % (names, b",".join(rows), ends, size)


def _carried(connection: Any, task: Mapping[str, Any], result: Any) -> bytes:
    """The answer, and how far noise moves its cells (`given`); without the latter where that takes too long."""
    from dalenius.measuring.engines.duckdb.given import carry_errors

    rows: list[Sequence[Any]] = []
    width = len(result.description) - task["carry"]["identified"]
    found = _rows(result, task["most"], rows)
    errors = carry_errors(connection, task["carry"], rows, width)
    return found[:-1] + b',"errors":' + _json(errors) + b"}"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _fetched(result: Any) -> Iterator[Sequence[Any]]:
    types = [str(each[1]) for each in result.description]
    if not any("TIMESTAMP WITH TIME ZONE" in type_ for type_ in types):
        step = 1  # as long as rows may be large, few of them are Python's at once
        while batch := result.fetchmany(step):
            large = max(map(_weight, batch)) > _LARGE
            yield from batch
            step = 1 if large else min(2 * step, _STEP)
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


def _weight(row: Sequence[Any]) -> int:
    return sum(len(cell) if isinstance(cell, str | bytes | list | dict) else 1 for cell in row)


def _give_way() -> None:
    """To whoever has to be in time; and it ends with its parent."""
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; Linux alone has it


def confine(seconds: float, memory: int) -> None:
    """Hard limits, where the system has them: they end this process, and nothing else."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limits = {
            resource.RLIMIT_AS: now + memory + _BEYOND,
            resource.RLIMIT_CPU: int(_THREADS * (seconds + 2)),
            resource.RLIMIT_FSIZE: 0,  # no file grows; stdout is a pipe
            resource.RLIMIT_NOFILE: _FILES,
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
