"""How long units' vectors are reckoned to be in a question that nobody has asked yet: public post-processing.

What is known are noisy counts of units by size, which `protect` released (rows, totals of a column, norms over a
column's keys) or an earlier question of the same analyst (the lengths themselves). From rows follow lengths over other
groups, where rows fall at random into m of them: N rows then have k² = N + N(N − 1)/m on average. Into how many they
fall is what makes norms over a column agree with rows. A condition leaves some units, and some rows of each.

All of that is a model, for previews; what is charged, chosen and measured does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.limits.histogram import CLASSES, class_top, noise_deviation, see_classes
from dalenius.measuring.limits.tails import Array, possible_tails

if TYPE_CHECKING:
    from dalenius.measuring.limits.counts import LengthCounts

_POINTS = 4  # by which a class is gone through
_FEW = 16  # whole sizes within a class: up to so many one by one
_HALVINGS = 40
_ROUNDED = 0.25  # what rounding up adds to a length, about
_FAR = 30  # classes past the last that stands out, as far as a tail is followed
_BY_CHANCE = 20.0  # rows that are left of a unit: of fewer, chance decides how many
_NUMBERS = np.arange(1.0, 61.0)
_FACTORIALS = np.cumsum(np.log(_NUMBERS))
_ROUGH = 0.3  # how far a model's counts may be off, as a part of them


@dataclass(frozen=True, slots=True)
class Lengths:
    """Units, in kinds that are alike.

    Attributes:
        units: How many there are of each kind.
        sizes: What one of them adds in all.
        rows: In how many rows.
        lengths: How long its vector over the groups is.
    """

    units: Array
    sizes: Array
    rows: Array
    lengths: Array

    @classmethod
    def of(cls, counts: LengthCounts, *, norms: bool = False) -> Lengths | None:
        """As noisy counts tell, with what may lie past them; None where no unit stands out of the noise.

        ``norms``: these are lengths that were rounded up to whole numbers, and not whole to begin with.
        """
        seen = see_classes(counts.noisy, counts.law)
        if not seen:
            return None
        units, sizes = list[float](), list[float]()
        for place, count in enumerate(_with_tail(seen, counts)):
            points = _sizes(place)
            if count > 0 and place:
                weights = [1 / each for each in points]
                units += [count * each / sum(weights) for each in weights]
                sizes += points
        found = np.array(sizes)
        found = np.where(found > 1, found - _ROUNDED, found) if norms else found
        return cls(np.array(units), found, found, found)

    @property
    def number(self) -> float:
        """Of units."""
        return float(self.units.sum())

    @property
    def total(self) -> float:
        """What they add together."""
        return float(self.units @ self.sizes)

    def kept(self, clip: int) -> float:
        """The same of what a limit leaves: a vector that is longer is scaled down to it."""
        return float(self.units @ (self.sizes * np.minimum(1.0, clip / np.maximum(self.lengths, 1e-9))))

    def rows_kept(self, clip: int) -> float:
        """Which part of the rows a limit leaves, where those of a longer vector are scaled down to it."""
        left = float(self.units @ (self.rows * np.minimum(1.0, clip / np.maximum(self.lengths, 1e-9))))
        return left / max(float(self.units @ self.rows), 1e-9)

    def counts(self) -> list[int]:
        """Units by the class of their length, as a question would count them if there were no noise.

        Of a thin tail each class has less than one unit, and all together some: what is rounded off is carried on.
        """
        found = np.zeros(CLASSES)
        whole = np.maximum(1.0, np.ceil(self.lengths - 1e-9))
        places = np.minimum(CLASSES - 1, 1 + np.ceil(2 * np.log2(whole) - 1e-9)).astype(int)
        np.add.at(found, places, self.units)
        whole_units = np.round(np.cumsum(found))
        return [round(each) for each in np.diff(whole_units, prepend=0.0).tolist()]

    def times(self, factor: float | Array) -> Lengths:
        """The same in other units, or where each row has another size."""
        return replace(self, sizes=self.sizes * factor, lengths=self.lengths * factor)

    def mixed(self, factors: Sequence[float]) -> Lengths:
        """Each kind in equal parts at several sizes of its rows."""
        parts = [replace(self.times(each), units=self.units / len(factors)) for each in factors]
        return Lengths(
            *(np.concatenate([getattr(each, name) for each in parts]) for name in ("units", "sizes", "rows", "lengths"))
        )

    def spread(self, groups: float) -> Lengths:
        """Over so many groups, into which rows fall at random."""
        shorter = np.sqrt(self.rows + self.rows * (self.rows - 1) / max(1.0, groups)) / self.rows
        return replace(self, lengths=self.sizes * shorter)

    def sized(self, groups: float) -> Lengths:
        """Of lengths over so many groups, the rows that would have them at random: the other way round."""
        rest = 1 - 1 / max(1.0, groups)
        rows = (np.sqrt(rest * rest + 4 * self.lengths**2 / groups) - rest) * groups / 2
        rows = np.maximum(rows, self.lengths)
        return replace(self, sizes=rows, rows=rows)

    def by_size(self) -> Lengths:
        """With the total of each vector as its length."""
        return replace(self, lengths=self.sizes)

    def thinned(self, units: float, rows: float) -> Lengths:
        """What a condition leaves: that part of the units, and of the rows of each, by chance."""
        if rows >= 1:
            return replace(self, units=self.units * units)
        expected, one = self.rows * rows, self.sizes / self.rows
        few = expected < _BY_CHANCE
        # Of few rows, each number has its chance (Poisson); of many, about as many are left as are expected.
        log_chances = np.outer(np.log(np.maximum(expected[few], 1e-300)), _NUMBERS) - expected[few, None] - _FACTORIALS
        left = np.append((self.units[few, None] * np.exp(log_chances)).ravel(), self.units[~few])
        number = np.append(np.broadcast_to(_NUMBERS, log_chances.shape).ravel(), expected[~few])
        sizes = np.append(np.outer(one[few], _NUMBERS).ravel(), (one * expected)[~few])
        return Lengths(units * left, sizes, number, sizes)


def effective_groups(rows: Lengths, norms: Lengths, most: int) -> float:
    """Into how many groups rows fall, so that their lengths are those that were found; by the mean logarithm."""
    wanted = float(norms.units @ np.log(norms.lengths)) / norms.number
    low, high = 0.0, math.log(max(1, most))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        lengths = rows.spread(math.exp(middle)).lengths
        longer = float(rows.units @ np.log(lengths)) / rows.number > wanted
        low, high = (middle, high) if longer else (low, middle)
    return math.exp(high)


def misfit(lengths: Lengths, noisy: Sequence[int], deviation: float) -> float:
    """How far noisy counts are off those of a model: the mean square, in what noise and chance explain of each."""
    expected, seen = np.array(lengths.counts(), dtype=float), np.array(noisy, dtype=float)
    variance = deviation**2 + expected + (_ROUGH * expected) ** 2
    matter = (expected > 0) | (seen > 2 * deviation)
    return float(((seen - expected) ** 2 / variance)[1:][matter[1:]].mean()) if matter[1:].any() else 0.0


def _with_tail(seen: Sequence[float], counts: LengthCounts) -> list[float]:
    """Units by class, with the mean of the tails that the counts allow past the last one that stands out."""
    size, last = min(CLASSES, len(seen) + _FAR), len(seen)
    noisy = np.array(counts.noisy[:size], dtype=float)
    tops = np.array([class_top(place) for place in range(size)])
    low, high = (np.log(np.maximum(np.floor(each) + 0.5, 0.5)) for each in (np.append(0.0, tops[:-1]), tops))
    tails = possible_tails(noisy, last, noise_deviation(counts.law), low, high)
    mean = np.array([*seen, *[0.0] * (size - last)]) + tails.mean
    return [float(each) for each in mean]


def _sizes(place: int) -> list[float]:
    """Sizes within a class: all whole ones where they are few, else evenly by their logarithm."""
    top, below = class_top(place), class_top(place - 1) if place else 0.0
    whole = range(math.floor(below) + 1, math.floor(top) + 1)
    if len(whole) <= _FEW:
        return [float(each) for each in whole] or [float(math.floor(top))]
    return [below * (top / below) ** ((at + 0.5) / _POINTS) for at in range(_POINTS)]
