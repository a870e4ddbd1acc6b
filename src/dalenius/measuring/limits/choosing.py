"""Where a limit is put, from a noisy histogram of sizes: public post-processing, which costs nothing.

Below the limit lies the bias of what is cut off, above it the noise that grows with the limit. How much is cut off
depends on the units past the last class that stands out: on each tail that the counts allow, or on none (`tails`). By
the mean of the errors, unlikely tails that are very heavy would decide alone; by their logarithm, what is cut off would
count for too little. Their root lies between: of the three it came nearest to the best limit, on tables with light and
with heavy tails (docs/decisions/0022).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dalenius.measuring.limits.histogram import (
    CANDIDATES,
    CLASSES,
    class_top,
    noise_deviation,
    norm_ends,
    see_classes,
)
from dalenius.measuring.limits.tails import FAR, Array, possible_tails

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace

MEDIAN = 0.6745  # of |noise|, in its deviation, where it is Gaussian

_EVENLY = 100  # groups: over more, as many as may be declared, rows are hardly spread evenly

_TOPS = np.array([class_top(place) for place in range(CLASSES)])
# Sizes are whole numbers.
_LOW, _HIGH = (np.log(np.floor(each) + 0.5) for each in (np.append(0.0, _TOPS[:-1]), _TOPS))
_LOW_NORM, _HIGH_NORM = (np.log(each) for each in norm_ends(CLASSES))


@dataclass(frozen=True, slots=True)
class ChosenLimit:
    """A limit, and about which share of all mass lies beyond it; None where the noise hides all units."""

    limit: int
    clipped: float | None


def choose_limit(
    noisy: Sequence[int],
    law: DiscreteGaussian | Laplace,
    noise: Callable[[int], float],
    cells: float = 1,
    *,
    norms: bool = False,
) -> ChosenLimit:
    """The limit at which bias and noise are least, by the root of their sum.

    Args:
        noisy: Units by class.
        law: What noise they have.
        noise: What a limit costs in noise: the median of its size.
        cells: Over how many groups the bias is spread.
        norms: They were counted by norms as they are, and not by whole numbers.

    >>> from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    >>> law = DiscreteGaussian(variance=100, dimension=CLASSES)
    >>> found = choose_limit([0, 5000, *[0] * 127], law, lambda limit: 3.0 * limit)
    >>> found.limit, round(found.clipped, 2)
    (1, 0.0)
    """
    units, chances = _possible(noisy, law, norms=norms)
    if not len(units):
        return ChosenLimit(1, None)
    there = 1 + bisect_left(CANDIDATES, class_top(units.shape[1] - 1))  # higher ones cost noise alone
    # One row for each tail, one column for each limit.
    bias = units @ _EXCESS[: units.shape[1], :there] / min(cells, _EVENLY)
    deviation = np.array([noise(each) for each in CANDIDATES[:there]]) / MEDIAN
    limit = CANDIDATES[int(np.argmin(chances @ np.sqrt(bias + deviation)))]
    return ChosenLimit(limit, _share(chances @ units, limit))


def share_beyond(noisy: Sequence[int], law: DiscreteGaussian | Laplace, limit: int) -> float | None:
    """About which share of all mass lies beyond a limit; None where the noise hides all units."""
    units, chances = _possible(noisy, law)
    if not len(units):
        return None
    return _share(chances @ units, limit)


def _share(mean: Array, limit: int) -> float:
    beyond, whole = (float(mean @ _excess(np.array([float(each)]))[: len(mean), 0]) for each in (limit, 0))
    return beyond / max(whole, 1.0)


def _possible(noisy: Sequence[int], law: DiscreteGaussian | Laplace, *, norms: bool = False) -> tuple[Array, Array]:
    """Units in each class, one row for each way in which they may go on past the last that stands out; its chance."""
    return _ways(tuple(noisy), law, norms)


@lru_cache(maxsize=64)
def _ways(noisy: tuple[int, ...], law: DiscreteGaussian | Laplace, norms: bool) -> tuple[Array, Array]:
    seen = see_classes(noisy, law)
    if not seen:
        return np.empty((0, 0)), np.empty(0)
    last, size = len(seen), min(CLASSES, len(seen) + FAR)
    counts = np.array(noisy[:size], dtype=float)
    low, high = (_LOW_NORM, _HIGH_NORM) if norms else (_LOW, _HIGH)
    tails = possible_tails(counts, last, noise_deviation(law), low[:size], high[:size])
    return tails.units + np.array([*seen, *[0.0] * (size - last)]), tails.chances


def _excess(limits: Array) -> Array:
    """By how much sizes of each class are above each limit, on average.

    They are reckoned to spread over the class, evenly by their logarithm: all of them may have one size, so a limit
    within a class that holds many units must not pass for one above them.
    """
    tops = _TOPS[:, None]
    low = np.maximum(np.maximum(tops, 1.0) / math.sqrt(2), limits)  # of class 0 there is nothing to tell
    # ∫ (size − limit) d log size over what lies above the limit
    spread = (tops - low - limits * np.log(np.maximum(tops, 1.0) / low)) / (math.log(2) / 2)
    return np.asarray(np.where(tops > limits, np.where(tops <= 1, tops - limits, spread), 0.0))


_EXCESS = _excess(np.array(CANDIDATES, dtype=float))
