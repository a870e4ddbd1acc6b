"""Linear regression: a number between bounds, by least squares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores


class Linear:
    """loss = (s − y)²/2, residual = s − y; the target y lies between 0 and 1. Curvature 1; no residual is too large.

    Clipping bounds what one unit adds: it turns the loss into Huber's, which outliers move less.
    """

    name: ClassVar[str] = "linear"
    classifies: ClassVar[bool] = False
    chances: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0
    flattens: ClassVar[bool] = False

    def outputs(self, classes: int) -> int:
        """The number."""
        del classes
        return 1

    def usual(self, outputs: int) -> float:
        """Targets are somewhere between 0 and 1."""
        del outputs
        return 0.25

    def lipschitz(self, outputs: int) -> float:
        """Nothing bounds it."""
        del outputs
        return math.inf

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """Half the square."""
        over: NDArray[np.float64] = scores[0] - aims
        return over * over / 2

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """What is too much."""
        return scores - aims

    def predict(self, scores: Scores) -> Scores:
        """The number, within the bounds."""
        return np.clip(scores, 0.0, 1.0)
