"""Output perturbation: the best weights, found exactly enough, with noise added once.

The weights that make F(w) = (1/n̂)·Σ_u loss_u(w) + λ‖w‖²/2 least, n̂ the released count, are found by a solver, put on a
grid, and get discrete noise. No units are drawn, so it also serves budgets under substitute, and pure ones.

Guarantee:
    *One unit.* A unit's loss is the mean over the places for its rows. Its gradient is at most L = (most residual)·
    (longest row): rows are shortened to a public length, and residuals that nothing bounds are cut to ±1, which leaves
    the loss convex (Huber's). F is λ-strongly convex, so adding or removing a unit moves its minimum by at most
    L/(λn̂), and exchanging one by 2L/(λn̂) [1, Cor. 8; 2, Lemma 7].

    *The solver* stops where the gradient is at most γ, so within γ/λ of the minimum, in either world: 2γ/λ more. It
    goes on until then: by strong convexity, gradient steps get there. What rounding of floats can do to a gradient is
    taken off γ first. With u = 2⁻⁵³, up to c·n̂ units of N rows in all, k scores, d columns, curvature s and rows of
    length X: weights are there at most 2cL/λ long, so scores are off by d·u·X·2cL/λ, residuals by s times that and the
    exponential's own error, and sums of N products by N·u of their size. Together less than
    cL·2⁻⁵¹·(N + k + 128 + s·d·X·cL/λ).

    *The grid.* Each of d numbers is rounded by at most half a step, in either world: √d steps more. Whole numbers are
    kept within 2⁶¹, which brings none of them further from another.

    So whole numbers change by at most ``sensitivity`` in L2 (in L1 by √d times that), and noise as charged makes it
    ρ-zCDP, or ε-DP.

Assumes:
    Exponentials are right to 2⁻⁴⁶ (`models.exponential`). How long the solver takes depends on rows: what leaves
    must leave at a fixed time (`releasing.pacing`).

References:
    [1] Chaudhuri, Monteleoni & Sarwate, Differentially Private Empirical Risk Minimization (2011).
    [2] Wu et al., Bolt-on Differential Privacy for Scalable Stochastic Gradient Descent-based Analytics (2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.learning.features import WHOLE
from dalenius.learning.task import Task
from dalenius.learning.weights import Weights
from dalenius.mechanisms.noise import discrete_gaussian, discrete_laplace, fresh_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dalenius.accounting.events import Event
    from dalenius.learning.rules import Population, Price
    from dalenius.learning.units import Units

    Floats = NDArray[np.float64]

GRID = 40  # weights are whole steps of 2^−40, or coarser
LONG = 1.5  # times the usual length a row may have before it is shortened
SPREAD = 0.3  # of the noise in a score of a row of the usual length
FLATTEST = 1e-5  # λ, at least, for rows of length 1
MOST_RESIDUAL = 1.0  # where nothing else bounds it
CLOSE = 1e-4  # of L/n̂: how near to a minimum the gradient must be
_ROWS = 4096
_OUTWARD = 1 + 2.0**-40
_WHOLE = 2.0**61  # weights in whole steps are at most that: with noise they stay below 2⁶³


@dataclass(frozen=True)
class OutputRecipe:
    """Everything public that decides about such a training, besides rows and noise.

    Attributes:
        task: What is learned, from what.
        people: n̂.
        capacity: For how many units there is room.
        rows: The most rows of one unit.
        longest: Rows are shortened to this.
        regularisation: λ.
        close: γ.
        grid: Weights are counted in whole steps of 2^−grid.
        sensitivity: How far they may move, in L2 and in whole steps.
        neighbors: When any one unit is added or removed, or is exchanged.
        variance: σ² of discrete Gaussian noise on each; None: the noise is Laplace.
        scale: Of discrete Laplace noise on each; None: it is Gaussian.
    """

    task: Task
    people: float
    capacity: int
    rows: int
    longest: float
    regularisation: float
    close: float
    grid: int
    sensitivity: int
    neighbors: Neighbors
    variance: Fraction | None
    scale: Fraction | None
    method: str = "output"

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: scores × columns."""
        return self.task.outputs, self.task.width

    @property
    def dimension(self) -> int:
        """How many weights there are."""
        return self.task.outputs * self.task.width

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise in a weight."""
        whole = 2.0 * float(self.scale or 0) ** 2 if self.variance is None else float(self.variance)
        return float(whole**0.5 * 2.0**-self.grid)

    def event(self) -> Event:
        """What is charged."""
        if self.variance is not None:
            return events.DiscreteGaussian(self.variance, self.sensitivity**2, self.dimension, self.neighbors)
        if self.scale is None:
            raise InputError("This recipe has no noise.", why="One kind is needed.", fix="Plan the training again.")
        return events.DiscreteLaplace(self.scale, self._in_l1, self.dimension, self.neighbors)

    @property
    def _in_l1(self) -> int:
        return l1_of(self.sensitivity, self.dimension)

    # --- stored

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a model."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        exact = {name: None if found[name] is None else str(found[name]) for name in ("variance", "scale")}
        return found | exact | {"task": self.task.to_json(), "neighbors": self.neighbors.value}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> OutputRecipe:
        """As `to_json` wrote it."""
        exact = {name: None if data[name] is None else Fraction(data[name]) for name in ("variance", "scale")}
        whose = Neighbors.of(data["neighbors"])
        return cls(**{**data, **exact, "task": Task.of_json(data["task"]), "neighbors": whose})


def plan(
    task: Task,
    population: Population,
    price: Price,
    *,
    neighbors: Neighbors = Neighbors.ADD_REMOVE,
    crowded: bool = False,
) -> OutputRecipe:
    """The recipe for a training by output perturbation, from public facts alone.

    Args:
        task: What is learned, from what.
        population: How many people there are.
        price: What it may cost.
        neighbors: When any one unit is added or removed, or is exchanged.
        crowded: There may be more units than room, and no δ is left for that: then a unit that comes puts another one
            out, and one that is exchanged puts out one and lets in another. So twice the change is allowed for.
    """
    people, count = max(1.0, population.units), task.outputs * task.width
    longest = min(LONG * task.length, math.sqrt(1 + sum(each.width for each in task.features)))
    residual = task.loss.lipschitz(task.outputs)
    steepest = (residual if math.isfinite(residual) else MOST_RESIDUAL) * longest
    changed = (1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0) * (2.0 if crowded else 1.0)
    moved = changed * steepest / people  # over λ: how far one unit moves it
    spread = math.sqrt(count * 2.0) / price.epsilon if price.epsilon is not None else 1 / math.sqrt(2 * price.rho)
    crowd = population.capacity / people  # so many times n̂ there may be
    bent = task.loss.smoothness * task.width * longest * crowd * steepest
    flattest = max(FLATTEST * longest**2, moved * spread * task.length / SPREAD, 2.0**-48 * bent)  # the last: γ ≤ cL
    added = population.capacity * population.rows + task.outputs + 128
    rounding = crowd * steepest * 2.0**-51 * (added + bent / flattest)
    close = max(CLOSE * steepest / people, 4 * rounding)
    move = (moved + 2 * close) / flattest
    grid = min(GRID, 50 - math.ceil(math.log2(max(move * spread, steepest / flattest))))
    sensitivity = math.ceil(move * _OUTWARD * 2.0**grid) + math.ceil(math.sqrt(count))
    variance = scale = None
    if price.epsilon is not None:
        scale = Fraction(math.ceil(l1_of(sensitivity, count) / Fraction(price.epsilon)))
    else:
        variance = Fraction(math.ceil(sensitivity**2 / (2 * Fraction(price.rho))))
    return OutputRecipe(
        task,
        people,
        population.capacity,
        population.rows,
        longest,
        flattest,
        close,
        grid,
        sensitivity,
        neighbors,
        variance,
        scale,
    )


def l1_of(sensitivity: int, dimension: int) -> int:
    """The most that d whole numbers change in L1, if they change by so much in L2.

    >>> l1_of(10, 4)
    20
    """
    square = sensitivity**2 * dimension
    root = math.isqrt(square)
    return root if root * root == square else root + 1


def train(recipe: OutputRecipe, event: Event, units: Units) -> Weights:
    """The best weights, with the noise that was charged."""
    if event != recipe.event():
        raise InputError(
            "The charge is not for this recipe.", why="Its noise or size differs.", fix="Plan the training again."
        )
    if len(units) != recipe.capacity + 1 or units.numbers.shape[1:] != (recipe.rows, recipe.task.width):
        raise InputError("These units are not in the recipe's room.", why="Its size differs.", fix="Use in_room.")
    fresh_key()
    found = np.ldexp(solve(recipe, units), recipe.grid)
    whole = np.rint(np.clip(found, -_WHOLE, _WHOLE)).astype(np.int64)
    if isinstance(event, events.DiscreteGaussian):
        noise = discrete_gaussian(variance=Fraction(event.variance), size=recipe.dimension)
    elif isinstance(event, events.DiscreteLaplace):
        noise = discrete_laplace(Fraction(event.scale), size=recipe.dimension)
    else:
        raise InputError("This noise is unknown here.", why="It is another kind.", fix="Plan the training again.")
    noisy = whole + noise.reshape(recipe.shape)
    return Weights(np.ldexp(noisy.astype(np.float64), -recipe.grid))


def solve(recipe: OutputRecipe, units: Units) -> Floats:
    """Weights at which the gradient of F is at most γ. Exact: never without noise outside of a look."""
    from scipy.optimize import minimize

    def value(flat: Floats) -> tuple[float, Floats]:
        return _value(recipe, units, flat.reshape(recipe.shape))

    start = minimize(
        value,
        np.zeros(recipe.dimension),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "gtol": recipe.close / 8 / math.sqrt(recipe.dimension), "ftol": 0.0},
    )
    at: Floats = start.x
    # Where values no longer tell weights apart, gradients still do: Nesterov's method for strongly convex functions.
    smooth = recipe.task.loss.smoothness * recipe.longest**2 * recipe.capacity / recipe.people + recipe.regularisation
    ratio = math.sqrt(recipe.regularisation / smooth)
    before = at
    while True:
        slope = value(at)[1]
        if float(np.sqrt((slope * slope).sum())) <= recipe.close / 2:  # the other half is for rounding
            return at.reshape(recipe.shape)
        ahead = at + (1 - ratio) / (1 + ratio) * (at - before)
        after = ahead - value(ahead)[1] / smooth
        before, at = at, after


def _value(recipe: OutputRecipe, units: Units, weights: Floats) -> tuple[float, Floats]:
    """F and its gradient, flat."""
    loss, total = recipe.task.loss, 0.0
    bounded = math.isfinite(loss.lipschitz(recipe.task.outputs))
    slope = np.zeros(recipe.shape)
    flat = units.numbers.reshape(-1, recipe.task.width)
    aims = units.aims.reshape(-1)
    for at in range(0, len(flat), _ROWS):
        numbers = flat[at : at + _ROWS].astype(np.float64) / WHOLE
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        numbers *= np.minimum(1.0, recipe.longest * (1 - 2.0**-40) / np.maximum(lengths, 1.0))[:, None]
        scores, here = weights @ numbers.T, lengths > 0
        residuals = loss.residual(scores, aims[at : at + _ROWS])
        values = loss.loss(scores, aims[at : at + _ROWS])
        if not bounded:
            cut = np.clip(residuals, -MOST_RESIDUAL, MOST_RESIDUAL)
            values = values - ((residuals - cut) ** 2).sum(axis=0) / 2  # Huber's, where the loss is a square
            residuals = cut
        total += float(values[here].sum())
        slope += residuals @ numbers
    share = 1 / (recipe.people * recipe.rows)
    found = slope * share + recipe.regularisation * weights
    return total * share + recipe.regularisation * float((weights * weights).sum()) / 2, found.ravel()
