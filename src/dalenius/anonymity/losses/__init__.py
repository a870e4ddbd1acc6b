"""What generalisation takes away: one scorer for every table, whoever made it.

It reads the published labels back with the hierarchies. A label is scored by all values that it may stand for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import classes, group
from dalenius.anonymity.hierarchies import SUPPRESSED, Hierarchy
from dalenius.anonymity.losses.cells import CellCosts, cell_costs
from dalenius.anonymity.losses.sizes import average_class_size, discernibility
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

CELL_LOSSES: tuple[Literal["ncp", "entropy"], ...] = ("ncp", "entropy")
LOSSES = ("ncp", "discernibility", "class-size", "entropy")


@dataclass(frozen=True)
class Losses:
    """Four ways to say how much was lost; for each, less is better.

    Attributes:
        ncp: From 0 (nothing) to 1 (everything is `*`).
        discernibility: Σ of squared class sizes.
        class_size: Rows per class.
        entropy: From 0 to 1.
    """

    ncp: float
    discernibility: float
    class_size: float
    entropy: float

    def to_dict(self) -> dict[str, float]:
        """As JSON."""
        return asdict(self)

    def of(self, name: str) -> float:
        """One of `LOSSES`."""
        return float(self.to_dict()[name.replace("-", "_")])


def losses(original: Table, published: Table, roles: Roles) -> Losses:
    """What was lost between a table and what is published of it, row by row.

    Raises:
        InputError: They are not the same rows, or a label is in no hierarchy.
    """
    if original.rows != published.rows:
        raise InputError(
            "These two tables do not have the same rows.",
            why=f"One has {original.rows}, the other {published.rows}.",
            fix="Compare a table with what was published of it.",
        )
    if not original.rows:
        return Losses(0.0, 0.0, 0.0, 0.0)
    hierarchies = [roles.hierarchy(original, name) for name in roles.quasi]
    suppressed = suppressed_rows(published, roles)
    found = classes(published, roles.quasi)
    kept = np.bincount(found.of_row, ~suppressed, minlength=len(found.sizes)).astype(np.int64)
    pairs = [_pairs(original, published, name, each) for name, each in zip(roles.quasi, hierarchies, strict=True)]
    weights = np.array([roles.weight(name) for name in roles.quasi])
    codes = [original[name].codes for name in roles.quasi]
    ncp, entropy = (
        sum(
            _scored(costs, column, each, *own)
            for column, (each, own) in enumerate(zip(hierarchies, pairs, strict=True))
        )
        / original.rows
        for costs in (cell_costs(kind, weights, codes, hierarchies) for kind in CELL_LOSSES)
    )
    many = int(suppressed.sum())
    return Losses(
        float(ncp),
        discernibility(kept, many, original.rows),
        average_class_size(kept, many, original.rows),
        float(entropy),
    )


def suppressed_rows(published: Table, roles: Roles) -> NDArray[np.bool_]:
    """Which rows read `*` in every quasi-identifier, unless all of them do: then that is what the table is."""
    found = starred_rows(published, roles)
    return found & (not found.all())


def starred_rows(published: Table, roles: Roles) -> NDArray[np.bool_]:
    """Which rows read `*` in every quasi-identifier."""
    found = np.ones(published.rows, np.bool_)
    for name in roles.quasi:
        column = published[name]
        found &= np.array([value == SUPPRESSED for value in column.values] or [False])[column.codes]
    return found


Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _pairs(original: Table, published: Table, name: str, hierarchy: Hierarchy) -> Pairs:
    """Each value and level that it is published at (`levels` for a `*` that is no label), and in how many rows."""
    old, new = original[name], published[name]
    of_row = group([old.codes, new.codes], [len(old.values), len(new.values)], original.rows)
    count = np.bincount(of_row)
    row = np.empty(len(count), np.intp)
    row[of_row] = np.arange(original.rows)
    value, texts = old.codes[row].astype(np.int64), [new.values[code] for code in new.codes[row]]
    level = np.full(len(value), -1, np.int64)
    for at in range(hierarchy.levels):
        labels, own = hierarchy.labels[at], hierarchy.maps[at]
        level[[labels[own[code]] == text for code, text in zip(value, texts, strict=True)]] = at
    level[(level < 0) & np.array([text == SUPPRESSED for text in texts])] = hierarchy.levels
    if (level < 0).any():
        raise InputError(
            f"In {name!r} a published label is not one of its value's labels.",
            why="What it stands for is told by the column's hierarchy.",
            fix="Score a table with the policy that it was made with, and in the same order of rows.",
        )
    return value, level, count


def _scored(
    costs: CellCosts,
    column: int,
    hierarchy: Hierarchy,
    value: NDArray[np.int64],
    level: NDArray[np.int64],
    count: NDArray[np.int64],
) -> float:
    table = np.stack(
        [costs.cost(column, at, hierarchy) for at in range(hierarchy.levels)]
        + [costs.top[column] - costs.values[column]]
    )
    return float((table[level, value] * count).sum())
