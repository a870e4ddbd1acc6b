"""From classes of rows to labels: every class is published under the smallest labels that cover it.

Values stand in an order in which everything under one label stands together (`Hierarchy.position`), so the label of a
class follows from its first and its last value.

Hierarchies may lack a label over everything. Then rows under different highest labels can never be one class, other
than suppressed: `blocks` parts the rows by their highest labels, and says which of them must be suppressed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import group
from dalenius.anonymity.transformers.problem import Problem, Recoding


def positions(task: Problem) -> list[NDArray[np.int64]]:
    """For each column the position of each row's value."""
    return [each.position[codes] for each, codes in zip(task.hierarchies, task.codes, strict=True)]


def blocks(task: Problem) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows by their highest labels, and which rows must be suppressed since their block fails.

    Raises:
        InputError: The table fails as a whole, or more rows must be suppressed than may be.
    """
    of_row = group(
        [each.maps[-1][codes] for each, codes in zip(task.hierarchies, task.codes, strict=True)],
        [len(each.labels[-1]) for each in task.hierarchies],
        task.rows,
    )
    found = task.groups(of_row, int(of_row.max()) + 1)
    bad = ~task.good(found)
    if not bad.any():
        return of_row, np.zeros(task.rows, np.bool_)
    # the suppressed rows must be good together: more blocks go, the smallest first, until they are
    order = np.argsort(np.where(bad, -1, found.sizes), kind="stable")
    for many in range(int(bad.sum()), len(order) + 1):
        gone = np.zeros(len(order), np.bool_)
        gone[order[:many]] = True
        if int(found.sizes[gone].sum()) > task.limit:
            break
        rows = np.flatnonzero(gone[of_row])
        if task.good(task.groups(np.zeros(len(rows), np.int64), 1, rows)).all():
            return of_row, gone[of_row]
    raise task.unreachable(found)


def covered(task: Problem, of_row: NDArray[np.int64], suppressed: NDArray[np.bool_] | None = None) -> Recoding:
    """The smallest labels over each class; rows of a class that has none, and those told, are suppressed."""
    order = np.argsort(of_row, kind="stable")
    starts = np.flatnonzero(np.diff(of_row[order], prepend=-1))
    which = np.cumsum(np.diff(of_row[order], prepend=-1) != 0) - 1
    place = np.empty(task.rows, np.int64)
    place[order] = which
    levels = list[NDArray[np.int16]]()
    gone = np.zeros(task.rows, np.bool_) if suppressed is None else suppressed.copy()
    for each, own in zip(task.hierarchies, positions(task), strict=True):
        sorted_own = own[order]
        level = each.cover(np.minimum.reduceat(sorted_own, starts), np.maximum.reduceat(sorted_own, starts))
        gone |= (level >= each.levels)[place]
        levels.append(level[place].astype(np.int16))
    for own_levels in levels:
        own_levels[gone] = -1
    return Recoding(tuple(levels))
