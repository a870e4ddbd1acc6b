"""Distinct l-diversity: every class has at least l different sensitive values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts
from dalenius.anonymity.models.diversity import Diversity


@dataclass(frozen=True)
class DistinctDiversity(Diversity):
    """At least l different values; one of them may still be nearly all of the class.

    >>> model = DistinctDiversity(2)
    >>> model.reached(Counts.of(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2, 2))
    array([2., 1.])
    """

    name = "distinct l-diversity"
    hereditary = True

    def reached(self, counts: Counts) -> NDArray[np.float64]:
        """How many values each class has."""
        return np.diff(counts.start).astype(np.float64)
