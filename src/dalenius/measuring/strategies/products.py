"""Kronecker products: a strategy for each attribute, measured in all combinations.

The largest column of a product is the product of the largest columns, its least squares are those of one attribute
after the other, and so are its variances: nothing as large as cells × cells is ever needed, and 10⁶ cells are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Array, Numbers, Total
from dalenius.measuring.strategies.lines import Line
from dalenius.measuring.strategies.strategy import (
    Attributes,
    Inferred,
    Strategy,
    Tables,
    require,
    sensitivity,
    table_of,
)
from dalenius.measuring.strategies.workload import Product, Workload, outer


@dataclass(frozen=True)
class Products(Strategy):
    """One strategy for each attribute.

    Attributes:
        sizes: How many classes each attribute has.
        lines: By the attribute's number. Those that are not named are not told apart.
    """

    kind: ClassVar[str] = "products"
    sizes: tuple[int, ...]
    lines: Mapping[int, Line]

    @property
    def attributes(self) -> Attributes:
        """Those that are told apart."""
        return tuple(sorted(self.lines))

    @property
    def name(self) -> str:
        """Of its lines, in a few words."""
        names = sorted({each.name for each in self.lines.values() if not each.disjoint})
        if not names:
            return "disjoint cells"
        return names[0] if len(self.lines) == 1 else f"product of {' and '.join(names)}"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """The joint cells."""
        return (self.attributes,)

    @property
    def rows(self) -> int:
        """All combinations."""
        return math.prod(each.rows for each in self.lines.values())

    @property
    def signed(self) -> bool:
        """Where one of them is."""
        return any(each.signed for each in self.lines.values())

    @property
    def disjoint(self) -> bool:
        """Where all of them are."""
        return all(each.disjoint for each in self.lines.values())

    def change(self, norm: str) -> int:
        """The product: a column is a Kronecker product of columns, and so is its length."""
        return math.prod(each.change(norm) for each in self.lines.values())

    def measure(self, tables: Tables, scale: int = 1) -> Numbers:
        """One attribute after the other; times a whole number, in a union."""

        def linear(x: Numbers) -> Numbers:
            for axis, attribute in enumerate(self.attributes):
                x = self.lines[attribute].apply(x, axis)
            return x.ravel() * scale

        growth = scale * math.prod(each.growth for each in self.lines.values())
        return apply_exactly(linear, table_of(tables, self.attributes, self.sizes), growth)

    def infer(self, noisy: Numbers) -> InferredCells:
        """All cells."""
        found = np.asarray(noisy, dtype=float).reshape([self.lines[each].rows for each in self.attributes])
        for axis, attribute in enumerate(self.attributes):
            found = self.lines[attribute].solve(found, axis)
        return InferredCells(self.attributes, found)

    def determines(self, product: Product) -> bool:
        """Whether it is about these attributes alone."""
        return set(product.factors) <= set(self.lines)

    def variances(self, product: Product) -> Array:
        """Products of the attributes' own."""
        require(self.determines(product))
        return outer([line.variances(product.factor(at, line.classes)) for at, line in sorted(self.lines.items())])

    def total_variance(self, product: Product) -> float:
        """The product of the attributes' own."""
        require(self.determines(product))
        return math.prod(line.total_variance(product.factor(at, line.classes)) for at, line in self.lines.items())

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once."""
        require(set(workload.attributes) <= set(self.lines))
        found = workload.squared_weights.copy()
        for at, line in self.lines.items():
            told = workload.asked.get(at)
            found *= line.total_variance(Total(line.classes)) if told is None else line.totals(told)
        return sensitivity(self.change(norm), norm) * float(found.sum())

    def body(self) -> dict[str, Any]:
        """Its lines."""
        return {"lines": [[at, self.lines[at].to_json()] for at in self.attributes]}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Products:
        """The strategy that was stored."""
        from dalenius.measuring.strategies.stored import line_of_json

        return cls(sizes, {int(at): line_of_json(line) for at, line in body["lines"]})


@dataclass(frozen=True)
class InferredCells(Inferred):
    """Numbers for all cells; answers add them up."""

    attributes: Attributes
    cells: Array

    def answers(self, product: Product) -> Array:
        """Totals first, since they make the rest small."""
        require(set(product.factors) <= set(self.attributes))
        left = tuple(at for at, each in enumerate(self.attributes) if each not in product.factors)
        found = self.cells.sum(axis=left)
        for axis, attribute in enumerate(product.attributes):
            found = product.factors[attribute].apply(found, axis)
        return np.asarray(found, dtype=float).ravel()
