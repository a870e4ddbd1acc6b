"""Whole marginals, each times a weight: as `residual`, but of counts that are not below zero, and for L1.

What table T says of the contrasts z_S of a smaller set S ⊆ T: it is summed over T∖S, so noise adds up over
N = Π n_d of d ∈ T∖S entries. With weight u_T that is a precision of u_T²/N, and of all tables together
p_S = Σ_{T ⊇ S} u_T²/N. An answer's variance is Σ_S ‖its contrasts in S‖²/p_S, whatever the number of joint cells.
A row is in one entry of each table: it changes Σ u_T² in L2 and Σ u_T in L1. The weights are found by descent on their
logarithms. Tables that are larger than any question's can pay in L1; they are tried where there are few attributes.

References:
    McKenna, Miklau, Hay, Machanavajjhala 2018 (OPT_M); Barak et al.: Privacy, accuracy, and consistency too. PODS 2007.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from dalenius.measuring.strategies.contrasts import Contrasts
from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Array, Numbers
from dalenius.measuring.strategies.lines import Line
from dalenius.measuring.strategies.residual import InferredParts, evenly, needed, part_errors
from dalenius.measuring.strategies.strategy import Attributes, Strategy, Tables, require, sensitivity, table_of
from dalenius.measuring.strategies.workload import Product, Workload

MOST_PAIRS = 200_000  # of a set and a smaller one
_PARTS = 2**7  # of the largest weight, at the least
_NOTHING = 2**-7  # of the largest weight: what is below is not measured


@dataclass(frozen=True)
class Marginals(Strategy):
    """Tables as they are, each with a weight.

    Attributes:
        sizes: How many classes each attribute has.
        weights: By the table's attributes.
    """

    kind: ClassVar[str] = "marginals"
    sizes: tuple[int, ...]
    weights: Mapping[Attributes, int]

    @property
    def name(self) -> str:
        """For people."""
        return "weighted marginals"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """Those that are measured."""
        return tuple(self.weights)

    @cached_property
    def rows(self) -> int:
        """All entries."""
        return sum(self._entries(own) for own in self.weights)

    def _entries(self, attributes: Attributes) -> int:
        return math.prod(self.sizes[at] for at in attributes)

    @property
    def signed(self) -> bool:
        """No."""
        return False

    @property
    def disjoint(self) -> bool:
        """Where it is one table."""
        return tuple(self.weights.values()) == (1,)

    def change(self, norm: str) -> int:
        """A row is in one entry of each table."""
        return sum(each if norm == "l1" else each * each for each in self.weights.values())

    def measure(self, tables: Tables) -> Numbers:
        """Table by table."""
        found = []
        for own, weight in self.weights.items():
            found.append(apply_exactly(lambda x, w=weight: x.ravel() * w, table_of(tables, own, self.sizes), weight))  # type: ignore[misc]
        return np.concatenate(found)

    def infer(self, noisy: Numbers) -> InferredParts:
        """Contrasts of each set from all tables that hold it, by their precisions."""
        values, start, found = np.asarray(noisy, dtype=float).ravel(), 0, dict[Attributes, Array]()
        for own, weight in self.weights.items():
            end = start + self._entries(own)
            table = values[start:end].reshape([self.sizes[at] for at in own])
            for smaller in subsets(own):
                if smaller not in self.precisions:
                    continue
                left = tuple(axis for axis, at in enumerate(own) if at not in smaller)
                part = table.sum(axis=left) * (weight / self._spread(own, smaller) / self.precisions[smaller])
                for axis in range(len(smaller)):
                    part = part - part.mean(axis=axis, keepdims=True)
                found[smaller] = found[smaller] + part if smaller in found else np.asarray(part)
            start = end
        return InferredParts(self, self.sizes, found)

    def _spread(self, own: Attributes, smaller: Attributes) -> int:
        return self._entries(own) // self._entries(smaller)

    @cached_property
    def precisions(self) -> dict[Attributes, float]:
        """p_S for each set that some table holds."""
        found = dict[Attributes, float]()
        for own, weight in self.weights.items():
            for smaller in subsets(own):
                if all(self.sizes[at] > 1 for at in smaller):
                    found[smaller] = found.get(smaller, 0.0) + weight**2 / self._spread(own, smaller)
        return found

    def determines(self, product: Product) -> bool:
        """Whether tables hold all its parts."""
        return all(own in self.precisions for own in needed(product, self.sizes))

    def variances(self, product: Product) -> Array:
        """The sum over all parts."""
        require(self.determines(product))
        parts = {
            at: (
                factor.squares() - factor.block_squares(factor.classes) / factor.classes,
                np.square(factor.sums() / factor.classes),
            )
            for at, factor in product.factors.items()
        }
        found = np.zeros(product.shape)
        for own in needed(product, self.sizes):
            part = np.array(1.0 / self.precisions[own])
            for at in product.attributes:
                part = np.multiply.outer(part, parts[at][0 if at in own else 1])
            found += part
        return found.ravel()

    def total_variance(self, product: Product) -> float:
        """The same of sums."""
        require(self.determines(product))
        return sum(
            math.prod(
                Contrasts(factor.classes).total_variance(factor) * factor.classes**2 if at in own else evenly(factor)
                for at, factor in product.factors.items()
            )
            / self.precisions[own]
            for own in needed(product, self.sizes)
        )

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once."""
        errors = _errors(workload)
        require(set(errors) <= set(self.precisions))
        return sensitivity(self.change(norm), norm) * sum(error / self.precisions[own] for own, error in errors.items())

    def body(self) -> dict[str, Any]:
        """The weights."""
        return {"weights": [[list(own), weight] for own, weight in self.weights.items()]}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Marginals:
        """The strategy that was stored."""
        return cls(sizes, {tuple(map(int, own)): int(weight) for own, weight in body["weights"]})


