"""Probabilistic l-diversity: in every class the most frequent sensitive value has at most 1/l of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts
from dalenius.anonymity.models.diversity import Diversity


@dataclass(frozen=True)
class ProbabilisticDiversity(Diversity):
    """Who guesses the most frequent value of a class is right with probability at most 1/l.

    >>> model = ProbabilisticDiversity(2)
    >>> model.reached(Counts.of(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 2]), 1, 3))
    array([2.])
    """

    name = "probabilistic l-diversity"

    def reached(self, counts: Counts) -> NDArray[np.float64]:
        """Rows of each class over those of its most frequent value."""
        found: NDArray[np.float64] = counts.sizes / np.maximum(counts.largest(counts.count), 1)
        return found
