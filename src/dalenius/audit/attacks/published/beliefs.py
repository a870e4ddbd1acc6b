"""What a class says about those who are in it: the shares of its sensitive values.

The attacker knows in which class the victim is (from age, postcode and sex), and believes of the victim what is so of
the class. All attacks on the classes of one table begin here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.anonymity.classes import classes
from dalenius.anonymity.table import Table


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The classes of a published table and a sensitive column.

    Attributes:
        of_row: The class of each row.
        counts: Class × value.
        value: Of each row.
    """

    of_row: NDArray[np.int64]
    counts: NDArray[np.int64]
    value: NDArray[np.int32]

    @staticmethod
    def of(table: Table, quasi: Sequence[str], sensitive: str) -> Beliefs:
        """Of a published table."""
        found = classes(table, list(quasi))
        return Beliefs(found.of_row, found.counts(table[sensitive]).dense(), table[sensitive].codes)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Of each value in each class."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """Of each value in the whole table: what anybody believes beforehand."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())

    @property
    def rows(self) -> int:
        """Of the table."""
        return len(self.of_row)
