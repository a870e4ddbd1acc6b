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
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.errors import InputError
from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.strategy import Attributes, Strategy
from dalenius.measuring.strategies.workload import Product

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE = 2048  # cells
_TOLERANCE = 1e-12  # of the largest eigenvalue: what is below is not determined
_ROUNDS = 4
_DETERMINED = 1e-6  # of a question's length: what may be left of it
_MOST_VARIANCES = 2000  # of answers of more cells than that


class Release(ABC):
    """Noisy numbers that are linear in cells.

    Attributes:
        values: The numbers, with noise.
        variance: Of each of them, or of all.
    """

    values: Array
    variance: float | Array

    @property
    @abstractmethod
    def attributes(self) -> Attributes:
        """What it tells apart."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many numbers there are."""

    @abstractmethod
    def apply(self, table: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
        """What these numbers are of a table of these attributes."""

    @abstractmethod
    def collect(self, y: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
        """The transposed of that: a table."""

    @property
    def deviations(self) -> Array:
        """The root of its variance, for each number."""
        return np.broadcast_to(np.sqrt(self.variance), (self.answers,))


@dataclass(frozen=True, eq=False)
class Measured(Release):
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
    def attributes(self) -> Attributes:
        """Those of the question."""
        return self.product.attributes

    @property
    def answers(self) -> int:
        """Those of the question."""
        return self.product.answers

    def apply(self, table: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
        """The question's answers."""
        return apply(self.product, table, attributes, sizes)

    def collect(self, y: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
        """Each answer to the cells that it adds up."""
        found = y.reshape(_shape(self.product, attributes))
        for axis, at in enumerate(attributes):
            found = self.product.factor(at, sizes[at]).collect(found, axis)
        return found


@dataclass(frozen=True, eq=False)
class MeasuredRows(Release):
    """Noisy sums of cells of one table, each with its own row.

    Attributes:
        told: The table's attributes.
        rows: A row over the table's cells for each number.
        values: The numbers, with noise.
        variance: Of each of them, or of all.
    """

    told: Attributes
    rows: csr_array
    values: Array
    variance: float | Array

    @property
    def attributes(self) -> Attributes:
        """Those of the table."""
        return self.told

    @property
    def answers(self) -> int:
        """As many as there are rows."""
        return int(self.rows.shape[0])

    def apply(self, table: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:  # noqa: ARG002
        """The rows times the table, summed over all other attributes."""
        left = tuple(axis for axis, at in enumerate(attributes) if at not in self.told)
        return np.asarray(self.rows @ table.sum(axis=left).ravel(), dtype=float)

    def collect(self, y: Array, attributes: Attributes, sizes: tuple[int, ...]) -> Array:
        """The same for all classes of other attributes."""
        own = np.asarray(self.rows.T @ y, dtype=float)
        table = own.reshape([sizes[at] if at in self.told else 1 for at in attributes])
        return np.broadcast_to(table, [sizes[at] for at in attributes])


def measured_by(strategy: Strategy, noisy: Numbers, variance: float) -> list[MeasuredRows]:
    """What was measured by a strategy, one for each table that it reads; for tables of `DENSE` cells in all."""
    values, found = np.asarray(noisy, dtype=float).ravel(), []
    for told, rows in strategy.matrices().items():
        own = np.flatnonzero(np.diff(rows.indptr))
        found.append(MeasuredRows(told, rows[own], values[own], variance))
    return found


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


def solve(sizes: tuple[int, ...], measured: Sequence[Release]) -> Solved:
    """The least squares of all that was measured; the noise of different numbers is independent."""
    system = System.of(sizes, measured)
    return _solve_dense(system) if system.cells <= DENSE else _solve_sparse(system)


@dataclass(frozen=True, eq=False)
class System:
    """D^−½A as what it does, and D^−½y."""

    sizes: tuple[int, ...]
    attributes: Attributes
    measured: tuple[Release, ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], measured: Sequence[Release], more: Sequence[Product] = ()) -> System:
        """Over all attributes that are told apart, those of some other questions too."""
        told = {at for one in measured for at in one.attributes} | {at for one in more for at in one.attributes}
        return cls(sizes, tuple(sorted(told)), tuple(measured))

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
        return np.concatenate(
            [each.apply(table, self.attributes, self.sizes) / each.deviations for each in self.measured]
        )

    def collect(self, y: Array) -> Array:
        """The transposed of that."""
        pieces = np.split(np.asarray(y, dtype=float).ravel(), np.cumsum([each.answers for each in self.measured])[:-1])
        found = np.zeros(self.shape)
        for each, piece in zip(self.measured, pieces, strict=True):
            found += each.collect(piece / each.deviations, self.attributes, self.sizes)
        return found.ravel()

    def refine(self, start: Array, covariance: Callable[[Array], Array]) -> Array:
        """The cells, solved again for what is left: digits that were lost where variances are far apart come back."""
        cells = start
        for _ in range(_ROUNDS):
            cells = cells + covariance(self.collect(self.values - self.apply(cells)))
        return cells.reshape(self.shape)

    @cached_property
    def normal(self) -> Array:
        """AᵀD⁻¹A, where there are few cells."""
        found = np.zeros((self.cells, self.cells))
        for each in self.measured:
            if isinstance(each, Measured) and np.ndim(each.variance) == 0:
                gram = np.array([[1 / float(each.variance)]])
                for at in self.attributes:
                    gram = np.kron(gram, each.product.factor(at, self.sizes[at]).gram())
                found += gram
            elif isinstance(each, Measured):
                rows: Array = np.ones((1, 1))
                for at in self.attributes:
                    factor = each.product.factor(at, self.sizes[at])
                    rows = np.asarray(np.kron(rows, factor.apply(np.eye(self.sizes[at]), 0)), dtype=float)
                rows = rows / each.deviations[:, None]
                found += rows.T @ rows
            else:
                units = np.eye(self.cells).reshape(-1, *self.shape)
                rows = np.stack([each.apply(unit, self.attributes, self.sizes) / each.deviations for unit in units])
                found += rows @ rows.T
        return found


def _solve_dense(system: System) -> Solved:
    values, vectors = np.linalg.eigh(system.normal)
    kept = values > values.max(initial=0.0) * _TOLERANCE
    basis = vectors[:, kept]
    covariance = (basis / values[kept]) @ basis.T
    cells = system.refine(np.zeros(system.cells), lambda left: np.asarray(covariance @ left))
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
