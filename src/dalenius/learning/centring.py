"""Where features lie: their mean, measured in the first steps, is taken off before weights are learned.

Bounds say where values may be, not where they are. Numbers far from 0 on one side make all gradients point the same
way, which clipping and noise punish. So the first steps of a training release Σ numbers instead of a gradient, under
the same clip, noise and charge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalenius.learning.features import WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores


class Where:
    """residual = (a, 0, …): a row's gradient is a·numbers in the place of the first score.

    Args:
        part: a.
    """

    name: ClassVar[str] = "where"
    classifies: ClassVar[bool] = False
    chances: ClassVar[bool] = False
    smoothness: ClassVar[float] = 0.0
    flattens: ClassVar[bool] = True

    def __init__(self, part: float) -> None:
        self._part = part

    def outputs(self, classes: int) -> int:
        """Only the first is used."""
        return classes

    def usual(self, outputs: int) -> float:
        """Always the same."""
        del outputs
        return self._part

    def lipschitz(self, outputs: int) -> float:
        """Always the same."""
        del outputs
        return self._part

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """Linear in the first score."""
        del aims
        found: NDArray[np.float64] = scores[0] * self._part
        return found

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """A for the first score."""
        del aims
        found = np.zeros_like(scores)
        found[0] = self._part
        return found

    def predict(self, scores: Scores) -> Scores:
        """Nothing."""
        return scores


def centre_of(total: NDArray[np.float64], expected: float) -> NDArray[np.float32]:
    """The mean in whole steps, from Σ numbers with noise; its last number is how many rows there are.

    ``expected``: how many are thought to be there; the divisor is at least half of that.
    """
    rows = max(float(total[-1]), expected / 2)
    found = np.rint(np.clip(total / rows, -1.0, 1.0) * WHOLE)
    found[-1] = 0  # the intercept stays
    return found.astype(np.float32)
