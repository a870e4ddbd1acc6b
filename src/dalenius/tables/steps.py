"""What numbers are rounded to before they are added."""

from __future__ import annotations

from fractions import Fraction

FINENESS = 2**20
# x/step is taken in doubles on every engine; past 2⁵³ steps a double no longer tells neighbours apart.
MOST_STEPS = 2**53


def default_step(low: Fraction, high: Fraction) -> Fraction:
    """(high − low)/2²⁰ rounded to a power of ten, coarser where doubles could not tell the steps apart.

    >>> default_step(Fraction(0), Fraction(5000)), default_step(Fraction(0), Fraction(1))
    (Fraction(1, 100), Fraction(1, 1000000))
    """
    step = power_of_ten((high - low) / FINENESS)
    while too_fine(step, low, high):
        step *= 10
    return step


def too_fine(step: Fraction, low: Fraction, high: Fraction) -> bool:
    """Whether the bounds lie more steps from zero than a double can count."""
    return max(abs(low), abs(high)) > step * MOST_STEPS


def power_of_ten(value: Fraction) -> Fraction:
    """The power of ten nearest to a positive number by ratio, found without floating point."""
    power = Fraction(10) ** (len(str(value.numerator)) - len(str(value.denominator)))
    while power > value:
        power /= 10
    while power * 10 <= value:
        power *= 10
    # value lies in [power, 10 power); √10 power is the middle
    return power * 10 if value * value >= 10 * power * power else power
