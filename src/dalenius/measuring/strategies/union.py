"""Several products side by side: one for each set of attributes that is asked about, each with its share of the price.

Where questions are about different attributes, one product for all of them tells apart what no question does. A union
measures a product for each set, times a whole number s_g. With errors E_g at unit sensitivity, shares are best at
s_g² ∝ √E_g in L2, where the error is (Σ √E_g)², and at s_g³ ∝ E_g in L1, where it is (Σ E_g^⅓)³.

Where there are few cells, answers are least squares of all that was measured. Where there are many, an answer that
several products determine is their average by precision, since their noise is independent; answers that come from
different products then add up only nearly.

References:
    McKenna, Miklau, Hay, Machanavajjhala 2018 (OPT_+).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.product_search import best_product
from dalenius.measuring.strategies.products import Products
from dalenius.measuring.strategies.strategy import Attributes, Inferred, Strategy, Tables, require, sensitivity
from dalenius.measuring.strategies.workload import Product, Workload
from dalenius.measuring.strategies.written import Written, few

MOST = 24  # products
_EXACT = 1e-200  # the variance of what is known, such as an empty range
_LEAST = 2**-8  # of the largest share, where next to nothing is asked
_PARTS = 2**7  # of the smallest share, at the least


@dataclass(frozen=True)
class Union(Strategy):
    """Products, each times a whole number.

    Attributes:
        sizes: How many classes each attribute has.
        parts: The products.
        scales: What each is multiplied by.
    """

    kind: ClassVar[str] = "union"
    sizes: tuple[int, ...]
    parts: tuple[Products, ...]
    scales: tuple[int, ...]

    @property
    def name(self) -> str:
        """For people."""
        return "several products"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """One for each product."""
        return tuple(dict.fromkeys(each.attributes for each in self.parts))

    @property
    def rows(self) -> int:
        """Of all products."""
        return sum(each.rows for each in self.parts)

    @property
    def signed(self) -> bool:
        """Where one of them is."""
        return any(each.signed for each in self.parts)

    @property
    def disjoint(self) -> bool:
        """Where there is but one, and it is."""
        return self.scales == (1,) and self.parts[0].disjoint

    def change(self, norm: str) -> int:
        """The sum: no column is longer than the longest of each together."""
        power = 1 if norm == "l1" else 2
        return sum(scale**power * each.change(norm) for each, scale in zip(self.parts, self.scales, strict=True))

    def measure(self, tables: Tables) -> Numbers:
        """Product by product."""
        return np.concatenate(
            [each.measure(tables, scale) for each, scale in zip(self.parts, self.scales, strict=True)]
        )

    @cached_property
    def consistent(self) -> bool:
        """Whether all are solved at once."""
        return few(self.sizes, self._attributes, self.rows)

    @cached_property
    def _attributes(self) -> Attributes:
        return tuple(sorted({at for each in self.parts for at in each.lines}))

    @cached_property
    def written(self) -> Written:
        """The matrix over all cells; only where these are few."""
        found = []
        for part, scale in zip(self.parts, self.scales, strict=True):
            own = np.full((1, 1), float(scale))
            for at in self._attributes:
                n, line = self.sizes[at], part.lines.get(at)
                own = np.kron(own, np.ones((1, n)) if line is None else line.apply(np.eye(n, dtype=np.int64), 0))
            found.append(own)
        return Written(self.sizes, self._attributes, np.concatenate(found))

    def infer(self, noisy: Numbers) -> InferredUnion:
        """Each product's own cells."""
        values = np.asarray(noisy, dtype=float).ravel()
        pieces = np.split(values, np.cumsum([each.rows for each in self.parts])[:-1])
        found = [part.infer(piece / scale) for part, piece, scale in zip(self.parts, pieces, self.scales, strict=True)]
        return InferredUnion(self, values, tuple(found))

    def determining(self, product: Product) -> list[int]:
        """The numbers of the products that determine it."""
        found = [at for at, each in enumerate(self.parts) if each.determines(product)]
        require(bool(found))
        return found

    def determines(self, product: Product) -> bool:
        """Whether one of them does; where cells are few, whether all of them together do."""
        if self.consistent:
            return self.written.determines(product)
        return any(each.determines(product) for each in self.parts)

    def precisions(self, product: Product) -> list[tuple[int, Array]]:
        """Of its answers, by the number of the product that gives them."""
        variances = [(at, self.parts[at].variances(product)) for at in self.determining(product)]
        return [(at, self.scales[at] ** 2 / np.maximum(own, _EXACT)) for at, own in variances]

    def variances(self, product: Product) -> Array:
        """Of least squares, or of an average by precision."""
        if self.consistent:
            require(self.determines(product))
            return self.written.variances(product)
        return np.asarray(1 / sum(precision for _, precision in self.precisions(product)))

    def total_variance(self, product: Product) -> float:
        """Without going through answers, where one product gives them all."""
        if self.consistent:
            return float(self.variances(product).sum())
        found = self.determining(product)
        if len(found) == 1:
            return self.parts[found[0]].total_variance(product) / self.scales[found[0]] ** 2
        return float(self.variances(product).sum())

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once where they are solved at once."""
        if not self.consistent:
            return super().expected(workload, norm)
        require(set(workload.attributes) <= set(self._attributes))
        return sensitivity(self.change(norm), norm) * self.written.total(workload)

    def body(self) -> dict[str, Any]:
        """The products, and what each is multiplied by."""
        return {"parts": [[scale, each.body()] for each, scale in zip(self.parts, self.scales, strict=True)]}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Union:
        """The strategy that was stored."""
        parts = tuple(Products.of_body(sizes, each) for _, each in body["parts"])
        return cls(sizes, parts, tuple(int(scale) for scale, _ in body["parts"]))


@dataclass(frozen=True)
class InferredUnion(Inferred):
    """What each product tells."""

    strategy: Union
    noisy: Array
    parts: tuple[Inferred, ...]

    def answers(self, product: Product) -> Array:
        """Least squares, or an average by precision."""
        if self.strategy.consistent:
            require(self.strategy.determines(product))
            return self.strategy.written.answers(product, self.noisy)
        own = self.strategy.precisions(product)
        found = sum(precision * self.parts[at].answers(product) for at, precision in own)
        return np.asarray(found / sum(precision for _, precision in own))


def best_union(workload: Workload, norm: str, cells_limit: int) -> Union | None:
    """One product for each set of attributes, but sets within another one go with it; None where there are too many."""
    sets = {each.attributes for each in workload.products}
    if len(sets) > 40 * MOST:
        return None
    largest = [own for own in sorted(sets) if not any(set(own) < set(other) for other in sets)]
    if not 1 < len(largest) <= MOST:
        return None
    parts, errors = [], []
    for own in largest:
        if math.prod(workload.sizes[at] for at in own) > cells_limit:
            return None
        products = tuple(each for each in workload.products if _home(each, largest) == own)
        group = Workload(workload.sizes, products)
        part = best_product(group, norm, effort=1 / len(largest))
        parts.append(part)
        errors.append(part.expected(group, norm))
    # A product's own whole numbers may be any: its scale makes up for what a row changes of it.
    power = 1 / 4 if norm == "l2" else 1 / 3
    shares = np.array(errors) ** power
    if not shares.any():
        return None  # nothing is asked
    lengths = np.array([math.sqrt(sensitivity(part.change(norm), norm)) for part in parts])
    real = np.maximum(shares, shares.max() * _LEAST) / lengths
    scales = tuple(int(each) for each in real / real.min() * _PARTS)
    return Union(workload.sizes, tuple(parts), scales)


def _home(product: Product, largest: list[Attributes]) -> Attributes:
    return next(own for own in largest if set(product.attributes) <= set(own))
