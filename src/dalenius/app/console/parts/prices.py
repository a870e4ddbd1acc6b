"""Prices on a slider: places that are even in the logarithm."""

from __future__ import annotations

import math

LEAST, _SPAN, STEPS = 0.01, 500.0, 100  # from 0.01 to 5


def price_at(step: object) -> float:
    """The ε at a place of the slider; two digits. What a browser says beside its places is the lowest.

    >>> price_at(0), price_at(48), price_at(100), price_at("NaN")
    (0.01, 0.2, 5.0, 0.01)
    """
    step = step if isinstance(step, int | float) and 0 <= step <= STEPS else 0
    value: float = LEAST * _SPAN ** (step / STEPS)
    return round(value, 1 - math.floor(math.log10(value)))


def step_below(epsilon: float) -> int:
    """The highest place of the slider that costs no more than this; the lowest there is, if none does."""
    return max((step for step in range(STEPS + 1) if price_at(step) <= epsilon), default=0)
