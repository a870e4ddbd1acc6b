"""The schema of a source: names and types of its columns, never a value, a count or an extreme.

DuckDB describes the files on a connection that can open nothing else. Its own error messages may quote a row, so none
of them is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import SourceUnavailableError
from dalenius.queries.engines.locked import locked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NO_HEADER = re.compile(r"column\d+")


def schema(files: Sequence[Path], form: str, *, guess: bool = False) -> tuple[tuple[str, str], ...]:
    """Names and DuckDB types of the columns that all files share.

    Args:
        files: Absolute paths, all of one form.
        form: "parquet" or "csv".
        guess: Let DuckDB guess the types of CSV columns, for a draft. Otherwise they are all VARCHAR: a guess depends
            on the rows, and what may be asked must not.
    """
    import duckdb

    found: tuple[tuple[str, str], ...] | None = None
    connection = locked(files, threads=1)
    try:
        for file in files:
            each = _described(connection, file, form, guess)
            if found is not None and _shape(each, form) != _shape(found, form):
                raise SourceUnavailableError(
                    "The files of the source have different columns.",
                    why=f"{file.name} does not have the columns of {files[0].name}, in the same order and types.",
                    fix="Bring them to one schema, or protect them as tables of one data set.",
                )
            found = found or each
    except duckdb.Error:
        raise _unreadable(file, form) from None
    finally:
        connection.close()
    return found or ()


def _described(connection: DuckDBPyConnection, file: Path, form: str, guess: bool) -> tuple[tuple[str, str], ...]:
    if form == "parquet":
        # Partition names in paths are not columns: what a table has must not depend on where it lies.
        call = "read_parquet([$file], hive_partitioning = false)"
    else:
        call = f"read_csv([$file], hive_partitioning = false{'' if guess else ', header = true, all_varchar = true'})"
    rows = connection.execute(f"DESCRIBE SELECT * FROM {call}", {"file": str(file)}).fetchall()  # noqa: S608
    if form == "csv" and all(_NO_HEADER.fullmatch(row[0]) for row in rows):
        raise SourceUnavailableError(
            f"{file.name} has no header.",
            why="The first line of a CSV file must name its columns.",
            fix="Add one.",
        )
    return tuple((row[0], row[1]) for row in rows)


def _shape(columns: tuple[tuple[str, str], ...], form: str) -> tuple[object, ...]:
    return tuple(name for name, _ in columns) if form == "csv" else columns


def _unreadable(file: Path, form: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"{file.name} cannot be read.",
        why=f"DuckDB does not take it for a {'Parquet' if form == 'parquet' else 'CSV'} file.",
        fix="Check that it is complete and of the form that its ending says.",
    )
