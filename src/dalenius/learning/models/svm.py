"""Linear support vector machines: each class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores

_HALF = 0.5  # the width over which the hinge is rounded, on either side


class Svm:
    """loss = Σ_c hinge(t_c·s_c), t_c = 1 for the row's class, else −1; the hinge max(0, 1−z) rounded within 1 ± ½.

    hinge′ = −min(1, max(0, 3/2 − z)): between −1 and 0, with slope at most 1. So a residual is at most √k, and the
    curvature at most 1 [Chaudhuri, Monteleoni & Sarwate (2011), §3.4.2].
    """

    name: ClassVar[str] = "svm"
    classifies: ClassVar[bool] = True
    chances: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0
    flattens: ClassVar[bool] = True

    def outputs(self, classes: int) -> int:
        """One score where there are two classes."""
        return 1 if classes == 2 else classes

    def usual(self, outputs: int) -> float:
        """All scores are on the wrong side of the margin."""
        return float(outputs**0.5)

    def lipschitz(self, outputs: int) -> float:
        """√k."""
        return float(outputs**0.5)

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """Of all classes together."""
        short = 1 + _HALF - _signs(scores, aims) * scores  # how much is missing to the far end of the corner
        corner = np.clip(short, 0.0, 2 * _HALF) ** 2 / (4 * _HALF)
        found: NDArray[np.float64] = (corner + np.maximum(short - 2 * _HALF, 0.0)).sum(axis=0)
        return found

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """−t for a score on the wrong side, 0 for one on the right side, something between near the margin."""
        signs = _signs(scores, aims)
        return -signs * np.clip((1 + _HALF - signs * scores) / (2 * _HALF), 0.0, 1.0)

    def predict(self, scores: Scores) -> Scores:
        """How much speaks for each class."""
        return np.concatenate([-scores, scores]) if len(scores) == 1 else scores


def _signs(scores: Scores, aims: Aims) -> Scores:
    if len(scores) == 1:
        return np.where(aims > 0, 1.0, -1.0)[None]
    return np.where(np.arange(len(scores))[:, None] == aims, 1.0, -1.0)
