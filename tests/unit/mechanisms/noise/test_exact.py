"""Rational arithmetic: enclosures hold the number they claim to hold."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.mechanisms.noise import _exact, bits

rationals = st.fractions(min_value=0, max_value=60, max_denominator=10**12)


class Constant:
    """All words alike."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> np.ndarray:
        return np.full(count, self.word, np.uint64)


def exp_minus(x: Fraction, digits: int = 120) -> Decimal:
    with localcontext() as context:
        context.prec = digits
        return (-Decimal(x.numerator) / x.denominator).exp()


@given(rationals, st.integers(8, 250))
def test_exp_lies_in_its_enclosure_and_the_enclosure_is_narrow(x, precision):
    low, high = _exact.exp_minus(x, precision)
    assert high - low <= 2
    with localcontext() as context:
        context.prec = 120
        scaled = exp_minus(x) * 2**precision
        assert low - Decimal(10) ** -40 <= scaled <= high + Decimal(10) ** -40


@given(rationals, st.integers(8, 250))
def test_the_logistic_lies_in_its_enclosure(x, precision):
    low, high = _exact.logistic(x, precision)
    assert high - low <= 2
    with localcontext() as context:
        context.prec = 120
        scaled = 2**precision / (1 + exp_minus(x))
        assert low - Decimal(10) ** -40 <= scaled <= high + Decimal(10) ** -40


def test_exp_of_nothing_is_one_and_of_very_much_is_enclosed_at_once():
    assert _exact.exp_minus(Fraction(0), 64) == (2**64, 2**64)
    assert _exact.exp_minus(Fraction(10) ** 5000, 64) == (0, 1)


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(5), Fraction(123, 7), Fraction(1, 10**9)])
def test_bits_not_yet_drawn_decide_when_the_first_ones_cannot(x):
    edge = _exact.exp_minus(x, 63)[0]  # the first 63 bits of exp(−x): only later bits can tell
    with bits._injected(Constant(0)):
        uniform = _exact.LazyUniform(edge, 63)
        assert uniform.below_exp(x)
        assert uniform.length > 63
    with bits._injected(Constant(2**64 - 1)):
        uniform = _exact.LazyUniform(edge, 63)
        assert not uniform.below_exp(x)
        assert uniform.length > 63


@given(st.integers(1, 2**63 - 1), st.fractions(min_value=Fraction(1, 100), max_value=16, max_denominator=10**6))
def test_the_exact_geometric_is_the_floor_it_claims_to_be(numerator, scale):
    j = _exact.LazyUniform(numerator, 63).geometric(scale)
    with localcontext() as context:
        context.prec = 60
        factor = Decimal(scale.numerator) / scale.denominator
        lowest = -factor * (Decimal(numerator + 1) / 2**63).ln()
        highest = -factor * (Decimal(numerator) / 2**63).ln()
        assert int(lowest) <= j <= int(highest)


def test_a_uniform_number_of_all_zeros_still_ends():
    class ZerosThenOnes:
        count = 0

        def words(self, count: int) -> np.ndarray:
            self.count += 1
            return np.full(count, 0 if self.count < 4 else 2**64 - 1, np.uint64)

    with bits._injected(ZerosThenOnes()):
        j = _exact.LazyUniform(0, 63).geometric(Fraction(1, 1000))
    assert j == 0  # −ln U is about 255·ln 2


def test_exp_of_something_positive_is_no_probability():
    for function in (_exact.exp_minus, _exact.logistic):
        with pytest.raises(InputError):
            function(Fraction(-1, 10**9), 64)
