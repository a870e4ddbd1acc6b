"""β-likeness: no sensitive value is much more frequent in a class than in the whole table.

References: Cao & Karras (2012), "Publishing microdata with a robust privacy guarantee".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups
from dalenius.anonymity.models.model import SLACK, at_least, greatest, sensitive_columns
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table


@dataclass(frozen=True)
class Likeness:
    """For each value of a class with share q there and p in the whole table: (q − p)/p ≤ β.

    A relative bound: unlike t-closeness it protects rare values as well as frequent ones. It bounds gains alone; the
    enhanced kind bounds them by min(β, −ln p), so that a frequent value may not become certain.

    Attributes:
        beta: Above 0.
        enhanced: Whether it is the enhanced kind.
        column: The sensitive column; None: each of them.
    """

    beta: float
    enhanced: bool = False
    column: str | None = None

    name: ClassVar[str] = "β-likeness"

    def __post_init__(self) -> None:
        at_least("beta", self.beta, 0)

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"beta": self.beta, "kind": "enhanced"} if self.enhanced else {"beta": self.beta}

    def bind(self, table: Table, roles: Roles) -> tuple[BoundLikeness, ...]:
        """One for each sensitive column."""
        found = list[BoundLikeness]()
        for name in sensitive_columns(self.name, self.column, roles):
            whole = np.bincount(table[name].codes, minlength=len(table[name].values)) / max(table.rows, 1)
            found.append(BoundLikeness(self.beta, self.enhanced, name, whole))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class BoundLikeness:
    """β-likeness of one column of one table."""

    beta: float
    enhanced: bool
    column: str
    whole: NDArray[np.float64]

    hereditary: ClassVar[bool] = False
    least: ClassVar[int] = 1

    def _gains(self, groups: Groups) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        counts = groups.counts[self.column]
        whole = self.whole[counts.value]
        return np.maximum(counts.count / counts.sizes[counts.owner] / whole - 1, 0), whole

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """The largest gain in each class."""
        return groups.counts[self.column].largest(self._gains(groups)[0])

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes are like enough."""
        gains, whole = self._gains(groups)
        # a value that all rows have is no secret: −ln 1 = 0, and its gain is 0, too
        most = np.minimum(self.beta, -np.log(whole)) if self.enhanced else self.beta
        return groups.counts[self.column].largest(gains - most) <= SLACK

    def worst(self, groups: Groups) -> float | None:
        """The largest gain of all."""
        return greatest(groups, self.per_class(groups))
