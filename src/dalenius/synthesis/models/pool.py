"""A pool of weighted rows: any set of tables can be fitted to it, whatever graph they make.

Exact graphical models pay for every cycle with larger cliques, exponentially. A pool does not: rows are drawn from a
simple model (a tree), more of them than are wanted, and then their weights are raked to everything that was measured.
That is the distribution nearest to the tree that fits, with the tree replaced by a sample of it: the sum over all
possible rows becomes a sum over drawn ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.domain import Codes
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.models.raking import Floats, soft_target
from dalenius.synthesis.rounding import systematic
from dalenius.synthesis.views import Rows, View

BATCHES = (0.6, 0.25, 0.1, 0.05)  # shares of the rows drawn at once
BATCH_ROUNDS = 3


class Pool:
    """Rows (rows × columns) with weights that add up to the number of rows that the table has."""

    def __init__(self, table: Codes, rows: float) -> None:
        self.columns = np.ascontiguousarray(table.T)
        self.coded = Rows(self.columns)
        self.rows = rows
        self.weights: Floats = np.full(len(table), rows / len(table))
        self.views = list[View]()  # of the tables that it is fitted to
        self._blocks = list[_Block]()

    def table(self, view: View) -> Floats:
        """What this view counts, by the weights."""
        return self.coded.count(view, self.weights)

    def add(self, measured: Sequence[Measured], pull: float) -> None:
        """Tables to be fitted from now on."""
        self.views += [each.view for each in measured]
        self._blocks += [_Block(each, self.coded, pull) for each in measured]

    def weighed(self, weights: Floats) -> Pool:
        """The same rows with other weights."""
        found = copy(self)
        found.weights = weights
        return found

    def fit(self, rounds: int) -> None:
        """Rakes the weights to all tables, so many times."""
        for _ in range(rounds):
            for block in self._blocks:
                block.rake(self.weights)
            self.weights *= self.rows / self.weights.sum()

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Rows drawn in a few batches, each raked first to what the tables still lack.

        A plain draw would add sampling error to every table; here the last batches take most of it back.
        """
        drawn = np.zeros(len(self.weights), np.int64)
        left = rows
        for at, share in enumerate(BATCHES):
            size = left if at == len(BATCHES) - 1 else min(left, round(rows * share))
            weights = self.weights * (rows / self.weights.sum())
            if at:
                lacks = [np.maximum(block.count(weights) - block.count(drawn), 0.0) for block in self._blocks]
                for _ in range(BATCH_ROUNDS):
                    for block, lack in zip(self._blocks, lacks, strict=True):
                        block.scale(weights, lack)
            drawn += systematic(weights, size, rng)
            left -= size
        found: Codes = np.repeat(self.columns, drawn, axis=1)
        return np.ascontiguousarray(found[:, rng.permutation(rows)].T)


class _Block:
    """One measured table, with the cell that each row of the pool falls into and the θ that it has reached."""

    def __init__(self, measured: Measured, columns: Rows, pull: float) -> None:
        self._cell = columns.cell(measured.view)
        self._noisy = measured.values
        self._strength = pull * measured.variance
        self._theta = np.zeros(measured.view.cells)

    def count(self, weights: NDArray[Any]) -> Floats:
        """This table of weighted rows."""
        return np.bincount(self._cell, weights, minlength=len(self._theta)).astype(np.float64)

    def scale(self, weights: Floats, wanted: Floats) -> None:
        """Brings the weights to a wanted table, as far as the rows allow (plain raking)."""
        mass = self.count(weights)
        weights *= np.where(mass > 0, (wanted + 1e-6) / np.maximum(mass, 1e-6), 0.0)[self._cell]

    def rake(self, weights: Floats) -> None:
        """The exact best θ of this table, the others held (`raking.soft_target`)."""
        mass = self.count(weights)
        held = mass > 0
        base = np.where(held, mass * np.exp(-self._theta), 1.0)
        change = np.where(
            held, np.log(soft_target(base, self._noisy, self._strength)) - np.log(np.maximum(mass, 1e-300)), 0.0
        )
        np.clip(change, -5.0, 5.0, out=change)
        self._theta += change
        weights *= np.exp(change)[self._cell]
