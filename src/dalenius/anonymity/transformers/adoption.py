"""Rows that no class was found for join a class each: the one whose labels must grow least.

A class with a row more may fail a model that it satisfied; then the next cheapest is tried, a few times.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import group
from dalenius.anonymity.transformers.covers import positions
from dalenius.anonymity.transformers.problem import Problem

_MOST = 1000  # so many different leftovers are worth a look at every class
_TRIES = 10


def adopt(task: Problem, of_row: NDArray[np.int64], block: NDArray[np.int64], left: NDArray[np.bool_]) -> None:
    """Gives rows that are left a class within their block, where one takes them; writes into `of_row`."""
    places = positions(task)
    rows = np.flatnonzero(left)
    codes = [own[rows] for own in places] + [task.table[name].codes[rows] for name in task.sensitive]
    alike = group(codes, [int(own.max()) + 1 for own in codes], len(rows))
    if int(alike.max()) >= _MOST:
        return
    done = np.flatnonzero(of_row >= 0)
    done = done[np.argsort(of_row[done], kind="stable")]
    starts = np.flatnonzero(np.diff(of_row[done], prepend=-1))
    names = of_row[done[starts]]
    own_block = block[done[starts]]
    sizes = np.diff(np.append(starts, len(done)))
    low = np.stack([np.minimum.reduceat(own[done], starts) for own in places])
    high = np.stack([np.maximum.reduceat(own[done], starts) for own in places])
    costs = _costs(task, low, high)
    for number in range(int(alike.max()) + 1):
        mine = rows[alike == number]
        place = np.array([own[mine[0]] for own in places])
        near = np.flatnonzero(own_block == block[mine[0]])
        grown = _costs(task, np.minimum(low[:, near], place[:, None]), np.maximum(high[:, near], place[:, None]))
        # what its rows lose more, and what the newcomers lose
        price = (grown - costs[near]) * sizes[near] + grown * len(mine)
        for at in np.argsort(price, kind="stable")[:_TRIES]:
            chosen = near[at]
            everyone = np.concatenate([np.flatnonzero(of_row == names[chosen]), mine])
            if task.good(task.groups(np.zeros(len(everyone), np.int64), 1, everyone)).all():
                of_row[mine] = names[chosen]
                low[:, chosen] = np.minimum(low[:, chosen], place)
                high[:, chosen] = np.maximum(high[:, chosen], place)
                sizes[chosen] += len(mine)
                costs[chosen] = grown[at]
                break


def _costs(task: Problem, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    """What a row costs in each class that reaches from `low` to `high` in each column."""
    found = np.zeros(low.shape[1])
    for at, hierarchy in enumerate(task.hierarchies):
        level = hierarchy.cover(low[at], high[at])
        for each in np.unique(level):
            here = level == each
            labels = hierarchy.at_position[each][low[at][here]]
            found[here] += task.costs.labels[at][each][labels]
    return found
