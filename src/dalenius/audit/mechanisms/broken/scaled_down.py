"""Noise that is a little too small: the constant of a proof, mistyped."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.accounting import events
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw

_FACTOR = Fraction(105, 100)


def _laplace(epsilon: float) -> Subject:
    law = DiscreteLaplaceLaw(1 / (_FACTOR * Fraction(epsilon)))

    def draw(side: int, size: int) -> Outputs:
        return np.asarray(side + law.draw(size))

    return Subject(
        "laplace-5-percent",
        "Laplace noise of scale 1/1.05ε on a count",
        Claim(events.Pure(epsilon)),
        draw,
        broken=True,
        wrong="Its real ε is 1.05 times what it claims.",
    )


def _gaussian(epsilon: float) -> Subject:
    """ρ = ε²/2 is claimed, and σ is a tenth too small."""
    claimed = 1 / Fraction(epsilon) ** 2
    law = DiscreteGaussianLaw(claimed * Fraction(81, 100))

    def draw(side: int, size: int) -> Outputs:
        return np.asarray(side + law.draw(size))

    return Subject(
        "gaussian-10-percent",
        "Gaussian noise with a σ a tenth below what ρ asks for",
        Claim(events.DiscreteGaussian(claimed, 1)),
        draw,
        broken=True,
        wrong="Its real ρ is 1.23 times what it claims.",
    )


MADE = {"laplace-5-percent": _laplace, "gaussian-10-percent": _gaussian}
