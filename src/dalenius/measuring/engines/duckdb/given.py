"""Released values as tables in the child of `confined`, and copies of them with other noise.

A release comes with its values, and with copies in which other noise was drawn (`queries.outer.noise_copies`): number
0 is the release itself. A statement sees one copy at a time; or all at once, where it keeps them apart itself. What the
statement gives for each copy, less what it gives for the release, is how far the noise moves each cell of the answer.
All of it is post-processing of released values; no file is read.

A row of a copy is the row of the answer that is told apart by the same text, in the statement's last column.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COPY, ROW = "copy\x01number", "row\x01number"  # as `queries.outer.sources` has them: nobody can type such names
_VARIABLE = "copy"
_ENOUGH = 0.5  # of the copies must have a row, or nothing is said of it
_STEP = 2000  # rows fetched at a time


def load_tables(connection: DuckDBPyConnection, given: Sequence[Mapping[str, Any]]) -> None:
    """Makes the tables. Names, types and values are the parent's own; no word of a question is among them."""
    for each in given:
        name, columns, types = each["name"], each["columns"], dict(each["columns"])
        noisy = [column for column, _ in columns if column in each["copies"]]
        base, moved, whole = (_name(f"{name} {part}") for part in ("base", "moved", "copies"))
        _load(connection, base, {ROW: "BIGINT", **types}, {ROW: list(range(each["size"])), **each["values"]})
        shown = ", ".join(f"b.{_name(column)}" for column, _ in columns)
        sql = f"SELECT 0::BIGINT AS {_name(COPY)}, b.{_name(ROW)}, {shown} FROM {base} AS b"  # noqa: S608
        if noisy:
            drawn = {column: types[column] for column in noisy}
            numbers = {COPY: each["copy"], ROW: each["row"], **each["copies"]}
            _load(connection, moved, {COPY: "BIGINT", ROW: "BIGINT", **drawn}, numbers)
            mixed = ", ".join(f"{'m' if column in noisy else 'b'}.{_name(column)}" for column, _ in columns)
            sql += (
                f" UNION ALL SELECT m.{_name(COPY)}, m.{_name(ROW)}, {mixed} FROM {moved} AS m "  # noqa: S608
                f"JOIN {base} AS b ON b.{_name(ROW)} = m.{_name(ROW)}"
            )
        connection.execute(f"CREATE TABLE {whole} AS {sql}")
        connection.execute(
            f"CREATE VIEW {_name(name)} AS SELECT * EXCLUDE ({_name(COPY)}) FROM {whole} "  # noqa: S608
            f"WHERE {_name(COPY)} = getvariable('{_VARIABLE}') ORDER BY {_name(ROW)}"
        )
    choose_copy(connection, 0)


def choose_copy(connection: DuckDBPyConnection, number: int) -> None:
    """Which copy statements see."""
    connection.execute(f"SET VARIABLE {_VARIABLE} = {number:d}")


def carry_errors(
    connection: DuckDBPyConnection, carry: Mapping[str, Any], rows: Sequence[Sequence[Any]], width: int
) -> list[list[list[float] | None]] | None:
    """For each cell: how far noise moves it, and where it lies in most copies; None where that cannot be told.

    Args:
        connection: Where the tables are.
        carry: "base" and "at_once" (statements), "copies" (how many), "confidence", "seconds", "identified".
        rows: The answer, with its last column where it tells rows apart.
        width: How many columns are shown.

    Returns:
        Lists of [half-width, low, high], row by row; None: not in time.
    """
    import duckdb
    import numpy as np

    late = threading.Event()

    def strike() -> None:
        late.set()
        connection.interrupt()

    timer = threading.Timer(carry["seconds"], strike)
    timer.daemon = True
    timer.start()
    try:
        places = _places(connection, carry, rows, width)
        drawn = np.full((carry["copies"], len(rows), width), np.nan)
        for number, row in _drawn(connection, carry, late):
            for place in places.get(row[width], ()):
                drawn[number - 1, place] = [_number(cell) for cell in row[:width]]
    except (duckdb.Error, MemoryError, RuntimeError, ValueError, OverflowError):
        return None
    finally:
        timer.cancel()
        choose_copy(connection, 0)
    released = np.array([[_number(cell) for cell in row[:width]] for row in rows]).reshape(len(rows), width)
    return [
        [_told(drawn[:, at, column], float(released[at, column]), carry["confidence"]) for column in range(width)]
        for at in range(len(rows))
    ]


