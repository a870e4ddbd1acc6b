"""Vectors (SPEC M12): bringing one unit's integer vector within a norm, and the sensitivity that follows.

A unit's whole contribution is clipped, never sampled (DESIGN, decision 3). Scaled entries are truncated
toward zero: rounding to nearest can leave the ball.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.interface import IntArray, vector

if TYPE_CHECKING:
    from collections.abc import Iterable


def clip_l1(value: object, bound: int) -> IntArray:
    """``value`` itself when Σ|v| ≤ C, else trunc(v·C/k) with k = Σ|v|.

    Σ ⌊|v|·C/k⌋ ≤ C·Σ|v|/k = C.

    >>> clip_l1([6, -3, 1], 5).tolist()
    [3, -1, 0]
    """
    exact = vector(value, "value", least=0)
    return _scale_down(exact, parameters.count(bound, "bound"), sum(abs(entry) for entry in _ints(exact)))


def clip_l2(value: object, bound: int) -> IntArray:
    """``value`` itself when Σv² ≤ C², else trunc(v·C/k) with k = ⌈√Σv²⌉, settled on integers.

    Σ ⌊|v|·C/k⌋² ≤ C²·Σv²/k² ≤ C².

    >>> clip_l2([30, -40], 10).tolist()
    [6, -8]
    """
    exact = vector(value, "value", least=0)
    total = sum(entry * entry for entry in _ints(exact))
    root = math.isqrt(total)
    return _scale_down(exact, parameters.count(bound, "bound"), root if root * root == total else root + 1)


def sensitivity_l1(bound: int, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> int:
    """Δ1 of a sum of vectors clipped to Σ|v| ≤ C: C, or 2C when one unit is exchanged for another.

    >>> sensitivity_l1(5), sensitivity_l1(5, Neighbors.SUBSTITUTE)
    (5, 10)
    """
    return parameters.count(bound, "bound") * (1 if Neighbors.of(neighbors) is Neighbors.ADD_REMOVE else 2)


def squared_sensitivity_l2(
    bound: int, neighbors: Neighbors = Neighbors.ADD_REMOVE, *, non_negative: bool = False
) -> int:
    """Δ2² of a sum of vectors clipped to Σv² ≤ C²: C², or for an exchange 4C², 2C² if no entry is negative.

    ‖u − v‖² = ‖u‖² + ‖v‖² − 2⟨u, v⟩ with ⟨u, v⟩ ≥ 0 for non-negative vectors and ≥ −C² always.

    >>> squared_sensitivity_l2(3), squared_sensitivity_l2(3, Neighbors.SUBSTITUTE, non_negative=True)
    (9, 18)
    """
    square = parameters.count(bound, "bound") ** 2
    if Neighbors.of(neighbors) is Neighbors.ADD_REMOVE:
        return square
    return 2 * square if non_negative else 4 * square


def _scale_down(exact: IntArray, bound: int, norm: int) -> IntArray:
    if norm <= bound:
        return exact
    scaled = np.empty(exact.shape, dtype=object)
    # |v|·C // k rounds toward zero on both sides, which v·C // k would not for negative v
    scaled[:] = [abs(entry) * bound // norm * (1 if entry > 0 else -1) for entry in _ints(exact)]
    # from int64 it stays so: entries only shrink
    return scaled.astype(exact.dtype)


def _ints(array: IntArray) -> Iterable[int]:
    entries: list[int] = array.tolist()  # Python ints, whatever the dtype
    return entries
