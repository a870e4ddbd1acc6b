"""Strategies whose matrix has no structure to solve it by: it is written down, where there are few cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.measuring.strategies.factors import Array
from dalenius.measuring.strategies.strategy import Attributes
from dalenius.measuring.strategies.workload import Product, Workload

FEW = 1024  # cells, up to which that is done
_AT_ONCE = 2**23  # numbers
_SMALL = 16  # answers


@dataclass(frozen=True, eq=False)
class Written:
    """A matrix over all cells, and its pseudoinverse.

    Attributes:
        sizes: How many classes each attribute has.
        attributes: Those that cells tell apart.
        matrix: What is measured.
    """

    sizes: tuple[int, ...]
    attributes: Attributes
    matrix: Array

    @cached_property
    def inverse(self) -> Array:
        """The pseudoinverse A⁺."""
        return np.asarray(np.linalg.pinv(self.matrix, rcond=1e-10), dtype=float)

    @cached_property
    def _left(self) -> Array:
        """What is not determined: 1 − A⁺A."""
        return np.asarray(np.eye(len(self.inverse)) - self.inverse @ self.matrix)

    def rows(self, product: Product) -> Array:
        """A question over all cells."""
        found = np.ones((1, 1))
        for at in self.attributes:
            found = np.kron(found, product.factor(at, self.sizes[at]).matrix().toarray().astype(float))
        return found

    def applied(self, product: Product, columns: Array) -> Iterator[Array]:
        """The question times a matrix of a row for each cell, a few columns at a time: there may be many answers."""
        shape = [self.sizes[at] for at in self.attributes]
        step = max(1, _AT_ONCE // max(1, product.answers))
        for start in range(0, columns.shape[1], step):
            found = columns[:, start : start + step].reshape(*shape, -1)
            for axis, at in enumerate(self.attributes):
                found = product.factor(at, self.sizes[at]).apply(found, axis)
            yield found.reshape(-1, found.shape[-1])

    def determines(self, product: Product) -> bool:
        """Whether the question is a combination of what is measured."""
        if not set(product.factors) <= set(self.attributes):
            return False
        return all(bool((np.abs(part) <= 1e-7 * len(self.inverse)).all()) for part in self.applied(product, self._left))

    def variances(self, product: Product) -> Array:
        """The diagonal of F(AᵀA)⁺Fᵀ."""
        found = np.zeros(product.answers)
        for part in self.applied(product, self.inverse):
            found += np.square(part).sum(axis=1)
        return found

    def total(self, workload: Workload) -> float:
        """Σ weight²·variance over all answers."""
        return total_squares(workload, self.attributes, self.inverse)

    def answers(self, product: Product, noisy: Array) -> Array:
        """F·A⁺·y."""
        (found,) = self.applied(product, (self.inverse @ noisy)[:, None])
        return found.ravel()


def total_squares(workload: Workload, attributes: Attributes, columns: Array) -> float:
    """Σ weight²·‖F·columns‖² over all questions F: small ones many at a time.

    Not from Σ FᵀF: where some combination of cells is hardly measured, and not asked for, digits would be lost.
    """
    empty = Written(workload.sizes, attributes, np.zeros((0, 0)))
    total, rows, waiting = 0.0, list[Array](), 0
    for each, weight in zip(workload.products, workload.squared_weights, strict=True):
        if each.answers > _SMALL:
            total += weight * sum(float(np.square(part).sum()) for part in empty.applied(each, columns))
            continue
        rows.append(math.sqrt(weight) * empty.rows(each))
        waiting += each.answers
        if waiting > FEW:
            total, rows, waiting = total + float(np.square(np.concatenate(rows) @ columns).sum()), [], 0
    return total + (float(np.square(np.concatenate(rows) @ columns).sum()) if rows else 0.0)


def weighted_gram(workload: Workload, attributes: Attributes) -> Array:
    """Σ weight²·FᵀF over all cells: questions of few answers by their rows, many at a time, others by their factors."""
    cells = math.prod(workload.sizes[at] for at in attributes)
    empty = Written(workload.sizes, attributes, np.zeros((0, cells)))
    found, rows, waiting = np.zeros((cells, cells)), list[Array](), 0
    for each, weight in zip(workload.products, workload.squared_weights, strict=True):
        if each.answers < cells // 8:
            rows.append(math.sqrt(weight) * empty.rows(each))
            waiting += each.answers
            if waiting > 2 * FEW:
                stack = np.concatenate(rows)
                found, rows, waiting = found + stack.T @ stack, [], 0
        else:
            own = np.array([[weight]])
            for at in attributes:
                own = np.kron(own, each.factor(at, workload.sizes[at]).gram())
            found += own
    stack = np.concatenate([*rows, np.zeros((1, cells))])
    return np.asarray(found + stack.T @ stack)


def few(sizes: tuple[int, ...], attributes: Attributes, rows: int) -> bool:
    """Whether a matrix with so many rows is written down."""
    return rows <= 2 * FEW and math.prod(sizes[at] for at in attributes) <= FEW
