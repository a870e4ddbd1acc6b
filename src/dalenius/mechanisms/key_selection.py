"""Key selection by weighted set union (DESIGN, decision 8): which keys exist, without showing a single unit's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dalenius.accounting import events, parameters
from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.interface import MOST_CANDIDATES, Released, add, count, probability, rational, settle, vector
from dalenius.mechanisms.laws import DiscreteGaussianLaw

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real
    from dalenius.mechanisms.interface import IntArray

WEIGHT = 2**20  # what one unit has to give, as a length: m keys get ⌊WEIGHT/√m⌋ each


@dataclass(frozen=True)
class KeySelection:
    """The keys whose noisy weight reaches a threshold that a single unit's keys reach with chance at most δ.

    A unit that has m ≤ ``cap`` keys adds the integer ⌊2²⁰/√m⌋ to the weight of each, so its vector has Σw² ≤ 2⁴⁰.
    Every key that occurs gets discrete Gaussian noise of variance σ²; those at or above the threshold τ are released.

    Guarantee:
        δ-approximate ρ-zCDP with ρ = Δ2²/2σ², Δ2² = 2⁴⁰ (adding or removing a unit) or 2·2⁴⁰ (exchanging one: both
        vectors are non-negative). On keys that occur in both of two neighbours the noisy weights are ρ-zCDP and the
        threshold is post-processing. A key that occurs in one of them alone is a lone unit's: its weight is that
        unit's ⌊2²⁰/√m⌋, and τ is such that 1 − (1 − P(X ≥ τ − ⌊2²⁰/√m⌋))^m ≤ δ for every m ≤ cap. Outside that event,
        of chance at most δ on either side, the releases are about the same keys.

    Assumes:
        ``weights`` are the sums, over units, of such vectors; which of a unit's keys count, where it has more than
        ``cap``, depends on the unit alone.

    References:
        Gopi, Gulhane, Kulkarni, Shen, Shokouhi & Yekhanin, Differentially private set union (2020), Thm. 5.1; Bun &
        Steinke (2016), §8 on approximate zCDP. Tails are those of the discrete law, not of the normal one.

    >>> selection = KeySelection(rho=0.01, delta=1e-6, cap=8)
    >>> selection.weight(4), selection.threshold > 30 * WEIGHT
    (524288, True)
    >>> selection.release([0, 100 * WEIGHT]).value
    (1,)
    """

    rho: Real
    delta: float
    cap: int = 32
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, cap=count(self.cap, "cap"), neighbors=Neighbors.of(self.neighbors))
        rational(parameters.positive(self.rho, "rho"), "rho")
        parameters.positive(parameters.delta(self.delta), "delta")

    @property
    def squared_sensitivity(self) -> int:
        """Δ2² of the weights."""
        return WEIGHT**2 * (1 if self.neighbors is Neighbors.ADD_REMOVE else 2)

    @cached_property
    def noise(self) -> DiscreteGaussianLaw:
        """The law of each weight's noise; its variance is Δ2²/2ρ, rounded up to an integer."""
        variance = Fraction(self.squared_sensitivity) / (2 * rational(self.rho, "rho"))
        return DiscreteGaussianLaw(Fraction(math.ceil(variance)))

    @cached_property
    def event(self) -> events.Zcdp:
        """What a release does, known before it."""
        return events.Zcdp(self.rho, self.delta, self.neighbors)

    @staticmethod
    def weight(keys: int) -> int:
        """⌊2²⁰/√m⌋ for a unit with m keys, on integers: m·w² ≤ 2⁴⁰."""
        return math.isqrt(WEIGHT**2 // keys)

    @cached_property
    def threshold(self) -> int:
        """τ: the least integer that keeps the promise for every m up to the cap."""
        return _threshold(self.rho, self.delta, self.cap, self.neighbors)

    def _threshold(self) -> int:
        found = 1
        for keys in (self.cap, *range(1, self.cap)):  # the worst is nearly always one of the first two
            if self._chance(found, keys) > self.delta:
                found = self._least(keys, found)
        return found

    def _least(self, keys: int, low: int) -> int:
        high = low + math.ceil(math.sqrt(self.noise.variance))
        while self._chance(high, keys) > self.delta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._chance(middle, keys) <= self.delta else (middle, high)
        return high

    def _chance(self, threshold: int, keys: int) -> float:
        """The chance that any key of a lone unit with so many is released, or slightly more."""
        beyond = threshold - self.weight(keys)
        tail = self.noise.upper_tail(beyond) if beyond >= 1 else 1.0
        return 1.0 if tail >= 1 else -math.expm1(keys * math.log1p(-tail))

    def sure(self, units: int) -> int:
        """A threshold that also says, with chance 99.9%, that a released key is that of ``units`` units or more.

        A unit adds at most 2²⁰ to a key, so fewer than k of them weigh at most (k − 1)·2²⁰; the noise is beyond 3.09
        deviations with chance 0.1%, for each such key. One unit or none: no more than the threshold itself.
        """
        if units <= 1:
            return self.threshold
        return max(self.threshold, (units - 1) * WEIGHT + math.ceil(3.09 * math.sqrt(self.noise.variance)))

    def release(
        self, weights: Sequence[int] | IntArray, *, units: int = 0, most: int | None = None
    ) -> Released[tuple[int, ...]]:
        """The places of the keys that are released, in order; ``weights`` are of all keys that occur.

        ``most``: of more than so many, those with the greatest noisy weights. That too is post-processing.
        """
        found: list[int] = []
        heights: list[int] = []
        threshold = self.sure(units)
        every = vector(weights, "weights", least=0, most=2**62)  # however many there are: a refusal would tell of it
        for start in range(0, every.size, MOST_CANDIDATES):
            exact = every[start : start + MOST_CANDIDATES]
            noisy = add(exact, self.noise.draw(exact.size))
            passed = np.asarray(noisy >= threshold, dtype=bool)
            found += (start + int(at) for at in np.flatnonzero(passed))
            heights += np.asarray(noisy)[passed].tolist()
        if most is not None and len(found) > most:
            found = sorted(found[at] for at in sorted(range(len(found)), key=lambda at: -heights[at])[:most])
        return Released(tuple(found), self.event)

    def utility(self, beta: float) -> int:
        """A weight that is released with probability 1 − β: τ + σ√(2 ln(1/β)).

        >>> KeySelection(rho=0.01, delta=1e-6).utility(beta=0.05) > KeySelection(rho=0.01, delta=1e-6).threshold
        True
        """
        spread = math.sqrt(2 * float(self.noise.variance) * -math.log(probability(beta, "beta")))
        return self.threshold + math.ceil(spread)


@lru_cache(maxsize=256)
def _threshold(rho: Real, delta: float, cap: int, neighbors: Neighbors) -> int:
    """Looked for once: a question is priced more than once."""
    return KeySelection(rho, delta, cap, neighbors)._threshold()  # noqa: SLF001
