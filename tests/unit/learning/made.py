"""Small tasks, units and recipes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.learning.features import WHOLE, Feature
from dalenius.learning.gradients import Gradients
from dalenius.learning.models import model_of
from dalenius.learning.recipe import Recipe
from dalenius.learning.task import Task
from dalenius.learning.units import Units
from dalenius.tables.policy import Kind


def task_with(numbers: int, model: str = "logistic", classes: int = 2) -> Task:
    """So many numbers from 0 to 1, and a target."""
    keys = tuple(range(classes)) if model_of(model).classifies else None
    target = Feature("y", Kind.INTEGER, False, keys, 0.0, 1.0)
    return Task(target, tuple(Feature(f"x{at}", Kind.NUMBER, False) for at in range(numbers)), model)


def some_units(task: Task, count: int, rows: int = 1, seed: int = 0, *, capacity: int | None = None) -> Units:
    """Made-up units in a room."""
    chance = np.random.default_rng(seed)
    room = count if capacity is None else capacity
    numbers = np.zeros((room + 1, rows, task.width), np.float32)
    aims = np.zeros((room + 1, rows))
    numbers[:count] = np.rint(chance.uniform(-1, 1, (count, rows, task.width)) * WHOLE)
    numbers[:count, :, -1] = WHOLE
    drawn = chance.integers(0, len(task.classes), (count, rows)) if task.classes else chance.random((count, rows))
    aims[:count] = drawn
    return Units(numbers, aims)


def recipe_of(task: Task, **changed: Any) -> Recipe:
    """A recipe for 20 units, or what is said."""
    said: dict[str, Any] = {
        "people": 20.0,
        "capacity": 20,
        "rows": 1,
        "held": 1.0,
        "rate": Fraction(1),
        "slots": 20,
        "steps": 4,
        "centring": 0,
        "grid": 34,
        "clip": 2**33,
        "variance": Fraction(4 * 2**66),
        "delta": 1e-38,
        "learning_rate": 0.5,
        "momentum": 0.0,
        "averaged": 0.5,
    }
    return Recipe(task, **(said | changed))


def vector(gradients: Gradients, weights: NDArray[np.float64], units: Units, place: int) -> NDArray[np.int64]:
    """What one unit adds."""
    return gradients.sum(weights, units, np.array([place]))