def weighted_marginals(workload: Workload, norm: str, cells_limit: int) -> Marginals | None:
    """The best weights; None where there are too many sets."""
    if sum(2 ** len(own) for own in workload.groups) > MOST_PAIRS:
        return None
    errors = _errors(workload)
    if not errors:
        return None
    tables = _tables(workload, set(errors), cells_limit)
    sets = {own: at for at, own in enumerate(errors)}
    pairs = [
        (sets[smaller], at, 1 / math.prod(workload.sizes[d] for d in own if d not in smaller))
        for at, own in enumerate(tables)
        for smaller in subsets(own)
        if smaller in sets
    ]
    if len(pairs) > MOST_PAIRS:
        return None
    real = _best(np.array(list(errors.values())), pairs, len(tables), norm)
    kept = {own: u for own, u in zip(tables, real / real.max(), strict=True) if u > _NOTHING}
    held = {smaller for own in kept for smaller in subsets(own)}
    for own in errors:  # a part that no table tells any more
        if own not in held:
            kept[own] = _NOTHING
    if len(kept) == 1:
        return Marginals(workload.sizes, dict.fromkeys(kept, 1))
    scale = _PARTS / min(kept.values())
    return Marginals(workload.sizes, {own: int(u * scale) for own, u in kept.items()})


def _errors(workload: Workload) -> dict[Attributes, float]:
    """Of each set's contrasts, at precision 1: as `contrasts` has them, n times as large in each attribute."""
    lines: dict[int, Line] = {at: Contrasts(workload.sizes[at]) for at in workload.attributes}
    return {
        own: error * math.prod(workload.sizes[at] ** 2 for at in own)
        for own, error in part_errors(workload, lines).items()
    }


def _tables(workload: Workload, sets: set[Attributes], cells_limit: int) -> list[Attributes]:
    """Those of the questions' parts; all there are, where that is not too much."""
    every = workload.attributes
    found = set(sets)
    if 3 ** len(every) <= MOST_PAIRS:
        found |= {own for own in subsets(every) if math.prod(workload.sizes[at] for at in own) <= cells_limit}
    return sorted(found, key=lambda own: (len(own), own))


def _best(errors: Array, pairs: list[tuple[int, int, float]], tables: int, norm: str) -> Array:
    """Weights that bring down the logarithm of change·Σ v_S/p_S."""
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    rows, columns, shares = (np.array(each) for each in zip(*pairs, strict=True))
    told = csr_array((shares, (rows, columns)), shape=(len(errors), tables))

    def value(logs: Array) -> tuple[float, Array]:
        u = np.exp(logs - logs.max())
        precision = told @ (u * u)
        rates = errors / precision
        error = rates.sum()
        slope = -2 * u * u * (told.T @ (rates / precision)) / error
        if norm == "l1":
            return float(np.log(error) + 2 * np.log(u.sum())), slope + 2 * u / u.sum()
        square = u @ u
        return float(np.log(error) + np.log(square)), slope + 2 * u * u / square

    options: Any = {"maxiter": 500, "maxfun": 1000}
    found = minimize(value, np.zeros(tables), jac=True, method="L-BFGS-B", bounds=[(-9, 9)] * tables, options=options)
    return np.exp(np.asarray(found.x) - np.max(found.x))


def subsets(own: Attributes) -> list[Attributes]:
    """All of them, the smallest first."""
    return [chosen for count in range(len(own) + 1) for chosen in combinations(own, count)]
