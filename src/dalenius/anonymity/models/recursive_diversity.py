"""Recursive (c, l)-diversity: r₁ < c·(r_l + r_{l+1} + … + r_m), with r₁ ≥ r₂ ≥ … the counts of a class's values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts, Groups
from dalenius.anonymity.models.diversity import Diversity
from dalenius.anonymity.models.model import at_least, greatest


@dataclass(frozen=True)
class RecursiveDiversity(Diversity):
    """The most frequent value is not too frequent, the rare ones not too rare.

    Whoever can rule out l − 2 values still does not know the rest for certain. The measure of a class is
    r₁ / (r_l + … + r_m): it must be below c. It is infinite where there are fewer than l values.

    >>> model = RecursiveDiversity(l=2, c=3.0)
    >>> model.reached(Counts.of(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2, 2))
    array([ 2., inf])
    """

    c: float = 1.0

    name = "recursive (c, l)-diversity"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("c", self.c, 1e-9)
        if self.l != int(self.l):
            at_least("l (a whole number)", float("nan"), 1)

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"c": self.c, "l": self.l}

    def reached(self, counts: Counts) -> NDArray[np.float64]:
        """r₁ over the tail, for each class."""
        count, rank = counts.descending()
        tail = counts.total(np.where(rank >= self.l, count, 0))
        first = counts.largest(counts.count)
        with np.errstate(divide="ignore"):
            found: NDArray[np.float64] = np.where(tail > 0, first / np.maximum(tail, 1), np.inf)
        return found

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes are diverse enough."""
        found: NDArray[np.bool_] = (self.per_class(groups) < self.c) | (groups.sizes == 0)
        return found

    def worst(self, groups: Groups) -> float | None:
        """The class that is least diverse."""
        return greatest(groups, self.per_class(groups))
