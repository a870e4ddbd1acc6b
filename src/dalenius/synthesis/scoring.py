"""How far a synthetic table is from another: errors of its 1-, 2- and 3-way tables.

The error of one table is the L1 distance of the shares, in [0, 2]. Columns with more than 32 values are put into 32
equal classes first, as is usual where generators are compared. Against real rows this is *not* private: the result may
be shown to the owner alone, unless it is released as counts that are charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes

MOST_CLASSES = 32


@dataclass(frozen=True)
class Errors:
    """Mean L1 distances over all tables of 1, 2, 3 columns, and each by its columns."""

    ways: dict[int, float]
    each: dict[tuple[int, ...], float]


def classed(table: Codes, sizes: Sequence[int], most: int = MOST_CLASSES) -> tuple[NDArray[np.int64], list[int]]:
    """The columns (columns × rows) with at most so many classes, and how many each has."""
    found = np.asarray(table, np.int64).T.copy()
    for at, size in enumerate(sizes):
        if size > most:
            found[at] = found[at] * most // size
    return found, [min(size, most) for size in sizes]


def errors(real: Codes, synthetic: Codes, sizes: Sequence[int], ways: Sequence[int] = (1, 2, 3)) -> Errors:
    """Errors of all tables of so many columns; both tables are rows × columns.

    >>> table = np.array([[0, 0], [1, 1]])
    >>> errors(table, table[:, ::-1], (2, 2)).ways
    {1: 0.0, 2: 0.0, 3: 0.0}
    >>> errors(table, 1 - table * [1, 0], (2, 2), [2]).ways
    {2: 1.0}
    """
    first, widths = classed(real, sizes)
    second, _ = classed(synthetic, sizes)
    each = dict[tuple[int, ...], float]()
    for way in ways:
        for columns in combinations(range(len(widths)), way):
            each[columns] = _distance(first, second, columns, widths)
    means = {way: [error for columns, error in each.items() if len(columns) == way] for way in ways}
    return Errors({way: float(np.mean(found)) if found else 0.0 for way, found in means.items()}, each)


def _distance(
    first: NDArray[np.int64], second: NDArray[np.int64], columns: Sequence[int], widths: Sequence[int]
) -> float:
    shape = [widths[at] for at in columns]
    shares = list[NDArray[np.float64]]()
    for table in (first, second):
        cells = np.ravel_multi_index(tuple(table[list(columns)]), shape)
        shares.append(np.bincount(cells, minlength=int(np.prod(shape))) / max(1, len(cells)))
    return float(np.abs(shares[0] - shares[1]).sum())
