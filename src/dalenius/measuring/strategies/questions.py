"""The questions themselves: each is measured as it is asked, all of them under one price.

Each question q is multiplied by a whole number s_q, which says how much of the price it gets. Where answers are what
was measured for them, their total squared error is Σ_q E_q/s_q², with E_q = weight²·answers; a row changes c_q·s_q² of
question q in L2, c_q·s_q in L1. So the best are s_q⁴ ∝ E_q/c_q in L2, and s_q³ ∝ E_q/c_q in L1.

Where there are few cells, answers are least squares of all that was measured, and agree with each other. Where there
are many, an answer is what was measured for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factor_forms import factor_of_json
from dalenius.measuring.strategies.factors import Array, Factor, Identity, Numbers, Rows
from dalenius.measuring.strategies.strategy import (
    Attributes,
    Inferred,
    Strategy,
    Tables,
    require,
    sensitivity,
    table_of,
)
from dalenius.measuring.strategies.workload import Product, Workload
from dalenius.measuring.strategies.written import Written, few

_PARTS = 2**10  # of a scale, at the least
_ENUMERATED = 10**6  # cells that are gone through for the largest column


@dataclass(frozen=True)
class Questions(Strategy):
    """What is asked is what is measured.

    Attributes:
        sizes: How many classes each attribute has.
        products: The questions.
        scales: What each is multiplied by.
    """

    kind: ClassVar[str] = "questions"
    sizes: tuple[int, ...]
    products: tuple[Product, ...]
    scales: tuple[int, ...]

    @classmethod
    def of(cls, workload: Workload, norm: str) -> Questions:
        """With scales by errors and weights."""
        return cls(workload.sizes, workload.products, whole_scales(workload, norm))

    @property
    def name(self) -> str:
        """For people."""
        return "the questions themselves"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """One for each set of attributes."""
        return tuple(dict.fromkeys(each.attributes for each in self.products))

    @property
    def rows(self) -> int:
        """An integer for each answer."""
        return sum(each.answers for each in self.products)

    @cached_property
    def signed(self) -> bool:
        """Whether a question subtracts."""
        factors = [factor for each in self.products for factor in each.factors.values()]
        return any((factor.columns("l1") != _sums_of_columns(factor)).any() for factor in factors)

    @property
    def disjoint(self) -> bool:
        """Whether it is one question whose groups are."""
        return self.scales == (1,) and all(isinstance(each, Identity) for each in self.products[0].factors.values())

    def change(self, norm: str) -> int:
        """The most over all cells; where they are too many, the sum of each question's own."""
        return self._change[norm]

    @cached_property
    def _change(self) -> dict[str, int]:
        return {norm: self._largest_column(norm) for norm in ("l1", "l2")}

    def _largest_column(self, norm: str) -> int:
        attributes = tuple(sorted({at for each in self.products for at in each.factors}))
        scales = [scale if norm == "l1" else scale**2 for scale in self.scales]
        columns = [{at: each.factors[at].columns(norm) for at in each.factors} for each in self.products]
        bound = sum(
            scale * math.prod(int(column.max()) for column in own.values())
            for scale, own in zip(scales, columns, strict=True)
        )
        shape = [self.sizes[at] for at in attributes]
        if math.prod(shape) * len(self.products) > _ENUMERATED * 10 or max(bound, *scales).bit_length() > 62:
            return bound
        lengths = np.zeros(shape, dtype=np.int64)
        for scale, own in zip(scales, columns, strict=True):
            part = np.array(scale, dtype=np.int64)
            for axis, at in enumerate(attributes):
                if at in own:
                    part = part * own[at].reshape([-1 if axis == other else 1 for other in range(len(shape))])
            lengths += part
        return int(lengths.max())

    def measure(self, tables: Tables) -> Numbers:
        """One question after the other."""
        parts = []
        for each, scale in zip(self.products, self.scales, strict=True):
            growth = scale * math.prod(factor.growth for factor in each.factors.values())
            table = table_of(tables, each.attributes, self.sizes)
            parts.append(apply_exactly(partial(_scaled, each, scale), table, growth))
        return np.concatenate(parts)

    @cached_property
    def consistent(self) -> bool:
        """Whether all are solved at once."""
        return few(self.sizes, self._attributes, self.rows)

    @cached_property
    def _attributes(self) -> Attributes:
        return tuple(sorted({at for each in self.products for at in each.factors}))

    @cached_property
    def written(self) -> Written:
        """The matrix over all cells; only where these are few."""
        empty = Written(self.sizes, self._attributes, np.zeros((0, 0)))
        parts = [scale * empty.rows(each) for each, scale in zip(self.products, self.scales, strict=True)]
        return Written(self.sizes, self._attributes, np.concatenate(parts))

    def infer(self, noisy: Numbers) -> InferredQuestions:
        """From all of them, or from each its own."""
        return InferredQuestions(self, np.asarray(noisy, dtype=float).ravel())

    def determines(self, product: Product) -> bool:
        """Whether it was asked; where cells are few, whether it follows from what was asked."""
        return self.written.determines(product) if self.consistent else self.places(product) is not None

    def variances(self, product: Product) -> Array:
        """Of least squares, or of what was measured for it."""
        if self.consistent:
            require(self.determines(product))
            return self.written.variances(product)
        return self._own_variances(product)

    def total_variance(self, product: Product) -> float:
        """The sum of all."""
        if self.consistent:
            return float(self.variances(product).sum())
        return float(self._own_variances(product).sum())

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once where they are solved at once."""
        if not self.consistent or workload.products != self.products:
            return super().expected(workload, norm)
        return sensitivity(self.change(norm), norm) * self.written.total(workload)

    def _own_variances(self, product: Product) -> Array:
        found = self.places(product)
        require(found is not None)
        return np.array([1 / sum(self.scales[at] ** 2 for at, _ in own) for own in found or ()])

    def places(self, product: Product) -> list[list[tuple[int, int]]] | None:
        """For each of its answers where that was asked: the numbers of these questions, and of answers in them.

        What was asked by itself may have been gathered with others: a question over one attribute is known by its rows.
        """
        if product.key in self._asked:
            return [[(at, place) for at in self._asked[product.key]] for place in range(product.answers)]
        found = [self._rows.get(each, []) for each in _rows_of(product)]
        return found if found and all(found) else None

    @cached_property
    def _asked(self) -> dict[tuple[tuple[int, str], ...], list[int]]:
        found: dict[tuple[tuple[int, str], ...], list[int]] = {}
        for at, each in enumerate(self.products):
            found.setdefault(each.key, []).append(at)
        return found

    @cached_property
    def _rows(self) -> dict[tuple[int, bytes], list[tuple[int, int]]]:
        found: dict[tuple[int, bytes], list[tuple[int, int]]] = {}
        for at, each in enumerate(self.products):
            for place, key in enumerate(_rows_of(each)):
                found.setdefault(key, []).append((at, place))
        return found

    def body(self) -> dict[str, Any]:
        """Factors and scales."""
        questions = [
            {"factors": [[at, each.factors[at].to_json()] for at in each.attributes], "scale": scale}
            for each, scale in zip(self.products, self.scales, strict=True)
        ]
        return {"questions": questions}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Questions:
        """The strategy that was stored."""
        products = tuple(
            Product({int(at): factor_of_json(stored) for at, stored in each["factors"]}) for each in body["questions"]
        )
        return cls(sizes, products, tuple(int(each["scale"]) for each in body["questions"]))


@dataclass(frozen=True)
class InferredQuestions(Inferred):
    """What was measured, question by question."""

    strategy: Questions
    noisy: Array

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *np.cumsum([each.answers for each in self.strategy.products]).tolist()]

    def answers(self, product: Product) -> Array:
        """Least squares, or the weighted average of what was measured for it."""
        own = self.strategy
        if own.consistent:
            require(own.determines(product))
            return own.written.answers(product, self.noisy)
        places = own.places(product)
        require(places is not None)
        sums = [sum(own.scales[at] * self.noisy[self._starts[at] + row] for at, row in each) for each in places or ()]
        return np.asarray(sums) * own.variances(product)


def one_by_one(workload: Workload, norm: str) -> float:
    """The total squared error of questions asked one by one, each for an equal share of the price.

    In units of `Strategy.expected`: of k questions one with sensitivity Δ has noise of variance k²Δ² in L1, kΔ² in L2.
    """
    k = len(workload.products)
    total = 0.0
    for each, weight in zip(workload.products, workload.squared_weights, strict=True):
        change = math.prod(int(factor.columns(norm).max()) for factor in each.factors.values())
        total += weight * each.answers * (change * k if norm == "l2" else (change * k) ** 2)
    return float(total)


def whole_scales(workload: Workload, norm: str) -> tuple[int, ...]:
    """What each question is multiplied by: ones where all are alike, else in parts."""
    power = 1 / 4 if norm == "l2" else 1 / 3
    found = []
    for each, weight in zip(workload.products, workload.squared_weights, strict=True):
        change = math.prod(int(factor.columns(norm).max()) for factor in each.factors.values())
        found.append((weight * each.answers / max(1, change)) ** power)
    least = min(found)
    if max(found) <= least * (1 + 1e-9):
        return (1,) * len(found)
    return tuple(int(each / least * _PARTS) for each in found)


def _rows_of(product: Product) -> list[tuple[int, bytes]]:
    """What its answers are, each by itself, where one attribute decides them; else nothing."""
    if len(product.factors) != 1:
        return []
    ((at, factor),) = product.factors.items()
    matrix = factor.matrix()
    ends = matrix.indptr
    return [
        (
            at,
            matrix.indices[start:end].astype(np.int64).tobytes()
            + b"|"
            + matrix.data[start:end].astype(np.int64).tobytes(),
        )
        for start, end in pairwise(ends)
    ]


def _scaled(product: Product, scale: int, x: Numbers) -> Numbers:
    for axis, at in enumerate(product.attributes):
        x = product.factors[at].apply(x, axis)
    return x.ravel() * scale


def _sums_of_columns(factor: Factor) -> Any:
    """Of all factors only rows can hold entries below zero."""
    return np.asarray(factor.entries.sum(axis=0)).ravel() if isinstance(factor, Rows) else factor.columns("l1")
