"""How well a model predicts rows: of a public file for nothing, of units held out as a charged count (`score_kind`).

A row is off by a number from 0 to 1: by 1 where the class is another one, by 0 where it is the same; where the target
is a number, by how far it is away, as a share of the width of its bounds. The mean of that is 1 − accuracy, or the mean
absolute error over the width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius._fields import Fields
from dalenius.errors import InputError
from dalenius.learning.fitted import encode_features
from dalenius.learning.given import given
from dalenius.learning.gradients import whole_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.output import OutputRecipe
    from dalenius.learning.recipe import Recipe
    from dalenius.learning.stored import StoredModel
    from dalenius.learning.weights import Weights


ROWS, UNITS = "rows of a file", "units held out"


@dataclass(frozen=True)
class Scored:
    """How well a model predicts.

    Attributes:
        of: What was counted: `ROWS`, or `UNITS`.
        count: How many; of units held out by noisy count.
        accuracy: The share of rows whose class is right; None where the target is a number.
        error: The mean absolute error in the units of the target; None where the target is a class.
        margin: 95% margin for the added noise in either; 0 where there is none.
    """

    of: str
    count: int
    accuracy: float | None
    error: float | None
    margin: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "of": self.of,
            "count": self.count,
            "accuracy": self.accuracy,
            "error": self.error,
            "margin": self.margin,
        }

    @classmethod
    def of_mean(cls, of: str, count: int, off: float, margin: float, recipe: Recipe | OutputRecipe) -> Scored:
        """From how far rows are off on average."""
        if recipe.task.classes:
            return cls(of, count, 1 - off, None, margin)
        width = recipe.task.target.scale
        return cls(of, count, None, off * width, margin * width)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scored:
        """As `to_dict` wrote it."""
        found = Fields(data, "score")
        one, other = (found.number(name) if found.any(name) is not None else None for name in ("accuracy", "error"))
        return cls(found.text("of"), found.whole("count"), one, other, found.number("margin"))


def off_by(
    recipe: Recipe | OutputRecipe, weights: Weights, numbers: NDArray[np.float32], aims: NDArray[np.float64]
) -> NDArray[Any]:
    """How far each row is off: the same whatever rows stand beside it, since scores are exact (`whole_weights`).

    Args:
        recipe: Of the model.
        weights: What was learned.
        numbers: Rows × columns, in whole steps (`features`).
        aims: The place of each row's class, or its target from 0 to 1.
    """
    whole, scale = whole_weights(weights.values)
    scores = whole @ numbers.T.astype(np.float64)
    scores *= scale
    said = recipe.task.loss.predict(scores)
    if recipe.task.classes:
        wrong: NDArray[np.float64] = (said.argmax(axis=0) != aims.astype(np.int64)).astype(np.float64)
        return wrong
    found: NDArray[np.float64] = np.minimum(np.abs(np.clip(said[0], 0.0, 1.0) - aims), 1.0)
    return found


def score(stored: StoredModel, rows: object) -> Scored:
    """How well a model predicts rows that somebody has, target and all."""
    task = stored.recipe.task
    aims, known = task.aims(*given(rows, [task.target])[task.target.name])
    if not known.any():
        raise InputError(
            f"No row has a value of {task.target.name!r} that the model knows.",
            why="How well it predicts is counted on rows whose target is known.",
            fix="Give rows with the target, spelled as the policy declares it.",
        )
    off = off_by(stored.recipe, stored.weights, encode_features(task, rows)[known], aims[known])
    return Scored.of_mean(ROWS, int(known.sum()), float(off.mean()), 0.0, stored.recipe)
