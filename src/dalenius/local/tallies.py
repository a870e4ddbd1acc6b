"""What is kept of many reports: counts. Tallies of two collectors merge by addition of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError

if TYPE_CHECKING:
    from dalenius.local.randomisers.randomiser import Randomiser


@dataclass(frozen=True, eq=False)
class Tally:
    """The sufficient statistics of some reports of one randomiser.

    Attributes:
        randomiser: Whose reports they are; estimates use its actual chances.
        reports: How many.
        counts: What its docstring says is counted, as int64; never changed in place.

    >>> from dalenius.local.randomisers.k_ary import KAry
    >>> randomiser = KAry(epsilon=1.0, size=4)
    >>> tally = randomiser.fold(randomiser.encode([0, 1, 2])) + randomiser.fold(randomiser.encode([3]))
    >>> tally.reports, int(tally.counts.sum())
    (4, 4)
    """

    randomiser: Randomiser
    reports: int
    counts: NDArray[np.int64]

    def __add__(self, other: Tally) -> Tally:
        if self.randomiser != other.randomiser:
            raise InputError(
                "These tallies are of different randomisers.",
                why="Their counts mean different things, and would give a wrong estimate together.",
                fix="Merge reports that were made with the same randomiser, ε and domain.",
            )
        return Tally(self.randomiser, self.reports + other.reports, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        same = self.randomiser == other.randomiser and self.reports == other.reports
        return same and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # arrays have none
