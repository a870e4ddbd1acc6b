"""Logistic regression: two classes by one score, more by one score each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores


class Logistic:
    """loss = ln Σ_c e^s_c − s_y, residual = p − y, with p the softmax of the scores; of two classes, s_0 = 0.

    ‖p − y‖ < √2 (of two classes, < 1), and the loss curves at most ½ (¼): p(1−p) ≤ ¼, and diag(p) − pp′ has no
    eigenvalue above ½ [Böhning, Multinomial logistic regression algorithm (1992)].
    """

    name: ClassVar[str] = "logistic"
    classifies: ClassVar[bool] = True
    lipschitz: ClassVar[float] = 2**0.5
    smoothness: ClassVar[float] = 0.5

    def outputs(self, classes: int) -> int:
        """One score where there are two classes."""
        return 1 if classes == 2 else classes

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """−ln of the chance of the row's class."""
        chances = self.predict(scores)
        found: NDArray[np.float64] = -np.log(chances[aims.astype(np.intp), np.arange(len(aims))])
        return found

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """P − y."""
        if len(scores) == 1:
            return 1.0 / (1.0 + np.exp(-scores)) - aims
        chances = self.predict(scores)
        chances[aims.astype(np.intp), np.arange(len(aims))] -= 1.0
        return chances

    def predict(self, scores: Scores) -> Scores:
        """The chance of each class."""
        if len(scores) == 1:
            chance = 1.0 / (1.0 + np.exp(-scores))
            return np.concatenate([1.0 - chance, chance])
        found: Scores = scores - scores.max(axis=0)
        np.exp(found, out=found)
        total = found[0].copy()
        for each in found[1:]:  # one by one: the order of a sum must not depend on how many rows there are
            total += each
        found /= total
        return found
