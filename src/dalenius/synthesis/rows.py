"""The `Measurer` on the curator's exact integers: rows of units as codes, each with a whole weight. Inside of one look.

Guarantee:
    Let S = 2^bits and let R be the limit of rows, both public. A row of a unit that has n rows weighs
    q = min(S, ⌊S·R/n⌋), the same in all tables. So one unit adds one vector v ≥ 0 of whole numbers over the cells of
    all columns together, with ‖v‖₁ = q·n ≤ L = S·R, and what it adds to any table is a margin of v (a cell of the
    table holds the sum of some cells of v), hence also of L1 at most L, and of L2 at most L.

    *Tables.* Adding or removing a unit changes table i by a vector of L2 ≤ L. Discrete Gaussian noise of variance
    ≥ L²/2ρᵢ makes it ρᵢ-zCDP [1, Thm. 14], and all of a call (Σρᵢ)-zCDP [2, Lemma 2.3]. Where one unit takes another's
    place, the change is a − b with a, b ≥ 0, so ‖a − b‖² ≤ ‖a‖² + ‖b‖² ≤ 2L².
    *Scores.* A score of tables of parts changes by at most s where a cell changes by one (`scores`). Adding v is
    ‖v‖₁ ≤ L such steps, so it changes by at most L·s; exchanged, by 2L·s. A vector of scores changes by L²·Σs² in
    squares (4L²·Σs²).
    *Choices.* The exponential mechanism over scores of sensitivity L·max s (2L·max s) at ε ≤ √8ρ is ρ-zCDP [3, Lemma
    3.4].
    Calls are adaptive; their ρ are added exactly, as rationals, and one that would take the sum past what was charged
    is refused before anything is looked at. So all of it is ρ-zCDP, the event that was charged.

Assumes:
    What is asked (views, scores, parts of ρ) follows from public facts and earlier answers: a generator
    holds no rows. How many rows a unit has is counted by the engine among those that are read
    (`measuring.held_rows`), and all that is made of rows are sums, which do not depend on their order.

References:
    [1] Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy (2020).
    [2] Bun & Steinke, Concentrated differential privacy (2016).
    [3] Cesar & Rogers, Bounding, concentrating, and truncating (2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import BudgetError
from dalenius.measuring._exact import exact_rows
from dalenius.measuring.held_rows import HeldRows
from dalenius.measuring.measures import change_within
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.exponential import Exponential
from dalenius.synthesis.domain import Codes, Domain
from dalenius.synthesis.measurer import Measured, Scored
from dalenius.synthesis.scores import Score
from dalenius.synthesis.views import Rows, View

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.expressions import Expression
    from dalenius.measuring.plan import Table
    from dalenius.synthesis.policy_domain import PolicyDomain

Weights = NDArray[np.int64]
BITS = 12  # of what is left of a row, so that heavy units still count
_EXACT = 2**53  # up to which doubles are whole numbers
_ROOT = 2**40  # of which ε is rounded down to a multiple, where it is a root


@dataclass(frozen=True)
class Limit:
    """What one unit adds at most. All of it is public.

    Attributes:
        rows: R.
        neighbors: Which two tables the guarantee compares.
        bits: S = 2^bits.
    """

    rows: int
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    bits: int = BITS

    @property
    def whole(self) -> int:
        """S: what a row weighs of a unit that has few enough."""
        return 1 << self.bits

    @property
    def length(self) -> int:
        """L = S·R."""
        return self.rows << self.bits

    def weigh(self, held: NDArray[np.int64]) -> Weights:
        """What each row of a unit weighs, by how many rows the unit has.

        >>> Limit(2, bits=2).weigh(np.array([1, 2, 3, 9])).tolist()
        [4, 4, 2, 0]
        """
        weights: Weights = np.minimum(self.whole, self.length // np.maximum(held, 1))
        return weights

    @property
    def of_table(self) -> int:
        """Δ2² of a table."""
        return change_within(self.length, "l2", self.neighbors, non_negative=True)

    @property
    def of_score(self) -> int:
        """Δ of a score that changes by 1 where a cell does."""
        return change_within(self.length, "l1", self.neighbors, non_negative=True)


class UnitMeasurer:
    """Noisy tables, scores and choices about rows of units (`Measurer`); see the module for the guarantee.

    Args:
        domain: What the codes mean.
        codes: The codes of all rows, columns × rows.
        weights: What each row weighs.
        limit: What the rows of one unit weigh together at most, by which all noise is calibrated.
        rho: What was charged.
    """

    def __init__(self, domain: Domain, codes: Codes, weights: Weights, limit: Limit, rho: Fraction) -> None:
        self.domain, self.rho, self.limit = domain, Fraction(rho), limit
        self._rows, self._weights, self._spent = Rows(codes), weights, Fraction(0)
        self._exactly = int(weights.sum()) < _EXACT  # then doubles add whole numbers up exactly
        self._floats = weights.astype(np.float64)

    @property
    def left(self) -> Fraction:
        """What has not been spent."""
        return self.rho - self._spent

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        """Each table with noise of variance L²/2ρᵢ, in parts of a row (2L² where units are exchanged)."""
        self._spend([rho for _, rho in asked])
        change, found = self.limit.of_table, list[Measured]()
        for view, rho in asked:
            mechanism = DiscreteGaussian(
                widened(change / (2 * Fraction(rho))), change, view.cells, self.limit.neighbors
            )
            noisy = mechanism.release(self.exact(view)).value
            values = noisy.astype(np.float64) / self.limit.whole
            found.append(Measured(view, values, float(mechanism.variance) / self.limit.whole**2))
        return found

    def scores(self, asked: Sequence[Score], rho: Fraction) -> Scored:
        """All of them with noise of variance L²·Σs²/2ρ, in parts of a row (4L²·Σs²)."""
        self._spend([rho])
        change = sum((each.sensitivity * self.limit.of_score) ** 2 for each in asked)
        mechanism = DiscreteGaussian(widened(change / (2 * Fraction(rho))), change, len(asked), self.limit.neighbors)
        noisy = mechanism.release(np.array([self.score(each) for each in asked], dtype=np.int64)).value
        return Scored(noisy.astype(np.float64) / self.limit.whole, math.sqrt(mechanism.variance) / self.limit.whole)

    def choose(self, among: Sequence[Score], rho: Fraction) -> int:
        """One of them, at the largest ε with ε²/8 ≤ ρ that is a multiple of 2⁻⁴⁰."""
        self._spend([rho])
        epsilon = Fraction(math.isqrt(int(8 * Fraction(rho) * _ROOT**2)), _ROOT)
        change = max(each.sensitivity for each in among) * self.limit.of_score
        mechanism = Exponential(epsilon, change, neighbors=self.limit.neighbors)
        return mechanism.release([self.score(each) for each in among]).value

    def exact(self, view: View) -> Weights:
        """A table's exact integers, in parts of a row. They never leave a look."""
        if self._exactly:
            return self._rows.count(view, self._floats).astype(np.int64)
        found = np.zeros(view.cells, np.int64)
        np.add.at(found, self._rows.cell(view), self._weights)
        return found

    def score(self, asked: Score) -> int:
        """A score, exactly, in parts of a row. It never leaves a look."""
        return asked.in_parts(self.limit.whole).of(self.exact(asked.view))

    def _spend(self, parts: Sequence[Fraction]) -> None:
        whole = sum(map(Fraction, parts), Fraction(0))
        if min(parts, default=Fraction(0)) <= 0 or self._spent + whole > self.rho:
            raise BudgetError(
                "More was to be measured than was paid for.",
                why="A synthetic table's price is fixed before its rows are read.",
                fix="Tell the makers of dalenius: the generator asks for too much.",
            )
        self._spent += whole


def read_rows(
    table: Table, domain: PolicyDomain, where: Expression, limit: Limit, engine: Engine, salt: str, seconds: float
) -> tuple[Codes, Weights]:
    """The codes of all rows (columns × rows), and what each weighs. Inside of a look and nowhere else.

    Of a column whose classes are sought, positions.
    """
    sought = any(each.sought for each in domain.columns)
    kind = np.dtype(np.int64) if sought else np.min_scalar_type(max(domain.domain.sizes))
    codes: list[Codes] = [np.zeros((len(domain.columns), 0), kind)]
    weights: list[Weights] = [np.zeros(0, np.int64)]
    for batch in exact_rows(HeldRows(table, domain.expressions, where), engine, salt, seconds=seconds):
        coded = [batch.coded(at, each.codes) for at, each in enumerate(domain.columns)]
        codes.append(np.stack([each.astype(kind) for each in coded]))
        weights.append(limit.weigh(batch.held))
    return np.concatenate(codes, axis=1), np.concatenate(weights)
