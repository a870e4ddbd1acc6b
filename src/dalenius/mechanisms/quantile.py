"""A quantile of integers on a declared grid, by the exponential mechanism (used by sample-and-aggregate)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.exponential import Exponential
from dalenius.mechanisms.interface import IntArray, Released, clip_to_bounds, settle, size, whole

if TYPE_CHECKING:
    from dalenius.accounting import events
    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class Quantile:
    """Releases a y in {low, …, high} with about a share ``at`` = a/b of the values below it.

    Score: q(y) = −max((b−a)·#(v < y), a·#(v > y)), an integer, largest at the quantile.

    Guarantee:
        That of `Exponential` at ε: ε-DP, ρ = ε²/8. One value added or removed moves one of the two counts
        by 1, so all scores move the same way by at most max(a, b−a): sensitive to that, and monotonic. One
        value exchanged moves each count by at most 1, the score by at most max(a, b−a).

    Assumes:
        Each unit owns one value. ``low`` and ``high`` are declared, not read off the data; values are
        clip_to_bounds to them.

    References:
        Smith (2011), Algorithm 2, with the score bounded on ranks; McSherry & Talwar (2007).

    >>> mechanism = Quantile(epsilon=1, low=0, high=100)
    >>> 30 < mechanism.release(list(range(101)) * 40).value < 70
    True
    """

    epsilon: Real
    low: int
    high: int
    at: Fraction = Fraction(1, 2)
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        low, high = whole(self.low, "low"), whole(self.high, "high")
        settle(self, low=low, high=high, neighbors=Neighbors.of(self.neighbors))
        if low >= high:
            raise InputError("low must be below high.", why="The grid lies between them.", fix="Check the bounds.")
        size(high - low + 1, "The grid from low to high")
        at: object = self.at
        if not isinstance(at, Fraction) or not 0 < at < 1 or at.denominator > 10**6:
            raise InputError(
                "at must be a short Fraction between 0 and 1.",
                why="Ranks are counted exactly, in steps of one over its denominator.",
                fix="Use Fraction(1, 2), or Fraction(9, 10); not Fraction(0.9).",
            )
        self.selection  # noqa: B018 — checks the rest

    @cached_property
    def selection(self) -> Exponential:
        """The exponential mechanism over the grid."""
        sensitivity = max(self.at.numerator, self.at.denominator - self.at.numerator)
        one_way = self.neighbors is Neighbors.ADD_REMOVE
        return Exponential(self.epsilon, sensitivity, monotonic=one_way, neighbors=self.neighbors)

    @property
    def event(self) -> events.Exponential:
        """What a release does, known before it."""
        return self.selection.event

    def release(self, values: object) -> Released[int]:
        """The point of the grid chosen."""
        chosen = self.selection.release(self.scores(values))
        return Released(self.low + chosen.value, self.event)

    def scores(self, values: object) -> IntArray:
        """The score of each point of the grid."""
        inside = np.sort(clip_to_bounds(values, self.low, self.high))
        grid = np.arange(self.high - self.low + 1, dtype=np.int64)
        below = np.searchsorted(inside, grid, side="left")
        above = len(inside) - np.searchsorted(inside, grid, side="right")
        a, b = self.at.numerator, self.at.denominator
        return -np.maximum((b - a) * below, a * above)

    def utility(self, t: float) -> float:
        """How far the score falls below the best, but for probability e^(−t); for the median, in ranks."""
        return self.selection.utility(self.high - self.low + 1, t)
