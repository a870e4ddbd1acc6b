"""How values are reckoned to lie between their bounds, where at most their mean is public, and how far they differ.

Of all laws between two bounds with a given mean, the truncated exponential says least besides (its entropy is largest):
even where the mean is the middle, and falling the faster the nearer it is to a bound. Where it is known how far values
differ, too, they are reckoned to be log-normal, as amounts mostly are, unless the bounds forbid it. It is a guess, for
previews: on what is charged and what is measured it has no influence. It sees no data, only what was released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_EVEN = 1e-6  # a tilt this small is none
_STEEPEST = 1e4  # of the tilt: the mean is then a ten-thousandth of the range away from a bound
_HALVINGS = 60
_BEYOND = 0.1  # of log-normal values may lie beyond the upper bound: of more, they are not log-normal
_ALIKE = 1e-3  # how far a mean square is above the squared mean, at the least
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """Values by their place between the bounds, from 0 to 1: with density in proportion to exp(−tilt·place).

    With a ``width``, their logarithm is normal instead, of that deviation, around that of ``middle``.

    >>> EVEN.below(0.25), EVEN.place(0.25)
    (0.25, 0.25)
    >>> low = ValueSpread.of(0, 1000, 10)
    >>> round(1000 * low.place(0.5), 1), round(low.below(0.01), 2)
    (6.9, 0.63)
    """

    tilt: float = 0.0
    width: float = 0.0
    middle: float = 0.0

    @classmethod
    def of(cls, low: float, high: float, mean: float | None, square: float | None = None) -> ValueSpread:
        """With this mean; even, where it is not known or not between the bounds.

        ``square`` is the mean square of values in that of their mean, where it is known how far they differ.
        """
        if mean is None or not low < mean < high:
            return EVEN
        if square is not None and may_differ(low, high, mean, square):
            width = _width(low, mean, square)
            return cls(width=width, middle=(mean - low) / (high - low) * math.exp(-width * width / 2))
        wanted, least, most = (mean - low) / (high - low), -_STEEPEST, _STEEPEST
        for _ in range(_HALVINGS):
            middle = (least + most) / 2
            least, most = (middle, most) if _mean(middle) > wanted else (least, middle)
        return cls(most)

    def below(self, place: float) -> float:
        """Which part of the values lies below a place."""
        return float(self.all_below(np.array([place]))[0])

    def all_below(self, places: Floats) -> Floats:
        """The same of several."""
        places = np.clip(places, 0.0, 1.0)
        if self.width:
            whole = _NORMAL.cdf(-math.log(self.middle) / self.width)
            at = (np.log(np.maximum(places, 1e-300)) - math.log(self.middle)) / self.width
            return np.minimum(1.0, np.array([_NORMAL.cdf(each) for each in at.tolist()]) / whole)
        if abs(self.tilt) < _EVEN:
            return places
        if self.tilt < 0:  # the same from the other end, where exponents stay small
            return np.asarray(1 - ValueSpread(-self.tilt).all_below(1 - places))
        return np.asarray(np.expm1(-self.tilt * places) / math.expm1(-self.tilt))

    def place(self, part: float) -> float:
        """The place below which this part lies."""
        part = min(max(part, 0.0), 1.0)
        if self.width:
            part *= _NORMAL.cdf(-math.log(self.middle) / self.width)
            return min(1.0, self.middle * math.exp(self.width * _NORMAL.inv_cdf(part))) if part > 0 else 0.0
        if abs(self.tilt) < _EVEN:
            return part
        if self.tilt < 0:
            return 1 - ValueSpread(-self.tilt).place(1 - part)
        left = 1 + part * math.expm1(-self.tilt)
        return min(1.0, -math.log(left) / self.tilt) if left > 0 else 1.0


EVEN = ValueSpread()


def may_differ(low: float, high: float, mean: float, square: float) -> bool:
    """Whether log-normal values with this mean and mean square would lie between the bounds, but for a few."""
    if not low < mean < high:
        return False
    width = _width(low, mean, square)
    return math.log((high - low) / (mean - low)) / width + width / 2 > _NORMAL.inv_cdf(1 - _BEYOND)


def _width(low: float, mean: float, square: float) -> float:
    """The deviation of log(value − low), so that values differ so much."""
    return math.sqrt(math.log1p(max(_ALIKE, square - 1) * (mean / (mean - low)) ** 2))


def _mean(tilt: float) -> float:
    if abs(tilt) < _EVEN:
        return 0.5
    return 1 / tilt - (1 / math.expm1(tilt) if tilt < 700 else 0.0)
