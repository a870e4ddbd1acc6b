"""A tree of columns: every column depends on one other, through a table of pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.models.margins import Shares
from dalenius.synthesis.models.raking import Floats, raked, soft_target
from dalenius.synthesis.sampling import Step

PULL = 0.005  # λ of raking: how much a first guess counts against noisy counts

Edge = TypeVar("Edge")


def spanning(edges: Sequence[Edge], ends: Callable[[Edge], tuple[int, int]], columns: int) -> list[Edge]:
    """The edges, best first, that join what was not joined yet (Kruskal): a spanning tree of most weight."""
    part = list(range(columns))

    def root(at: int) -> int:
        while part[at] != at:
            at = part[at]
        return at

    kept = list[Edge]()
    for edge in edges:
        first, second = (root(at) for at in ends(edge))
        if first != second:
            part[first] = second
            kept.append(edge)
    return kept


def pair_table(measured: Measured, margins: Sequence[Shares], rows: float, pull: float = PULL) -> Floats:
    """Shares of all pairs of values: independent within a cell that was measured, and true to both margins."""
    first, second = (margins[at] for at in measured.view.columns)
    base = rows * measured.view.of_product(margins)
    wanted = soft_target(base, measured.values, pull * measured.variance)
    factor = (wanted / np.maximum(base, 1e-9)).reshape(measured.view.shape)
    fine = factor[np.ix_(*measured.view.groups)] * np.multiply.outer(first, second)
    return raked(fine, first, second)


def steps(tables: Mapping[tuple[int, int], Floats], margins: Sequence[Shares], root: int) -> list[Step]:
    """The columns in an order in which parents come first; columns that no table reaches stand alone."""
    found, drawn = list[Step](), set[int]()
    for start in [root, *range(len(margins))]:
        if start in drawn:
            continue
        found.append(Step(start, (), margins[start]))
        drawn.add(start)
        reached = [start]
        for parent in reached:
            for (first, second), table in tables.items():
                if parent in {first, second} and not {first, second} <= drawn:
                    child = second if parent == first else first
                    found.append(Step(child, (parent,), table if parent == first else table.T))
                    drawn.add(child)
                    reached.append(child)
    return found
