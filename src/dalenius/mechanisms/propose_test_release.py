"""Propose, test, release (SPEC M9, erratum 6): little noise where the data allows it, else no answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms.interface import Noisy, Released, count, probability, rational, settle, whole
from dalenius.mechanisms.laws import MARGIN, DiscreteLaplaceLaw

if TYPE_CHECKING:
    from dalenius.accounting.parameters import Real


@dataclass(frozen=True)
class ProposeTestRelease:
    """Tests whether a proposed bound b on the local sensitivity holds; if so releases f + Lap(b/ε).

    Given γ(D), the number of units that must change before the local sensitivity of f exceeds b (0 if it does
    already): refuse unless γ + Lap(1/ε) > t. Noise is discrete Laplace, t the least integer ≥ 0 with
    P(Lap(1/ε) > t) = e^(−ε(t+1))/(1+e^(−ε)) ≤ δ.

    Guarantee:
        (2ε, δ)-DP in total, refusal included.

        Proof. Let D ~ D′. γ changes by at most 1, so the test alone is ε-DP. (a) If |f(D) − f(D′)| ≤ b, the
        release is ε-DP too, and both compose to 2ε. (b) Otherwise the local sensitivity exceeds b at D and
        at D′, so γ(D) = γ(D′) = 0 and either passes the test with probability at most δ. Then for every set
        S of outputs P(M(D) ∈ S) ≤ P(refused, ∈ S) + δ ≤ e^ε·P(M(D′) ∈ S) + δ. ∎

        The same split gives δ-approximate ε²-zCDP (``zcdp_event``): in (a) two ε-DP steps, in (b) but for
        probability δ both runs refuse.

    Assumes:
        ``distance`` given to `release` is at most γ(D) and is itself 1-Lipschitz (γ is). Same relation
        throughout.

    References:
        Dwork & Lei (2009), §3; Dwork & Roth (2014), §7.3; erratum 6. On integers the continuous constant
        ln(1/2δ)/ε may be exceeded by up to 2/(1+e^(−ε)): that is why t is settled on the discrete tail.

    >>> mechanism = ProposeTestRelease(epsilon=1, delta=1e-12, bound=2)
    >>> mechanism.threshold
    27
    >>> mechanism.release(500, distance=0).value is None, mechanism.release(500, distance=900).value is None
    (True, False)
    """

    epsilon: Real
    delta: Real
    bound: int
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        settle(self, bound=count(self.bound, "bound"), neighbors=Neighbors.of(self.neighbors))
        probability(self.delta, "delta")
        rational(self.noise.scale, "noise scale")
        self.event, self.zcdp_event  # noqa: B018 — their fields are checks too

    @property
    def noise(self) -> DiscreteLaplaceLaw:
        """What the release adds: scale b/ε."""
        return DiscreteLaplaceLaw(self.bound / rational(self.epsilon, "epsilon"))

    @property
    def test_noise(self) -> DiscreteLaplaceLaw:
        """What the test adds to the distance: scale 1/ε."""
        return DiscreteLaplaceLaw(1 / rational(self.epsilon, "epsilon"))

    @cached_property
    def threshold(self) -> int:
        """The integer t: the test passes when the noisy distance exceeds it."""
        # e^(−ε(t+1))/(1+e^(−ε)) ≤ δ  ⟺  t + 1 ≥ (−ln δ − ln(1+e^(−ε)))/ε; the margin covers rounding
        epsilon = rational(self.epsilon, "epsilon")
        needed = -math.log(float(self.delta)) - math.log1p(math.exp(-float(epsilon)))
        return max(0, math.ceil(Fraction(needed + MARGIN) / epsilon) - 1)

    @cached_property
    def event(self) -> events.Approx:
        """What a run does, known before it: (2ε, δ)."""
        return events.Approx(2 * rational(self.epsilon, "epsilon"), self.delta, self.neighbors)

    @cached_property
    def zcdp_event(self) -> events.Zcdp:
        """The same run for a ledger that adds ρ: δ-approximate ε²-zCDP. Charge one of the two."""
        return events.Zcdp(rational(self.epsilon, "epsilon") ** 2, self.delta, self.neighbors)

    def release(self, value: object, distance: int) -> Noisy[int] | Released[None]:
        """``value`` plus noise, or None where the test failed."""
        exact, gap = whole(value, "value"), whole(distance, "distance")
        if gap < 0:
            raise InputError("distance must not be negative.", why="It counts units.", fix="Give 0 or more.")
        # both are drawn in any case, so that time does not show the outcome earlier than the answer
        passed = gap + self.test_noise.draw() > self.threshold
        noisy = exact + self.noise.draw()
        return Noisy(noisy, self.event, self.noise) if passed else Released(None, self.event)

    def utility(self, beta: float) -> tuple[int, int]:
        """(γ, α): at distance γ or more it answers, within α of the truth, with probability 1 − 2β.

        γ = t + 1 + ⌈ln(1/β)/ε⌉ and α = ⌈b/ε·ln(1/β)⌉.
        """
        log_beta = math.log(probability(beta, "beta"))
        far = self.threshold + 1 + math.ceil(self.test_noise.scale * -log_beta)
        return far, math.ceil(self.noise.scale * -log_beta)
