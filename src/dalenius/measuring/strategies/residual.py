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

from dalenius.measuring.strategies.contrasts import MOST, Contrasts, optimised_contrasts
from dalenius.measuring.strategies.exact import apply_exactly
from dalenius.measuring.strategies.factors import Array, Factor, Identity, Numbers, Total
from dalenius.measuring.strategies.lines import Line
from dalenius.measuring.strategies.strategy import Attributes, Inferred, Strategy, Tables, require, table_of
from dalenius.measuring.strategies.workload import Product, Workload

MOST_SETS = 50_000
_PARTS = 2**9  # of the smallest weight
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
    """The best weights in closed form; None where there are too many sets."""
    if sum(2 ** len(each.factors) for each in workload.products) > 20 * MOST_SETS:
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
    asked = {
        at
        for each in workload.products
        for at, factor in each.factors.items()
        if 2 < factor.classes <= MOST and not isinstance(factor, Identity | Total)
    }
    for at in sorted(asked) * (2 if len(asked) > 1 else 1):
        roots = {own: math.sqrt(error) for own, error in _normed_errors(workload, lines).items()}
        gram = np.zeros((workload.sizes[at],) * 2)
        counts, factors = defaultdict[str, float](float), dict[str, Factor]()
        for product in workload.products:
            if at not in product.factors:
                continue
            for own in needed(product, workload.sizes):
                if at in own and roots[own] > 0:
                    counts[product.factors[at].key] += product.weight**2 * math.prod(
                        _normed(lines[other], factor) if other in own else evenly(factor)
                        for other, factor in product.factors.items()
                        if other != at
                    ) / roots[own]  # fmt: skip
                    factors[product.factors[at].key] = product.factors[at]
        if not counts:
            continue
        for key, factor in factors.items():
            gram += counts[key] * factor.gram()
        tried = {**lines, at: optimised_contrasts(gram)}
        if sum(map(math.sqrt, _normed_errors(workload, tried).values())) < sum(roots.values()):
            lines = tried
    return lines


def _normed(line: Line, factor: Factor) -> float:
    return line.total_variance(factor) * line.change("l2")


def _normed_errors(workload: Workload, lines: Mapping[int, Line]) -> dict[Attributes, float]:
    changes = {at: line.change("l2") for at, line in lines.items()}
    return {own: error * math.prod(changes[at] for at in own) for own, error in part_errors(workload, lines).items()}


def weighted(workload: Workload, norm: str, lines: Mapping[int, Line]) -> Residual | None:
    """These contrasts of each attribute, with the best weights."""
    errors = part_errors(workload, lines)
    if len(errors) > MOST_SETS:
        return None
    changes = {own: math.prod(lines[at].change(norm) for at in own) for own in errors}
    power = 1 / 4 if norm == "l2" else 1 / 3
    real = {own: (error / changes[own]) ** power for own, error in errors.items()}
    least = min(real.values())
    ordered = sorted(real, key=lambda own: (len(own), own))
    scale = 1.0 if len(ordered) == 1 else _PARTS
    return Residual(workload.sizes, lines, {own: max(1, int(real[own] / least * scale)) for own in ordered})


def part_errors(workload: Workload, lines: Mapping[int, Line]) -> dict[Attributes, float]:
    """Σ weight²·variance of each set's part, over all answers, at weight 1."""
    told = _Remembered(lambda factor, at: lines[at].total_variance(factor))
    even = _Remembered(lambda factor, _: evenly(factor))
    found: defaultdict[Attributes, float] = defaultdict(float)
    for product in workload.products:
        for own in needed(product, workload.sizes):
            inside = set(own)
            found[own] += product.weight**2 * math.prod(
                told(factor, at) if at in inside else even(factor, at) for at, factor in product.factors.items()
            )
    return found


class _Remembered:
    """A number for each factor of an attribute, worked out once: many questions have the same factors."""

    def __init__(self, work: Any) -> None:
        self._work = work
        self._found: dict[tuple[int, str], float] = {}

    def __call__(self, factor: Factor, at: int) -> float:
        key = at, factor.key
        if key not in self._found:
            self._found[key] = self._work(factor, at)
        return self._found[key]


def needed(product: Product, sizes: tuple[int, ...]) -> Iterator[Attributes]:
    """The sets that have a part in its answers: not where a factor has no contrast, or nothing but contrasts."""
    contrasted = [at for at in product.attributes if sizes[at] > 1 and _contrasted(product.factors[at])]
    fixed = tuple(at for at in contrasted if evenly(product.factors[at]) == 0.0)
    if any(at not in contrasted and evenly(product.factors[at]) == 0.0 for at in product.attributes):
        return
    free = [at for at in contrasted if at not in fixed]
    for count in range(len(free) + 1):
        for chosen in combinations(free, count):
            yield tuple(sorted((*fixed, *chosen)))


def _contrasted(factor: Factor) -> bool:
    n = factor.classes
    squares = factor.total_block_squares(1)
    return squares - factor.total_block_squares(n) / n > _SMALL * squares


def _both(line: Line | None, factor: Factor) -> tuple[Array, Array]:
    """For each answer the variance of its contrasts, and the square of what it asks evenly."""
    even = np.asarray(np.square(factor.sums() / factor.classes))
    return (np.zeros_like(even) if line is None else line.variances(factor)), even


def evenly(factor: Factor) -> float:
    """Σ(f·1/n)² over all answers: what they ask of a table that is spread evenly."""
    return factor.total_block_squares(factor.classes) / factor.classes**2
