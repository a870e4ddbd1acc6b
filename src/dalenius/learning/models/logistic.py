"""Logistic regression: two classes by one score, more by one score each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dalenius.learning.models.exponential import exponential

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dalenius.learning.models.loss import Aims, Scores


class Logistic:
    """loss = ln Σ_c e^s_c − s_y, residual = p − y, with p the softmax of the scores; of two classes, s_0 = 0.

    ‖p − y‖ < √2 (of two classes, |p − y| < 1), and the loss curves at most ½ (¼): p(1−p) ≤ ¼, and diag(p) − pp′ has no
    eigenvalue above ½ [Böhning, Multinomial logistic regression algorithm (1992)].
    """

    name: ClassVar[str] = "logistic"
    classifies: ClassVar[bool] = True
    chances: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.5
    flattens: ClassVar[bool] = True

    def outputs(self, classes: int) -> int:
        """One score where there are two classes."""
        return 1 if classes == 2 else classes

    def usual(self, outputs: int) -> float:
        """½ where both classes are as likely, nearly 1 where many are."""
        return 0.5 if outputs == 1 else 1.0

    def lipschitz(self, outputs: int) -> float:
        """1, or √2."""
        return 1.0 if outputs == 1 else 2**0.5

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """−ln of the chance of the row's class."""
        if len(scores) == 1:
            against: NDArray[np.float64] = np.where(aims > 0, -scores[0], scores[0])
            return np.logaddexp(0.0, against, out=against)
        highest = scores.max(axis=0)
        whole: NDArray[np.float64] = highest + np.log(np.exp(scores - highest).sum(axis=0))
        whole -= scores[aims.astype(np.intp), np.arange(len(aims))]
        return whole

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """P − y."""
        if len(scores) == 1:
            return _chance(scores) - aims
        chances = self.predict(scores)
        chances[aims.astype(np.intp), np.arange(len(aims))] -= 1.0
        return chances

    def predict(self, scores: Scores) -> Scores:
        """The chance of each class."""
        if len(scores) == 1:
            chance = _chance(scores)
            return np.concatenate([1.0 - chance, chance])
        found: Scores = scores - scores.max(axis=0)
        found = exponential(found)
        total = found[0].copy()
        for each in found[1:]:  # one by one: the order of a sum must not depend on how many rows there are
            total += each
        found /= total
        return found


def _chance(scores: Scores) -> Scores:
    """1/(1 + e^−s)."""
    return 1.0 / (1.0 + exponential(-scores))
