"""S1: every column from its own noisy histogram, as if columns had nothing to do with one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.measurer import Measurer, by_cells
from dalenius.synthesis.models.margins import Shares, as_shares, total_rows
from dalenius.synthesis.sampling import Step, ancestral
from dalenius.synthesis.views import whole


@dataclass(frozen=True, eq=False)
class IndependentModel:
    """The share of each value of each column."""

    rows: float
    shares: tuple[Shares, ...]

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows, or as many as there are by noisy count."""
        steps = [Step(at, (), share) for at, share in enumerate(self.shares)]
        return ancestral(steps, round(self.rows) if rows is None else rows, rng)


def histogram(measurer: Measurer, rng: np.random.Generator) -> IndependentModel:  # noqa: ARG001 — nothing is drawn
    """Spends all that is left of ρ on one-way tables.

    Guarantee:
        ρ-zCDP with ρ what the measurer had left: one call, which costs all of it.
    """
    sizes = measurer.domain.sizes
    views = [whole([at], sizes) for at in range(len(sizes))]
    measured = measurer.measure(list(zip(views, by_cells(measurer.left, views), strict=True)))
    rows = total_rows(measured)
    return IndependentModel(rows, tuple(as_shares(each, rows) for each in measured))
