"""The one door to the data: noisy tables of counts, noisy scores, noisy choices, each at a stated ρ.

Generators hold no rows. They ask a `Measurer`, and everything they do with what it says is post-processing. Behind it
stand the curator's exact integers; in tests and benchmarks a table in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.domain import Domain
from dalenius.synthesis.scores import Score
from dalenius.synthesis.views import View


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of counts with noise.

    Attributes:
        view: What was counted.
        values: Noisy counts, flat, the last column running fastest.
        variance: Of the noise in each cell.
    """

    view: View
    values: NDArray[np.float64]
    variance: float

    @property
    def sigma(self) -> float:
        """The noise's standard deviation."""
        return float(self.variance**0.5)

    @property
    def table(self) -> NDArray[np.float64]:
        """The values, shaped as the view is."""
        return self.values.reshape(self.view.shape)


@dataclass(frozen=True, eq=False)
class Scored:
    """Noisy scores, and the standard deviation of the noise in each."""

    values: NDArray[np.float64]
    sigma: float


class Measurer(Protocol):
    """What a generator may ask. Each call is charged its ρ before anything is looked at.

    Guarantee (what an implementation must give):
        A call at ρ is ρ-zCDP, whatever was asked, also where the question depends on earlier answers. So all calls
        together are (Σρ)-zCDP [Bun & Steinke (2016), Lemma 2.3], and a call that would take the sum past ``rho``
        is refused. What one unit adds to all tables of a call counts as one vector.
    """

    @property
    def domain(self) -> Domain:
        """The columns, from declarations."""

    @property
    def rho(self) -> Fraction:
        """All that may be spent: the ρ of the ε that was typed."""

    @property
    def left(self) -> Fraction:
        """What has not been spent yet."""

    def measure(self, asked: Sequence[tuple[View, Fraction]]) -> list[Measured]:
        """Noisy counts of several tables at once, each with its own ρ; their sum is charged.

        Where one unit adds one row, table i has noise of variance 1/2ρᵢ: the vector of all tables, each scaled by
        √ρᵢ, changes by √Σρᵢ at most in L2.
        """

    def scores(self, asked: Sequence[Score], rho: Fraction) -> Scored:
        """All scores, with noise of variance Σ sensitivity²/2ρ in each; ρ is for all of them together."""

    def choose(self, among: Sequence[Score], rho: Fraction) -> int:
        """The place of one with a high score, by the exponential mechanism with ε = √8ρ.

        P(i) ∝ exp(ε·scoreᵢ/2Δ) with Δ the greatest sensitivity. Its loss has range ε, hence ρ = ε²/8
        [Cesar & Rogers (2021), Lemma 3.4].
        """


def shares(total: Fraction, weights: Sequence[float]) -> list[Fraction]:
    """Parts of ρ in proportion to weights, which add up to exactly that.

    >>> parts = shares(Fraction(1), [1, 2.5])
    >>> sum(parts) == 1, [round(float(part), 3) for part in parts]
    (True, [0.286, 0.714])
    """
    if not weights or min(weights) <= 0:
        raise InputError(
            "Every share needs a weight above 0.",
            why="A table measured for nothing would have no bound on its noise.",
            fix="Leave out what is not to be measured.",
        )
    whole = sum(weights)
    parts = [total * Fraction(int(weight / whole * 2**40), 2**40) for weight in weights[:-1]]
    return [*parts, total - sum(parts)]


def by_cells(total: Fraction, views: Sequence[View]) -> list[Fraction]:
    """Parts of ρ in proportion to cells^⅔, which makes the expected total L1 error Σ cellsᵢ·σᵢ least.

    With σᵢ = 1/√2ρᵢ, ∂/∂ρᵢ (cᵢρᵢ^−½) is the same for all i where ρᵢ ∝ cᵢ^⅔. Zhang et al., PrivSyn (2021), §4.2.
    """
    return shares(total, [view.cells ** (2 / 3) for view in views])
