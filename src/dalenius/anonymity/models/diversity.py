"""l-diversity: in every class the sensitive values differ enough. What the four kinds share.

References: Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam (2007), "l-diversity: privacy beyond k-anonymity".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Counts, Groups
from dalenius.anonymity.models.model import SLACK, at_least, sensitive_columns, smallest
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table


@dataclass(frozen=True)
class Diversity:
    """What each class reaches is at least l."""

    l: float  # noqa: E741
    column: str | None = None

    name: ClassVar[str]
    hereditary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least("l", self.l, 1)

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"l": self.l}

    @property
    def least(self) -> int:
        """A class with l different values has l rows."""
        return math.ceil(self.l - SLACK)

    def bind(self, table: Table, roles: Roles) -> tuple[Self, ...]:
        """One for each sensitive column."""
        columns = sensitive_columns(self.name, self.column, roles)
        for column in columns:
            table[column]
        return tuple(replace(self, column=column) for column in columns)

    def reached(self, counts: Counts) -> NDArray[np.float64]:
        """The l of each class."""
        raise NotImplementedError

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """The l of each class."""
        return self.reached(groups.counts[self.column or ""])

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes are diverse enough."""
        found: NDArray[np.bool_] = (self.per_class(groups) >= self.l - SLACK) | (groups.sizes == 0)
        return found

    def worst(self, groups: Groups) -> float | None:
        """The class that is least diverse."""
        return smallest(groups, self.per_class(groups))
