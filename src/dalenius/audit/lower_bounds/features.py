"""What can be looked at in an output: its values, their magnitudes and low-order bits, parts of it, all of it.

Outputs are arrays: one number each, or a row of numbers each. NaN stands for "no answer". Floats are looked at bit by
bit, since where two neighbours can give different floats the lowest bits tell (Mironov 2012); integers are, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Outputs = npt.NDArray[Any]
Column = npt.NDArray[Any]
_SLICED = 16  # values of one column for which others are looked at by themselves
_COLUMNS = 24  # of a wider row, the first


@dataclass(frozen=True)
class Feature:
    """One number, or category, for each output."""

    name: str
    of: Callable[[Outputs], Column]


def features_of(outputs: Outputs) -> list[Feature]:
    """The features that fit outputs of this form; which ones depends on a look at some of them."""
    if outputs.ndim == 1:
        return [*_single("the value", lambda rows: rows, outputs), _FLAGS]
    found = [Feature("the whole output", row_codes)]
    width = min(outputs.shape[1], _COLUMNS)
    for at in range(width):
        found += _single(f"value {at + 1}", _column(at), outputs[:, at])
    found.append(Feature("the sum of its values", lambda rows: np.nansum(rows.astype(np.float64), axis=1)))
    found.append(
        Feature("its largest value", lambda rows: np.max(np.nan_to_num(rows.astype(np.float64), nan=-np.inf), axis=1))
    )
    for at in range(width):
        kinds = np.unique(outputs[:2000, at].astype(np.float64))
        if 2 <= len(kinds) <= _SLICED:
            found += [
                _sliced(at, kind, other) for kind in kinds[~np.isnan(kinds)] for other in range(width) if other != at
            ]
    return found


def _column(at: int) -> Callable[[Outputs], Column]:
    return lambda rows: np.asarray(rows[:, at])


def _sliced(at: int, kind: Any, other: int) -> Feature:
    def of(rows: Outputs) -> Column:
        return np.where(rows[:, at] == kind, rows[:, other].astype(np.float64), np.nan)

    return Feature(f"value {other + 1} where value {at + 1} is {kind:g}", of)


def _single(name: str, part: Callable[[Outputs], Column], example: Column) -> list[Feature]:
    found = [Feature(name, part), Feature(f"the magnitude of {name}", lambda rows: np.abs(part(rows)))]
    if example.dtype.kind in "iu":
        return [*found, Feature(f"the lowest 3 bits of {name}", lambda rows: part(rows) & 7)]
    if example.dtype.kind == "f":
        found.append(Feature(f"the lowest 4 bits of {name}", lambda rows: _bits(part(rows)) & 15))
        found.append(Feature(f"the place of the lowest bit set in {name}", lambda rows: lowest_bit(part(rows))))
    return found


def _bits(column: Column) -> Column:
    return np.ascontiguousarray(column, dtype=np.float64).view(np.int64)


def lowest_bit(column: Column) -> Column:
    """The exponent of the largest power of 2 that divides each float; 4096 where it is 0, 8192 where it is not finite.

    >>> lowest_bit(np.array([1.0, 0.75, 6.0, 0.0, np.inf])).tolist()
    [0, -2, 1, 4096, 8192]
    """
    values = np.asarray(column, dtype=np.float64)
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = (np.abs(fraction) * 2.0**53).astype(np.int64)  # exact: a float has 53 bits
    lowest = whole & -whole
    places = np.frexp(lowest.astype(np.float64))[1] - 1
    found = exponent - 53 + places
    found = np.where(whole == 0, 4096, found)
    return np.where(np.isfinite(values), found, 8192)


def _flags(rows: Outputs) -> Column:
    if rows.dtype.kind != "f":
        return np.zeros(len(rows), dtype=np.int8)
    return np.asarray(np.isnan(rows) * 1 + np.isposinf(rows) * 2 + np.isneginf(rows) * 4)


_FLAGS = Feature("whether it is NaN or infinite", _flags)


def row_codes(rows: Outputs) -> Column:
    """A number for each row, the same for the same rows and, but for a chance of 2⁻⁶⁴ per pair, for these alone."""
    bits = np.ascontiguousarray(rows)
    words = bits.astype(np.float64).view(np.uint64) if bits.dtype.kind == "f" else bits.astype(np.uint64)
    words = words.reshape(len(rows), -1)
    mixers = np.random.default_rng(1).integers(0, 2**63, words.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = words ^ (words >> np.uint64(29))
        return np.asarray((mixed * mixers).sum(axis=1, dtype=np.uint64).view(np.int64))
