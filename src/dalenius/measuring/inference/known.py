"""Totals that are known for sure: answers that agree with them exactly, and are the better for it.

Least squares under K·x = t: where K leaves x = x₀ + Z·u free, with Z a basis of all that K does not see, u is solved by
least squares, and the covariance is Z(ZᵀAᵀD⁻¹AZ)⁺Zᵀ. As the known totals are true, answers stay unbiased and their
variances are exact: intervals get shorter, honestly. Totals that are not public, or not true, must not be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.errors import InputError
from dalenius.measuring.inference.least_squares import DENSE, Release, Solved, System, apply
from dalenius.measuring.strategies.factors import Array
from dalenius.measuring.strategies.workload import Product

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Known:
    """True answers to one question.

    Attributes:
        product: The question.
        values: Its answers.
    """

    product: Product
    values: Array


def solve_known(sizes: tuple[int, ...], measured: Sequence[Release], known: Sequence[Known]) -> Solved:
    """Least squares that agree with what is known.

    Raises:
        InputError: Where no table at all has these totals, or there are too many cells.
    """
    system = System.of(sizes, measured, [each.product for each in known])
    if system.cells > DENSE:
        raise InputError(
            f"Known totals work for at most {DENSE:,} cells; these are {system.cells:,}.",
            why="All cells are solved at once.",
            fix="Ask about fewer attributes or classes together, or leave the known totals out.",
        )
    matrix = np.concatenate([_rows(each.product, system) for each in known]) if known else np.zeros((0, system.cells))
    totals = np.concatenate([np.asarray(each.values, dtype=float).ravel() for each in known]) if known else np.zeros(0)
    start, basis = free_of(matrix, totals)
    normal = basis.T @ system.normal @ basis
    values, vectors = np.linalg.eigh(normal) if normal.size else (np.zeros(0), np.zeros((0, 0)))
    kept = values > max(values.max(initial=0.0), 1e-300) * 1e-10
    root = basis @ (vectors[:, kept] / np.sqrt(values[kept]))
    seen = basis @ vectors[:, kept]
    cells = system.refine(start, lambda left: np.asarray(root @ (root.T @ left)))

    def determined(rows: Array) -> Array:
        # What is measured, and what is known: both spaces, which are at right angles.
        fixed = rows - (rows @ basis) @ basis.T
        return np.asarray(fixed + (rows @ seen) @ seen.T)

    return Solved(sizes, system.attributes, cells, lambda rows: (rows @ root) @ root.T, determined)


def free_of(matrix: Array, totals: Array) -> tuple[Array, Array]:
    """A table with these totals, and a basis of all that does not change them.

    Raises:
        InputError: Where they contradict each other.
    """
    if not len(matrix):
        return np.zeros(matrix.shape[1]), np.eye(matrix.shape[1])
    left, values, right = np.linalg.svd(matrix)
    rank = int((values > values.max() * 1e-10).sum())
    start = right[:rank].T @ ((left[:, :rank].T @ totals) / values[:rank])
    apart = np.abs(matrix @ start - totals)
    if (apart > _TOLERANCE * (1 + np.abs(totals).max())).any():
        raise InputError(
            "The known totals contradict each other.",
            why="No table has all of these sums: one of them follows from others, and is a different number.",
            fix="Check the totals that are about the same rows, or leave one of them out.",
        )
    return np.asarray(start), np.asarray(right[rank:].T)


def _rows(product: Product, system: System) -> Array:
    units = np.eye(system.cells).reshape(-1, *system.shape)
    return np.stack([apply(product, unit, system.attributes, system.sizes) for unit in units], axis=1)
