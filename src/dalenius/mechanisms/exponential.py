"""The exponential mechanism (SPEC M5): choose among candidates by score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms import noise
from dalenius.mechanisms.interface import Released, count, one_way, rational, settle, size, vector

if TYPE_CHECKING:
    from fractions import Fraction

    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class ScoreMechanism:
    """What the mechanisms that choose by score share: the rate at which a score counts, and its checks.

    ``monotonic`` says that between neighbours all scores move the same way (counts, when a unit is added or
    removed). Then the rate is ε/Δ instead of ε/2Δ.
    """

    epsilon: Real
    sensitivity: int = 1
    monotonic: bool = False
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, sensitivity=count(self.sensitivity, "sensitivity"), neighbors=Neighbors.of(self.neighbors))
        rational(self.rate, "epsilon / sensitivity")
        one_way(self.monotonic, self.neighbors)

    @property
    def rate(self) -> Fraction:
        """What one point of score multiplies the odds by, as the exponent: ε/2Δ, or ε/Δ if monotonic."""
        return rational(self.epsilon, "epsilon") / (self.sensitivity * (1 if self.monotonic else 2))

    def utility(self, candidates: int, t: float) -> float:
        """(ln|Y| + t)/rate, that is 2Δ/ε·(ln|Y| + t): the loss of score, but for probability e^(−t)."""
        return (math.log(size(candidates, "candidates")) + float(parameters.positive(t, "t"))) / float(self.rate)


@dataclass(frozen=True)
class Exponential(ScoreMechanism):
    """Chooses candidate y with P(y) ∝ exp(ε·q(y)/2Δ) and releases its index; q are integer scores.

    Guarantee:
        ε-DP. More: the privacy loss over all y lies in an interval of length ε, so ρ = ε²/8. With
        ``monotonic`` scores the rate is ε/Δ and the same holds: ln P(y)/P′(y) = rate·(q(y) − q′(y)) +
        constant, and q − q′ then spans at most Δ rather than 2Δ.

    Assumes:
        ``sensitivity`` bounds |q(y, D) − q(y, D′)| for every y and all neighbours. The candidates are public.

    References:
        McSherry & Talwar (2007), Thm. 6. Dwork & Roth (2014), Thm. 3.10, 3.11 (utility).
        Bounded range: Durfee & Rogers (2019), Lemma 3.2; ρ: Cesar & Rogers (2021), Lemma 3.4.

    >>> mechanism = Exponential(epsilon=2)
    >>> mechanism.release([0, 5000, 10]).value
    1
    >>> [round(p, 3) for p in mechanism.probabilities([0, 1])]
    [0.269, 0.731]
    >>> round(mechanism.utility(candidates=100, t=3.0), 2)
    7.61
    """

    @cached_property
    def event(self) -> events.Exponential:
        """What a release does, known before it."""
        return events.Exponential(self.epsilon, self.neighbors)

    def release(self, scores: object) -> Released[int]:
        """The index of the candidate chosen."""
        return Released(noise.exponential_choice(vector(scores, "scores"), self.rate), self.event)

    def probabilities(self, scores: object) -> list[float]:
        """The law of the choice, for those who may see the scores."""
        exact = [int(score) for score in vector(scores, "scores")]
        best = max(exact)
        weights = [math.exp(-self.rate * (best - score)) for score in exact]
        total = math.fsum(weights)
        return [weight / total for weight in weights]
