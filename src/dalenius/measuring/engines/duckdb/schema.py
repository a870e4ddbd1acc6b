"""The schema of a source: names and types of its columns, never a value, a count or an extreme.

DuckDB describes the files on a connection that can open nothing else. Its own error messages may quote a row, so none
of them is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import SourceUnavailableError
from dalenius.measuring.cache import WeightedCache
from dalenius.measuring.engines.duckdb.csv import Header, different, header, no_header
from dalenius.measuring.engines.duckdb.locked import locked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NO_HEADER = re.compile(r"column\d+")
_PATTERN = re.compile(r"[*?\[]")

Columns = tuple[tuple[str, str], ...]

# To open a connection takes longer than all the rest, and to protect a table asks three times.
_KEPT: WeightedCache[Columns] = WeightedCache(20_000)  # names


def schema(
    files: Sequence[Path], form: str, *, guess: bool = False, opened: Callable[[], DuckDBPyConnection] | None = None
) -> Columns:
    """Names and DuckDB types of the columns that all files share; read once while the files stay as they are.

    Args:
        files: Absolute paths, all of one form.
        form: "parquet" or "csv".
        guess: Let DuckDB guess the types of CSV columns, for a draft. Otherwise they are all VARCHAR: a guess depends
            on the rows, and what may be asked must not.
        opened: A cursor on a locked connection that can open these files, where one is open anyway; it is closed here.
    """
    _check_paths(files)
    try:
        key = None if guess else (tuple(files), tuple(map(_state, files)), form)
    except OSError:
        key = None
    found = None if key is None else _KEPT.get(key)
    if found is None:
        found = _read(files, form, guess, opened)
        if key is not None:
            _KEPT.put(key, found, len(files) + len(found))
    return found


def _state(file: Path) -> tuple[int, ...]:
    """Changes with the file: its ctime does with every write, and with who may read it."""
    found = file.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(files: Sequence[Path], form: str, guess: bool, opened: Callable[[], DuckDBPyConnection] | None) -> Columns:
    import duckdb

    found: Columns | None = None
    shared = header(files) if form == "csv" and files else None
    connection = locked(files, threads=1) if opened is None else opened()
    try:
        for file in files:
            if shared is None:
                # Partition names in paths are not columns: what a table has must not depend on where it lies.
                each = _described(connection, "read_parquet([$file], hive_partitioning = false)", {"file": str(file)})
            elif guess:
                each = _guessed(connection, file, shared)
            else:
                # DESCRIBE would not open the file.
                connection.execute(f"SELECT 1 FROM {shared.scan([file])} LIMIT 1").fetchall()  # noqa: S608
                each = _described(connection, shared.scan([file]), {})
            if found is not None and shared is None and each != found:
                raise different(file, files[0])
            found = found or each
    except duckdb.Error:
        raise _unreadable(file, form) from None
    finally:
        connection.close()
    return found or ()


def _check_paths(files: Sequence[Path]) -> None:
    # DuckDB takes such a path for a pattern and knows no escape: another file of the source would be read twice.
    for file in files:
        if _PATTERN.search(str(file)):
            raise SourceUnavailableError(
                f"{file.name} cannot be read.",
                why="Its path contains one of * ? [, which DuckDB takes for a pattern.",
                fix="Rename the file or its folder.",
            )


def _described(connection: DuckDBPyConnection, item: str, values: dict[str, str]) -> Columns:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {item}", values).fetchall()  # noqa: S608
    return tuple((row[0], row[1]) for row in rows)


def _guessed(connection: DuckDBPyConnection, file: Path, shared: Header) -> Columns:
    options = f"{shared.dialect}, null_padding = true, ignore_errors = true, parallel = false"
    guess = f"read_csv([$file], {options}, hive_partitioning = false)"
    found = _described(connection, guess, {"file": str(file)})
    if all(_NO_HEADER.fullmatch(name) for name, _ in found):
        raise no_header(file)
    types = [kind for _, kind in found] + ["VARCHAR"] * len(shared.names)
    return tuple(zip(shared.names, types, strict=False))


def _unreadable(file: Path, form: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"{file.name} cannot be read.",
        why=f"DuckDB does not take it for a {'Parquet' if form == 'parquet' else 'CSV'} file.",
        fix="Check that it is complete and of the form that its ending says.",
    )
