"""Chances a/2³²: chosen so that the worst ratio of what is really drawn stays at or below e^ε.

A randomiser draws coins of chance a/2³² for an integer a, never of a real number that would be rounded somewhere. Its
worst ratio is then a fraction, and whether that is at most e^ε is decided in integers: e^(−ε) is enclosed more and more
narrowly (`mechanisms.noise`) until the fraction lies on one side. It always does, because e^ε is irrational for every
rational ε ≠ 0. So a is rounded to the private side whatever ε is, and what is stated is the loss of the rounded chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dalenius.errors import InputError
from dalenius.mechanisms.noise._exact import exp_minus

ONE = 2**32
"""The chance 1, as an integer."""


def chance(a: int) -> Fraction:
    """The chance a/2³².

    >>> chance(2**30)
    Fraction(1, 4)
    """
    return Fraction(a, ONE)


def within(ratio: Fraction, epsilon: float) -> bool:
    """Whether ratio ≤ e^ε, exactly, for ε > 0.

    >>> within(Fraction(2718281828, 10**9), 1.0), within(Fraction(2718281829, 10**9), 1.0)
    (True, False)
    """
    if ratio <= 1:
        return True
    precision = 256
    while True:
        low, high = _enclosed(epsilon, precision)
        # ratio ≤ e^ε ⇔ e^(−ε) ≤ 1/ratio; both sides times 2^precision × numerator.
        inverse = ratio.denominator << precision
        if high * ratio.numerator <= inverse:
            return True
        if low * ratio.numerator > inverse:
            return False
        precision *= 2


@lru_cache(maxsize=256)
def _enclosed(epsilon: float, precision: int) -> tuple[int, int]:
    """e^(−ε)·2^precision lies between these integers."""
    return exp_minus(Fraction(epsilon), precision)


def stated(ratio: Fraction) -> float:
    """The least float ε with ratio ≤ e^ε: ln(ratio), rounded up. This is the ε that is stated everywhere.

    >>> stated(Fraction(3))
    1.0986122886681098
    >>> stated(Fraction(1))
    0.0
    """
    if ratio <= 1:
        return 0.0
    excess = ratio - 1
    epsilon = math.log1p(float(excess)) if excess < 1 else math.log(ratio.numerator) - math.log(ratio.denominator)
    while not within(ratio, epsilon):
        epsilon = math.nextafter(epsilon, math.inf)
    while (below := math.nextafter(epsilon, 0.0)) > 0 and within(ratio, below):
        epsilon = below
    return epsilon


def largest(ratio: Callable[[int], Fraction], epsilon: float, low: int, high: int) -> int:
    """The largest a in [low, high] with ratio(a) ≤ e^ε, for a ratio that grows with a.

    Raises:
        InputError: If there is none: then even the smallest step of 2⁻³² is too much for so small an ε, or e^ε asks
            for a chance below 2⁻³².
    """
    if not within(ratio(low), epsilon):
        raise too_small(epsilon)
    while low < high:
        middle = (low + high + 1) // 2
        if within(ratio(middle), epsilon):
            low = middle
        else:
            high = middle - 1
    return low


def smallest(ratio: Callable[[int], Fraction], epsilon: float, low: int, high: int) -> int:
    """The smallest a in [low, high] with ratio(a) ≤ e^ε, for a ratio that falls as a grows."""
    return low + high - largest(lambda a: ratio(low + high - a), epsilon, low, high)


def informative(ratio: Fraction, epsilon: float) -> Fraction:
    """The ratio itself; refused where it is 1, because such reports say nothing."""
    if ratio <= 1:
        raise too_small(epsilon)
    return ratio


def too_small(epsilon: float) -> InputError:
    """ε is so small that chances in steps of 2⁻³² cannot tell one value from another."""
    return InputError(
        f"ε = {epsilon:g} is too small for this randomiser.",
        why="Its chances are multiples of 2⁻³²; at this ε no two of them may differ, and reports would say nothing.",
        fix="Take a larger ε; 0.1 to 4 is usual.",
    )


def too_large(epsilon: float) -> InputError:
    """ε is so large that some report would have to be rarer than 2⁻³²."""
    return InputError(
        f"ε = {epsilon:g} is too large for this randomiser.",
        why="Some coin would have a chance below 2⁻³², the smallest that is drawn: rounded to 0 it would hide nothing.",
        fix="Take a smaller ε; 0.1 to 4 is usual.",
    )
