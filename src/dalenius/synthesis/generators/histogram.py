"""S1: every column from its own noisy histogram, as if columns had nothing to do with one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.measurer import Measurer
from dalenius.synthesis.models.margins import Shares, total_rows
from dalenius.synthesis.sampling import Step
from dalenius.synthesis.start import column_shares, one_ways


@dataclass(frozen=True, eq=False)
class IndependentModel:
    """The share of each value of each column."""

    rows: float
    shares: tuple[Shares, ...]

    @property
    def as_tree(self) -> TreeModel:
        """The same as a tree without edges."""
        return TreeModel(self.rows, [Step(at, (), share) for at, share in enumerate(self.shares)])

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows, or as many as there are by noisy count."""
        return self.as_tree.sample(rows, rng)


def histogram(measurer: Measurer, rng: np.random.Generator) -> IndependentModel:  # noqa: ARG001 — nothing is drawn
    """Spends all that is left of ρ on one-way tables.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left: one call, which costs all of it.
    """
    measured = one_ways(measurer, measurer.left)
    rows = total_rows(measured)
    return IndependentModel(rows, column_shares(measurer, measured, rows))
