"""What a model is, for people: post-processing of what was stored. It costs nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dalenius.learning.output import OutputRecipe
from dalenius.learning.release import Coefficient

if TYPE_CHECKING:
    from dalenius.learning.stored import StoredModel

INTERCEPT = "intercept"
_STEPS = ("steps", "rate", "batch", "slots", "clip", "sigma", "learning_rate", "momentum", "averaged")


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
    """The public numbers of how it was trained; null where a method has no such thing."""
    recipe = stored.recipe
    found: dict[str, Any] = {
        "people": round(recipe.people),
        "counted": stored.counted,
        "rows_per_unit": recipe.rows,
        "columns": recipe.task.width,
        "regularisation": recipe.regularisation,
    }
    if isinstance(recipe, OutputRecipe):
        return found | dict.fromkeys(_STEPS) | {"steps": 0, "sigma": recipe.sigma}
    return found | {
        "steps": recipe.steps,
        "rate": float(recipe.rate),
        "batch": round(recipe.batch),
        "slots": recipe.slots,
        "clip": recipe.norm,
        "sigma": recipe.multiplier,
        "learning_rate": recipe.learning_rate,
        "momentum": recipe.momentum,
        "averaged": recipe.averaged,
    }


def coefficients(stored: StoredModel) -> list[Coefficient]:
    """All weights with their margins, in the units of the table; the intercept of each score first."""
    model, margins = stored.model, stored.margins
    values, bases = model.coef_, model.intercept_
    found = list[Coefficient]()
    for at, output in enumerate(outputs(stored)):
        found.append(Coefficient(output, INTERCEPT, float(bases[at]), _known(margins[at, -1])))
        found += [
            Coefficient(output, name, float(values[at, place]), _known(margins[at, place]))
            for place, name in enumerate(stored.recipe.task.parts[:-1])
        ]
    return found


def outputs(stored: StoredModel) -> list[str]:
    """What each score is for: a class, the second of two, or the target."""
    task = stored.recipe.task
    if not task.classes:
        return [task.target.name]
    named = [str(_plain(each)) for each in task.classes]
    return named if task.outputs == len(named) else named[-task.outputs :]


def _known(margin: float) -> float | None:
    return float(margin) if math.isfinite(margin) else None


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
