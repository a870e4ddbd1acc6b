"""What a model is, for people: post-processing of what was stored. It costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.learning.fitted import Model
from dalenius.learning.release import Coefficient
from dalenius.learning.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.stored import StoredModel

INTERCEPT = "intercept"
_MOST_COLUMNS = 2000  # of which all that is in an intercept is worked out


def described(stored: StoredModel) -> dict[str, Any]:
    """The members of its JSON that say what it is and how it was made."""
    recipe, task = stored.recipe, stored.recipe.task
    return {
        "table": stored.table,
        "target": task.target.name,
        "classes": [_plain(each) for each in task.classes],
        "features": [each.name for each in task.features],
        "model": task.model,
        "method": recipe.method,
        "training": training(stored),
        "held_out": stored.held_out,
        "alone": stored.alone,
        "coefficients": [each.to_dict() for each in coefficients(stored)],
    }


def training(stored: StoredModel) -> dict[str, Any]:
    """The public numbers of how it was trained."""
    recipe = stored.recipe
    return {
        "people": round(recipe.people),
        "counted": stored.counted,
        "rows_per_unit": recipe.rows,
        "columns": recipe.task.width,
        "steps": recipe.steps,
        "rate": float(recipe.rate),
        "batch": round(recipe.batch),
        "slots": recipe.slots,
        "clip": recipe.norm,
        "sigma": recipe.multiplier,
        "learning_rate": recipe.learning_rate,
        "momentum": recipe.momentum,
        "averaged": recipe.averaged,
        "regularisation": recipe.regularisation,
    }


def coefficients(stored: StoredModel) -> list[Coefficient]:
    """All weights with their margins, in the units of the table; the intercept of each score first.

    An intercept is that of a row of zeros, which may lie far from all rows: its margin adds up those of all weights.
    """
    task, scales, parts = stored.recipe.task, *_linear(stored)
    model, spread = stored.model, stored.margins
    values, bases = model.coef_, model.intercept_
    found = list[Coefficient]()
    for at, output in enumerate(outputs(stored)):
        own = None if parts is None else float(np.sqrt(((spread[at] * parts) ** 2).sum()))
        found.append(Coefficient(output, INTERCEPT, float(bases[at]), own))
        found += [
            Coefficient(output, name, float(values[at, place]), float(spread[at, place] * scales[place]))
            for place, name in enumerate(task.parts[:-1])
        ]
    return found


def outputs(stored: StoredModel) -> list[str]:
    """What each score is for: a class, the second of two, or the target."""
    task = stored.recipe.task
    if not task.classes:
        return [task.target.name]
    named = [str(_plain(each)) for each in task.classes]
    return named if task.outputs == len(named) else named[-task.outputs :]


def _linear(stored: StoredModel) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """How much a weight is in its coefficient, and in the intercept: both are sums of weights (`fitted.Model`).

    The second is None where there are very many columns.
    """
    task = stored.recipe.task
    scales = np.abs(Model(task, Weights(np.ones((1, task.width)))).coef_[0])
    if task.width > _MOST_COLUMNS:
        return scales, None
    return scales, Model(task, Weights(np.eye(task.width))).intercept_


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
