"""What a loss tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Scores = NDArray[np.float64]  # outputs × rows
    Aims = NDArray[np.float64]  # of each row: the place of its class, or a number from 0 to 1


class Loss(Protocol):
    """A loss of scores. Everything is worked out element by element: a row's numbers do not depend on other rows.

    Attributes:
        name: As it is asked for.
        classifies: Whether the target is a class.
        chances: Whether it tells the chance of each class.
        smoothness: The most curvature in any direction of the scores.
        flattens: Whether it curves less where something has been learned.
    """

    name: ClassVar[str]
    classifies: ClassVar[bool]
    chances: ClassVar[bool]
    smoothness: ClassVar[float]
    flattens: ClassVar[bool]

    def outputs(self, classes: int) -> int:
        """How many scores a row has."""

    def usual(self, outputs: int) -> float:
        """About how long a residual is before anything was learned."""

    def lipschitz(self, outputs: int) -> float:
        """The most that a residual can be, in L2; infinite where nothing bounds it."""

    def loss(self, scores: Scores, aims: Aims) -> NDArray[np.float64]:
        """Of each row."""

    def residual(self, scores: Scores, aims: Aims) -> Scores:
        """The derivative of a row's loss by each of its scores."""

    def predict(self, scores: Scores) -> Scores:
        """What the scores say: of each class its chance, or how much speaks for it (classes × rows), or one number."""
