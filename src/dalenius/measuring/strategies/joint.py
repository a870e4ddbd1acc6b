"""The best matrix over all cells at once, where these are few: `p_identity` with all attributes as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.lines import MatrixLine
from dalenius.measuring.strategies.p_identity import optimised_line
from dalenius.measuring.strategies.products import InferredCells
from dalenius.measuring.strategies.strategy import Attributes, Strategy, Tables, require, sensitivity, table_of
from dalenius.measuring.strategies.workload import Product, Workload
from dalenius.measuring.strategies.written import total_squares, weighted_gram

MOST = 384  # cells
_EFFORT = 0.35  # of what a single attribute gets


@dataclass(frozen=True)
class Joint(Strategy):
    """A matrix that is written down, over all cells.

    Attributes:
        sizes: How many classes each attribute has.
        attributes: Those that cells tell apart.
        line: The matrix.
    """

    kind: ClassVar[str] = "joint"
    sizes: tuple[int, ...]
    attributes: Attributes
    line: MatrixLine

    @property
    def name(self) -> str:
        """For people."""
        return "optimised matrix over all cells"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """The joint cells."""
        return (self.attributes,)

    @property
    def rows(self) -> int:
        """How many integers are measured."""
        return self.line.rows

    @property
    def signed(self) -> bool:
        """As its matrix."""
        return self.line.signed

    @property
    def disjoint(self) -> bool:
        """No."""
        return False

    def change(self, norm: str) -> int:
        """As its matrix."""
        return self.line.change(norm)

    def measure(self, tables: Tables) -> Numbers:
        """The matrix times all cells."""
        flat = table_of(tables, self.attributes, self.sizes).ravel()
        return apply_exactly(lambda x: self.line.apply(x, 0), flat, self.line.growth)

    @property
    def _shape(self) -> list[int]:
        return [self.sizes[at] for at in self.attributes]

    def infer(self, noisy: Numbers) -> InferredCells:
        """All cells."""
        found = self.line.solve(np.asarray(noisy, dtype=float).ravel(), 0)
        return InferredCells(self.attributes, found.reshape(self._shape))

    def determines(self, product: Product) -> bool:
        """Whether it is about these attributes alone."""
        return set(product.factors) <= set(self.attributes)

    def variances(self, product: Product) -> Array:
        """Squares of the question's rows times the root of (AᵀA)⁻¹."""
        require(self.determines(product))
        found = self.line.root.reshape([*self._shape, -1])
        for axis, at in enumerate(self.attributes):
            found = product.factor(at, self.sizes[at]).apply(found, axis)
        return np.asarray(np.square(found).sum(axis=-1)).ravel()

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once."""
        require(set(workload.attributes) <= set(self.attributes))
        return sensitivity(self.change(norm), norm) * total_squares(workload, self.attributes, self.line.root)

    def body(self) -> dict[str, Any]:
        """The matrix."""
        return {"attributes": list(self.attributes), "line": self.line.to_json()}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Joint:
        """The strategy that was stored."""
        return cls(sizes, tuple(map(int, body["attributes"])), MatrixLine.of_json(body["line"]))


def optimised_cells(workload: Workload, norm: str) -> Joint | None:
    """By descent; None where there are too many cells."""
    if workload.cells > MOST or len(workload.attributes) < 2:
        return None
    gram = weighted_gram(workload, workload.attributes)
    return Joint(workload.sizes, workload.attributes, optimised_line(gram, norm, effort=_EFFORT))
