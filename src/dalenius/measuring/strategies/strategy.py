"""What is measured, and what can be known from it.

A strategy is a matrix A of whole numbers over disjoint cells, chosen from public sizes alone. What leaves is A·x plus
noise of one variance for each of its rows; all answers are least squares of that, so they agree with each other, and
each has a variance that is known beforehand.

*Guarantee.* Let a unit's rows be w over the cells with ‖w‖₁ ≤ R. Then A·w = Σ_j w_j·a_j, so by the triangle inequality
‖A·w‖₂ ≤ R·max_j ‖a_j‖₂ and ‖A·w‖₁ ≤ R·max_j ‖a_j‖₁: `Strategy.change` is that maximum in whole numbers (squared, where
the norm is L2), never rounded down. Everything else here is a function of public sizes and of noisy numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.workload import Product, Workload

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Attributes = tuple[int, ...]
Tables = Mapping[Attributes, Numbers]  # whole numbers over the classes of these attributes

WRITTEN = 4096  # cells, up to which a matrix is written down


class Inferred(ABC):
    """All that least squares tell, from what was measured."""

    @abstractmethod
    def answers(self, product: Product) -> Array:
        """Its answers, in the order of `Product.attributes`, the last one fastest."""


class Strategy(ABC):
    """What is measured of one measure's cells.

    Attributes:
        kind: As stored.
        name: For people.
        sizes: How many classes each attribute has.
    """

    kind: ClassVar[str]
    sizes: tuple[int, ...]

    @property
    @abstractmethod
    def name(self) -> str:
        """For people."""

    @property
    @abstractmethod
    def tables(self) -> tuple[Attributes, ...]:
        """The tables of exact integers that it reads, each by its attributes."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many integers are measured."""

    @property
    @abstractmethod
    def signed(self) -> bool:
        """Whether A has entries below zero."""

    @property
    @abstractmethod
    def disjoint(self) -> bool:
        """Whether A has ones only, and one in each column at the most: measured are sums over disjoint groups."""

    @property
    def consistent(self) -> bool:
        """Whether all answers follow from the same numbers, so that they add up."""
        return True

    @abstractmethod
    def change(self, norm: str) -> int:
        """What one row changes: max_j Σ_i A_ij² where the norm is L2, max_j Σ_i |A_ij| where it is L1."""

    @abstractmethod
    def measure(self, tables: Tables) -> Numbers:
        """A·x in exact integers: int64 where all of them fit, else Python's."""

    @abstractmethod
    def infer(self, noisy: Numbers) -> Inferred:
        """What least squares tell, where the noise has one variance."""

    @abstractmethod
    def determines(self, product: Product) -> bool:
        """Whether its answers follow from what is measured."""

    @abstractmethod
    def variances(self, product: Product) -> Array:
        """Of its answers, for noise of variance 1 on each measured integer."""

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """What is stored of it besides kind and sizes."""

    @classmethod
    @abstractmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Strategy:
        """The strategy that was stored."""

    def total_variance(self, product: Product) -> float:
        """The sum of `variances`."""
        return float(self.variances(product).sum())

    def expected(self, workload: Workload, norm: str) -> float:
        """The total of squared errors, each times the square of its weight, at unit sensitivity.

        Noise of variance v·Δ² (for L1: v = 2/ε², for L2 under zCDP: v = 1/2ρ) makes it v times that.
        """
        variances = [self.total_variance(each) for each in workload.products]
        return sensitivity(self.change(norm), norm) * float(workload.squared_weights @ np.array(variances))

    def matrices(self) -> dict[Attributes, csr_array]:
        """A as it is, for each table that it reads: all of its rows over that table's cells; for small tables."""
        from scipy.sparse import csr_array

        shapes = {own: [self.sizes[at] for at in own] for own in self.tables}
        if sum(map(math.prod, shapes.values())) > WRITTEN:
            raise ValueError("This strategy reads too many cells to be written down.")
        empty = {own: np.zeros(shape, dtype=np.int64) for own, shape in shapes.items()}
        found = {}
        for own, shape in shapes.items():
            units = np.eye(math.prod(shape), dtype=np.int64).reshape(-1, *shape)
            found[own] = csr_array(np.stack([self.measure({**empty, own: unit}) for unit in units], axis=1))
        return found

    def to_json(self) -> dict[str, Any]:
        """All of it, exactly."""
        return {"kind": self.kind, "sizes": list(self.sizes), **self.body()}


def sensitivity(change: int, norm: str) -> float:
    """The square of what one row changes, from `Strategy.change`."""
    return float(change if norm == "l2" else change * change)


class UndeterminedError(ValueError):
    """What is asked for does not follow from what is measured."""


def require(determined: bool) -> None:
    """Stop where answers do not follow from what is measured."""
    if not determined:
        raise UndeterminedError("This strategy does not determine these answers.")


def table_of(tables: Tables, attributes: Attributes, sizes: tuple[int, ...]) -> Numbers:
    """The table of these attributes, in its shape.

    Lists are taken as Python's integers: numpy would make floating point of some that are too long for 64 bits.
    """
    given: Any = tables[attributes]
    found: Any = given if isinstance(given, np.ndarray | np.generic) else np.array(given, dtype=object)
    if found.dtype.kind == "O" and all(isinstance(each, int | np.integer) for each in found.flat):
        found = np.array([int(each) for each in found.flat], dtype=object)
    elif found.dtype.kind not in "iu":
        raise TypeError("What is measured are whole numbers.")
    return np.asarray(found).reshape([sizes[each] for each in attributes])
