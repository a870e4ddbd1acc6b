"""Training by noisy gradients: steps along sums of clipped gradients, each with discrete Gaussian noise.

Each step draws units (`drawing`), adds up their clipped gradients as whole numbers (`gradients`), adds noise, and only
then divides. What follows (momentum, averaging) is made of noisy sums and public facts.

What is kept between steps
    A `Checkpoint` has the weights after a step, their running average, the momentum, the noisy sum of the features and
    the number of the step: all of it follows from noisy sums. Which units were drawn, sums without noise and the noise
    itself are never part of it.

A run that is taken up again
    goes on from a checkpoint with fresh units and fresh noise. Steps that a killed run made after that checkpoint left
    nothing behind, so that of each step one noisy sum was ever used: the charge is that of one run. Checkpoints stay in
    the home, and what leaves is the last one's weights, when all steps are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError
from dalenius.learning.centring import Where, centre_of
from dalenius.learning.drawing import draw_units
from dalenius.learning.features import WHOLE
from dalenius.learning.gradients import Gradients
from dalenius.learning.weights import Weights
from dalenius.mechanisms.noise import discrete_gaussian, fresh_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.accounting.events import Event, SampledGaussian
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.units import Units

_AHEAD = 2**14  # numbers of noise drawn at a time


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a training stands after a step."""

    step: int
    weights: NDArray[np.float64]
    average: NDArray[np.float64]
    velocity: NDArray[np.float64]
    centre: NDArray[np.float64]  # Σ numbers with noise, over the first steps

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the home."""
        return {
            "step": self.step,
            "weights": self.weights.tolist(),
            "average": self.average.tolist(),
            "velocity": self.velocity.tolist(),
            "centre": self.centre.tolist(),
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Checkpoint:
        """As `to_json` wrote it."""
        arrays = (np.array(data[name], np.float64) for name in ("weights", "average", "velocity", "centre"))
        return cls(data["step"], *arrays)


def begin(recipe: Recipe) -> Checkpoint:
    """Before the first step."""
    nothing = np.zeros(recipe.shape)
    return Checkpoint(0, nothing, nothing, nothing, np.zeros(recipe.task.width))


def steps(recipe: Recipe, event: Event, units: Units, start: Checkpoint | None = None) -> Iterator[Checkpoint]:
    """Where the training stands after each step from ``start`` on.

    Args:
        recipe: What was planned.
        event: What was charged for it; its noise is what is added.
        units: Read inside a look, in a room of the recipe's capacity.
        start: A checkpoint of the same training; None: from the beginning.
    """
    paid = recipe.check(event)
    if len(units) != recipe.capacity + 1 or units.numbers.shape[1:] != (recipe.rows, recipe.task.width):
        raise InputError("These units are not in the recipe's room.", why="Its size differs.", fix="Use in_room.")
    at = begin(recipe) if start is None else start
    fresh_key()
    noise = _noise(paid, recipe.steps - at.step)
    limits = (recipe.grid, recipe.clip, recipe.slots, recipe.rows)
    where, gradients = Gradients(Where(recipe.part), *limits), Gradients(recipe.task.loss, *limits)
    first = recipe.steps - max(1, round(recipe.averaged * (recipe.steps - recipe.centring)))  # the last not averaged
    centre = _centre(recipe, at)
    while at.step < recipe.steps:
        drawn, step = draw_units(recipe.rate, recipe.capacity, recipe.slots), at.step + 1
        if step <= recipe.centring:
            noisy = _noisy(where.sum(at.weights, units, drawn), next(noise))
            at = replace(at, step=step, centre=at.centre + noisy[0] / recipe.divisor)
            centre = _centre(recipe, at)
        else:
            noisy = _noisy(gradients.sum(at.weights, units, drawn, centre), next(noise))
            velocity = recipe.momentum * at.velocity + noisy / recipe.divisor + recipe.regularisation * at.weights
            weights = at.weights - recipe.learning_rate * velocity
            average = weights if step <= first + 1 else at.average + (weights - at.average) / (step - first)
            at = Checkpoint(step, weights, average, velocity, at.centre)
        yield at


def train(
    recipe: Recipe,
    event: Event,
    units: Units,
    *,
    progress: Callable[[int], None] | None = None,
    start: Checkpoint | None = None,
) -> Weights:
    """All steps; ``progress`` is told the number of each."""
    at = begin(recipe) if start is None else start
    for at in steps(recipe, event, units, start):
        if progress is not None:
            progress(at.step)
    return finished(recipe, at)


def finished(recipe: Recipe, last: Checkpoint) -> Weights:
    """What leaves, when all steps are done."""
    if last.step != recipe.steps:
        raise InputError("The training is not done.", why="Steps are missing.", fix="Go on from its checkpoint.")
    values, mean = last.average.copy(), mean_of(recipe, last)
    if mean is not None:
        values[:, -1] -= values[:, :-1] @ mean[:-1]
    return Weights(values)


def mean_of(recipe: Recipe, at: Checkpoint) -> NDArray[np.float64] | None:
    """Where the features lie, as it was measured; None: it was not."""
    centre = _centre(recipe, at)
    return None if centre is None else centre.astype(np.float64) / WHOLE


def _centre(recipe: Recipe, at: Checkpoint) -> NDArray[np.float32] | None:
    """What is taken off the numbers, once it was measured."""
    if recipe.centring == 0 or at.step < recipe.centring:
        return None
    return centre_of(at.centre / (recipe.part * recipe.centring), 1.0)


def _noisy(exact: NDArray[np.int64], noise: NDArray[Any]) -> NDArray[np.float64]:
    """A sum with its noise, which may be wider than 64 bits; only then doubles, for what is made of it."""
    found: NDArray[Any] = exact + noise.reshape(exact.shape)
    return found.astype(np.float64)


def _noise(event: SampledGaussian, steps_left: int) -> Iterator[NDArray[np.int64]]:
    """The noise of each step, drawn for several at once."""
    ahead = max(1, _AHEAD // event.dimension)
    for at in range(0, steps_left, ahead):
        drawn = discrete_gaussian(variance=event.variance, size=event.dimension * min(ahead, steps_left - at))
        yield from drawn.reshape(-1, event.dimension)
