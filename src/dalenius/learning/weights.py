"""What leaves a training: one weight for each score and column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Weights:
    """Scores × columns, of numbers from −1 to 1; the last column is the intercept.

    >>> Weights.of_json(Weights(np.array([[0.1, 2.0]])).to_json()).values.tolist()
    [[0.1, 2.0]]
    """

    values: NDArray[np.float64]

    def to_json(self) -> list[list[float]]:
        """Every digit of them."""
        found: list[list[float]] = self.values.tolist()
        return found

    @classmethod
    def of_json(cls, data: Any) -> Weights:
        """As `to_json` wrote it."""
        return cls(np.array(data, np.float64))
