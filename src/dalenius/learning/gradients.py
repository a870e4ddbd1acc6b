"""Sums of gradients as whole numbers: what one unit adds is bounded exactly, and is the same whoever else is there.

A row's gradient is residual ⊗ numbers (`models`). Its numbers are whole already (`features`); the residual is brought
within the clip and cut to whole steps *toward zero*, so that the outer product is a vector of whole numbers.

Guarantee:
    *Norm.* A unit adds residual ⊗ numbers with ‖residual‖²·‖numbers‖² ≤ clip², both squares of whole numbers, compared
    as such: a float decides how much is cut away, never whether it was enough. What is still too long is 0.

    *Alone as in a batch.* Scores are sums of products of whole numbers, each sum below 2⁵³: exact, in whatever order
    they are added, on however many threads. From scores to whole residuals every operation is element by element. So
    the vector that a unit adds is a function of its rows and the weights alone.

    *Sums* of at most ``slots`` such vectors stay below 2⁵³: floating-point products of matrices add them exactly.

    What is not finite adds 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dalenius.errors import InputError
from dalenius.learning.features import STEP_BITS, WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models import Loss
    from dalenius.learning.units import Units

    Floats = NDArray[np.float64]

_EXACT = 2.0**53
_NEARLY = 1 - 2.0**-30  # of the clip: far more than the float error of a norm
_CHUNK = 4096


class Gradients:
    """Sums of clipped gradients of some units.

    Args:
        loss: Of the model.
        grid: A gradient is counted in whole steps of 2^−grid.
        clip: The most that one unit adds, in L2 and in whole steps.
        slots: How many units a sum has at most.
    """

    def __init__(self, loss: Loss, grid: int, clip: int, slots: int) -> None:
        if clip * slots >= _EXACT or grid < STEP_BITS or clip < 1:
            raise InputError(
                "Sums of gradients would not be exact.", why="They must stay below 2⁵³.", fix="Take a coarser grid."
            )
        self._loss, self._clip = loss, clip
        self._whole = 2.0 ** (grid - STEP_BITS)  # what a residual of 1 is in whole steps

    def sum(self, weights: Floats, units: Units, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sum over units in these places: scores × columns, whole numbers."""
        total = np.zeros(weights.shape)
        whole, scale = whole_weights(weights, units.numbers.shape[-1])
        for at in range(0, len(places), _CHUNK):
            chunk = places[at : at + _CHUNK]
            numbers = units.numbers[chunk, 0].astype(np.float64)
            residuals = self._residuals(whole, scale, numbers, units.aims[chunk, 0])
            total += residuals @ numbers
        return total.astype(np.int64)

    def _residuals(self, whole: Floats, scale: float, numbers: Floats, aims: Floats) -> Floats:
        """Of each row a residual in whole steps, scores × rows: with its numbers, within the clip."""
        scores = whole @ numbers.T
        scores *= scale
        with np.errstate(all="ignore"):
            residuals = self._loss.residual(scores, aims)
            residuals *= self._whole
            length = _squares(residuals)
            held = np.einsum("ij,ij->i", numbers, numbers)  # exact: whole numbers below 2⁵³
            np.maximum(held, 1.0, out=held)
            most = np.floor(float(self._clip) / np.sqrt(held) * _NEARLY)  # ‖residual‖ may be so many whole steps
            residuals *= np.minimum(1.0, most / np.sqrt(length))
            np.trunc(residuals, out=residuals)
            fine = _squares(residuals) <= most * most
        residuals *= fine
        return np.where(fine, residuals, 0.0)


def whole_weights(weights: Floats, width: int) -> tuple[Floats, float]:
    """Weights in whole steps, and what one step of a score is: so fine that every sum of products is below 2⁵³.

    By Cauchy and Schwarz, any part of a score's sum is at most ‖weights‖·‖numbers‖, and ‖numbers‖ ≤ 2¹⁴·√width.
    """
    found = np.nan_to_num(weights, nan=0.0, posinf=2.0**60, neginf=-(2.0**60))
    np.clip(found, -(2.0**60), 2.0**60, out=found)
    longest = math.sqrt(float((found * found).sum(axis=1).max()))
    room = 51 - STEP_BITS - math.ceil(math.log2(math.sqrt(width)))
    shift = min(room - math.ceil(math.log2(longest)) if longest > 0 else 24, 24)
    return np.trunc(np.ldexp(found, shift)), 2.0**-shift / WHOLE


def _squares(residuals: Floats) -> Floats:
    """Σ of squares over scores, of each row; one by one, so that it is the same for any number of rows."""
    total: Floats = residuals[0] * residuals[0]
    for each in residuals[1:]:
        total += each * each
    return total
