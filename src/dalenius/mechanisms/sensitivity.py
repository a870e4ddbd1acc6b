"""Sensitivity: how much one unit can change a number. Helpers only; nothing here adds noise.

Noise scaled to the *local* sensitivity of the data at hand is not private: the scale itself tells about the
data. So what is local comes wrapped in `LocalSensitivity`, which no mechanism takes for a sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.interface import bounds, clip_to_bounds, whole

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LocalSensitivity:
    """The local sensitivity at one data set: for eyes that may see the data, and as a step of a proof.

    >>> from dalenius.mechanisms import Laplace
    >>> Laplace(epsilon=1, sensitivity=LocalSensitivity(3))
    Traceback (most recent call last):
        ...
    dalenius.errors.InputError: sensitivity must be a whole number, not LocalSensitivity. ...
    """

    value: int


def sum_sensitivity(low: int, high: int, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> int:
    """Δ1 of a sum of one value in [low, high] per unit (erratum 8): max(|low|, |high|), exchanged high − low.

    >>> sum_sensitivity(-2, 10), sum_sensitivity(5, 10, Neighbors.SUBSTITUTE)
    (10, 5)
    """
    least, most = whole(low, "low"), whole(high, "high")
    if least > most:
        raise InputError("low must not be above high.", why="They bound a value.", fix="Check the bounds.")
    return max(abs(least), abs(most)) if Neighbors.of(neighbors) is Neighbors.ADD_REMOVE else most - least


def local_sensitivity(
    function: Callable[[Any], int], data: T, neighbors_of: Callable[[T], Iterable[T]]
) -> LocalSensitivity:
    """max |f(D) − f(D′)| over the neighbours of D, by trying all of them.

    >>> local_sensitivity(max, (1, 5, 9), lambda d: [d[:i] + d[i + 1 :] for i in range(len(d))])
    LocalSensitivity(value=4)
    """
    here = whole(function(data), "result")
    changes = (abs(whole(function(other), "result") - here) for other in neighbors_of(data))
    return LocalSensitivity(max(changes, default=0))


def local_sensitivity_of_median(values: object, low: int, high: int) -> LocalSensitivity:
    """How far the median of values in [low, high] moves when one of them is exchanged.

    >>> local_sensitivity_of_median([1, 4, 9], 0, 10)
    LocalSensitivity(value=5)
    """
    least, most = bounds(low, high)
    return LocalSensitivity(median_sensitivity(np.sort(clip_to_bounds(values, least, most)), most - least, 0))


def median_distance(values: object, low: int, high: int, bound: int) -> int:
    """How many values must be exchanged before the median's local sensitivity exceeds ``bound``.

    For the test of propose–test–release: it changes by at most one when one value is exchanged. At most n +
    1.
    """
    least, most = bounds(low, high)
    limit = whole(bound, "bound")
    if limit < 0:
        raise InputError("bound must not be negative.", why="It bounds a distance.", fix="Give 0 or more.")
    ordered = np.sort(clip_to_bounds(values, least, most))
    # A_k does not decrease in k, so the first k past the bound is found by bisection
    first, last = 0, len(ordered) + 1
    while first < last:
        middle = (first + last) // 2
        first, last = (
            (first, middle) if median_sensitivity(ordered, most - least, middle) > limit else (middle + 1, last)
        )
    return first


def median_rank(count: int) -> int:
    """The place of the median among sorted values, from 0: rank ⌈n/2⌉."""
    return (count + 1) // 2 - 1


def median_sensitivity(ordered: npt.NDArray[np.int64], span: int, distance: int) -> int:
    """A_k of the median: the largest local sensitivity within k exchanges [Nissim et al. (2007), §3.1].

    max over 0 ≤ t ≤ k+1 of x_{m+t} − x_{m+t−k−1}, with 0 before the first value and ``span`` after the last.
    """
    middle, size = median_rank(len(ordered)), len(ordered)
    upper = np.arange(middle, middle + distance + 2)
    lower = upper - distance - 1
    above = np.where(upper < size, ordered[np.minimum(upper, size - 1)], span) if size else np.full(1, span)
    below = np.where(lower >= 0, ordered[np.maximum(lower, 0)], 0) if size else np.zeros(1, dtype=np.int64)
    return int((above - below).max())
