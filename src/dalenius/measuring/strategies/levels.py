"""What hierarchies and wavelets share: blocks of equal size within blocks, and one number for each level of them.

Let s_0 = 1, s_1, …, s_h be sizes of blocks, each a multiple of the one before, and the last at least as many as there
are classes; classes that are not there are empty. M_l takes the mean over blocks of size s_l. The differences

    P_l = M_l − M_{l+1} for l < h,   P_h = M_h

are projections onto spaces that are at right angles and together everything. A strategy that treats all blocks of a
level alike has AᵀA = Σ λ_l·P_l, so (AᵀA)⁻¹ = Σ P_l/λ_l, and an answer with row f has variance Σ ‖P_l f‖²/λ_l. All of it
is a few sums over blocks, for 10⁶ classes too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from dalenius.measuring.strategies.asked import Asked
from dalenius.measuring.strategies.factors import Array, Factor, Numbers
from dalenius.measuring.strategies.lines import Line

_FLOOR = 1e-9  # of all that is asked: what every level counts at the least, so that all classes are determined


@dataclass(frozen=True)
class LevelLine(Line):
    """One weight for each level.

    Attributes:
        size: How many classes there are.
        blocks: The sizes of blocks, from 1 up to all.
        weights: Whole numbers, one for each level.
    """

    size: int
    blocks: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self.size

    @property
    def padded(self) -> int:
        """The largest block, which holds them all."""
        return self.blocks[-1]

    @property
    def growth(self) -> int:
        """Nothing is more than all of them, times the largest weight."""
        return max(self.weights) * self.padded

    def change(self, norm: str) -> int:
        """A class is in one block of each level."""
        return sum(each if norm == "l1" else each * each for each in self.weights)

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """λ_0, …, λ_h."""

    @abstractmethod
    def collect(self, noisy: Array) -> Array:
        """Aᵀ times what was measured, along the first axis: for all classes, and those that are empty."""

    def solve(self, noisy: Array, axis: int) -> Array:
        """Σ P_l Aᵀy/λ_l."""
        raw = self.collect(np.moveaxis(noisy, axis, 0))
        found = raw * 0.0
        inverse = [*(1 / self.eigenvalues), 0.0]
        for at, size in enumerate(self.blocks):
            factor = inverse[at] - (inverse[at - 1] if at else 0.0)  # M_l stands in P_l, and with a minus in P_{l−1}
            found += factor * spread(block_sums(raw, size) / size, size)
        return np.moveaxis(found[: self.size], 0, axis)

    def variances(self, factor: Factor) -> Array:
        """Σ ‖P_l f‖²/λ_l for each answer."""
        squares = [factor.block_squares(size) / size for size in self.blocks]
        parts = [one - other for one, other in zip(squares, [*squares[1:], np.zeros(1)], strict=True)]
        return np.asarray(sum(part / value for part, value in zip(parts, self.eigenvalues, strict=True)))

    def total_variance(self, factor: Factor) -> float:
        """The sum of all, from `energies`."""
        return float((energies([(1.0, factor)], self.blocks) / self.eigenvalues).sum())

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        own = {"classes": self.size, "blocks": list(self.blocks), "weights": list(self.weights)}
        return {"kind": self.kind, **own}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Self:
        """The one that was written down."""
        blocks, weights = (tuple(map(int, stored[key])) for key in ("blocks", "weights"))
        return cls(int(stored["classes"]), blocks, weights)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """How many blocks each level has."""
        return tuple(self.padded // each for each in self.blocks)


def energies(asked: Asked, blocks: Sequence[int]) -> Array:
    """For each level Σ‖P_l f‖² over all answers."""
    squares = [sum(count * factor.total_block_squares(size) for count, factor in asked) / size for size in blocks]
    return np.array([one - other for one, other in zip(squares, [*squares[1:], 0.0], strict=True)])


def floored(energy: Array) -> Array:
    """With a little for every level."""
    return np.asarray(np.maximum(energy, _FLOOR * energy.sum()))


def pad(x: Numbers, size: int) -> Numbers:
    """With empty classes at the end of the first axis."""
    if len(x) == size:
        return x
    return np.concatenate([x, np.zeros((size - len(x), *x.shape[1:]), dtype=x.dtype)])


def block_sums(x: Numbers, size: int) -> Numbers:
    """Sums over blocks of the first axis."""
    return np.asarray(x.reshape(len(x) // size, size, *x.shape[1:]).sum(axis=1))


def spread(x: Numbers, size: int) -> Numbers:
    """Each entry of the first axis, so many times."""
    return np.repeat(x, size, axis=0)


def whole_weights(weights: Array, norm: str, least: int = 2**8) -> tuple[int, ...]:
    """In parts, such that the smallest that matters has many, rounded toward zero; none becomes nothing.

    How exact they are hardly matters: the error is flat at the best weights.
    """
    largest = weights.max()
    mattering = weights[weights > largest * (1e-2 if norm == "l2" else 1e-3)]
    scale = 2.0 ** np.ceil(np.log2(least / mattering.min()))
    return tuple(max(1, int(each * scale)) for each in weights)
