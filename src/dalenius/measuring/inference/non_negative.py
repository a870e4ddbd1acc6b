"""Counts that are not below zero.

*Single answers* become zero where they are below it; with their sum kept they all move by the same amount, or stop at
zero. *Cells* of least squares are solved again with that condition, so that all answers made of them agree. The truth
has no count below zero, a convex set, so all together are no farther from it, in the metric of the noise. A single
answer may be, and it is no longer unbiased: small counts are too large on average. Each keeps the interval that it had,
cut at zero and made wide enough (`intervals.cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalenius.measuring.inference.least_squares import Release, System
from dalenius.measuring.strategies.factors import Array


def not_below_zero(values: Array, *, total: float | None = None) -> Array:
    """The nearest numbers that are not below zero; with that sum, where one is given.

    >>> not_below_zero(np.array([3.0, -1.0, 1.0]), total=3.0).tolist()
    [2.5, 0.0, 0.5]
    """
    flat = np.asarray(values, dtype=float).ravel()
    if total is None:
        return np.asarray(np.maximum(values, 0.0))
    if total <= 0 or not flat.size:
        return np.zeros(np.shape(values))
    falling = np.sort(flat)[::-1]
    shifts = (falling.cumsum() - total) / np.arange(1, len(flat) + 1)
    last = np.flatnonzero(falling > shifts)[-1]  # so many stay above zero
    return np.asarray(np.maximum(flat - shifts[last], 0.0)).reshape(np.shape(values))


def solve_not_below_zero(sizes: tuple[int, ...], measured: Sequence[Release], *, steps: int = 1000) -> Array:
    """The cells of least squares, with none below zero: by L-BFGS with bounds."""
    from scipy.optimize import minimize

    system = System.of(sizes, measured)

    def value(x: Array) -> tuple[float, Array]:
        left = system.apply(x) - system.values
        return 0.5 * float(left @ left), system.collect(left)

    start = np.maximum(_scaled_start(system), 0.0)
    options: Any = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 20}
    bounds = [(0.0, None)] * system.cells
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(found.x, dtype=float).reshape(system.shape)


def _scaled_start(system: System) -> Array:
    """One step down the slope, as far as it falls."""
    slope = system.collect(system.values)
    along = system.apply(slope)
    return np.asarray(slope * (float(slope @ slope) / max(float(along @ along), 1e-300)))
