"""How far the added noise may have moved each coefficient, from public facts and what was learned.

A step's noise ξ goes into the velocity, v ← μv + ξ, that into the weights, w ← w − ηv, and the last of these are
averaged. So where the loss does not curve, the averaged weights hold Σ_s c_s·ξ_s, with c_s that follow from η, μ and
the number of steps. Where it curves, later steps undo some of what noise did before: the margin told is that without
curvature, and the actual one may be smaller.

An intercept is told for values of 0. It is b + Σ_j (a_j − m_j)·w_j, where b and w are the averaged weights, m is the
mean of the features that the first steps measured, and a_j is what column j has where its value is 0. To the first
order the noise in b, in each w_j and in each m_j adds up in squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dalenius.learning.fitted import Model, told
from dalenius.learning.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.output import OutputRecipe
    from dalenius.learning.recipe import Recipe

_NORMAL = 1.959963984540054  # within so many standard deviations lie 95%
_LAPLACE = 2.1183  # ln 20 over √2: of noise that is Laplace's
_MOST_COLUMNS = 4000  # of which all that is in an intercept is worked out


def margins(recipe: Recipe, weights: Weights, mean: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """95% margins of all coefficients, scores × columns; the last column is that of intercepts.

    Args:
        recipe: How it was trained.
        weights: What was learned.
        mean: Of the features, as the first steps measured it; None: it was not.
    """
    each = step_deviation(recipe)
    own = each * float(np.sqrt((shares(recipe) ** 2).sum()))
    slopes, offsets = in_table(recipe)
    found = np.empty(recipe.shape)
    found[:, :-1] = own * slopes
    squares = np.full(recipe.task.outputs, own**2)
    if offsets is None:
        found[:, -1] = np.nan
        return _NORMAL * told(recipe.task)[0] * found
    apart = offsets if mean is None else offsets - mean[:-1]
    squares += own**2 * float((apart**2).sum())
    if mean is not None:
        measured = each / (recipe.part * recipe.centring**0.5)
        squares += measured**2 * (weights.values[:, :-1] ** 2).sum(axis=1)
    found[:, -1] = np.sqrt(squares)
    return _NORMAL * told(recipe.task)[0] * found


def margins_once(recipe: OutputRecipe) -> NDArray[np.float64]:
    """The same where noise was added once: it is known to the digit; in an intercept it adds up in squares."""
    single = _NORMAL * recipe.sigma if recipe.variance is not None else _LAPLACE * recipe.sigma
    slopes, offsets = in_table(recipe)
    found = np.full(recipe.shape, np.nan)
    found[:, :-1] = single * slopes
    if offsets is not None:
        found[:, -1] = single * float(np.sqrt(1 + (offsets**2).sum()))
    return told(recipe.task)[0] * found


def step_deviation(recipe: Recipe) -> float:
    """Standard deviation of the noise in each number of a step's mean gradient."""
    return math.sqrt(recipe.variance) / (recipe.batch * 2.0**recipe.grid)


def shares(recipe: Recipe) -> NDArray[np.float64]:
    """c_s: how much of the noise of each step is in the averaged weights, where the loss does not curve.

    Noise of step s has moved the weights by η(1 + μ + … + μ^(t−s)) after step t.
    """
    steps = recipe.steps - recipe.centring
    averaged = max(1, round(recipe.averaged * steps))
    ages = np.arange(steps)
    moved = recipe.learning_rate * np.cumsum(recipe.momentum ** ages.astype(np.float64))
    total = np.concatenate([[0.0], np.cumsum(moved)])
    last = steps - 1 - ages  # how old the noise of step s is at the end
    first = np.maximum(last - averaged + 1, 0)
    found: NDArray[np.float64] = (total[last + 1] - total[first]) / averaged
    return found


def in_table(recipe: Recipe | OutputRecipe) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """How much a weight is in its coefficient, and how much of each weight is in the intercept of values of 0.

    Both are sums of weights (`fitted.Model`), so unit weights tell, before a score is told in units of the target
    (`fitted.told`). The second is None where there are very many.
    """
    task = recipe.task
    scale, base = told(task)
    slopes = np.abs(Model(task, Weights(np.ones((1, task.width)))).coef_[0]) / scale
    if task.width > _MOST_COLUMNS:
        return slopes, None
    return slopes, (Model(task, Weights(np.eye(task.width))).intercept_[:-1] - base) / scale
