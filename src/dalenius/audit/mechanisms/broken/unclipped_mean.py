"""A mean whose noise is for values within bounds that nothing enforces: one unit with a large value is seen at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.accounting import events
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms.laws import DiscreteLaplaceLaw

_BOUND, _OTHERS, _RICH = 100, 99, 10_000


def _made(epsilon: float) -> Subject:
    law = DiscreteLaplaceLaw(Fraction(_BOUND) / Fraction(epsilon))
    sums = (50 * _OTHERS + _RICH, 50 * _OTHERS + 50)  # with somebody who earns far more than the bound, exchanged

    def draw(side: int, size: int) -> Outputs:
        return np.asarray((sums[side] + law.draw(size)) / (_OTHERS + 1))

    return Subject(
        "unclipped-mean",
        "the mean of values said to be at most 100, one of which is 10,000",
        Claim(events.Pure(epsilon)),
        draw,
        broken=True,
        wrong="The noise is for the bound; the value that counts is above it.",
    )


MADE = {"unclipped-mean": _made}
