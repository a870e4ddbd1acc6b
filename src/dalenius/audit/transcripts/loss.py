"""How much a transcript can show: the integers of two neighbours, step by step, in the measure of their noise.

Guarantee:
    Given what came out before, discrete Gaussian noise of variance σ² on integers that are ‖v − v′‖² apart is
    ‖v − v′‖²/2σ²-zCDP for this pair [Canonne, Kamath & Steinke (2020), Thm. 4], discrete Laplace noise of scale b is
    ‖v − v′‖₁/b-DP; both add up along the transcript, which is what a charge of ρ, or ε, stands for. Where keys are
    found, those that both sides have count like that; those of one side alone must all stay hidden, but for a chance of
    δ, which is summed from the noise's own tail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.key_selection import KeySelection

if TYPE_CHECKING:
    from dalenius.audit.transcripts.tape import Step


@dataclass(frozen=True)
class Loss:
    """What the steps of a transcript add up to.

    Attributes:
        rho: Of Gaussian noise.
        epsilon: Of Laplace noise.
        delta: The chance that a key of one side alone is found, on the worse side; added up over selections.
    """

    rho: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.rho + other.rho, self.epsilon + other.epsilon, self.delta + other.delta)


def transcript_loss(first: Sequence[Step], second: Sequence[Step]) -> Loss:
    """Of all steps; both sides have the same ones."""
    return sum((step_loss(one, other) for one, other in zip(first, second, strict=True)), Loss())


def step_loss(one: Step, other: Step) -> Loss:
    """Of one step."""
    mechanism = one.mechanism
    if isinstance(mechanism, KeySelection):
        here, there = (dict(zip(each.cells, each.exact, strict=True)) for each in (one, other))
        apart = sum((here[cell] - there[cell]) ** 2 for cell in here.keys() & there.keys())
        chances = (
            _found(mechanism, one.threshold, [weight for cell, weight in side.items() if cell not in beside])
            for side, beside in ((here, there), (there, here))
        )
        return Loss(rho=Fraction(apart) / (2 * mechanism.noise.variance), delta=max(chances))
    differences = [mine - others for mine, others in zip(one.exact, other.exact, strict=True)]
    if isinstance(mechanism, DiscreteGaussian):
        return Loss(rho=Fraction(sum(each * each for each in differences)) / (2 * mechanism.noise.variance))
    return Loss(epsilon=Fraction(sum(map(abs, differences))) / mechanism.noise.scale)


def _found(mechanism: KeySelection, threshold: int, weights: Sequence[int]) -> float:
    """The chance that any key of these weights is found."""
    hidden = 0.0
    for weight in weights:
        beyond = threshold - weight
        if beyond < 1:
            return 1.0
        hidden += math.log1p(-mechanism.noise.upper_tail(beyond))
    return -math.expm1(hidden)
