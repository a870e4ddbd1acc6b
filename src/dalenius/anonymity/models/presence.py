"""δ-presence: nobody of a population is too certain to be in the table, or not to be.

For each class: low ≤ its rows / people of the population who fall into it ≤ high. The whole population must be given,
and it must be clear into which class each of its people falls: so tables must be generalised alike everywhere (methods
"optimal" and "greedy"). People whose class was suppressed fall into the class of suppressed rows.

References: Nergiz, Atzori & Clifton (2007), "Hiding the presence of individuals from shared databases".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import Groups
from dalenius.anonymity.models.model import SLACK, at_least
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError


@dataclass(frozen=True, eq=False)
class Presence:
    """For each class the share of the population's people who are in the table lies between low and high.

    Attributes:
        low: From 0.
        high: Up to 1.
        population: With all quasi-identifiers, as they were before generalisation; who is in the table is in it, too.
    """

    low: float
    high: float
    population: Table

    name: ClassVar[str] = "δ-presence"
    column: ClassVar[None] = None
    hereditary: ClassVar[bool] = False
    least: ClassVar[int] = 1

    def __post_init__(self) -> None:
        at_least("presence", self.low, 0, 1)
        at_least("presence", self.high, self.low, 1)

    @property
    def asked(self) -> dict[str, float | str]:
        """What was asked."""
        return {"low": self.low, "high": self.high}

    def bind(self, table: Table, roles: Roles) -> tuple[Presence]:
        """Checks that the population can hold the table."""
        missing = [name for name in roles.quasi if name not in self.population.columns]
        if missing or self.population.rows < table.rows:
            raise InputError(
                f"The population lacks the column {missing[0]!r}." if missing else "The population is too small.",
                why="Everybody in the table must be in it, with all quasi-identifiers.",
                fix="Give the file from which the table was taken.",
            )
        return (self,)

    def per_class(self, groups: Groups) -> NDArray[np.float64]:
        """The share of each class's people who are in the table."""
        assert groups.population is not None  # noqa: S101 (whoever groups for this model counts it)
        return groups.sizes / np.maximum(groups.population, 1)

    def holds(self, groups: Groups) -> NDArray[np.bool_]:
        """Which classes lie between; one with people and no rows counts, too."""
        shares = self.per_class(groups)
        good = (shares >= self.low - SLACK) & (shares <= self.high + SLACK)
        found: NDArray[np.bool_] = good | ((groups.sizes == 0) & (groups.population == 0))
        return found

    def worst(self, groups: Groups) -> float | None:
        """The share that is farthest outside, or nearest to a bound."""
        assert groups.population is not None  # noqa: S101 (as above)
        shares = self.per_class(groups)[(groups.sizes > 0) | (groups.population > 0)]
        if not len(shares):
            return None
        return float(shares[np.argmax(np.maximum(self.low - shares, shares - self.high))])
