"""A release as a table of Arrow, pandas or Polars."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dalenius.errors import SourceUnavailableError

if TYPE_CHECKING:
    from dalenius.queries.release import Release


def to_arrow(release: Release) -> Any:
    """As `Release.to_arrow`."""
    import pyarrow as pa

    names: list[str] = []
    arrays = []

    def add(name: str, cells: Sequence[Any]) -> None:
        names.append(_fresh(name, (*release.columns, *names)))
        lists = any(isinstance(each, list) for each in cells)
        arrays.append(pa.array(cells, pa.list_(pa.float64()) if lists else pa.float64()))

    for place, (name, key) in enumerate(zip(release.columns, release.keys, strict=True)):
        cells = [row[place] for row in release.rows]
        names.append(name)
        arrays.append(_key_array(cells) if key else _value_array(cells))
        if key:
            continue
        add(f"{name}_noise_error", [row[place] for row in release.noise_error])
        totals = [row[place] for row in release.total_interval]
        if any(totals) and not any(isinstance(each, list) for each in totals):
            add(f"{name}_low", [None if each is None else each[0] for each in totals])
            add(f"{name}_high", [None if each is None else each[1] for each in totals])
    return pa.Table.from_arrays(arrays, names=names)


def to_pandas(release: Release) -> Any:
    """As `Release.to_pandas`."""
    _require("pandas")
    return to_arrow(release).to_pandas()


def to_polars(release: Release) -> Any:
    """As `Release.to_polars`."""
    _require("polars")
    return import_module("polars").from_arrow(to_arrow(release))


def _value_array(cells: Sequence[Any]) -> Any:
    """Integers where all are and fit, else doubles; texts and truth values, which may be computed, as they are."""
    import pyarrow as pa

    if any(isinstance(cell, bool) for cell in cells):
        return _key_array(cells)
    if any(isinstance(cell, list) for cell in cells):
        return pa.array(cells, pa.list_(pa.float64()))
    whole = all(isinstance(cell, int) and -(2**63) <= cell < 2**63 for cell in cells if cell is not None)
    if whole and any(cell is not None for cell in cells):
        return pa.array(cells, pa.int64())
    if all(cell is None or isinstance(cell, int | float | Decimal | Fraction) for cell in cells):
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
    return _key_array(cells)


def _key_array(cells: Sequence[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(cells)
    except (OverflowError, pa.ArrowException):  # of no one type that Arrow has
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _fresh(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _require(module: str) -> None:
    """As `require_extra`, for a package that no extra brings."""
    if find_spec(module) is None:
        raise SourceUnavailableError(
            f"This needs {module}.",
            why="dalenius works without it and leaves it to you.",
            fix=f"Run: pip install '{module}'",
        )
