"""Rows as somebody has them (a dict of columns, a pandas or arrow table, a list of dicts) as columns of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.features import Feature, Values

_TIMES = {Kind.DATE: "datetime64[D]", Kind.DATETIME: "datetime64[us]"}


def given(rows: object, features: Sequence[Feature]) -> Values:
    """The columns of these features; what cannot be read as its kind is absent.

    >>> from dalenius.learning.features import Feature
    >>> found = given([{"age": 4}, {"age": None}], [Feature("age", Kind.INTEGER, True, None, 0, 9)])
    >>> [each.tolist() for each in found["age"]]
    [[4.0, 0.0], [False, True]]
    """
    columns = _columns(rows, [each.name for each in features])
    lengths = {len(each) for each in columns.values()}
    if len(lengths) > 1:
        raise InputError("The columns differ in length.", why="Each has a value for each row.", fix="Check the rows.")
    return {each.name: _read(each.kind, columns[each.name]) for each in features}


def _columns(rows: object, names: Sequence[str]) -> dict[str, list[Any]]:
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        if not all(isinstance(row, Mapping) for row in rows):
            raise _unknown()
        return {name: [row.get(name) for row in rows] for name in names}
    held = getattr(rows, "column_names", None)  # arrow
    known = list(rows) if isinstance(rows, Mapping) else held if held is not None else getattr(rows, "columns", None)
    if known is None:
        raise _unknown()
    missing = [name for name in names if name not in list(known)]
    if missing:
        raise InputError(
            f"The rows have no column {missing[0]!r}.",
            why="The model was trained with it.",
            fix=f"Give all of {', '.join(names)}.",
        )
    return {name: _list(rows[name]) for name in names}  # type: ignore[index]


def _list(column: Any) -> list[Any]:
    to_list = getattr(column, "to_pylist", None) or getattr(column, "tolist", None)
    return list(column if to_list is None else to_list())


def _read(kind: Kind, column: list[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    absent = np.array([each is None or not each == each for each in column], bool)  # noqa: SIM201, PLR0124 - NaN, NaT
    if kind in _TIMES:
        values: NDArray[Any] = np.array(
            [None if gone else each for each, gone in zip(column, absent, strict=True)], _TIMES[kind]
        )
        values[absent] = np.datetime64(0, "D")
        return values, absent
    if kind is Kind.BOOLEAN:
        return np.array([bool(each) and not gone for each, gone in zip(column, absent, strict=True)], bool), absent
    if kind in {Kind.INTEGER, Kind.NUMBER}:
        numbers = [_number(each) for each in column]
        found = np.array([np.nan if each is None else each for each in numbers], np.float64)
        absent = ~np.isfinite(found)
        return np.where(absent, 0.0, found), absent
    texts = np.empty(len(column), object)
    texts[:] = ["" if gone else str(each) for each, gone in zip(column, absent, strict=True)]
    return texts, absent


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _unknown() -> InputError:
    return InputError(
        "These are no rows.",
        why="Rows are a dict of columns, a pandas or arrow table, or a list of dicts.",
        fix="Give one of these.",
    )
