"""What every generator hands back."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dalenius.synthesis.domain import Codes


class Model(Protocol):
    """A fitted model: post-processing of noisy tables, so that any number of rows may be drawn for nothing."""

    @property
    def rows(self) -> float:
        """How many rows the table has, by noisy count."""

    def sample(self, rows: int | None, rng: np.random.Generator) -> Codes:
        """So many rows (rows × columns of codes), or as many as the table has by noisy count."""
