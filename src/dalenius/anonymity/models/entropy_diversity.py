"""Entropy l-diversity: in every class the entropy of the sensitive values is at least log l."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts
from dalenius.anonymity.models.diversity import Diversity


@dataclass(frozen=True)
class EntropyDiversity(Diversity):
    """As uncertain as l values that are equally likely; the whole table must be as diverse, or it cannot be reached.

    >>> model = EntropyDiversity(2)
    >>> model.reached(Counts.of(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]), 1, 2))
    array([2.])
    """

    name = "entropy l-diversity"

    def reached(self, counts: Counts) -> NDArray[np.float64]:
        """exp of the entropy of each class: ln n − Σ c ln c / n."""
        sizes = np.maximum(counts.sizes, 1)
        found: NDArray[np.float64] = np.exp(np.log(sizes) - counts.total(counts.count * np.log(counts.count)) / sizes)
        return found
