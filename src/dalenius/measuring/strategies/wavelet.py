"""Haar wavelets: of each block, by how much one half exceeds the other; and the total.

Blocks are halved down to single classes. A difference within blocks of 2·s_l classes, with weight w_l, has
AᵀA = w_l²·2s_l·P_l: each level has its λ_l = w_l²·2s_l to itself, and the total λ_h = w_h²·s_h (`levels`). A row
changes Σ w_l² in L2, so w_l⁴ ∝ t_l/(2s_l) is best, with t_l = Σ‖P_l f‖² of all that is asked; in L1 it changes Σ w_l,
and w_l³ ∝ t_l/(2s_l) is best.

References:
    Xiao, Wang, Gehrke: Differential privacy via wavelet transforms. ICDE 2010.
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


@dataclass(frozen=True)
class Wavelet(LevelLine):
    """Differences of halves, and the total."""

    kind: ClassVar[str] = "wavelet"
    name: ClassVar[str] = "wavelet"

    @property
    def rows(self) -> int:
        """As many as there are classes, with the empty ones."""
        return self.padded

    @property
    def signed(self) -> bool:
        """One half counts below zero."""
        return len(self.blocks) > 1

    @property
    def _supports(self) -> tuple[int, ...]:
        """The blocks that a level's differences are about; for the total, all."""
        return (*self.blocks[1:], self.padded)

    @property
    def eigenvalues(self) -> Array:
        """λ_l = w_l²·2s_l, and w_h²·s_h."""
        return np.array([float(w) ** 2 * s for w, s in zip(self.weights, self._supports, strict=True)])

    def apply(self, x: Numbers, axis: int) -> Numbers:
        """Level by level, from the smallest blocks; the total is last."""
        sums = pad(np.moveaxis(x, axis, 0), self.padded)
        found = []
        for w in self.weights[:-1]:
            found.append((sums[0::2] - sums[1::2]) * w)
            sums = block_sums(sums, 2)
        return np.moveaxis(np.concatenate([*found, sums * self.weights[-1]]), 0, axis)

    def collect(self, noisy: Array) -> Array:
        """A class is in one half of each level."""
        parts = np.split(noisy, np.cumsum(self.nodes[1:]))
        found = np.asarray(spread(parts[-1] * float(self.weights[-1]), self.padded))
        for part, w, s in zip(parts, self.weights[:-1], self.blocks, strict=False):
            halves = np.stack([part, -part], axis=1).reshape(-1, *part.shape[1:])
            found += spread(halves * float(w), s)
        return found


def wavelet(classes: int, asked: Asked, norm: str) -> Wavelet:
    """The best weights for what is asked."""
    blocks = tuple(2**at for at in range((classes - 1).bit_length() + 1))
    energy = floored(energies(asked, blocks))
    power = 1 / 4 if norm == "l2" else 1 / 3
    weights = (energy / np.array([*blocks[1:], blocks[-1]])) ** power
    return Wavelet(classes, blocks, whole_weights(weights, norm))
