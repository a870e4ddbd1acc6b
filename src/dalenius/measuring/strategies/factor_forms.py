"""Which factor a matrix is, and which one was written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dalenius.measuring.strategies.factors import Factor, Identity, Rows, Total
from dalenius.measuring.strategies.range_factors import AllRange, Prefix, Ranges


def recognise(factor: Factor) -> Factor:
    """The same rows, as what they are: a total, each class, sums up to, ranges; else as they were.

    >>> recognise(Rows.of([[1, 0, 0], [1, 1, 0], [1, 1, 1]]))
    Prefix(size=3)
    >>> recognise(Rows.of([[0, 1, 1], [1, 1, 0]]))
    Ranges(size=3, starts=(1, 0), ends=(3, 2))
    """
    found = _as_ranges(factor) if isinstance(factor, Rows) else factor
    if not isinstance(found, Ranges):
        return found
    n, starts, ends = found.size, *found.bounds()
    numbers = np.arange(n)
    if len(starts) == 1 and starts[0] == 0 and ends[0] == n:
        return Total(n)
    if len(starts) == n and np.array_equal(starts, numbers) and np.array_equal(ends, numbers + 1):
        return Identity(n)
    if len(starts) == n and not starts.any() and np.array_equal(ends, numbers + 1):
        return Prefix(n)
    if len(starts) == n * (n + 1) // 2 and all(map(np.array_equal, (starts, ends), AllRange(n).bounds())):
        return AllRange(n)
    return found


def _as_ranges(factor: Rows) -> Factor:
    matrix = factor.entries
    matrix.sort_indices()
    counts = np.diff(matrix.indptr)
    if not counts.all() or (matrix.data != 1).any():
        return factor
    starts, lasts = matrix.indices[matrix.indptr[:-1]], matrix.indices[matrix.indptr[1:] - 1]
    if (lasts - starts + 1 != counts).any():
        return factor
    return Ranges(factor.classes, tuple(starts.tolist()), tuple((lasts + 1).tolist()))


def factor_of_json(stored: Mapping[str, Any]) -> Factor:
    """The factor that was written down."""
    kind, n = stored["kind"], int(stored["classes"])
    if kind == "ranges":
        return Ranges(n, tuple(map(int, stored["starts"])), tuple(map(int, stored["ends"])))
    if kind == "rows" and "runs" in stored:
        return Rows.of_runs(int(stored["answers"]), n, stored["runs"])
    if kind == "rows":  # as they were written at first, entry by entry
        from scipy.sparse import csr_array

        i, j, v = np.array(stored["entries"], dtype=np.int64).reshape(-1, 3).T
        return Rows.of(csr_array((v, (i, j)), shape=(int(stored["answers"]), n)))
    simple: dict[str, type[Total | Identity | Prefix | AllRange]]
    simple = {"total": Total, "identity": Identity, "prefix": Prefix, "allrange": AllRange}
    return simple[kind](n)