def _places(
    connection: DuckDBPyConnection, carry: Mapping[str, Any], rows: Sequence[Sequence[Any]], width: int
) -> dict[Any, list[int]]:
    """The places of rows in the answer, by what tells them apart."""
    found: dict[Any, list[int]] = {}
    if carry["identified"]:
        for at, row in enumerate(rows):
            found.setdefault(row[width], []).append(at)
        return _told_apart(found)
    # Rows that DISTINCT has merged: the first that shows the same.
    firsts: dict[tuple[Any, ...], Any] = {}
    for row in connection.execute(carry["base"]).fetchall():
        firsts.setdefault(tuple(row[:width]), row[width])
    for at, row in enumerate(rows):
        if tuple(row[:width]) in firsts:
            found.setdefault(firsts[tuple(row[:width])], []).append(at)
    return _told_apart(found)


def _told_apart(places: dict[Any, list[int]]) -> dict[Any, list[int]]:
    """Without rows that have the same text, as UNNEST makes them: which of them is which in a copy, nobody knows."""
    return {each: found for each, found in places.items() if len(found) == 1}


def _drawn(connection: DuckDBPyConnection, carry: Mapping[str, Any], late: threading.Event) -> Any:
    """Rows with the number of their copy."""
    if carry["at_once"] is not None:
        result = connection.execute(carry["at_once"])
        while batch := result.fetchmany(_STEP):
            yield from ((row[-1], row) for row in batch if row[-1] > 0)
        return
    for number in range(1, carry["copies"] + 1):
        if late.is_set():
            raise RuntimeError
        choose_copy(connection, number)
        yield from ((number, row) for row in connection.execute(carry["base"]).fetchall())


def _told(drawn: Any, released: float, confidence: float) -> list[float] | None:
    import numpy as np

    known = drawn[np.isfinite(drawn)]
    if not np.isfinite(released) or len(known) < _ENOUGH * len(drawn):
        return None
    # Of n copies and the truth each is the farthest with the same chance: the k-th of n covers with one of k/(n + 1).
    far = np.sort(np.abs(known - released))
    place = math.ceil(confidence * (len(far) + 1))
    if place <= len(far):
        half = float(far[place - 1])
    else:  # more than so many copies can tell
        half = max(float(far[-1]), NormalDist().inv_cdf((1 + confidence) / 2) * float(np.sqrt(np.mean(far**2))))
    tail = (1 - confidence) / 2
    ends = np.quantile(known, [tail, 1 - tail], method="inverted_cdf")
    return [half, min(released, float(ends[0])), max(released, float(ends[1]))]


def _number(cell: Any) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return float("nan")
    try:
        return float(cell)
    except OverflowError:
        return float("nan")


def _load(
    connection: DuckDBPyConnection, table: str, types: Mapping[str, str], values: Mapping[str, Sequence[Any]]
) -> None:
    """A table from columns of values, by JSON: texts, numbers, truth values, dates as ISO 8601."""
    if not len(next(iter(values.values()))):
        columns = ", ".join(f"{_name(column)} {type_}" for column, type_ in types.items())
        connection.execute(f"CREATE TABLE {table} ({columns})")
        return
    parts = [
        f"unnest(from_json($v{at}, '[\"{type_}\"]')) AS {_name(column)}"
        for at, (column, type_) in enumerate(types.items())
    ]
    texts = {f"v{at}": json.dumps(values[column]) for at, column in enumerate(types)}
    connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(parts)}", texts)


def value_to_json(value: Any) -> Any:
    """A released value as `load_tables` reads it."""
    return (
        value.isoformat(" ")
        if isinstance(value, datetime)
        else value.isoformat()
        if hasattr(value, "isoformat")
        else value
    )


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
