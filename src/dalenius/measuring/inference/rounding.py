"""Whole numbers that still add up.

Numbers are rounded along a hierarchy, from the total down: the total to the nearest whole number, then its parts, each
down or up, so that they add up to it: those with the largest remainders go up. Then the parts of each part. So every
number is within one of what it was, nothing below zero appears where nothing was, and all sums along the hierarchy are
those of what is shown. Sums across it (a column, where rows come first) are within the number of their parts; for a
table of two attributes `round_table` keeps both.

Rounding moves a cell by less than one. Each answer keeps its interval, cut to whole numbers where the truth is one, and
made wide enough (`intervals.cut_to_whole`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.factors import Array

Whole = NDArray[np.int64]
_NEAR = 1e-9  # a number so near to a whole one is that one


def round_parts(parts: Array, total: int) -> Whole:
    """Whole numbers with that sum: each is rounded down, and those with the largest remainders up.

    >>> round_parts(np.array([1.5, 1.4, 1.1]), 4).tolist()
    [2, 1, 1]
    """
    return np.asarray(_round_rows(np.asarray(parts, dtype=float)[None, :], np.array([total]))[0])


def round_cells(cells: Array) -> Whole:
    """All cells, such that sums over the last attributes are their sums, rounded: total, then the first attribute, ….

    >>> round_cells(np.array([[0.5, 0.5], [0.6, 0.7]])).tolist()
    [[1, 0], [0, 1]]
    """
    table = np.asarray(cells, dtype=float)
    whole = np.atleast_1d(_nearest(np.array([table.sum()])))
    for depth in range(table.ndim):
        rest = tuple(range(depth + 1, table.ndim))
        parts = table.sum(axis=rest).reshape(len(whole), table.shape[depth])
        whole = _round_rows(parts, whole).ravel()
    return whole.reshape(table.shape)


def round_table(table: Array) -> Whole:
    """A table of two attributes: cells, row sums, column sums and the total are each rounded down or up, and add up.

    What is chosen is the nearest such table in the sum of changes. It is a flow through a network, so the corner that
    linear programming ends at is whole.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    values = _snap(np.asarray(table, dtype=float))
    rows, columns = values.shape
    low = np.floor(values)
    rest = values - low
    # A cell goes up by one or not; the unknowns: cells, then how far each sum goes up.
    cells = rows * columns
    row_low, column_low = (np.floor(_snap(values.sum(axis=axis))) - low.sum(axis=axis) for axis in (1, 0))
    row_open, column_open = ((_snap(values.sum(axis=axis)) % 1 > 0).astype(float) for axis in (1, 0))
    total_low = np.floor(_snap(np.array([values.sum()])))[0] - low.sum()
    total_open = float(_snap(np.array([values.sum()]))[0] % 1 > 0)
    number = np.arange(cells)
    unknowns = cells + rows + columns + 1
    i = np.concatenate([number // columns, np.arange(rows), rows + number % columns, rows + np.arange(columns)])
    j = np.concatenate([number, cells + np.arange(rows), number, cells + rows + np.arange(columns)])
    ones, minus = np.ones(cells), -np.ones(max(rows, columns))
    entries = np.concatenate([ones, minus[:rows], ones, minus[:columns]])
    last = rows + columns
    i = np.concatenate([i, np.full(cells + 1, last)])
    j = np.concatenate([j, number, [unknowns - 1]])
    entries = np.concatenate([entries, ones, [-1.0]])
    equal: Any = coo_array((entries, (i, j)), shape=(last + 1, unknowns)).tocsr()
    aims = np.concatenate([row_low, column_low, [total_low]])
    upper = np.concatenate([(rest.ravel() > 0).astype(float), row_open, column_open, [total_open]])
    cost = np.concatenate([1 - 2 * rest.ravel(), np.zeros(rows + columns + 1)])
    bounds: Any = np.stack([np.zeros(unknowns), upper], axis=1)
    found: Any = linprog(cost, A_eq=equal, b_eq=aims, bounds=bounds, method="highs-ds")
    up = np.round(found.x[:cells]).reshape(values.shape)
    return np.asarray(low + up, dtype=np.int64)


def _round_rows(parts: Array, totals: Whole) -> Whole:
    """Each row of parts to whole numbers with its total."""
    exact = _snap(parts)
    low = np.floor(exact)
    missing = totals - low.sum(axis=1).astype(np.int64)
    order = np.argsort(low - exact, axis=1, kind="stable")  # largest remainder first
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(parts.shape[1])[None, :], axis=1)
    whole, some = np.divmod(missing, parts.shape[1])
    return np.asarray(low.astype(np.int64) + whole[:, None] + (rank < some[:, None]), dtype=np.int64)


def _snap(values: Array) -> Array:
    near = np.round(values)
    return np.asarray(np.where(np.abs(values - near) <= _NEAR * (1 + np.abs(values)), near, values))


def _nearest(values: Array) -> Whole:
    return np.asarray(np.floor(_snap(values) + 0.5), dtype=np.int64)
