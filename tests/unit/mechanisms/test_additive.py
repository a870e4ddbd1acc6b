"""Laplace, geometric and Gaussian noise: exact parameters, exact privacy ratios, calibration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting.conversions import gaussian_delta, zcdp_epsilon
from dalenius.errors import InputError
from dalenius.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace
from dalenius.mechanisms.laws import discrete_gaussian_delta


def test_the_scale_is_the_rational_that_was_given():
    assert Laplace(Fraction(1, 3), 5).scale == 15
    assert Laplace(0.1, 1).scale == 1 / Fraction(0.1)  # the double nearest 0.1, not 1/10
    assert Laplace(0.1).event.scale == Laplace(0.1).scale


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("sensitivity", [1, 2, 5])
def test_the_geometric_law_has_ratio_exactly_epsilon(epsilon, sensitivity):
    mechanism = Geometric(epsilon, sensitivity)
    alpha = mechanism.alpha
    assert math.fsum(mechanism.probability(k) for k in range(-4000, 4001)) == pytest.approx(1)
    for k in range(8):
        assert mechanism.probability(k) == pytest.approx((alpha - 1) / (alpha + 1) * alpha**-k, rel=1e-12)
        tail = 1 - math.fsum(mechanism.probability(j) for j in range(1 - k, k)) if k else 1.0
        assert mechanism.tail(k) == pytest.approx(tail, abs=1e-12)
    worst = max(
        math.log(mechanism.probability(y) / mechanism.probability(y - shift))
        for y in range(-30, 31)
        for shift in range(-sensitivity, sensitivity + 1)
    )
    assert worst == pytest.approx(float(epsilon), rel=1e-9)


def test_a_vector_of_laplace_noise_is_private_as_a_whole():
    """All shifts of L1 norm up to Δ, all outputs on a small grid."""
    mechanism = Geometric(Fraction(1, 2), 3, dimension=2)
    shifts = [s for s in itertools.product(range(-3, 4), repeat=2) if abs(s[0]) + abs(s[1]) <= 3]
    worst = max(
        sum(
            math.log(mechanism.probability(y) / mechanism.probability(y - s)) for y, s in zip(point, shift, strict=True)
        )
        for point in itertools.product(range(-6, 7), repeat=2)
        for shift in shifts
    )
    assert worst == pytest.approx(0.5)


@given(st.integers(1, 10**6), st.fractions(min_value=Fraction(1, 10**6), max_value=100))
def test_rho_is_exact_and_a_variance_is_only_rounded_up(squared, rho):
    mechanism = Gaussian.of_rho(rho=rho, squared_sensitivity=squared)
    exact = Fraction(squared) / (2 * rho)
    assert exact <= mechanism.variance <= exact * (1 + Fraction(1, 2**38))
    assert mechanism.rho <= rho
    assert mechanism.event.variance == mechanism.variance


@pytest.mark.parametrize("rho", [0.1, 1e-7, 1 / 3])
def test_a_float_rho_is_met(rho):
    mechanism = Gaussian.of_rho(rho=rho, squared_sensitivity=7)
    assert mechanism.rho <= Fraction(rho)


@pytest.mark.parametrize("delta", [1e-90, 1e-12, 1e-6, 1e-3, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1])
@pytest.mark.parametrize("dimension", [1, 40])
def test_the_classical_calibration_keeps_its_promise_for_discrete_noise(epsilon, delta, dimension):
    mechanism = Gaussian.classical(epsilon=epsilon, delta=delta, squared_sensitivity=9, dimension=dimension)
    assert mechanism.variance >= Fraction(2 * math.log(1.25 / delta) * 9 / epsilon**2 * (1 - 1e-12))
    assert zcdp_epsilon(float(mechanism.rho), delta) <= epsilon


def test_the_classical_calibration_stops_at_epsilon_one():
    with pytest.raises(InputError, match="up to 1"):
        Gaussian.classical(epsilon=Fraction(1000001, 1000000), delta=1e-6, squared_sensitivity=1)
    # and rightly so: far past it, its continuous noise would break the promise
    assert gaussian_delta(math.sqrt(2 * math.log(1.25 / 1e-2)) / 12, 12.0) > 1e-2


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 4, 10])
@pytest.mark.parametrize("sensitivity", [1, 5, 2**20])
def test_the_analytic_calibration_of_one_number_is_the_least_that_keeps_its_promise(epsilon, delta, sensitivity):
    mechanism = Gaussian.analytic(epsilon=epsilon, delta=delta, squared_sensitivity=sensitivity**2)
    variance = Fraction(mechanism.variance)
    assert discrete_gaussian_delta(variance, sensitivity, epsilon) <= delta * (1 + 1e-9)
    assert discrete_gaussian_delta(variance * Fraction(99, 100), sensitivity, epsilon) > delta


def test_one_number_is_never_charged_more_than_by_rho():
    for epsilon in (0.1, 1, 5):
        one = Gaussian.analytic(epsilon=epsilon, delta=1e-6, squared_sensitivity=1)
        many = Gaussian.analytic(epsilon=epsilon, delta=1e-6, squared_sensitivity=1, dimension=2)
        assert one.variance < many.variance
        assert zcdp_epsilon(float(many.rho), 1e-6) <= epsilon


def test_one_number_with_a_sensitivity_that_is_no_square_changes_by_whole_steps():
    one = Gaussian.analytic(epsilon=1, delta=1e-6, squared_sensitivity=8)
    assert one.variance == Gaussian.analytic(epsilon=1, delta=1e-6, squared_sensitivity=4).variance


def test_a_variance_given_as_it_is_stays_so():
    assert DiscreteGaussian(Fraction(22, 7), 3).rho == Fraction(21, 44)
    assert DiscreteGaussian(0.1).event.variance == Fraction(0.1)
