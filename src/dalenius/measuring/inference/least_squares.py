"""Generalised least squares: all that was measured about the same cells, each with its variance, becomes one answer.

Let y = A·x + noise with variances D, where the rows of A are questions over the cells x. The best linear unbiased
answer to a question f is f·x̂ with x̂ least in ‖D^−½(A·x − y)‖; its variance is f·(AᵀD⁻¹A)⁺·fᵀ, which is exact, whatever
law the noise has, as long as the variances are. A question is *determined* where f is a combination of A's rows.

Up to `DENSE` cells all of that is worked out at once. For more, x̂ comes from LSMR, and a variance from conjugate
gradients with its question: rows are never written down, so 10⁶ cells are fine, but each answer's variance takes a
while. Strategies with structure need none of this (`measuring.strategies`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dalenius.errors import InputError
from dalenius.measuring.strategies.factors import Array
from dalenius.measuring.strategies.strategy import Attributes
from dalenius.measuring.strategies.workload import Product

DENSE = 2048  # cells
_TOLERANCE = 1e-10
_DETERMINED = 1e-6  # of a question's length: what may be left of it
_MOST_VARIANCES = 2000  # of answers of more cells than that


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy answers to one question.

    Attributes:
        product: The question.
        values: Its answers, with noise.
        variance: Of each answer, or of all.
    """

    product: Product
    values: Array
    variance: float | Array

    @property
    def deviations(self) -> Array:
        """The root of its variance, for each answer."""
        return np.broadcast_to(np.sqrt(self.variance), (self.product.answers,))


@dataclass(frozen=True, eq=False)
class Solved:
    """What least squares tell.

    Attributes:
        sizes: How many classes each attribute has.
        attributes: Those that cells tell apart.
        cells: The least squares.
        covariance: A matrix times its covariance.
        determined: A matrix times the projection onto what is determined.
    """

    sizes: tuple[int, ...]
    attributes: Attributes
    cells: Array
    covariance: Callable[[Array], Array]
    determined: Callable[[Array], Array]

    def determines(self, product: Product) -> bool:
        """Whether its answers follow from what was measured."""
        if not set(product.factors) <= set(self.attributes):
            return False
        rows = self.rows(product)
        lengths = np.sqrt(np.square(rows).sum(axis=1)) + 1e-300
        return bool((np.abs(self.determined(rows) - rows).max(axis=1) <= _DETERMINED * lengths).all())

    def answers(self, product: Product) -> Array:
        """Its answers, in the order of its attributes."""
        return apply(product, self.cells, self.attributes, self.sizes)

    def variances(self, product: Product) -> Array:
        """Of each answer; meaningful where it is determined."""
        rows = self.rows(product)
        return np.asarray((self.covariance(rows) * rows).sum(axis=1))

    def rows(self, product: Product) -> Array:
        """The question over all cells, written down."""
        if self.cells.size > DENSE and product.answers > _MOST_VARIANCES:
            raise InputError(
                "These are too many answers over too many cells.",
                why=f"Errors of more than {_MOST_VARIANCES:,} answers over {self.cells.size:,} cells take too long.",
                fix="Ask about fewer classes at once.",
            )
        found = np.eye(product.answers).reshape([product.answers, *_shape(product, self.attributes)])
        for axis, at in enumerate(self.attributes):
            found = product.factor(at, self.sizes[at]).collect(found, axis + 1)
        return np.asarray(found.reshape(product.answers, -1))


def solve(sizes: tuple[int, ...], measured: Sequence[Measured]) -> Solved:
    """The least squares of all that was measured; the noise of different answers is independent."""
    attributes = tuple(sorted({at for each in measured for at in each.product.factors}))
    system = System(sizes, attributes, tuple(measured))
    return _solve_dense(system) if system.cells <= DENSE else _solve_sparse(system)


