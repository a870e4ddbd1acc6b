"""What is left of an attribute when its total is known: by how much each class differs from their mean.

C = 1 − J/n takes the mean away. A contrast is measured as n·C = n·1 − J, in whole numbers: what it says of C is exactly
what noise of one variance can say of it, as in ResidualPlanner, whose noise is correlated instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.factors import Array, Factor, Numbers
from dalenius.measuring.strategies.lines import Line


@dataclass(frozen=True)
class Contrasts(Line):
    """Each class against the mean. Unlike other lines, it does not tell their total."""

    kind: ClassVar[str] = "contrasts"
    name: ClassVar[str] = "contrasts"
    size: int

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.size

    @property
    def growth(self) -> int:
        """A class n times, and the total of all."""
        return 2 * self.size

    @property
    def signed(self) -> bool:
        """All other classes count below zero."""
        return True

    def change(self, norm: str) -> int:
        """A column has n − 1 once and −1 in all other places."""
        n = self.size
        return n * (n - 1) if norm == "l2" else 2 * (n - 1)

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """The matrix n·1 − J, times ``x``."""
        return np.asarray(x * self.size - x.sum(axis=axis, keepdims=True))

    def solve(self, noisy: Array, axis: int) -> Array:
        """The contrasts C·x: the pseudoinverse of n·C is C/n."""
        return np.asarray(noisy - noisy.mean(axis=axis, keepdims=True)) / self.size

    def variances(self, factor: Factor) -> Array:
        """‖C·f‖²/n² for each answer."""
        return np.asarray(factor.squares() - factor.block_squares(self.size) / self.size) / self.size**2

    def total_variance(self, factor: Factor) -> float:
        """The sum of all."""
        n = self.size
        return (factor.total_block_squares(1) - factor.total_block_squares(n) / n) / n**2

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {"kind": self.kind, "classes": self.size}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Contrasts:
        """The one that was written down."""
        return cls(int(stored["classes"]))
