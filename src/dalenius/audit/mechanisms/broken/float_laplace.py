"""Laplace noise by the inverse distribution function, in floats: the low-order bits tell the input.

Noise x of magnitude below ½ has a lowest bit below 2⁻⁵³; 1 + x has not, since floats near 1 are 2⁻⁵³ or more apart, and
what is subtracted from 1 stays on that lattice. So an output near 0 with a finer bit cannot come from input 1.

References:
    Mironov, On significance of the least significant bits for differential privacy (2012).
"""

from __future__ import annotations

import numpy as np

from dalenius.accounting import events
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject


def _made(epsilon: float) -> Subject:
    chance = np.random.default_rng(2012)  # a strawman's noise: it protects nobody

    def draw(side: int, size: int) -> Outputs:
        u = chance.random(size) - 0.5
        return np.asarray(side - np.sign(u) * np.log1p(-2 * np.abs(u)) / epsilon)

    return Subject(
        "float-laplace",
        "Laplace noise on a float, by the inverse of its distribution function",
        Claim(events.Pure(epsilon)),
        draw,
        broken=True,
        wrong="Floats that one input gives, the other cannot.",
    )


MADE = {"float-laplace": _made}
