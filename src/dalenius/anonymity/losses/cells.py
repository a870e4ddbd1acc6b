"""Losses that are paid cell by cell: what it costs to publish a value as one of its labels.

- **NCP** (normalised certainty penalty; Xu et al. 2006): (m − 1)/(M − 1) for a label over m of the table's M values,
  so 0 for the value itself and 1 for `*`; weighted and averaged over columns and rows.
- **Non-uniform entropy** (Gionis & Tassa 2009): −log₂ P(value | label) = log₂(N(label)/N(value)), with N the rows of
  the table; as a share of what it would be if everything were `*`.

Both grow with the level, and a suppressed row costs as much as a row can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.hierarchies import Hierarchy


@dataclass(frozen=True, eq=False)
class CellCosts:
    """What a cell costs, such that the average over rows of the sum over columns lies between 0 and 1.

    Attributes:
        labels: For each column, level and label, up to a constant of the value (`values`).
        values: For each column and value: what is taken off the cost of its label.
        top: For each column, the cost of `*` as if it were a label.
    """

    labels: tuple[tuple[NDArray[np.float64], ...], ...]
    values: tuple[NDArray[np.float64], ...]
    top: tuple[float, ...]

    def cost(self, column: int, level: int, hierarchy: Hierarchy) -> NDArray[np.float64]:
        """For each value of a column, what its label of a level costs."""
        return self.labels[column][level][hierarchy.maps[level]] - self.values[column]


def cell_costs(
    kind: Literal["ncp", "entropy"],
    weights: NDArray[np.float64],
    codes: Sequence[NDArray[Any]],
    hierarchies: Sequence[Hierarchy],
) -> CellCosts:
    """The costs of all labels of some columns, told by their weights, their codes row by row, and their hierarchies."""
    rows = [np.bincount(own, minlength=len(each.labels[0])) for own, each in zip(codes, hierarchies, strict=True)]
    many = max(len(codes[0]), 1)
    if kind == "ncp":
        weights = weights / weights.sum()
        found = tuple(
            tuple(weight * each.ncp(level) for level in range(each.levels))
            for weight, each in zip(weights, hierarchies, strict=True)
        )
        # a column with one value only has nothing to lose
        top = tuple(float(weight) * (each.total > 1) for weight, each in zip(weights, hierarchies, strict=True))
        return CellCosts(found, tuple(np.zeros(len(each.labels[0])) for each in hierarchies), top)
    surprise = [np.log2(np.maximum(each, 1)) for each in rows]
    whole = np.log2(many)
    most = sum(
        weight * float((own * (whole - bits)).sum()) for weight, own, bits in zip(weights, rows, surprise, strict=True)
    )
    scale = weights * (many / most if most > 0 else 0.0)
    labels = tuple(
        tuple(
            factor * np.log2(np.maximum(np.bincount(own, each, minlength=len(texts)), 1))
            for own, texts in zip(hierarchy.maps, hierarchy.labels, strict=True)
        )
        for factor, each, hierarchy in zip(scale, rows, hierarchies, strict=True)
    )
    return CellCosts(
        labels,
        tuple(factor * bits for factor, bits in zip(scale, surprise, strict=True)),
        tuple(float(factor * whole) for factor in scale),
    )
