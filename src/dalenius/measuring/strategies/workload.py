"""Many questions of one measure, as what they ask of disjoint cells.

A *product* is a question whose answers are all combinations of the answers of its factors, one factor for each
attribute that it tells rows apart by; other attributes count in total. Its matrix over all cells is their Kronecker
product, which is never written down. A *workload* is several of them, each with a weight: how much its errors matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.asked import AskedOf
from dalenius.measuring.strategies.factors import Array, Factor, Identity, Total

_LEAST = 1e-3  # of the largest weight


@dataclass(frozen=True)
class Product:
    """One question, or one filtered aggregate of it.

    Attributes:
        factors: By the attribute's number. One that is not named counts in total.
        weight: Errors of this question count so many times (their squares, by its square).
    """

    factors: Mapping[int, Factor] = field(default_factory=dict)
    weight: float = 1.0

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """Those that it tells apart, in order: answers are in the order of their combinations, the last one fastest."""
        return tuple(sorted(self.factors))

    @cached_property
    def key(self) -> tuple[tuple[int, str], ...]:
        """The same for the same questions, written alike, whatever their weights."""
        return tuple((at, self.factors[at].key) for at in self.attributes)

    @property
    def answers(self) -> int:
        """How many there are."""
        return math.prod(each.answers for each in self.factors.values())

    @property
    def shape(self) -> tuple[int, ...]:
        """Answers of each attribute."""
        return tuple(self.factors[each].answers for each in self.attributes)

    def factor(self, attribute: int, classes: int) -> Factor:
        """What it asks of an attribute of so many classes."""
        return self.factors.get(attribute) or Total(classes)

    @property
    def marginal(self) -> bool:
        """Whether it asks for each class, or for all of them together, of every attribute."""
        return all(isinstance(each, Identity | Total) for each in self.factors.values())


@dataclass(frozen=True)
class Workload:
    """All questions of one measure.

    Attributes:
        sizes: How many classes each attribute has.
        products: The questions.
    """

    sizes: tuple[int, ...]
    products: tuple[Product, ...]

    def __post_init__(self) -> None:
        if not self.products:
            raise ValueError("A workload has at least one question.")
        for each in self.products:
            if not (each.weight > 0 and math.isfinite(each.weight)):
                raise ValueError("A weight is a number above zero.")
            if any(self.sizes[number] != factor.classes for number, factor in each.factors.items()):
                raise ValueError("A factor has as many classes as its attribute.")

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        """Those that some question tells apart."""
        return tuple(sorted({each for product in self.products for each in product.factors}))

    @cached_property
    def asked(self) -> Mapping[int, AskedOf]:
        """What is asked of each attribute."""
        named: dict[int, list[tuple[int, Factor]]] = {at: [] for at in self.attributes}
        for number, each in enumerate(self.products):
            for at, factor in each.factors.items():
                named[at].append((number, factor))
        return {at: AskedOf.all(self.sizes[at], len(self.products), own) for at, own in named.items()}

    @cached_property
    def groups(self) -> Mapping[tuple[int, ...], NDArray[np.int64]]:
        """The numbers of questions that tell the same attributes apart."""
        found: dict[tuple[int, ...], list[int]] = {}
        for number, each in enumerate(self.products):
            found.setdefault(each.attributes, []).append(number)
        return {own: np.array(numbers) for own, numbers in found.items()}

    @cached_property
    def squared_weights(self) -> Array:
        """What squared errors of each question count.

        A weight that is less than a thousandth of the largest counts as that: its questions would be answered with
        next to nothing of the price, and numbers that far apart cannot be solved together.
        """
        weights = np.array([each.weight for each in self.products], dtype=float)
        return np.asarray(np.square(np.maximum(weights / weights.max(), _LEAST) * weights.max()))

    @property
    def answers(self) -> int:
        """How many there are in all."""
        return sum(each.answers for each in self.products)

    @property
    def cells(self) -> int:
        """The disjoint cells that all questions can be answered from."""
        return math.prod(self.sizes[each] for each in self.attributes)


def outer(parts: list[Array]) -> Array:
    """The Kronecker product of vectors."""
    found = np.ones(1)
    for each in parts:
        found = np.multiply.outer(found, each).ravel()
    return found
