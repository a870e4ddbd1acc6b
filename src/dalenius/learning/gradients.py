"""Sums of gradients as whole numbers: what one unit adds is bounded exactly, and is the same whoever else is there.

A row's gradient is residual ⊗ numbers (`models`). Its numbers are whole already (`features`). Of a unit with one row
the residual is brought within the clip and cut to whole steps *toward zero*, so that the outer product is a vector of
whole numbers. Of a unit with several rows the outer products are added up first, as whole numbers too, and their sum is
brought within the clip and cut.

Guarantee:
    *Norm.* A unit adds a vector of whole numbers with Σv² ≤ clip². Of one row, ‖residual‖² ≤ m² with whole m and
    m²·‖numbers‖² ≤ clip²; of several, Σv² itself is compared with clip². These squares are exact: a float decides how
    much is cut away, never whether it was enough. What is still too long is 0.

    *Alone as in a batch.* Scores, and sums over a unit's rows, are sums of products of whole numbers, each sum below
    2⁵³: exact, in whatever order they are added, on however many threads. Between them every operation is element by
    element, or exact as well. So the vector that a unit adds is a function of its rows and the weights alone.

    *Sums* of at most ``slots`` such vectors stay below 2⁵³: floating-point products of matrices add them exactly.

    What is not finite adds 0.

Where features lie is measured in the same way: their sum is the gradient of a loss whose residual is one number.
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

_EXACT = 53  # doubles are whole numbers up to 2 to that
_NEARLY = 1 - 2.0**-30  # of the clip: far more than the float error of a norm
_ROWS = 4096  # worked on at a time
_NUMBERS = 2**20  # of vectors of units with several rows
_RESIDUAL_BITS = 20  # of residuals that are added up over the rows of a unit
_LARGEST = 16.0  # residual of a row, where there are several; all but a few of regressions are below 1

MOST_ROWS = 2**10  # of one unit: 2¹⁰·2⁴·2²⁰·2¹⁴ < 2⁵³
MOST_CLIP_BITS = 26  # of units with several rows: clip² ≤ 2⁵²


class Gradients:
    """Sums of clipped gradients of some units.

    Args:
        loss: Of the model.
        grid: A gradient is counted in whole steps of 2^−grid.
        clip: The most that one unit adds, in L2 and in whole steps.
        slots: How many units a sum has at most.
        rows: How many rows a unit has at most.
    """

    def __init__(self, loss: Loss, grid: int, clip: int, slots: int, rows: int = 1) -> None:
        fits = clip * slots < 1 << _EXACT and clip >= 1 and rows <= MOST_ROWS
        if not fits or (grid < STEP_BITS if rows == 1 else clip > 1 << MOST_CLIP_BITS):
            raise InputError(
                "Sums of gradients would not be exact.", why="They must stay below 2⁵³.", fix="Take another grid."
            )
        self._loss, self._grid, self._clip, self._rows = loss, grid, clip, rows

    def sum(
        self, weights: Floats, units: Units, places: NDArray[np.int64], centre: NDArray[np.float32] | None = None
    ) -> NDArray[np.int64]:
        """The sum over units in these places: scores × columns, whole numbers.

        ``centre``: whole numbers, at most 2¹⁴ in size, that are taken off the numbers of every row that is there.
        """
        total = np.zeros(weights.shape)
        whole, scale = whole_weights(weights)
        at_once = _ROWS if self._rows == 1 else max(1, min(_ROWS // self._rows, _NUMBERS // weights.size))
        for at in range(0, len(places), at_once):
            chunk = places[at : at + at_once]
            numbers, aims = units.numbers[chunk].astype(np.float64), units.aims[chunk]
            if centre is not None:
                numbers -= centre * (numbers[..., -1:] > 0)
            with np.errstate(all="ignore"):  # what is not finite is put to 0
                if self._rows == 1:
                    total += self._of_one_row(whole, scale, numbers[:, 0], aims[:, 0]) @ numbers[:, 0]
                else:
                    total += self._of_several(whole, scale, numbers, aims).sum(axis=0)
        return total.astype(np.int64)

    def _of_one_row(self, whole: Floats, scale: float, numbers: Floats, aims: Floats) -> Floats:
        """Of each row a residual in whole steps, scores × rows: with its numbers, within the clip."""
        scores = whole @ numbers.T
        scores *= scale
        residuals = self._loss.residual(scores, aims)
        residuals *= 2.0 ** (self._grid - STEP_BITS)
        held = np.einsum("ij,ij->i", numbers, numbers)  # exact
        most = np.floor(self._clip / np.sqrt(np.maximum(held, 1.0)) * _NEARLY)  # steps that ‖residual‖ may have
        residuals *= np.minimum(1.0, most / np.sqrt(_squares(residuals)))
        np.trunc(residuals, out=residuals)
        return np.where(_squares(residuals) <= most * most, residuals, 0.0)

    def _of_several(self, whole: Floats, scale: float, numbers: Floats, aims: Floats) -> Floats:
        """Of each unit its vector in whole steps, units × scores × columns, within the clip."""
        units, rows, columns = numbers.shape
        scores = whole @ numbers.reshape(-1, columns).T
        scores *= scale
        residuals = self._loss.residual(scores, aims.reshape(-1))
        finite = np.isfinite(residuals).all(axis=0).reshape(units, rows).all(axis=1)
        residuals = np.clip(np.where(np.isfinite(residuals), residuals, 0.0), -_LARGEST, _LARGEST)
        residuals = np.trunc(np.ldexp(residuals, _RESIDUAL_BITS)).reshape(-1, units, rows)
        vectors = residuals.transpose(1, 0, 2) @ numbers  # exact
        vectors *= 2.0 ** (self._grid - STEP_BITS - _RESIDUAL_BITS)
        vectors *= np.minimum(1.0, self._clip / _lengths(vectors))[:, None, None]
        np.trunc(vectors, out=vectors)
        fine = finite & ((vectors * vectors).sum(axis=(1, 2)) <= float(self._clip**2))
        return np.where(fine[:, None, None], vectors, 0.0)


def whole_weights(weights: Floats) -> tuple[Floats, float]:
    """Weights in whole steps, and what one step of a score is: so fine that every sum of products is below 2⁵³.

    By Cauchy and Schwarz, any part of a score's sum is at most ‖weights‖·‖numbers‖, and ‖numbers‖ ≤ 2·2¹⁴·√columns.
    """
    found = np.clip(np.nan_to_num(weights, nan=0.0), -(2.0**60), 2.0**60)
    longest = math.sqrt(float((found * found).sum(axis=1).max()))
    room = _EXACT - 3 - STEP_BITS - math.ceil(math.log2(math.sqrt(weights.shape[1])))
    shift = min(room - math.ceil(math.log2(longest)) if longest > 0 else 24, 24)
    return np.trunc(np.ldexp(found, shift)), 2.0**-shift / WHOLE


def _squares(residuals: Floats) -> Floats:
    """Σ of squares over scores, of each row; one by one, so that it is the same for any number of rows."""
    total: Floats = residuals[0] * residuals[0]
    for each in residuals[1:]:
        total += each * each
    return total


def _lengths(vectors: Floats) -> Floats:
    """The length of each vector, or slightly more, the same whatever stands beside it.

    Its numbers are put in steps of which the largest has 2^b, b = 26 − log₂√n, so that their squares add up to at most
    2⁵², exactly. Cut to whole steps, n numbers lose less than √n of a length of at least 2^b/2.
    """
    count = vectors[0].size
    bits = MOST_CLIP_BITS - math.ceil(math.log2(math.sqrt(count)))
    _, exponents = np.frexp(np.abs(vectors).max(axis=(1, 2)))
    steps = np.trunc(np.ldexp(vectors, (bits - exponents)[:, None, None]))
    lengths = np.sqrt((steps * steps).sum(axis=(1, 2))) + math.ceil(math.sqrt(count))
    return np.asarray(np.ldexp(lengths, exponents - bits))
