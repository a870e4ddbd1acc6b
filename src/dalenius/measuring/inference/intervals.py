"""What becomes of intervals when answers are brought into line with what is publicly true.

A projection onto a convex set that holds the truth brings the whole vector of answers nearer to it, but a single answer
may move away. So no answer gets a shorter interval because it moved. What holds for each answer by itself:

- Let [a, b] hold the true number with chance 95%, and let the truth lie in a set K for sure (not below zero, a whole
  number). Then [a, b] ∩ K holds it whenever [a, b] does, so with the same chance.
- Any interval around that one holds it with no less.

So an interval is cut by what is publicly true of that one answer, and then made wide enough to hold the answer that is
shown. Where nothing is left after the cut, the answer alone is: [a, b] did not hold the truth to begin with.
"""

from __future__ import annotations

import numpy as np

from dalenius.measuring.strategies.factors import Array


def cut(
    lower: Array, upper: Array, values: Array, *, low: float = -np.inf, high: float = np.inf
) -> tuple[Array, Array]:
    """Intervals within [low, high], around the values.

    >>> cut(np.array([-2.0, -5.0]), np.array([3.0, -1.0]), np.array([0.5, 0.0]), low=0.0)
    (array([0., 0.]), array([3., 0.]))
    """
    least, most = np.maximum(lower, low), np.minimum(upper, high)
    return _around(least, most, values)


def cut_to_whole(lower: Array, upper: Array, values: Array) -> tuple[Array, Array]:
    """Intervals between whole numbers, where the truth is one, around the values.

    >>> cut_to_whole(np.array([0.4]), np.array([3.8]), np.array([4.0]))
    (array([1.]), array([4.]))
    """
    return _around(np.ceil(lower), np.floor(upper), values)


def widen(lower: Array, upper: Array, values: Array) -> tuple[Array, Array]:
    """Intervals around the values, after order or another projection moved them."""
    return np.minimum(lower, values), np.maximum(upper, values)


def _around(lower: Array, upper: Array, values: Array) -> tuple[Array, Array]:
    empty = lower > upper
    return np.where(empty, values, np.minimum(lower, values)), np.where(empty, values, np.maximum(upper, values))
