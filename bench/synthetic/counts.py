"""The reference `Measurer`: exact counts of a table in memory, one row per unit, noise from the exact samplers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.accounting.conversions import zcdp_rho
from dalenius.errors import BudgetError
from dalenius.mechanisms import noise
from dalenius.synthesis.domain import Codes, Domain
from dalenius.synthesis.measurer import Measured, Scored
from dalenius.synthesis.scores import Score
from dalenius.synthesis.views import Rows, View


class InMemory:
    """Counts of a table of codes (rows × columns); neighbours differ by one row more or less.

    Guarantee:
        Everything it says is ρ-zCDP with ρ = ``spent`` ≤ ``rho``: a table changes in one cell by one, so Δ2 = 1.
    """

    def __init__(self, domain: Domain, table: Codes, rho: Fraction) -> None:
        self.domain = domain
        self.rho = rho
        self.spent = Fraction(0)
        self._rows = Rows(np.ascontiguousarray(np.asarray(table, np.int32).T))

    @classmethod
    def at(cls, domain: Domain, table: Codes, epsilon: float, delta: float) -> InMemory:
        """With the ρ of a typed ε."""
        return cls(domain, table, Fraction(zcdp_rho(epsilon, delta)))

    @property
    def left(self) -> Fraction:
        return self.rho - self.spent

    def _charge(self, rho: Fraction) -> None:
        if rho <= 0 or self.spent + rho > self.rho:
            raise BudgetError("More was asked than was paid.", why="Its price is fixed.", fix="Ask less.")
        self.spent += rho

    def _exact(self, view: View) -> NDArray[np.int64]:
        return self._rows.count(view).astype(np.int64)

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        self._charge(sum((rho for _, rho in asked), Fraction(0)))
        found = list[Measured]()
        for view, rho in asked:
            variance = 1 / (2 * rho)
            drawn = noise.discrete_gaussian(variance=variance, size=view.cells)
            found.append(Measured(view, (self._exact(view) + drawn).astype(np.float64), float(variance)))
        return found

    def scores(self, asked: Sequence[Score], rho: Fraction) -> Scored:
        self._charge(rho)
        exact = [score.of(self._exact(score.view)) for score in asked]
        variance = Fraction(sum(score.sensitivity**2 for score in asked)) / (2 * rho)
        drawn = noise.discrete_gaussian(variance=variance, size=len(asked))
        return Scored((np.asarray(exact) + drawn).astype(np.float64), math.sqrt(variance))

    def choose(self, among: Sequence[Score], rho: Fraction) -> int:
        self._charge(rho)
        exact = [score.of(self._exact(score.view)) for score in among]
        # √8ρ, rounded down, so that the charge covers it
        epsilon = Fraction(math.isqrt(int(8 * rho * 2**80)), 2**40)
        return noise.exponential_choice(exact, epsilon / (2 * max(score.sensitivity for score in among)))
