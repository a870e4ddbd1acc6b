"""Randomized response (SPEC M11), binary and k-ary: the client perturbs, the collector corrects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms import noise
from dalenius.mechanisms.interface import (
    IntArray,
    Integers,
    Released,
    Vector,
    count,
    integers,
    probability,
    rational,
    settle,
    size,
)
from dalenius.mechanisms.noise.finite import FiniteLaw

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RandomizedResponse:
    """Reports the truth with probability p = e^ε/(e^ε+k−1), else one of the k−1 others, uniformly.

    Guarantee:
        ε-DP for one report, the answer exchanged for any other (local privacy): p/q = e^ε with q =
        1/(e^ε+k−1).

    Assumes:
        The categories 0, …, k−1 are public and each unit reports once.

    References:
        Warner (1965), k = 2; Kairouz, Bonawitz & Ramage (2016), k-ary. Variance: erratum 2.

    >>> mechanism = RandomizedResponse(epsilon=2, categories=3)
    >>> mechanism.release(2).value in (0, 1, 2)
    True
    >>> [[round(float(p), 3) for p in row] for row in mechanism.probabilities()]
    [[0.787, 0.107, 0.107], [0.107, 0.787, 0.107], [0.107, 0.107, 0.787]]
    """

    epsilon: Real
    categories: int = 2
    neighbors: Neighbors = Neighbors.SUBSTITUTE

    def __post_init__(self) -> None:
        categories = count(self.categories, "categories")
        settle(self, categories=size(categories, "categories", least=2), neighbors=Neighbors.of(self.neighbors))
        self.event  # noqa: B018

    @cached_property
    def event(self) -> events.RandomizedResponse:
        """What one report does."""
        return events.RandomizedResponse(self.epsilon, self.categories, self.neighbors)

    @cached_property
    def law(self) -> FiniteLaw:
        """Truth (weight 1) or one of the others (weight (k−1)·e^(−ε))."""
        return FiniteLaw((((1, Fraction(0)), (self.categories - 1, rational(self.epsilon, "epsilon"))),))

    @overload
    def release(self, value: int) -> Released[int]: ...
    @overload
    def release(self, value: Vector) -> Released[IntArray]: ...
    def release(self, value: object) -> Released[Any]:
        """One report per answer, each randomised on its own."""
        answers = answers_of(value, self.categories)
        lies = self.law.draw(np.zeros(answers.size, dtype=np.int64))
        shifts = 1 + noise.uniform_int(self.categories - 1, answers.size)  # drawn for the truthful too
        return Released(shaped_like(value, (answers + lies * shifts) % self.categories), self.event)

    def probabilities(self) -> list[list[Fraction]]:
        """P(report | answer) to 2⁻¹¹⁸, for enumeration."""
        truth, lie = self.law.probabilities()[0]
        others = lie / (self.categories - 1)
        everyone = range(self.categories)
        return [[truth if report == answer else others for report in everyone] for answer in everyone]

    def estimate(self, reports: object) -> Floats:
        """The unbiased estimate of each category's share: (share of reports − q)/(p − q)."""
        counts = counts_of(reports, self.categories)
        _, q, gap = self._chances
        shares: Floats = (counts / counts.sum() - q) / gap
        return shares

    def variance(self, share: float, reports: int) -> float:
        """The variance of the estimate of one category's true share from so many reports: λ(1−λ)/(N(p−q)²).

        λ = πp + (1−π)q. For k = 2 it is π(1−π)/N + (1/(16(p−½)²) − ¼)/N (erratum 2).
        """
        p, q, gap = self._chances
        expected = share * p + (1 - share) * q
        return expected * (1 - expected) / parameters.count(reports, "reports") / gap / gap

    def utility(self, reports: int, beta: float) -> float:
        """√(ln(2k/β)/2N)/(p − q): all k estimates are within it, but for probability β (Hoeffding)."""
        _, _, gap = self._chances
        chance = math.log(2 * self.categories) - math.log(probability(beta, "beta"))
        return math.sqrt(chance / (2 * parameters.count(reports, "reports"))) / gap

    @property
    def _chances(self) -> tuple[float, float, float]:
        """P, q and p − q, the last without cancellation."""
        decay = math.exp(-float(self.epsilon))
        total = 1 + (self.categories - 1) * decay
        return 1 / total, decay / total, -math.expm1(-float(self.epsilon)) / total


def answers_of(value: object, categories: int) -> npt.NDArray[np.int64]:
    """Answers as a flat array, each one of the categories."""
    found = np.atleast_1d(np.asarray(integers(value, "answer"))).ravel()
    if found.size and (min(found) < 0 or max(found) >= categories):
        raise InputError(
            "An answer is not one of the categories.",
            why="They are numbered from 0.",
            fix="Check the categories.",
        )
    return found.astype(np.int64)


def counts_of(reports: object, categories: int) -> npt.NDArray[np.int64]:
    """How often each category was reported."""
    found = answers_of(reports, categories)
    if not found.size:
        raise InputError("There are no reports.", why="Nothing has no shares.", fix="Collect reports first.")
    return np.bincount(found, minlength=categories)


def shaped_like(value: object, reports: npt.NDArray[np.int64]) -> Integers:
    """Reports in the shape in which the answers came."""
    shaped = integers(value, "answer")
    return int(reports[0]) if isinstance(shaped, int) else reports.reshape(shaped.shape)
