"""What a table of counts counts: some columns, each perhaps with some of its values merged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes

Groups = NDArray[np.int32]  # the group of each code, from 0


@dataclass(frozen=True, eq=False)
class View:
    """The contingency table of some columns after merging values.

    Every row falls into exactly one cell, whatever the groups are: so one row more or less changes one cell by one.

    Attributes:
        columns: Places of the columns, ascending.
        groups: For each, the group of every code.
    """

    columns: tuple[int, ...]
    groups: tuple[Groups, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many groups each column has here."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return math.prod(self.shape)

    def cell(self, table: Codes) -> NDArray[np.intp]:
        """The cell that each row of a table of codes (columns × rows) falls into.

        >>> view = View((0, 1), (np.array([0, 1]), np.array([0, 0, 1])))
        >>> view.cell(np.array([[0, 1, 1], [2, 1, 2]])).tolist()
        [1, 2, 3]
        """
        return Rows(table).cell(self)

    def of_product(self, margins: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The table, flat, if columns with these margins (one for each column of the domain) had nothing in common."""
        found = np.ones(1)
        for place, group in zip(self.columns, self.groups, strict=True):
            found = np.multiply.outer(found, np.bincount(group, margins[place])).ravel()
        return found


class Rows:
    """A table of codes (columns × rows) that many views look at: what merging makes of a column is kept."""

    def __init__(self, columns: Codes) -> None:
        self.columns = columns
        self._merged = dict[tuple[int, int], tuple[Groups, Codes]]()

    def merged(self, place: int, group: Groups) -> Codes:
        """A column's groups, in as few bytes as they need."""
        key = (place, id(group))
        if key not in self._merged:  # the group is kept too, so that no other takes its id
            found = self.columns[place]
            if not np.array_equal(group, np.arange(len(group))):
                found = group.astype(np.min_scalar_type(int(group.max())))[found]
            self._merged[key] = group, found
        return self._merged[key][1]

    def cell(self, view: View) -> NDArray[np.intp]:
        """The cell that each row falls into."""
        found = self.merged(view.columns[0], view.groups[0]).astype(np.intp)
        for place, group, width in zip(view.columns[1:], view.groups[1:], view.shape[1:], strict=True):
            found *= width
            found += self.merged(place, group)
        return found

    def count(self, view: View, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The view's table, flat."""
        found: NDArray[np.float64] = np.bincount(self.cell(view), weights, minlength=view.cells).astype(np.float64)
        return found


def whole(columns: Sequence[int], sizes: Sequence[int]) -> View:
    """The table of some columns with all their values apart."""
    places = tuple(sorted(columns))
    return View(places, tuple(np.arange(sizes[place], dtype=np.int32) for place in places))


def merged(
    counts: NDArray[np.float64], least: float, most: int, *, ordered: bool, pinned: Sequence[int] = ()
) -> Groups:
    """Groups of values that are too rare to be told apart, from counts that are noisy already.

    Values with at least ``least`` rows, or a share of 1/``most``, stand alone. The others are merged: with their
    neighbours where the values have an order, else all into one. ``pinned`` values always stand alone.

    >>> merged(np.array([50.0, 1, 2, 30, 1]), 10, 8, ordered=False).tolist()
    [0, 1, 1, 2, 1]
    >>> merged(np.array([4.0, 4, 4, 50, 4, 7, 1]), 8, 8, ordered=True).tolist()
    [0, 0, 0, 1, 2, 2, 2]
    """
    weight = np.maximum(counts, 0)
    alone = np.zeros(len(weight), bool)
    alone[list(pinned)] = True
    if ordered:
        return _in_order(weight, max(least, weight.sum() / most), alone)
    heaviest = np.argsort(-weight, kind="stable")[: most - 1]
    alone[heaviest[weight[heaviest] >= least]] = True
    if alone.sum() >= len(weight) - 1:  # merging one value alone changes nothing
        return np.arange(len(weight), dtype=np.int32)
    found = np.cumsum(alone).astype(np.int32) - 1
    first = int(np.argmin(alone))  # the merged values take the place of the first of them
    before = int(alone[:first].sum())
    found[found >= before] += 1
    found[~alone] = before
    return found


def _in_order(weight: NDArray[np.float64], least: float, alone: NDArray[np.bool_]) -> Groups:
    """Runs of neighbours, each with at least ``least`` where that is possible without reaching over a heavy value."""
    found = np.zeros(len(weight), np.int32)
    group, inside = 0, 0.0
    for at in range(len(weight)):
        heavy = alone[at] or weight[at] >= least
        if at and (inside >= least or alone[at - 1] or (heavy and (alone[at] or inside >= least / 3))):
            group, inside = group + 1, 0.0
        found[at] = group
        inside += weight[at]
    if 0 < inside < least / 3 and not alone[-1] and group and not alone[found < group][-1]:
        found[found == group] = group - 1
    return found
