"""What may lie past the last class of sizes that stands out of the noise: public post-processing of noisy counts.

By the logarithm x of their size, units are reckoned to lie as exp(a + b·x + c·x²) with c ≤ 0, from the fullest class or
the last few that stand out on: a straight line is Pareto's tail, a bent one is log-normal, or ends soon. Every pair of
b and c on a grid, with the best a, weighs by how well it fits. The counts past the last real class decide, too: each is
mostly noise, but so many units as a slow tail has would show in them. Or there are none: sizes often end at an edge,
such as a quota, or a daily round, however many units there are just below it.

A tail is followed to where less than one unit is expected. Single units may still be larger: how far that moves a total
is told by `giants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

FAR = 30  # classes past the last real one, as far as a tail is followed
_FITTED = 4  # classes that stand out, which say how the tail begins to fall
_ROUGH = 0.2  # how far counts may be off a smooth curve, as a part of them
_SLOPES = np.linspace(-4.0, -1.0, 25)  # b; a tail that falls more slowly has no mean
_BENDS = np.array([0.0, -0.02, -0.05, -0.1, -0.2, -0.3, -0.5, -0.8, -1.2, -2.0, -4.0])  # c
_STRAIGHT = 10.0  # how much likelier a straight tail is than each bent one, before anything is seen
_NONE, _ALIKE = 0.5, 3.0  # how likely an end is beside all tails, before anything is seen; where all have one size
_LEAST = 0.025  # units: so few are expected beyond the largest that is reckoned with
_STEEPEST = 40.0  # of exponents: enough for any counts, and no overflow


@dataclass(frozen=True, slots=True)
class Tails:
    """What may lie past the last class that stands out.

    Attributes:
        units: In each class, one row for each tail, the last one without any.
        chances: How likely each is.
        rare: The same as ``units`` of classes of which a tail has less than one unit, and yet some chance of one.
        misfit: How much worse the best of them fits for what is `Shown`, in squared deviations.
    """

    units: Array
    chances: Array
    rare: Array
    misfit: float = 0.0

    @property
    def mean(self) -> Array:
        """Units in each class."""
        return np.asarray(self.chances @ self.units)

    def giants(self, part: Array) -> float:
        """How far chance may move a total to which each unit adds ``part`` by its class: as a deviation.

        A tail says how many units are expected; their number is by chance (Poisson), and that of the largest decides.
        """
        return float(self.chances @ np.sqrt((self.units + self.rare) @ part**2))


@dataclass(frozen=True, slots=True)
class Shown:
    """What all units show together, of which those of a tail have a part.

    Attributes:
        total: With noise.
        part: What a unit of each class adds to it.
        deviation: How far the total may be off.
    """

    total: float
    part: Array
    deviation: float


def possible_tails(
    noisy: Array, last: int, deviation: float, low: Array, high: Array, shown: Shown | None = None
) -> Tails:
    """Every tail that noisy counts allow.

    Args:
        noisy: Counts of units by class.
        last: So many classes stand out of the noise, or lie before one that does.
        deviation: Of the noise of each count.
        low: The logarithm of the least size in each class.
        high: That of the largest; a class whose ends are the same can hold nobody.
        shown: What the units show together. A tail that falls short of that is less likely; one that goes beyond it is
            not, for rows may be in no group.
    """
    width, middle = high - low, (low + high) / 2
    density = np.where(width > 0, noisy / np.maximum(width, 1e-9), -np.inf)[1:last]
    start = max(1 + int(np.argmax(density)), last - _FITTED)
    x, there = (middle - middle[last - 1])[start:], noisy[start:]
    slopes, bends = (each.ravel()[:, None] for each in np.meshgrid(_SLOPES, _BENDS))
    shape = np.exp(np.minimum(slopes * x + bends * x * x, _STEEPEST)) * width[start:]
    real = np.maximum(there, 0.0)
    variance = deviation**2 + real + (_ROUGH * real) ** 2
    # For each b and c the height exp(a) with the least Σ (count − expected)²/variance, which is 0 or more.
    above, below = shape @ (there / variance), shape**2 @ (1 / variance)
    height = np.maximum(above / np.maximum(below, 1e-300), 0.0)
    misfit = ((there - height[:, None] * shape) ** 2 / variance).sum(1)
    least, missing = float(misfit.min()), 0.0
    if shown is not None:
        # One number more to fit, where the tail falls short of it: what is shown beyond those who stand out.
        past = shape[:, last - start :] @ shown.part[last:]
        rest = shown.total - float(noisy[:last] @ shown.part[:last])
        off = math.hypot(shown.deviation, deviation * float(np.linalg.norm(shown.part[:last])))
        higher = np.maximum((above + past * rest / off**2) / np.maximum(below + past**2 / off**2, 1e-300), 0.0)
        height = np.where(height * past < rest, higher, height)
        misfit = ((there - height[:, None] * shape) ** 2 / variance).sum(1)
        misfit = misfit + (np.maximum(rest - height * past, 0.0) / off) ** 2
        missing = (max(rest, 0.0) / off) ** 2
    expected = height[:, None] * shape
    likely = np.where(bends[:, 0] == 0, _STRAIGHT, 1.0) * np.exp((misfit.min() - misfit) / 2)
    tails = np.zeros((len(expected), len(noisy)))
    tails[:, last:] = expected[:, last - start :]
    heavier = np.cumsum(tails[:, ::-1], 1)[:, ::-1]
    rare = np.where((heavier < 1) & (heavier >= _LEAST), tails, 0.0)
    tails[heavier < 1] = 0.0  # from where on not even one unit is expected
    likely /= likely.sum()
    # A sudden end fits what stands out as well as if each class were fitted by itself, which costs 1 for each.
    end = last - start + float((there**2 / variance)[last - start :].sum()) + missing
    alike = np.count_nonzero(noisy[1:last] > 4 * deviation) < 2
    none = (_ALIKE if alike else _NONE) * math.exp(min((float(misfit.min()) - end) / 2, _STEEPEST))
    nobody, chances = np.zeros(len(noisy)), np.append(likely, none) / (1 + none)
    worse = min(float(misfit.min()) - least, missing)
    return Tails(np.vstack([tails, nobody]), chances, np.vstack([rare, nobody]), worse)
