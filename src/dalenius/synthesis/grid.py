"""The values of a column between its bounds as whole positions 0, 1, …, and back: what classes are made of.

A position is a number's step, a day, a second. Where bounds lie more than 2⁵³ of those apart, which doubles could not
tell apart, it is as many of them as it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.policy import Kind, decimal_text

if TYPE_CHECKING:
    from dalenius.tables import policy as tables

Positions = NDArray[np.int64]
MOST_POSITIONS = 2**53
_EPOCH = datetime.fromisoformat("1970-01-01")
_FIRST_DAY = _EPOCH.toordinal()
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Grid:
    """The positions of one column.

    Attributes:
        kind: What its values are.
        low: The lower bound, as the policy has it.
        high: The upper one.
        step: What numbers are rounded to; None: they are whole, or times.

    >>> grid = Grid(Kind.NUMBER, Fraction(0), Fraction(5), Fraction(1, 10))
    >>> grid.size, grid.positions(np.array([0.0, 0.34, 5.0])).tolist()
    (51, [0, 3, 50])
    >>> grid.values(np.array([3]), np.random.default_rng(0)).tolist()
    [0.3]
    """

    kind: Kind
    low: Any
    high: Any
    step: Fraction | None = None

    @classmethod
    def of(cls, column: tables.Column) -> Grid | None:
        """Of a column of a policy; None where it has no bounds."""
        if column.bounds is None:
            return None
        return cls(
            column.kind, column.bounds.low, column.bounds.high, column.step if column.kind is Kind.NUMBER else None
        )

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The bounds in steps."""
        first, last = (self._steps(each) for each in (self.low, self.high))
        return first, last

    @cached_property
    def unit(self) -> int:
        """How many steps one position is: 1, or a power of two."""
        width = self._ends[1] - self._ends[0] + 1
        return 1 << max(0, (width - 1).bit_length() - MOST_POSITIONS.bit_length() + 1)

    @cached_property
    def size(self) -> int:
        """How many positions there are."""
        return (self._ends[1] - self._ends[0]) // self.unit + 1

    def place(self, value: Any) -> int:
        """The position of one value, as a policy has it."""
        return min(max(0, (self._steps(value) - self._ends[0]) // self.unit), self.size - 1)

    @property
    def zero(self) -> int:
        """The position of 0, from which amounts grow; of times, the lower bound's."""
        return self.place(0) if self.kind in {Kind.INTEGER, Kind.NUMBER} else 0

    def positions(self, values: NDArray[Any]) -> Positions:
        """The positions of cleaned values: a double for each number, as they are read."""
        first = float(self._ends[0])
        match self.kind:
            case Kind.DATE:
                steps = values.astype("datetime64[D]").astype(np.int64).astype(np.float64) - first
            case Kind.DATETIME:
                steps = values.astype("datetime64[s]").astype(np.int64).astype(np.float64) - first
            case Kind.NUMBER:  # rounded as sums round them
                steps = np.floor(values / float(self.step or 1) + 0.5) - first
            case _:
                steps = values - first
        return np.clip(np.floor(steps / self.unit), 0, self.size - 1).astype(np.int64)

    def values(self, positions: Positions, rng: np.random.Generator) -> NDArray[Any]:
        """Values of these positions: within the bounds, and on the step."""
        steps = positions.astype(np.uint64) * np.uint64(self.unit)
        if self.unit > 1:
            steps += rng.integers(0, self.unit, len(positions), np.uint64)
        # beyond 63 bits on the way, and back within them
        whole = (steps + np.uint64(self._ends[0] % 2**64)).view(np.int64)
        found: NDArray[Any]
        match self.kind:
            case Kind.INTEGER:
                found = np.clip(whole, self.low, self.high)
            case Kind.DATE:
                found = whole.astype("datetime64[D]")
            case Kind.DATETIME:
                found = whole.astype("datetime64[s]").astype("datetime64[us]")
                found = np.clip(found, np.datetime64(self.low, "us"), np.datetime64(self.high, "us"))
            case _:
                step = self.step or Fraction(1)
                found = np.round(whole * float(step), len(decimal_text(step).partition(".")[2]))
                found = np.clip(found, float(self.low), float(self.high))
        return found

    def span(self, position: int) -> tuple[Any, Any]:
        """The first and the last value of a position, exactly: as a policy would have them.

        >>> Grid(Kind.NUMBER, Fraction(0), Fraction(5), Fraction(1, 10)).span(3)
        (Fraction(3, 10), Fraction(3, 10))
        """
        first = self._ends[0] + position * self.unit
        low, high = (min(max(self._value(each), self.low), self.high) for each in (first, first + self.unit - 1))
        return low, high

    def _value(self, steps: int) -> Any:
        """What so many steps from 0 are."""
        match self.kind:
            case Kind.DATE:
                return _EPOCH.date() + timedelta(days=steps)
            case Kind.DATETIME:
                return _EPOCH + timedelta(seconds=steps)
            case Kind.NUMBER:
                return steps * (self.step or Fraction(1))
        return steps

    def _steps(self, value: Any) -> int:
        """How many steps a value is from 0."""
        match self.kind:
            case Kind.DATE:
                return int(value.toordinal()) - _FIRST_DAY
            case Kind.DATETIME:
                return int((value - _EPOCH) // timedelta(seconds=1))
            case Kind.NUMBER:
                return math.floor(Fraction(value) / (self.step or 1) + _HALF)
        return int(value)


def day_of(day: Any) -> int:
    """A date as days since 1970.

    >>> day_of(_EPOCH.date())
    0
    """
    return int(day.toordinal()) - _FIRST_DAY
