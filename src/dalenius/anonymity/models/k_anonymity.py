"""k-anonymity: every row looks like at least k − 1 others.

References: Samarati (2001), Sweeney (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups
from dalenius.anonymity.models.model import at_least, smallest
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table


@dataclass(frozen=True)
class KAnonymity:
    """Every class has at least k rows.

    Whoever knows the quasi-identifiers of somebody in the table finds at least k rows that may be theirs. Nothing is
    said about what those rows have in common.

    >>> model = KAnonymity(2)
    >>> model.holds(Groups(np.array([1, 2, 3]), {}))
    array([False,  True,  True])
    """

    k: int

    name = "k-anonymity"
    column = None
    hereditary = True

    def __post_init__(self) -> None:
        at_least("k", self.k, 1)

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"k": self.k}

    @property
    def least(self) -> int:
        """How many rows a class must have."""
        return self.k

    def bind(self, table: Table, roles: Roles) -> tuple[KAnonymity]:  # noqa: ARG002
        """It needs nothing of the table."""
        return (self,)

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """Rows of each class."""
        return groups.sizes.astype(np.float64)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes are large enough."""
        found: NDArray[np.bool_] = (groups.sizes >= self.k) | (groups.sizes == 0)
        return found

    def worst(self, groups: Groups) -> float | None:
        """The smallest class."""
        return smallest(groups, self.per_class(groups))
