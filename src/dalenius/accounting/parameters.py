"""Numbers that matter for privacy, checked once at the edge.

After these functions a value is plain data: a real number of the stated range, never a bool, a string, a NaN
or an infinity. Fractions stay exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from dalenius.errors import InputError

Real: TypeAlias = "int | float | Fraction"

# Beyond these a loss is nothing, or everything, and arithmetic on it would only lose digits.
SMALLEST = 1e-100
LARGEST = 1e100
MOST = 10**100  # of anything that is counted
SMALLEST_DELTA = 1e-300
SELECTION = 0.5  # of a budget's δ, for finding keys, where nobody says otherwise
LEAST_SELECTION = 0.001


def real(value: object, name: str, *, fix: str = "Give a number.") -> Real:
    """A finite int, float or Fraction; bools, strings and the rest are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InputError(
            f"{name} must be a number, not {type(value).__name__}.",
            why="Nothing is guessed from other types.",
            fix=fix,
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{name} must be finite.", why="It was nan or infinite.", fix=fix)
    return value


def positive(value: object, name: str, *, fix: str = "") -> Real:
    """A real number in [1e-100, 1e100]."""
    fix = fix or f"Give a {name} above 0."
    number = real(value, name, fix=fix)
    if not _is_sensible(number):
        raise InputError(
            f"{name} must be above 0 and of a sensible size.",
            why=f"It must lie between {SMALLEST:g} and {LARGEST:g}.",
            fix=fix,
        )
    return number


def _is_sensible(number: Real) -> bool:
    """Whether it lies between `SMALLEST` and `LARGEST`.

    To compare a fraction with a float takes Python twenty times as long as a quotient, which is right to a part in 2⁵³:
    that decides, except close to a bound.
    """
    if isinstance(number, Fraction):
        try:
            near = number.numerator / number.denominator
        except OverflowError:
            return False
        if 2 * SMALLEST <= near <= LARGEST / 2:
            return True
    return SMALLEST <= number <= LARGEST


def epsilon(value: object, name: str = "epsilon") -> float:
    """An ε > 0.

    >>> epsilon(0.5)
    0.5
    """
    return float(positive(value, name, fix="Give an ε above 0; 0.1 to 3 is usual."))


def delta(value: object, name: str = "delta") -> float:
    """A δ in [0, 1): 0, or at least 1e-300."""
    fix = "Give a δ of at least 0 and below 1; well below 1/(number of units), such as 1e-6."
    number = real(value, name, fix=fix)
    if not 0 <= number < 1 or 0 < number < SMALLEST_DELTA:
        raise InputError(
            f"{name} must be at least 0 and below 1 (and, if above 0, at least {SMALLEST_DELTA:g}).",
            why="δ is a probability of failure; 1 promises nothing.",
            fix=fix,
        )
    return float(number) + 0.0  # -0.0 becomes 0.0


def selection(value: object, name: str = "selection") -> float:
    """The part of a budget's δ that finding keys may use: so that something is left of δ for ρ, and for keys.

    >>> selection(0.5)
    0.5
    """
    fix = f"Give a part such as 0.5, the usual one; {LEAST_SELECTION:g} to {1 - LEAST_SELECTION:g} will do."
    number = float(real(value, name, fix=fix))
    if not LEAST_SELECTION <= number <= 1 - LEAST_SELECTION:
        raise InputError(
            f"{name} must lie between 0 and 1, and not next to either.",
            why="It is the part of δ for finding keys; the rest turns ρ into ε, and neither works with nothing.",
            fix=fix,
        )
    return number


def probability(value: object, name: str) -> float:
    """A sampling rate in (0, 1]."""
    fix = f"Give a {name} above 0 and at most 1."
    number = float(positive(value, name, fix=fix))
    if number > 1.0:
        raise InputError(f"{name} must be at most 1.", why="It is a probability.", fix=fix)
    return number


def count(value: object, name: str, *, least: int = 1) -> int:
    """A whole number, at least ``least``."""
    fix = f"Give a whole number of at least {least}."
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} must be a whole number, not {type(value).__name__}.", why="It counts.", fix=fix)
    if not least <= value <= MOST:
        raise InputError(f"{name} must be between {least} and 1e100.", why="It counts.", fix=fix)
    return value
