"""Exact decisions: a uniform number with as many bits as it takes, against a number known to any precision.

All arithmetic here is on Python integers. A real number q in [0, 1] is given as an *enclosure*: a function
that, for a precision P, returns integers low ≤ q·2ᴾ ≤ high. The width high − low stays bounded (by 2 in
practice) as P grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from dalenius.errors import InputError
from dalenius.mechanisms.noise import bits

Enclosure = Callable[[int], tuple[int, int]]


def exp_minus(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers low ≤ exp(−x)·2^precision ≤ high, for x ≥ 0.

    exp(−x) = (1/exp(r))^(2^k) with r = x/2^k < 2⁻⁸. The series of exp(r) has positive terms only; each is
    rounded down for the lower sum and up for the upper one. Squaring doubles the relative width, hence the k
    guard bits.
    """
    if x.numerator < 0:
        raise InputError(
            "exp(−x) was asked for an x below 0.",
            why="It is then no probability.",
            fix="Report this: a weight was computed wrongly.",
        )
    if x.numerator == 0:
        return 1 << precision, 1 << precision
    if x >= precision:  # exp(−x) < 2^−precision, without working on an enormous x
        return 0, 1
    halvings = int(x).bit_length() + 8
    fine = precision + halvings + 16
    one = 1 << fine
    r_low = (x.numerator << fine) // (x.denominator << halvings)
    r_high = r_low + 1

    low = high = term_low = term_high = one
    count = 0
    while term_high > 1:
        count += 1
        term_low = term_low * r_low // (count << fine)
        term_high = -(-term_high * r_high // (count << fine))
        low += term_low
        high += term_high
    high += 1  # the terms left out: each is below 2⁻⁸ of the one before, which is at most one unit

    low, high = one * one // high, -(-one * one // low)
    for _ in range(halvings):
        low, high = low * low >> fine, -(-high * high >> fine)
    spare = fine - precision
    return low >> spare, -(-high >> spare)


def logistic(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers low ≤ 2^precision/(1 + exp(−x)) ≤ high, for x ≥ 0."""
    fine = precision + 8
    low, high = exp_minus(x, fine)
    one = 1 << fine
    return (one << precision) // (one + high), -(-(one << precision) // (one + low))


class LazyUniform:
    """A uniform real number in [0, 1) of which only the first bits are known; more are drawn when needed.

    It lies in [numerator, numerator + 1)·2^−length.
    """

    __slots__ = ("length", "numerator")

    def __init__(self, numerator: int, length: int) -> None:
        self.numerator = numerator
        self.length = length

    def extend(self) -> None:
        """Draw 64 more bits."""
        self.numerator = self.numerator << 64 | bits.integers(64, 1)[0]
        self.length += 64

    def below(self, enclosure: Enclosure) -> bool:
        """Whether the number is below the one enclosed; ends with probability one, nearly always at once."""
        while True:
            low, high = enclosure(self.length + 8)
            if (self.numerator + 1) << 8 <= low:
                return True
            if self.numerator << 8 >= high:
                return False
            self.extend()

    def below_exp(self, x: Fraction) -> bool:
        """Whether the number is below exp(−x)."""
        return self.below(lambda precision: exp_minus(x, precision))

    def geometric(self, scale: Fraction) -> int:
        """⌊−scale·ln U⌋, the largest j ≥ 0 with U ≤ exp(−j/scale): P(≥ j) = exp(−j/scale).

        The logarithm only proposes where to look; `below_exp` decides.
        """
        while self.numerator == 0:
            self.extend()
        logarithm = math.log(self.numerator) - self.length * math.log(2)
        j = max(0, math.floor(-scale * Fraction(logarithm)))
        while j > 0 and not self.below_exp(j / scale):
            j -= 1
        while self.below_exp((j + 1) / scale):
            j += 1
        return j


_everything = False


def forced() -> bool:
    """Whether every decision is to be made here, as if each had fallen within the float error."""
    return _everything


@contextmanager
def _always() -> Iterator[None]:
    """For tests only: no decision is left to floating point until the block ends."""
    global _everything  # noqa: PLW0603
    _everything = True
    try:
        yield
    finally:
        _everything = False
