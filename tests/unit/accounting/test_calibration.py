"""Calibration returns the least noise that keeps the promise: it holds, and a little less would not."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.accounting import calibration, conversions
from dalenius.accounting.accountant import account
from dalenius.accounting.events import DiscreteGaussian, Gaussian, Laplace, PoissonSampled, Repeated
from dalenius.accounting.pld import PLD
from dalenius.errors import InputError


@given(st.floats(0.01, 10), st.floats(1e-10, 1e-3))
def test_analytic_gaussian_is_least(epsilon, delta):
    sigma = calibration.analytic_gaussian(epsilon, delta)
    assert conversions.gaussian_delta(sigma, epsilon) <= delta
    assert conversions.gaussian_delta(sigma * (1 - 1e-6), epsilon) > delta


@given(st.floats(0.01, 1), st.floats(1e-10, 1e-3))
def test_classical_gaussian_holds_and_is_looser(epsilon, delta):
    assert calibration.classical_gaussian(epsilon, delta) >= calibration.analytic_gaussian(epsilon, delta)


def test_classical_gaussian_is_refused_past_one():
    with pytest.raises(InputError, match="ε ≤ 1"):
        calibration.classical_gaussian(1.5, 1e-6)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=10), st.integers(1, 1000))
def test_zcdp_variance_is_exact(rho, squared):
    assert Fraction(squared) / (2 * calibration.zcdp_variance(rho, squared)) == rho


@settings(max_examples=10)
@given(st.floats(0.2, 4), st.integers(1, 5))
def test_discrete_gaussian_variance_holds_and_is_near_least(epsilon, sensitivity):
    variance = calibration.discrete_gaussian_variance(epsilon, 1e-5, sensitivity)
    assert PLD.of(DiscreteGaussian(variance, sensitivity**2)).delta(epsilon) <= 1.001e-5  # the grid rounds up
    assert PLD.of(DiscreteGaussian(variance * 0.99, sensitivity**2)).delta(epsilon) > 1e-5


def test_dp_sgd_noise_holds_and_is_near_least():
    sigma = calibration.dp_sgd_noise(2.0, 1e-5, rate=0.02, steps=200)
    event = Repeated(PoissonSampled(0.02, Gaussian(sigma)), 200)
    assert account(event, 1e-5).epsilon <= 2.0
    assert account(Repeated(PoissonSampled(0.02, Gaussian(sigma * 0.995)), 200), 1e-5).epsilon > 2.0


def test_laplace_scale_keeps_fractions():
    assert calibration.laplace_scale(Fraction(1, 3), 2) == 6


@pytest.mark.parametrize("event", [Gaussian(20), Laplace(15)])
def test_most_repetitions_fit_and_one_more_does_not(event):
    times = calibration.most_repetitions(event, 1.0, 1e-6)
    assert account(Repeated(event, times), 1e-6).epsilon <= 1.0
    assert account(Repeated(event, times + 1), 1e-6).epsilon > 1.0
    assert calibration.most_repetitions(Laplace(0.1), 1.0, 1e-6) == 0


def test_impossible_targets_are_refused():
    from dalenius.accounting.events import Approx, Composed

    with pytest.raises(InputError, match="No amount of noise"):
        calibration.least_noise(lambda noise: Composed((Laplace(noise), Approx(0.1, 1e-3))), 1.0, 1e-6)
    for bad in (math.nan, 0, -1, True):
        with pytest.raises(InputError):
            calibration.analytic_gaussian(bad, 1e-6)
    with pytest.raises(InputError):
        calibration.analytic_gaussian(1.0, 0.0)
