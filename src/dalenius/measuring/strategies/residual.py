"""Marginals without big matrices: what each set of attributes tells beyond all smaller sets.

A table x_T over the attributes T is a sum of independent parts, one for each S ⊆ T: x_T = Σ z_S ⊗ (1/n) over T∖S, where
z_S holds contrasts in all attributes of S (`contrasts`) and the rest is spread evenly. Each z_S is measured once, from
the table of S alone, with a whole number s_S as its weight; so a question about T needs tables no larger than its own,
and the joint cells are never counted.

*Best weights.* Let v_S = Σ weight²·variance over all answers of their part in S at s_S = 1, and let c_S be what a row
changes of it. The error is (Σ c_S·s_S²)(Σ v_S/s_S²) in L2, least at s_S⁴ ∝ v_S/c_S, where it is (Σ √(v_S·c_S))²; in L1
it is (Σ c_S·s_S)²(Σ v_S/s_S²), least at s_S³ ∝ v_S/c_S. For marginals under L2 no strategy whatever has less error.

References:
    Xiao, He, Zhang, Kifer: An optimal and scalable matrix mechanism for noisy marginals under convex loss functions.
    NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dalenius.measuring.strategies.contrasts import MOST, Contrasts, optimised_contrasts
from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Array, Factor, Identity, Numbers, Total
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
from dalenius.measuring.strategies.workload import Product, Workload

MOST_SETS = 50_000
_PARTS = 2**7  # of the smallest weight
_LEAST = 2**-10  # of the largest part of what a row changes, where next to nothing is asked
_SMALL = 1e-12  # of all error: a part that adds less to it is not there


@dataclass(frozen=True)
class Residual(Strategy):
    """Parts of tables, each measured once.

    Attributes:
        sizes: How many classes each attribute has.
        lines: What is measured of an attribute where it is told apart.
        weights: By the set of attributes.
    """

    kind: ClassVar[str] = "residual"
    sizes: tuple[int, ...]
    lines: Mapping[int, Line]
    weights: Mapping[Attributes, int]

    @property
    def name(self) -> str:
        """For people."""
        return "parts of marginals"

    @property
    def tables(self) -> tuple[Attributes, ...]:
        """One for each set."""
        return tuple(self.weights)

    @cached_property
    def rows(self) -> int:
        """All parts."""
        return sum(math.prod(self.lines[at].rows for at in own) for own in self.weights)

    @property
    def signed(self) -> bool:
        """Contrasts are."""
        return any(self.weights)

    @property
    def disjoint(self) -> bool:
        """A row is in every part."""
        return len(self.weights) == 1 and not any(self.weights) and set(self.weights.values()) == {1}

    def change(self, norm: str) -> int:
        """Σ over all sets: a column of contrasts is as long as any other."""
        return self._change[norm]

    @cached_property
    def _change(self) -> dict[str, int]:
        own = {norm: {at: line.change(norm) for at, line in self.lines.items()} for norm in ("l1", "l2")}
        return {
            norm: sum(
                weight ** (1 if norm == "l1" else 2) * math.prod(own[norm][at] for at in attributes)
                for attributes, weight in self.weights.items()
            )
            for norm in ("l1", "l2")
        }

    def measure(self, tables: Tables) -> Numbers:
        """Set by set."""
        parts = []
        for attributes, weight in self.weights.items():
            growth = weight * math.prod(self.lines[at].growth for at in attributes)
            table = table_of(tables, attributes, self.sizes)
            parts.append(apply_exactly(partial(self._apply, attributes, weight), table, growth))
        return np.concatenate(parts)

    def _apply(self, attributes: Attributes, weight: int, x: Numbers) -> Numbers:
        for axis, at in enumerate(attributes):
            x = self.lines[at].apply(x, axis)
        return np.asarray(x * weight).ravel()

    def infer(self, noisy: Numbers) -> InferredParts:
        """Each part from what was measured of it."""
        values, start, found = np.asarray(noisy, dtype=float).ravel(), 0, {}
        for attributes, weight in self.weights.items():
            shape = [self.lines[at].rows for at in attributes]
            end = start + math.prod(shape)
            part = values[start:end].reshape(shape) / weight
            for axis, at in enumerate(attributes):
                part = self.lines[at].solve(part, axis)
            found[attributes], start = part, end
        return InferredParts(self, self.sizes, found)

    def determines(self, product: Product) -> bool:
        """Whether all parts that it has were measured."""
        return all(own in self.weights for own in self._needed(product))

    def _needed(self, product: Product) -> Iterator[Attributes]:
        yield from needed(product, self.sizes)

    def variances(self, product: Product) -> Array:
        """The sum over all parts."""
        parts = {at: _both(self.lines.get(at), factor) for at, factor in product.factors.items()}
        found = np.zeros(product.shape)
        for attributes in self._needed(product):
            require(attributes in self.weights)
            part = np.array(1.0 / self.weights[attributes] ** 2)
            for at in product.attributes:
                part = np.multiply.outer(part, parts[at][0 if at in attributes else 1])
            found += part
        return found.ravel()

    def total_variance(self, product: Product) -> float:
        """The same of sums."""
        total = 0.0
        for attributes in self._needed(product):
            require(attributes in self.weights)
            part = math.prod(
                self.lines[at].total_variance(factor) if at in attributes else evenly(factor)
                for at, factor in product.factors.items()
            )
            total += part / self.weights[attributes] ** 2
        return total

    def expected(self, workload: Workload, norm: str) -> float:
        """The same, of all questions at once."""
        errors = part_errors(
            workload, {at: self.lines.get(at, Contrasts(self.sizes[at])) for at in workload.attributes}
        )
        require(set(errors) <= set(self.weights))
        return sensitivity(self.change(norm), norm) * sum(
            error / self.weights[own] ** 2 for own, error in errors.items()
        )

    def body(self) -> dict[str, Any]:
        """Lines and weights."""
        lines = [[at, line.to_json()] for at, line in sorted(self.lines.items())]
        return {"lines": lines, "weights": [[list(own), weight] for own, weight in self.weights.items()]}

    @classmethod
    def of_body(cls, sizes: tuple[int, ...], body: Mapping[str, Any]) -> Residual:
        """The strategy that was stored."""
        from dalenius.measuring.strategies.stored import line_of_json

        lines = {int(at): line_of_json(line) for at, line in body["lines"]}
        return cls(sizes, lines, {tuple(map(int, own)): int(weight) for own, weight in body["weights"]})


@dataclass(frozen=True)
class InferredParts(Inferred):
    """z_S for each set that was measured."""

    strategy: Strategy
    sizes: tuple[int, ...]
    parts: Mapping[Attributes, Array]

    def answers(self, product: Product) -> Array:
        """The sum over all parts: contrasts where they were measured, evenly else."""
        found = np.zeros(product.shape)
        for attributes in needed(product, self.sizes):
            require(attributes in self.parts)
            part = self.parts[attributes]
            for axis, at in enumerate(product.attributes):
                factor = product.factors[at]
                if at in attributes:
                    part = factor.apply(part, axis)
                else:
                    even = (factor.sums() / factor.classes).reshape((-1,) + (1,) * (part.ndim - axis))
                    part = np.expand_dims(part, axis) * even
            found += part
        return found.ravel()


def residual_parts(workload: Workload, norm: str) -> Residual | None:
    """The best weights in closed form; None where there are too many sets, or nothing is asked."""
    if sum(2 ** len(own) for own in workload.groups) > MOST_SETS:
        return None
    lines: dict[int, Line] = {at: Contrasts(workload.sizes[at]) for at in workload.attributes}
    if norm == "l2":
        lines = _best_lines(workload, lines)
    return weighted(workload, norm, lines)


def _best_lines(workload: Workload, lines: dict[int, Line]) -> dict[int, Line]:
    """Better contrasts for attributes of which more is asked than single classes.

    With weights at their best the error is (Σ √(v_S·c_S))². A root is at most its tangent, so that of what one
    attribute adds, each set counts by 1/√(v_S·c_S) at the lines so far; bringing that down brings down the error.
    """
    asked = [
        at
        for at, own in workload.asked.items()
        if 2 < workload.sizes[at] <= MOST and not all(isinstance(each, Identity | Total) for each in own.factors)
    ]
    parts = _Parts(workload, lines)
    for at in asked * (2 if len(asked) > 1 else 1):
        changes = {other: float(line.change("l2")) for other, line in lines.items()}
        roots = {
            own: math.sqrt(error * math.prod(changes[other] for other in own)) for own, error in parts.errors().items()
        }
        counts = np.zeros(len(workload.products))
        for own, numbers, error in parts.each():
            if at in own and roots.get(own):
                told = np.maximum(parts.told[at][numbers], 1e-300)
                counts[numbers] += (
                    error / told * (math.prod(changes[other] for other in own if other != at) / roots[own])
                )
        gram = np.zeros((workload.sizes[at],) * 2)
        for count, factor in workload.asked[at].weighted(counts):
            gram += count * factor.gram()
        if not gram.any():
            continue
        tried = {**lines, at: optimised_contrasts(gram, effort=1 / len(asked))}
        better = _Parts(workload, tried)
        changes[at] = float(tried[at].change("l2"))
        after = [
            math.sqrt(error * math.prod(changes[other] for other in own)) for own, error in better.errors().items()
        ]
        if sum(after) < sum(roots.values()):
            lines, parts = tried, better
    return lines


def weighted(workload: Workload, norm: str, lines: Mapping[int, Line]) -> Residual | None:
    """These contrasts of each attribute, with the best weights."""
    errors = part_errors(workload, lines)
    if not 0 < len(errors) <= MOST_SETS:
        return None
    changes = {own: math.prod(lines[at].change(norm) for at in own) for own in errors}
    power = 1 / 4 if norm == "l2" else 1 / 3
    parts = {own: (error / changes[own]) ** power * _length(changes[own], norm) for own, error in errors.items()}
    floor = max(parts.values()) * _LEAST
    real = {own: max(part, floor) / _length(changes[own], norm) for own, part in parts.items()}
    least = min(real.values())
    ordered = sorted(real, key=lambda own: (len(own), own))
    scale = 1.0 if len(ordered) == 1 else _PARTS
    return Residual(workload.sizes, lines, {own: max(1, int(real[own] / least * scale)) for own in ordered})


def _length(change: int, norm: str) -> float:
    return math.sqrt(change) if norm == "l2" else float(change)


def part_errors(workload: Workload, lines: Mapping[int, Line]) -> dict[Attributes, float]:
    """Σ weight²·variance of each set's part, over all answers, at weight 1."""
    return _Parts(workload, lines).errors()


