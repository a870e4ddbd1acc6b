"""Linear models, one loss per file: what a row's scores cost, and how that changes with each score.

A model gives a row k scores, each a weighted sum of its numbers. The gradient of its loss by the weights is an outer
product, *residual* ⊗ *numbers*: all that a loss must tell is its residual, the derivative by each score.
"""

from __future__ import annotations

from collections.abc import Mapping

from dalenius.errors import InputError
from dalenius.learning.models.linear import Linear
from dalenius.learning.models.logistic import Logistic
from dalenius.learning.models.loss import Loss
from dalenius.learning.models.poisson import Poisson
from dalenius.learning.models.svm import Svm

MODELS: Mapping[str, Loss] = {each.name: each for each in (Logistic(), Linear(), Poisson(), Svm())}

__all__ = ["MODELS", "Loss", "model_of"]


def model_of(name: str) -> Loss:
    """The loss of a model.

    Raises:
        InputError: There is no such model.
    """
    if name not in MODELS:
        raise InputError(
            f"There is no model {name!r}.", why="A model has a loss.", fix=f"Take one of {', '.join(MODELS)}."
        )
    return MODELS[name]
