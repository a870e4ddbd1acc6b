"""Poisson regression: a count from 0 to a bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalenius.learning.models.exponential import exponential

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores


class Poisson:
    """loss = ∫m − y·s, residual = m(s) − y, with the mean m(s) = e^s for s ≤ 0; the target y is a share of its bound.

    To count in parts of the bound moves the intercept and nothing else. A mean above the bound makes no sense: past it,
    m(s) = 1 + s, so that the loss is convex everywhere, and its curvature m′ at most 1.
    """

    name: ClassVar[str] = "poisson"
    classifies: ClassVar[bool] = False
    chances: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0
    flattens: ClassVar[bool] = True

    def outputs(self, classes: int) -> int:
        """The logarithm of the mean."""
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
        """The negative logarithm of the likelihood, but for what the scores do not change."""
        above = np.maximum(scores[0], 0.0)
        whole: NDArray[np.float64] = np.exp(np.minimum(scores[0], 0.0)) + above + above * above / 2
        whole -= aims * scores[0]
        return whole

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """What the mean is too much."""
        return _mean(scores) - aims

    def predict(self, scores: Scores) -> Scores:
        """The mean, within the bounds."""
        return np.minimum(_mean(scores), 1.0)


def _mean(scores: Scores) -> Scores:
    found = exponential(np.minimum(scores, 0.0))
    found += np.maximum(scores, 0.0)
    return found
