"""What a model is, for people: post-processing of what was stored. It costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.learning.release import Coefficient

if TYPE_CHECKING:
    from dalenius.learning.stored import StoredModel

INTERCEPT = "intercept"


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

    An intercept is that of a row of zeros, which may lie far from all rows: its margin adds up those of all columns.
    """
    model, task = stored.model, stored.recipe.task
    values, bases = model.coef_, model.intercept_
    shrunk = np.abs(_scaled(stored))
    shifts = _shifts(stored)
    found = list[Coefficient]()
    for at, output in enumerate(outputs(stored)):
        spread = float(np.sqrt(stored.margins[at, -1] ** 2 + ((stored.margins[at, :-1] * shifts) ** 2).sum()))
        found.append(Coefficient(output, INTERCEPT, float(bases[at]), spread))
        found += [
            Coefficient(output, name, float(values[at, place]), float(shrunk[at, place]))
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


def _scaled(stored: StoredModel) -> Any:
    """Margins in the units of the table: a coefficient is a weight over the scale of its column."""
    ones = stored.model.__class__(stored.recipe.task, stored.weights.__class__(np.ones(stored.recipe.shape)))
    return stored.margins[:, :-1] * ones.coef_


def _shifts(stored: StoredModel) -> Any:
    """How much of each weight is in the intercept: what its column has where the value is 0."""
    task = stored.recipe.task
    marks = [
        (each.low, each.scale, at == 0 and each.keys is None) for each in task.features for at in range(each.width)
    ]
    return np.array([low / scale if number else 0.0 for low, scale, number in marks])


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