class _Parts:
    """What each question asks of each attribute: contrasts, with these lines, and evenly."""

    def __init__(self, workload: Workload, lines: Mapping[int, Line]) -> None:
        self._workload = workload
        self.told, self._even = dict[int, Array](), dict[int, Array]()
        for at, own in workload.asked.items():
            n = workload.sizes[at]
            squares, sums = own.block_squares(1), own.block_squares(n)
            self.told[at] = np.where(_contrasted(squares, sums, n), lines[at].totals(own), 0.0)
            self._even[at] = sums / n**2

    def each(self) -> Iterator[tuple[Attributes, NDArray[np.int64], Array]]:
        """For each set, and some questions, their weighted errors in it."""
        for own, numbers in self._workload.groups.items():
            weights = self._workload.squared_weights[numbers]
            for inside in _subsets(tuple(at for at in own if self.told[at][numbers].any())):
                error = weights
                for at in own:
                    error = error * (self.told if at in inside else self._even)[at][numbers]
                yield inside, numbers, error

    def errors(self) -> dict[Attributes, float]:
        """Of each set that has any."""
        found: defaultdict[Attributes, float] = defaultdict(float)
        for own, _, error in self.each():
            found[own] += float(error.sum())
        return {own: error for own, error in found.items() if error > 0}


