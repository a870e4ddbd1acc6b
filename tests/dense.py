"""Strategies and questions as matrices that are written down, to compare with what has a closed form."""

from __future__ import annotations

import math

import numpy as np

from dalenius.measuring.strategies.factors import Identity, Rows, Total
from dalenius.measuring.strategies.levels import LevelLine
from dalenius.measuring.strategies.range_factors import AllRange, Prefix, Ranges
from dalenius.measuring.strategies.workload import Product, Workload


def tables_of(strategy, x):
    """The tables that it reads, from all cells."""
    return {own: x.sum(axis=tuple(axis for axis in range(x.ndim) if axis not in own)) for own in strategy.tables}


def matrix_of(strategy):
    """A, as Python's integers: what each cell alone is measured as."""
    n = math.prod(strategy.sizes)
    units = np.eye(n, dtype=np.int64).reshape(n, *strategy.sizes)
    return np.stack([strategy.measure(tables_of(strategy, unit)).astype(object) for unit in units], axis=1)


def question_matrix(product, sizes):
    """Its rows over all cells."""
    found = np.ones((1, 1))
    for at, n in enumerate(sizes):
        found = np.kron(found, product.factor(at, n).matrix().toarray())
    return found


def some_factor(chance, n):
    """One of all kinds."""
    kinds = (
        Identity(n),
        Prefix(n),
        AllRange(n),
        Total(n),
        Ranges(n, (0, n // 2), (1, n)),
        Rows.of(chance.integers(0, 2, (2, n)) | np.eye(2, n, dtype=int)),
        Rows.of(chance.integers(-1, 2, (1, n)) | np.eye(1, n, dtype=int)),
    )
    return kinds[chance.integers(len(kinds))]


def some_workload(seed):
    """A few questions about three small attributes."""
    chance = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in chance.integers(1, 5, 3))
    products = tuple(
        Product(
            {at: some_factor(chance, sizes[at]) for at in range(3) if sizes[at] > 1 and chance.random() < 0.6},
            weight=0.2 + float(chance.random()),
        )
        for _ in range(chance.integers(1, 5))
    )
    return Workload(sizes, products)


def padded(strategy):
    """Whether it measures classes that are not there, which its own least squares do not know."""
    parts = getattr(strategy, "parts", [strategy])
    lines = [line for part in parts for line in getattr(part, "lines", {}).values()]
    return any(isinstance(line, LevelLine) and line.padded > line.classes for line in lines)
