"""The general finite mechanism (SPEC M11): reports drawn by any matrix of scores, say distance on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.interface import IntArray, Released, Vector, integers, rational, settle, size
from dalenius.mechanisms.noise.finite import FiniteLaw
from dalenius.mechanisms.randomized_response import Floats, answers_of, counts_of, shaped_like

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real

_MOST_SCORES = 2**18


@dataclass(frozen=True)
class FiniteResponse:
    """Reports y with P(y | x) ∝ exp(rate·s(x, y)), for any matrix of integer scores, one row per answer.

    For instance s = −distance on a grid, so that a report lies near the answer.

    Guarantee:
        ε-DP for one report, the answer exchanged for any other. Δ = max |s(x, y) − s(x′, y)| is read off
        the matrix, which is public. In general rate = ε/2Δ, and it is the exponential mechanism: ρ = ε²/8.
        If all rows hold the same scores in another order, they have one normaliser, which cancels: rate =
        ε/Δ, pure ε, ρ = ε²/2. k-ary randomized response is that case with s = [x = y].

    Assumes:
        The matrix does not depend on the data.

    References:
        McSherry & Talwar (2007), Thm. 6, with the answer as the data.

    >>> line = tuple(tuple(-abs(x - y) for y in range(5)) for x in range(5))
    >>> mechanism = FiniteResponse(epsilon=2, scores=line)
    >>> mechanism.release([0, 4, 2]).value.shape, mechanism.rate
    ((3,), Fraction(1, 4))
    """

    epsilon: Real
    scores: tuple[tuple[int, ...], ...]
    neighbors: Neighbors = Neighbors.SUBSTITUTE

    def __post_init__(self) -> None:
        rational(self.epsilon, "epsilon")
        rows: object = self.scores
        if not isinstance(rows, tuple) or not all(isinstance(row, tuple) for row in rows):
            raise InputError("scores must be a tuple of tuples.", why="A mechanism does not change.", fix="Use tuples.")
        matrix = self._matrix
        if matrix.ndim != 2 or min(matrix.shape, default=0) < 2:
            raise InputError("scores must be a matrix.", why="Two answers and two reports at least.", fix="Add rows.")
        size(matrix.size, "scores", most=_MOST_SCORES)
        if self.sensitivity == 0:
            raise InputError("All rows of scores are equal.", why="Reports would say nothing.", fix="Let them differ.")
        # plain integers from here on: those of numpy wrap around
        settle(self, scores=tuple(tuple(row) for row in matrix.tolist()), neighbors=Neighbors.of(self.neighbors))
        self.event  # noqa: B018

    @cached_property
    def _matrix(self) -> IntArray:
        return np.asarray(integers(self.scores, "scores"), dtype=object)

    @cached_property
    def sensitivity(self) -> int:
        """Δ: the most by which the score of a report differs between answers."""
        return int((self._matrix.max(axis=0) - self._matrix.min(axis=0)).max())

    @cached_property
    def symmetric(self) -> bool:
        """Whether all rows hold the same scores in some order."""
        return len({tuple(sorted(row)) for row in self._matrix.tolist()}) == 1

    @property
    def rate(self) -> Fraction:
        """ε/Δ if symmetric, else ε/2Δ."""
        return rational(self.epsilon, "epsilon") / (self.sensitivity * (1 if self.symmetric else 2))

    @cached_property
    def event(self) -> events.Pure | events.Exponential:
        """What one report does."""
        if self.symmetric:
            return events.Pure(self.epsilon, self.neighbors)
        return events.Exponential(self.epsilon, self.neighbors)

    @cached_property
    def law(self) -> FiniteLaw:
        """One row of weights per answer."""
        rows: list[list[int]] = self._matrix.tolist()
        return FiniteLaw(tuple(tuple((1, self.rate * (max(row) - score)) for score in row) for row in rows))

    @overload
    def release(self, value: int) -> Released[int]: ...
    @overload
    def release(self, value: Vector) -> Released[IntArray]: ...
    def release(self, value: object) -> Released[Any]:
        """One report per answer, each randomised on its own."""
        return Released(shaped_like(value, self.law.draw(answers_of(value, len(self.scores)))), self.event)

    def probabilities(self) -> list[list[Fraction]]:
        """P(report | answer) to 2⁻¹¹⁸, for enumeration."""
        return self.law.probabilities()

    def estimate(self, reports: object) -> Floats:
        """The least-squares estimate of each answer's share; unbiased where the rows of P are independent."""
        counts = counts_of(reports, len(self.scores[0]))
        transition = np.array([[float(p) for p in row] for row in self.probabilities()])
        return np.asarray(np.linalg.lstsq(transition.T, counts / counts.sum(), rcond=None)[0], dtype=np.float64)

    def utility(self, t: float) -> float:
        """(ln k + t)/rate for k reports: how far a report scores below the best, but for probability e^(−t).

        Whatever the answer: the reports that score so low have k weights of at most e^(−ln k − t) in all, against
        1 for the best [Dwork & Roth (2014), Thm. 3.11].

        >>> line = tuple(tuple(-abs(x - y) for y in range(5)) for x in range(5))
        >>> round(FiniteResponse(epsilon=40, scores=line).utility(t=3.0), 2)
        0.92
        """
        return (math.log(len(self.scores[0])) + float(parameters.positive(t, "t"))) / float(self.rate)
