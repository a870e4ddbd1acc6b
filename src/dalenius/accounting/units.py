"""Whole units of 2⁻¹²⁸, in which losses are added up: charges rounded up, caps rounded down.

So no rounding error is ever in the spender's favour, and a sum has no rounding at all.
"""

from __future__ import annotations

import math
from fractions import Fraction

BITS = 128


def whole_units(value: float | Fraction) -> int:
    """A loss in whole units, rounded up; exact, whatever the number."""
    numerator, denominator = value.as_integer_ratio()
    return -(-(numerator << BITS) // denominator)


def floor(value: float | Fraction) -> int:
    """A cap in whole units, rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << BITS) // denominator


def floor_difference(value: float, less: float) -> int:
    """The exact difference of two doubles, in whole units, rounded down."""
    (first, by), (second, of) = value.as_integer_ratio(), less.as_integer_ratio()
    return ((first * of - second * by) << BITS) // (by * of)


def down(units: int) -> float:
    """The largest double not above."""
    value = units / (1 << BITS)
    return math.nextafter(value, 0.0) if floor(value) > units else value


def up(units: int) -> float:
    """The smallest double not below."""
    value = units / (1 << BITS)
    return math.nextafter(value, math.inf) if whole_units(value) < units else value
