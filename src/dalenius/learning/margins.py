"""How far the added noise may have moved each weight, from public facts alone.

A step's noise ξ goes into the velocity, v ← μv + ξ, that into the weights, w ← w − ηv, and the last of these are
averaged. So where the loss does not curve, the averaged weights hold Σ_s c_s·ξ_s, with c_s that follow from η, μ and
the number of steps. Where it curves, later steps undo some of what noise did before: the margin told is that without
curvature, and the actual one may be smaller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.recipe import Recipe

_NORMAL = 1.959963984540054  # within so many standard deviations lie 95%


def noise_deviation(recipe: Recipe) -> float:
    """Standard deviation of what noise adds to an averaged weight, at most."""
    each = float(recipe.variance) ** 0.5 / (recipe.batch * 2.0**recipe.grid)
    return float(each * np.sqrt((shares(recipe) ** 2).sum()))


def shares(recipe: Recipe) -> NDArray[np.float64]:
    """c_s: how much of the noise of each step is in the averaged weights, where the loss does not curve.

    Noise of step s has moved the weights by η(1 + μ + … + μ^(t−s)) after step t.
    """
    steps, averaged = recipe.steps, max(1, round(recipe.averaged * recipe.steps))
    ages = np.arange(steps)
    moved = recipe.learning_rate * np.cumsum(recipe.momentum ** ages.astype(np.float64))
    total = np.concatenate([[0.0], np.cumsum(moved)])
    last = steps - 1 - ages  # how old the noise of step s is at the end
    first = np.maximum(last - averaged + 1, 0)
    found: NDArray[np.float64] = (total[last + 1] - total[first]) / averaged
    return found


def margins(recipe: Recipe) -> NDArray[np.float64]:
    """95% margins for the added noise, one for each weight."""
    return np.full(recipe.shape, _NORMAL * noise_deviation(recipe))
