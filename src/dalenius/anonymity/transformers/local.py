"""Local recoding: every row is published under the cheapest labels under which enough other rows look like it.

Nodes of the lattice are taken by ascending cost. At each, the rows that are left are grouped by their labels; groups
that satisfy the models are classes, and their rows are done. So most rows, which have others like them, keep nearly
all their detail, and only odd ones pay. Three things follow:

- *A limit of work*, since a lattice may be huge: it depends on the table's sizes alone, so the same table gives the
  same classes on every machine. Rows that are left then are cut as Mondrian does.
- *Leftovers* join the classes that cost least to join (`adoption`), a few at a time; where no class takes them, they
  are joined by the cheapest classes until they satisfy the models together.
- *Smaller labels*: each class is published under the smallest labels that cover it, whatever node made it.

Nothing is suppressed but where hierarchies lack a highest label: `*` in every column is one of the nodes, the dearest.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.transformers.adoption import adopt
from dalenius.anonymity.transformers.covers import blocks, covered, positions
from dalenius.anonymity.transformers.hiding import merged
from dalenius.anonymity.transformers.lattice import Lattice, Node
from dalenius.anonymity.transformers.mondrian import parts
from dalenius.anonymity.transformers.problem import Problem, Recoding

_WORK = 100_000_000  # cells that are grouped, over all nodes
_NODES = 20_000


def local(task: Problem) -> Recoding:
    """Classes of rows by the cheapest node, then whatever the rest needs."""
    block, suppressed = blocks(task)
    lattice = Lattice(task)
    of_row = _cheapest_first(task, lattice, suppressed)
    left = (of_row < 0) & ~suppressed
    if left.any() and (of_row >= 0).any():
        adopt(task, of_row, block, left)
        left = (of_row < 0) & ~suppressed
    if left.any():
        of_row = _with_leftovers(task, of_row, block, left, suppressed)
    of_row[suppressed] = int(of_row.max()) + 1
    return covered(task, np.unique(of_row, return_inverse=True)[1].astype(np.int64), suppressed)


def _nodes(lattice: Lattice) -> Iterator[Node]:
    """All nodes, by ascending cost; of equal ones the finer first."""
    start: Node = (0,) * len(lattice.top)
    waiting = [(lattice.floor(start), start, 0)]
    while waiting:
        _, here, first = heapq.heappop(waiting)
        yield here
        for at in range(first, len(here)):
            if here[at] < lattice.top[at]:
                coarser = (*here[:at], here[at] + 1, *here[at + 1 :])
                heapq.heappush(waiting, (lattice.floor(coarser), coarser, at))


def _cheapest_first(task: Problem, lattice: Lattice, suppressed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The class of each row; −1 where it has none yet."""
    cells = lattice.cell_of_row
    many = int(cells.max()) + 1
    gone = np.bincount(cells, suppressed, minlength=many) > 0  # blocks are unions of cells
    left = np.flatnonzero(~gone)
    groups = lattice.bottom.groups.take(left)
    of_cell = np.full(many, -1, np.int64)
    classes, work = 0, 0
    for number, node in enumerate(_nodes(lattice)):
        if node == lattice.top and number:
            break  # that would be all `*`: the rest rather joins others
        work += len(left)
        if not len(left) or number >= _NODES or work > _WORK or task.late:
            break
        new, speakers = lattice.grouped(node, left)
        good = task.good(merged(groups, new, len(speakers)))
        if good.any():
            number_of = np.where(good, np.cumsum(good) - 1 + classes, -1)
            of_cell[left] = number_of[new]
            classes += int(good.sum())
            kept = ~good[new]
            left, groups = left[kept], groups.take(np.flatnonzero(kept))
            task.progress(1 - len(left) / many, "grouped")
    return of_cell[cells]


def _with_leftovers(
    task: Problem,
    of_row: NDArray[np.int64],
    block: NDArray[np.int64],
    left: NDArray[np.bool_],
    suppressed: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Makes classes of the rows that are left, block by block."""
    of_row = of_row.copy()
    start = int(of_row.max()) + 1
    of_row[left] = start + block[left]
    for own in np.unique(block[left]):
        _join_until_good(task, of_row, block == own, start + int(own))
    fixed = suppressed | (of_row < start)
    return parts(task, np.maximum(of_row, 0), fixed) if (~fixed).any() else of_row


def _join_until_good(task: Problem, of_row: NDArray[np.int64], inside: NDArray[np.bool_], name: int) -> None:
    """Joins one class with others of its block, the cheapest first, until it is good; in the end that is the block."""
    places = positions(task)
    step = 1
    while True:
        mine = np.flatnonzero(of_row == name)
        if task.good(task.groups(np.zeros(len(mine), np.int64), 1, mine)).all():
            return
        others = np.flatnonzero(inside & (of_row != name))
        labels, of_other = np.unique(of_row[others], return_inverse=True)
        order = np.argsort(of_other, kind="stable")
        starts = np.flatnonzero(np.diff(of_other[order], prepend=-1))
        sizes = np.bincount(of_other)
        cost = np.zeros(len(labels))
        for at, (own, hierarchy) in enumerate(zip(places, task.hierarchies, strict=True)):
            sorted_own = own[others][order]
            low, high = np.minimum.reduceat(sorted_own, starts), np.maximum.reduceat(sorted_own, starts)
            both = hierarchy.cover(np.minimum(low, own[mine].min()), np.maximum(high, own[mine].max()))
            for level in np.unique(both):
                here = both == level
                labels_at = hierarchy.at_position[level][low[here]]
                cost[here] += task.costs.labels[at][level][labels_at]
        cheapest = np.argsort(cost * (sizes + len(mine)), kind="stable")[:step]
        of_row[others[np.isin(of_other, cheapest)]] = name
        step *= 2
