"""A tree of blocks: all sums over blocks are measured, on each level with a weight of its own.

A range is then a few blocks, where of single classes it would be many. On level l there are blocks of s_l classes with
weight w_l; so AᵀA = Σ w_l²·s_l·M_l, and λ_l = Σ_{m ≤ l} w_m²·s_m (`levels`). A class is in one block of each level:
a row changes Σ w_l² in L2 and Σ w_l in L1. The weights are those with the least error, by descent on their logarithms;
how many blocks make one larger block is chosen by error, too.

References:
    Hay, Rastogi, Miklau, Suciu: Boosting the accuracy of differentially private histograms through consistency.
    PVLDB 3(1), 2010.
    Qardaji, Yang, Li: Understanding hierarchical methods for differentially private histograms. PVLDB 6(14), 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dalenius.measuring.strategies.asked import Asked
from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.levels import (
    LevelLine,
    block_sums,
    energies,
    floored,
    pad,
    spread,
    whole_weights,
)

BRANCHES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True)
class Hierarchy(LevelLine):
    """Sums over all blocks."""

    kind: ClassVar[str] = "hierarchy"
    name: ClassVar[str] = "hierarchy"

    @property
    def rows(self) -> int:
        """All blocks."""
        return sum(self.nodes)

    @property
    def eigenvalues(self) -> Array:
        """λ_l = Σ_{m ≤ l} w_m²·s_m."""
        return np.cumsum([float(w) ** 2 * s for w, s in zip(self.weights, self.blocks, strict=True)])

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """Level by level, from single classes."""
        own = pad(np.moveaxis(x, axis, 0), self.padded)
        found = [block_sums(own, s) * w for w, s in zip(self.weights, self.blocks, strict=True)]
        return np.moveaxis(np.concatenate(found), 0, axis)

    def collect(self, noisy: Array) -> Array:
        """A class is in one block of each level."""
        parts = np.split(noisy, np.cumsum(self.nodes)[:-1])
        levels = zip(parts, self.weights, self.blocks, strict=True)
        return np.asarray(sum(spread(part * float(w), s) for part, w, s in levels))


def hierarchy(classes: int, asked: Asked, norm: str) -> Hierarchy:
    """The tree with the least error."""
    found = []
    for blocks in dict.fromkeys(tree_blocks(classes, branch) for branch in BRANCHES):
        energy = floored(energies(asked, blocks))
        error, weights = _best_weights(energy, np.array(blocks, dtype=float), norm)
        found.append((error, blocks, weights))
    _, blocks, weights = min(found, key=lambda each: each[0])
    whole = whole_weights(weights, norm)
    kept = [at for at, weight in enumerate(whole) if weight > 1 or at in {0, len(whole) - 1}]  # others tell nothing
    return Hierarchy(classes, tuple(blocks[at] for at in kept), tuple(whole[at] for at in kept))


def tree_blocks(classes: int, branch: int) -> tuple[int, ...]:
    """Sizes of blocks: each has ``branch`` of the ones below, and the largest as many as it takes.

    >>> tree_blocks(100, 4), tree_blocks(3, 4)
    ((1, 4, 16, 64, 128), (1, 3))
    """
    sizes = [1]
    while sizes[-1] * branch < classes:
        sizes.append(sizes[-1] * branch)
    return (*sizes, -(-classes // sizes[-1]) * sizes[-1]) if classes > 1 else (1,)


def _best_weights(energy: Array, blocks: Array, norm: str) -> tuple[float, Array]:
    """The logarithm of (change)·Σ t_l/λ_l is brought down."""
    from scipy.optimize import minimize

    def value(logs: Array) -> tuple[float, Array]:
        w = np.exp(logs - logs.max())
        gains = w * w * blocks
        rates = energy / np.cumsum(gains)
        error = rates.sum()
        slope = -2 * gains * np.cumsum((rates / np.cumsum(gains))[::-1])[::-1] / error
        if norm == "l1":
            return float(np.log(error) + 2 * np.log(w.sum())), slope + 2 * w / w.sum()
        square = w @ w
        return float(np.log(error) + np.log(square)), slope + 2 * w * w / square

    start = np.zeros(len(blocks))
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(-9, 9)] * len(blocks))
    return float(found.fun), np.exp(found.x - found.x.max())
