"""t-closeness: in every class the sensitive values are distributed as in the whole table, up to t.

The distance is the earth mover's: how much must be moved, and how far, to turn one distribution into the other. How far
two values are apart is told by one of three grounds:

- *equal*: any two are 1 apart. The distance is ½ Σ|pᵢ − qᵢ|.
- *ordered*: |i − j|/(m − 1) for m ordered values, so that the largest is 1. The distance is
  Σᵢ |Σ_{j≤i} (pⱼ − qⱼ)|/(m − 1).
- *hierarchy*: height of the lowest common label over the height of the tree. The distance is Σ over inner labels of
  height/H · min(what is too much below it, what is too little below it).

References: Li, Li & Venkatasubramanian (2007), "t-closeness: privacy beyond k-anonymity and l-diversity".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts, Groups
from dalenius.anonymity.hierarchies import FileSpec, Hierarchy
from dalenius.anonymity.models.model import SLACK, at_least, greatest, sensitive_columns
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

Distance = Literal["ordered", "equal", "hierarchy"]
DISTANCES: tuple[Distance, ...] = ("ordered", "equal", "hierarchy")


@dataclass(frozen=True)
class Closeness:
    """Every class is within t of the whole table.

    Attributes:
        t: From 0 to 1.
        distance: Between values; None: ordered for numbers, else equal.
        column: The sensitive column; None: each of them.
    """

    t: float
    distance: Distance | None = None
    column: str | None = None

    name: ClassVar[str] = "t-closeness"

    def __post_init__(self) -> None:
        at_least("t", self.t, 0, 1)
        if self.distance is not None and self.distance not in DISTANCES:
            raise InputError(
                "There is no such distance.",
                why="Values are ordered, equal, or in a hierarchy.",
                fix="Write one of them.",
            )

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"t": self.t} if self.distance is None else {"t": self.t, "distance": self.distance}

    def bind(self, table: Table, roles: Roles) -> tuple[BoundCloseness, ...]:
        """One for each sensitive column."""
        return tuple(self._bound(table, roles, each) for each in sensitive_columns(self.name, self.column, roles))

    def _bound(self, table: Table, roles: Roles, name: str) -> BoundCloseness:
        column = table[name]
        whole = np.bincount(column.codes, minlength=len(column.values)) / max(table.rows, 1)
        told = isinstance(roles.hierarchies.get(name), FileSpec)
        distance = self.distance or ("ordered" if column.numbers is not None else "equal")
        order, tree = None, None
        if distance == "ordered":
            if column.numbers is None and not told:
                raise InputError(
                    f"The values of {name!r} have no order.",
                    why="The ordered distance needs numbers, or a hierarchy file whose lines stand in order.",
                    fix="Write --t-distance equal, or give the column a hierarchy file.",
                )
            rank = roles.hierarchy(table, name).rank if told else None
            order = np.arange(len(column.values)) if rank is None else np.argsort(rank)  # numbers are sorted already
        elif distance == "hierarchy":
            if name not in roles.hierarchies:
                raise InputError(
                    f"The sensitive column {name!r} has no hierarchy.",
                    why="The hierarchical distance is told by one.",
                    fix=f'Add it to the policy: hierarchies = {{ {name} = "{name}.csv" }}.',
                )
            tree = roles.hierarchy(table, name)
        return BoundCloseness(self.t, name, whole, order, tree)


@dataclass(frozen=True, eq=False)
class BoundCloseness:
    """t-closeness of one column of one table."""

    t: float
    column: str
    whole: NDArray[np.float64]
    order: NDArray[np.intp] | None = None
    tree: Hierarchy | None = None

    hereditary: ClassVar[bool] = False
    least: ClassVar[int] = 1

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """The distance of each class from the whole table."""
        counts = groups.counts[self.column]
        step = max(1, 8_000_000 // max(counts.width, 1))  # rows of a dense matrix that fits well into memory
        parts = [self._distances(counts, at, at + step) for at in range(0, len(counts.start) - 1, step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _distances(self, counts: Counts, begin: int, end: int) -> NDArray[np.float64]:
        start = counts.start[begin : end + 1]
        cut = slice(int(start[0]), int(start[-1]))
        sizes = counts.sizes[begin:end]
        owner = counts.owner[cut]
        shares = counts.count[cut] / counts.sizes[owner]
        if self.order is None and self.tree is None:
            # ½ Σ|p − q| = Σ over p > q of p − q: values that a class lacks need not be looked at
            over = np.maximum(shares - self.whole[counts.value[cut]], 0)
            found: NDArray[np.float64] = np.bincount(owner - begin, over, minlength=len(sizes)).astype(np.float64)
            return found
        extra = np.tile(-self.whole, (len(sizes), 1))
        extra[owner - begin, counts.value[cut]] += shares
        extra[sizes == 0] = 0
        found = np.zeros(len(sizes), np.float64)
        if self.order is not None:
            moved = np.abs(np.cumsum(extra[:, self.order], axis=1))
            found = moved.sum(axis=1) / max(len(self.whole) - 1, 1)
        elif self.tree is not None:
            found = _over_tree(extra, self.tree)
        return found

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes are close enough."""
        found: NDArray[np.bool_] = (self.per_class(groups) <= self.t + SLACK) | (groups.sizes == 0)
        return found

    def worst(self, groups: Groups) -> float | None:
        """The class that is farthest."""
        return greatest(groups, self.per_class(groups))


def _over_tree(extra: NDArray[np.float64], tree: Hierarchy) -> NDArray[np.float64]:
    """What is moved between the labels below each label, times the height of that label."""
    found, height = np.zeros(len(extra)), tree.levels - 1
    below, own = extra, tree.maps[0]
    for level in range(1, tree.levels):
        parent = np.zeros(len(tree.labels[level - 1]), np.int64)
        parent[own] = tree.maps[level]
        width = len(tree.labels[level])
        plus, minus = np.zeros((width, len(extra))), np.zeros((width, len(extra)))
        np.add.at(plus, parent, np.maximum(below, 0).T)
        np.add.at(minus, parent, np.maximum(-below, 0).T)
        found += np.minimum(plus, minus).sum(axis=0) * level / height
        below, own = (plus - minus).T, tree.maps[level]
    if not tree.rooted:  # the root that the file leaves out
        found += np.minimum(np.maximum(below, 0).sum(axis=1), np.maximum(-below, 0).sum(axis=1))
    return found
