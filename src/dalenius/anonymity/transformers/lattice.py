"""Classes at one node of the lattice of full-domain generalisations: one level for each quasi-identifier.

Rows that are equal in all quasi-identifiers are one cell from the start. Classes at a node are unions of classes at any
node below, so they are put together from the coarsest node below that is still known, not from the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Classes, Groups, group
from dalenius.anonymity.losses.sizes import average_class_size, discernibility
from dalenius.anonymity.transformers.hiding import Hidden, hide, merged
from dalenius.anonymity.transformers.problem import Problem

Node = tuple[int, ...]
_KEPT = 256  # nodes whose classes are kept, and how many classes in all
_KEPT_CLASSES = 4_000_000


@dataclass(frozen=True, eq=False)
class AtNode:
    """The classes at a node: for each one cell of it, its rows, its sensitive values, its people."""

    node: Node
    cell: NDArray[np.int64]
    groups: Groups


@dataclass(frozen=True)
class Evaluation:
    """What a node is worth.

    Attributes:
        loss: With all failing classes suppressed, and others where they must be (`hiding`); None where the limit or a
            model forbids it.
        floor: What it would lose if nothing had to be suppressed: never more than `loss`, nor than the floor of any
            coarser node.
        hopeless: Whether all finer nodes break a model or the limit as well.
        least: Whatever classes are suppressed, this node loses no less: `loss`, but where not all sets were tried.
    """

    loss: float | None
    floor: float
    hopeless: bool
    least: float


class Lattice:
    """All nodes for one problem; `evaluate` looks at one."""

    def __init__(self, task: Problem) -> None:
        self.task = task
        self.top: Node = tuple(each.levels - 1 for each in task.hierarchies)
        people = task.people or tuple(np.zeros(0, np.int32) for _ in task.codes)
        widths = [len(each.labels[0]) for each in task.hierarchies]
        both = [np.concatenate(pair) for pair in zip(task.codes, people, strict=True)]
        cell_of = group(both, widths, len(both[0]))
        self.cell_of_row = cell_of[: task.rows]
        cells = int(cell_of.max()) + 1
        first = Classes(cell_of, np.zeros(cells, np.int64)).first
        self.codes = [own[first] for own in both]
        groups = Groups(
            np.bincount(self.cell_of_row, minlength=cells),
            task.counts(self.cell_of_row, cells),
            None if task.people is None else np.bincount(cell_of[task.rows :], minlength=cells),
        )
        self.bottom = AtNode((0,) * len(widths), np.arange(cells), groups)
        kept = max(2, min(_KEPT, _KEPT_CLASSES // cells))
        self._known: list[AtNode] = [self.bottom] * kept
        self._known_nodes = np.zeros((kept, len(widths)), np.int64)
        self._known_sizes = np.full(kept, cells)
        self._oldest = 0
        shares = [np.bincount(own, minlength=width) / task.rows for own, width in zip(task.codes, widths, strict=True)]
        # what a column costs at each level, over all rows
        self.column_costs = [
            [float((task.costs.cost(at, level, each) * shares[at]).sum()) for level in range(each.levels)]
            for at, each in enumerate(task.hierarchies)
        ]
        # by how much a row of each finest label costs more where it is suppressed than at a level
        self._gains = [
            [task.costs.top[at] - task.costs.labels[at][level][each.maps[level]] for level in range(each.levels)]
            for at, each in enumerate(task.hierarchies)
        ]
        self._scratch = np.empty(1 << 16, np.int32)
        self._more_of: tuple[AtNode, NDArray[np.float64]] | None = None
        self.looked_at = 0

    def floor(self, node: Node) -> float:
        """The cost of all cells at a node, nothing suppressed; known without looking at rows."""
        return sum(own[level] for own, level in zip(self.column_costs, node, strict=True))

    def at(self, node: Node) -> AtNode:
        """The classes at a node."""
        below: NDArray[np.bool_] = np.all(self._known_nodes <= np.asarray(node), axis=1)
        at = int(np.argmin(np.where(below, self._known_sizes, np.iinfo(np.int64).max)))
        base = self._known[at] if below[at] else self.bottom
        if base.node == node:
            return base
        new, cell = self.grouped(node, base.cell)
        found = AtNode(node, cell, merged(base.groups, new, len(cell)))
        at, self._oldest = self._oldest, (self._oldest + 1) % len(self._known)
        self._known[at], self._known_nodes[at], self._known_sizes[at] = found, node, len(cell)
        return found

    def grouped(self, node: Node, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """A number for each cell such that equal labels have equal numbers, and one cell for each number."""
        keys, size = np.zeros(len(cells), np.int64), 1
        for own, level, hierarchy in zip(self.codes, node, self.task.hierarchies, strict=True):
            width = len(hierarchy.labels[level])
            if width == 1:
                continue
            if size * width > 1 << 26:
                keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
                size = int(keys.max()) + 1
            codes = own[cells] if level == 0 else hierarchy.maps[level][own[cells]]
            keys, size = keys * width + codes, size * width
        if size > 1 << 26:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            size = int(keys.max()) + 1
        if size > len(self._scratch):
            self._scratch = np.empty(2 * size, np.int32)
        # one cell for each key: whichever writes last. Only touched places are read, so nothing need be cleared.
        self._scratch[keys] = np.arange(len(cells), dtype=np.int32)
        speaker = self._scratch[keys]
        speaks = speaker == np.arange(len(cells))
        return (np.cumsum(speaks) - 1)[speaker], cells[speaks]

    def evaluate(self, node: Node) -> Evaluation:
        """Suppresses what fails, and says what that loses."""
        self.looked_at += 1
        found, task = self.at(node), self.task
        good = task.good(found.groups)
        floor = self._floor(node, found.groups.sizes)
        if good.all():
            loss = self._loss(found, good)
            return Evaluation(loss, floor, hopeless=False, least=loss)
        hidden = self._hidden(found, good)
        least = max(self._dearer(found, good, hidden.least), floor)
        if hidden.kept is None:
            return Evaluation(None, floor, self._hopeless(found.groups, good), least)
        loss = self._loss(found, hidden.kept)
        return Evaluation(loss, floor, hopeless=False, least=min(least, loss))

    def _hidden(self, found: AtNode, good: NDArray[np.bool_]) -> Hidden:
        """Which classes are suppressed."""
        sizes = found.groups.sizes
        if self.task.loss == "class-size":
            costs = (sizes > 0).astype(float)  # each is a class less
        elif self.task.loss == "discernibility":
            costs = sizes * (self.task.rows - sizes.astype(float))
        else:
            costs = self._more(found)
        return hide(found.groups, good, self.task.limit, costs, self.task.good)

    def _dearer(self, found: AtNode, good: NDArray[np.bool_], cost: float) -> float:
        """The loss with failing classes suppressed and others of that cost, or a little less."""
        if not math.isfinite(cost):
            return math.inf
        if self.task.loss == "class-size":
            return self.task.rows / max(int((found.groups.sizes[good] > 0).sum()) + 1 - cost, 1)
        return self._loss(found, good) + cost

    def _hopeless(self, groups: Groups, good: NDArray[np.bool_]) -> bool:
        """Whether finer nodes fail as well.

        Where nothing may be suppressed: their classes would have to be good, and unions of good classes are. Else: a
        class that is too small, or lacks values, is made of classes that are and do, and all of them must go.
        """
        if self.task.limit == 0:
            return not good[groups.sizes > 0].all()
        stays = groups.sizes >= self.task.least
        for _, each in self.task.models:
            if each.hereditary:
                stays &= each.holds(groups)
        return int(groups.sizes[~stays].sum()) > self.task.limit

    def _floor(self, node: Node, sizes: NDArray[np.int64]) -> float:
        if self.task.loss == "discernibility":
            return discernibility(sizes, 0, self.task.rows)
        if self.task.loss == "class-size":
            return average_class_size(sizes, 0, self.task.rows)
        return self.floor(node)

    def _loss(self, found: AtNode, kept: NDArray[np.bool_]) -> float:
        sizes, task = found.groups.sizes, self.task
        suppressed = int(sizes[~kept].sum())
        if task.loss == "discernibility":
            return discernibility(sizes[kept], suppressed, task.rows)
        if task.loss == "class-size":
            return average_class_size(sizes[kept], suppressed, task.rows)
        return self.floor(found.node) + float(self._more(found)[~kept].sum())

    def _more(self, found: AtNode) -> NDArray[np.float64]:
        """What the loss grows by with each class suppressed: worked out once, asked for up to three times."""
        if self._more_of is None or self._more_of[0] is not found:
            more = np.zeros(len(found.cell))
            for gains, level, codes in zip(self._gains, found.node, self.codes, strict=True):
                more += gains[level][codes[found.cell]]
            self._more_of = found, np.maximum(more, 0.0) * found.groups.sizes / self.task.rows
        return self._more_of[1]

    def levels(self, node: Node) -> tuple[NDArray[np.int16], ...]:
        """The level of each row and column, −1 where it is suppressed."""
        found = self.at(node)
        good = self.task.good(found.groups)
        if not good.all() and (hidden := self._hidden(found, good).kept) is not None:
            good = hidden
        everything = self.grouped(node, np.arange(len(self.codes[0])))
        kept = np.empty(len(everything[1]), np.bool_)
        # the same classes, in the order in which their speakers stand
        kept[everything[0][found.cell]] = good
        rows = kept[everything[0]][self.cell_of_row]
        return tuple(np.where(rows, level, -1).astype(np.int16) for level in node)
