"""The figure on a model card: discrete noise is as close to rounded continuous noise as was proved, and 6.188."""

import math
from fractions import Fraction

import mpmath
import pytest

from dalenius.accounting.accountant import account
from dalenius.accounting.events import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    PoissonSampled,
    Pure,
    Repeated,
    SampledGaussian,
)
from dalenius.accounting.pld import PLD
from dalenius.accounting.rounded_noise import FINEST, model_epsilon, pld_epsilon
from dalenius.accounting.sampled_discrete import sampling_rate
from dalenius.errors import InputError

RATE = sampling_rate(0.01)


def run(steps=10_000, sigma=2**40, clip=2**40, **more):
    return SampledGaussian(RATE, sigma**2, clip**2, steps, **more)


@pytest.mark.parametrize("dimension", [1, 650, 100_000])
def test_ten_thousand_steps_are_shown_as_6_188(dimension):
    assert f"{model_epsilon(run(dimension=dimension), 1e-5):.3f}" == "6.188"


@pytest.mark.parametrize("sigma", [4, 16, 64])
def test_discrete_noise_is_as_close_to_rounded_noise_as_was_proved(sigma):
    """χ² over whole numbers, and the two bounds on their ratio it rests on. Proved from 2²⁰ on, it holds far before."""
    with mpmath.workdps(40):
        s = mpmath.mpf(sigma)
        squares = mpmath.mpf(0)
        for k in range(-12 * sigma, 12 * sigma + 1):
            discrete = mpmath.npdf(k, 0, s)  # its sum over k is 1 but for e^(−2π²σ²)
            rounded = mpmath.ncdf(k + 0.5, 0, s) - mpmath.ncdf(k - 0.5, 0, s) if k <= 0 else None
            rounded = mpmath.ncdf(0.5 - k, 0, s) - mpmath.ncdf(-0.5 - k, 0, s) if rounded is None else rounded
            ratio = rounded / discrete - 1
            squares += discrete * ratio**2
            if abs(k) <= sigma**2:
                assert (
                    -1 / (24 * s**2) <= ratio <= mpmath.mpf("1.07") * (k / s) ** 2 / (24 * s**2) + mpmath.mpf("1e-25")
                )
        assert squares < 1 / (125 * s**4)
        assert squares > 1 / (400 * s**4)  # nor is the bound far off


def test_the_distance_grows_with_numbers_of_noise_and_falls_with_the_grid():
    fine, coarse = run(sigma=2**30, clip=2**30), run(sigma=FINEST, clip=FINEST)
    exact = PLD.of(Repeated(PoissonSampled(RATE, Gaussian(1.0)), 10_000)).epsilon(1e-5)
    assert exact <= model_epsilon(fine, 1e-5) < exact + 1e-6
    found = [
        model_epsilon(run(sigma=FINEST, clip=FINEST, dimension=dimension), 1e-5) for dimension in (1, 650, 100_000)
    ]
    assert exact < found[0] < found[1] < found[2] < exact + 0.05
    # δ − (1 + e^ε)·τ, with τ = √(n/250)/σ²
    tau = math.sqrt(650 * 10_000 / 250) / FINEST**2
    left = 1e-5 - (1 + math.exp(found[1])) * tau
    assert PLD.of(Repeated(PoissonSampled(RATE, Gaussian(1.0)), 10_000)).epsilon(left) == pytest.approx(
        found[1], abs=1e-5
    )
    assert model_epsilon(coarse, 1e-9) == math.inf or model_epsilon(coarse, 1e-9) > model_epsilon(fine, 1e-9)


def test_the_delta_of_the_event_comes_on_top():
    assert model_epsilon(run(delta=5e-6), 1e-5) == pytest.approx(model_epsilon(run(), 5e-6), abs=1e-6)
    assert model_epsilon(run(delta=1e-5), 1e-5) == math.inf


def test_counts_beside_the_training_are_in_the_figure():
    count = DiscreteGaussian(10**14, 9 * 10**12)
    both = model_epsilon(Composed((run(), count, Pure(0.01))), 1e-5)
    assert model_epsilon(run(), 1e-5) < both < model_epsilon(run(), 1e-5) + 1.5
    assert both == pytest.approx(model_epsilon(Composed((run(), DiscreteGaussian(100, 9), Pure(0.01))), 1e-5), abs=1e-3)


def test_noise_that_is_too_coarse_for_a_loss_distribution_is_told_by_its_best_order():
    coarse = SampledGaussian(RATE, FINEST**2 - 1, FINEST**2, 1000)
    fine = SampledGaussian(RATE, FINEST**2, FINEST**2, 1000)
    with pytest.raises(InputError, match="too coarse"):
        pld_epsilon(coarse, 1e-5)
    exact = pld_epsilon(fine, 1e-5)
    assert exact == model_epsilon(fine, 1e-5) < model_epsilon(coarse, 1e-5) < 1.6 * exact
    assert model_epsilon(coarse, 1e-5) == pytest.approx(account(coarse, 1e-5).bounds["rdp"], rel=0.01)


def test_losses_that_leave_the_doubles_are_told_by_orders():
    rare = SampledGaussian(Fraction(1, 2**32), FINEST**2, FINEST**2, 10**6)
    assert 0 < model_epsilon(rare, 5e-7) < 0.5