@dataclass(frozen=True, eq=False)
class System:
    """D^−½A as what it does, and D^−½y."""

    sizes: tuple[int, ...]
    attributes: Attributes
    measured: tuple[Measured, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the cells."""
        return tuple(self.sizes[at] for at in self.attributes)

    @property
    def cells(self) -> int:
        """How many there are."""
        return math.prod(self.shape)

    @cached_property
    def values(self) -> Array:
        """What was measured, in deviations."""
        return np.concatenate([np.asarray(each.values, dtype=float) / each.deviations for each in self.measured])

    def apply(self, x: Array) -> Array:
        """What would be measured of these cells, in deviations."""
        table = np.asarray(x, dtype=float).reshape(self.shape)
        parts = [apply(each.product, table, self.attributes, self.sizes) / each.deviations for each in self.measured]
        return np.concatenate(parts)

    def collect(self, y: Array) -> Array:
        """The transposed of that."""
        pieces = np.split(
            np.asarray(y, dtype=float).ravel(), np.cumsum([m.product.answers for m in self.measured])[:-1]
        )
        found = np.zeros(self.shape)
        for each, piece in zip(self.measured, pieces, strict=True):
            part = (piece / each.deviations).reshape(_shape(each.product, self.attributes))
            for axis, at in enumerate(self.attributes):
                part = each.product.factor(at, self.sizes[at]).collect(part, axis)
            found += part
        return found.ravel()

    @cached_property
    def normal(self) -> Array:
        """AᵀD⁻¹A, where there are few cells."""
        found = np.zeros((self.cells, self.cells))
        for each in self.measured:
            if np.ndim(each.variance) == 0:
                gram = np.array([[1 / float(each.variance)]])
                for at in self.attributes:
                    gram = np.kron(gram, each.product.factor(at, self.sizes[at]).gram())
                found += gram
            else:
                alone = System(self.sizes, self.attributes, (each,))
                rows = np.stack([alone.apply(unit) for unit in np.eye(self.cells)], axis=1)
                found += rows.T @ rows
        return found


def _solve_dense(system: System) -> Solved:
    values, vectors = np.linalg.eigh(system.normal)
    kept = values > values.max(initial=0.0) * _TOLERANCE
    basis = vectors[:, kept]
    covariance = (basis / values[kept]) @ basis.T
    cells = (covariance @ system.collect(system.values)).reshape(system.shape)
    return Solved(
        system.sizes,
        system.attributes,
        cells,
        lambda rows: rows @ covariance,
        lambda rows: (rows @ basis) @ basis.T,
    )


def _solve_sparse(system: System) -> Solved:
    from scipy.sparse.linalg import LinearOperator, lsmr

    shape: Any = (len(system.values), system.cells)
    operator = LinearOperator(shape, matvec=system.apply, rmatvec=system.collect, dtype=np.float64)
    found = lsmr(operator, system.values, atol=1e-12, btol=1e-12, maxiter=5000)[0]

    def covariance(rows: Array) -> Array:
        # With u the shortest of all D^−½Aᵀu = f: (AᵀD⁻¹A)⁺f is the shortest v of all Av = u, and both are LSMR's.
        return np.stack([_pseudoinverse(operator, row) for row in rows])

    def determined(rows: Array) -> Array:
        return np.stack([system.collect(system.apply(_pseudoinverse(operator, row))) for row in rows])

    return Solved(system.sizes, system.attributes, np.asarray(found).reshape(system.shape), covariance, determined)


def _pseudoinverse(operator: Any, row: Array) -> Array:
    from scipy.sparse.linalg import lsmr

    u = lsmr(operator.adjoint(), row, atol=1e-12, btol=1e-12, maxiter=5000)[0]
    return np.asarray(lsmr(operator, u, atol=1e-12, btol=1e-12, maxiter=5000)[0])


def apply(product: Product, cells: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
    """The question's answers from cells of these attributes."""
    found = cells
    for axis, at in enumerate(attributes):
        found = product.factor(at, sizes[at]).apply(found, axis)
    return np.asarray(found, dtype=float).ravel()


def _shape(product: Product, attributes: Attributes) -> list[int]:
    """Answers of each attribute, with one where it counts in total."""
    return [product.factors[at].answers if at in product.factors else 1 for at in attributes]