def _subsets(own: Attributes) -> Iterator[Attributes]:
    for count in range(len(own) + 1):
        yield from combinations(own, count)


def needed(product: Product, sizes: tuple[int, ...]) -> Iterator[Attributes]:
    """The sets that have a part in its answers: not where a factor has no contrast, or nothing but contrasts."""
    contrasted = [at for at in product.attributes if sizes[at] > 1 and _has_contrasts(product.factors[at])]
    fixed = tuple(at for at in contrasted if evenly(product.factors[at]) == 0.0)
    if any(at not in contrasted and evenly(product.factors[at]) == 0.0 for at in product.attributes):
        return
    free = [at for at in contrasted if at not in fixed]
    for count in range(len(free) + 1):
        for chosen in combinations(free, count):
            yield tuple(sorted((*fixed, *chosen)))


def _contrasted(squares: Array, sums: Array, n: int) -> NDArray[np.bool_]:
    """Whether rows with these sums of squares, and squares of sums, are not the same for all classes."""
    return np.asarray(squares - sums / n > _SMALL * squares)


def _has_contrasts(factor: Factor) -> bool:
    n = factor.classes
    squares, sums = np.array(factor.total_block_squares(1)), np.array(factor.total_block_squares(n))
    return bool(_contrasted(squares, sums, n))


def _both(line: Line | None, factor: Factor) -> tuple[Array, Array]:
    """For each answer the variance of its contrasts, and the square of what it asks evenly."""
    even = np.asarray(np.square(factor.sums() / factor.classes))
    return (np.zeros_like(even) if line is None else line.variances(factor)), even


def evenly(factor: Factor) -> float:
    """Σ(f·1/n)² over all answers: what they ask of a table that is spread evenly."""
    return factor.total_block_squares(factor.classes) / factor.classes**2
