"""Rényi bounds of sampled Gaussians: never below the truth, right to many digits, and no worse than dp_accounting."""

import itertools
import logging
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as peer
from scipy import integrate
from tests.conftest import LONG

from dalenius.accounting import sampled_gaussian
from dalenius.accounting.accountant import account
from dalenius.accounting.events import Gaussian, PoissonSampled, Repeated, SampledWithoutReplacement
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.renyi import SAMPLING_ORDERS, rdp

ORDERS = np.array(SAMPLING_ORDERS if LONG else [1.1, 1.5, 2, 2.5, 3.3, 5, 7.7, 10.9, 16, 33, 64])


def poisson(rate, noise, order):
    return float(sampled_gaussian.poisson(rate, noise, np.array([order]))[0])


def without_replacement(rate, noise, order):
    return float(sampled_gaussian.without_replacement(rate, noise, np.array([order]))[0])


def binomial_sum(rate, noise, order):
    """d(α) at a whole order, to 100 digits."""
    with mpmath.workdps(100):
        q, precision = mpmath.mpf(rate), 1 / mpmath.mpf(noise) ** 2
        total = mpmath.fsum(
            math.comb(order, k) * q**k * (1 - q) ** (order - k) * mpmath.expm1(k * (k - 1) * precision / 2)
            for k in range(2, order + 1)
        )
        return mpmath.log1p(total) / (order - 1)


@pytest.mark.parametrize("rate", [1e-12, 1e-6, 0.01, 0.3, 0.5, 0.999, 1 - 2**-53])
@pytest.mark.parametrize("noise", [0.05, 0.7, 3.0, 1e2, 1e7])
def test_whole_orders_are_right_to_eleven_digits_and_never_below(rate, noise):
    for order in (2, 3, 17, 64, 256) if not LONG else (2, 3, 4, 8, 17, 33, 64, 128, 256, 1024):
        truth = binomial_sum(rate, noise, order)
        assert truth <= poisson(rate, noise, order) <= truth * (1 + mpmath.mpf("1e-11"))


def integral(rate, noise, order, kind):
    """d(α) by quadrature with 30 digits: of either direction, or of the pair for drawing without replacement."""
    with mpmath.workdps(30):
        q, shift, a = mpmath.mpf(rate), 1 / mpmath.mpf(noise), mpmath.mpf(order)

        def integrand(t):
            ratio = 1 - q + q * mpmath.exp(shift * t - shift * shift / 2)
            if kind == "removed":
                value = ratio**a - 1 - a * (ratio - 1)
            elif kind == "added":
                value = ratio ** (1 - a) - 1 - (1 - a) * (ratio - 1)
            else:
                value = ratio**a + ratio ** (1 - a) - ratio - 1
            return mpmath.npdf(t) * value

        low, high = shift / 2 if kind == "substituted" else mpmath.mpf(-13), a * shift + 13
        panels = math.ceil((high - low) / 2)
        return mpmath.log1p(mpmath.quad(integrand, mpmath.linspace(low, high, panels + 1))) / (a - 1)


@pytest.mark.parametrize(
    ("rate", "noise", "order"),
    [(0.01, 1.0, 1.1), (1e-6, 1000.0, 1.5), (0.5, 0.5, 2.5), (0.999, 3.0, 7.3), (0.2, 20.0, 10.9)],
)
def test_other_orders_are_right_to_eleven_digits_and_adding_a_unit_shows_less_than_removing_it(rate, noise, order):
    truth = integral(rate, noise, order, "removed")
    assert integral(rate, noise, order, "added") <= truth
    assert truth <= poisson(rate, noise, order) <= truth * (1 + mpmath.mpf("1e-11"))


@pytest.mark.parametrize(
    ("rate", "noise", "order"), [(0.01, 1.0, 1.1), (1e-6, 1000.0, 2), (0.5, 0.5, 2.5), (0.2, 20.0, 64)]
)
def test_drawing_without_replacement_is_right_to_three_digits_and_never_below(rate, noise, order):
    truth = integral(rate, noise, order, "substituted")
    assert truth <= without_replacement(rate, noise, order) <= truth * (1 + mpmath.mpf("1e-3"))


@pytest.mark.parametrize("rate", [1e-4, 0.02, 0.5, 0.99])
@pytest.mark.parametrize("noise", [0.4, 1.3, 8.0])
def test_no_direction_of_either_mechanism_lies_above(rate, noise):
    """Integrated by scipy, whose error here is below 1e-8 of the result."""
    shift = 1 / noise
    for order in (1.2, 2.0, 4.5, 8.0):
        removed, drawn = poisson(rate, noise, order), without_replacement(rate, noise, order)

        def moment(power, rate=rate, order=order):
            def integrand(t):
                loss = np.logaddexp(math.log1p(-rate), math.log(rate) + shift * t - shift * shift / 2)
                return math.exp(power * loss - t * t / 2) / math.sqrt(2 * math.pi)

            edges = np.linspace(-12, order * shift + 12, 30)
            return math.fsum(integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise(edges))

        both = [math.log(moment(power)) / (order - 1) for power in (order, 1 - order)]
        assert max(both) <= removed + 1e-8 * removed + 1e-12 / (order - 1)
        assert removed <= drawn  # a substitute that shows as nothing: a removal


@pytest.fixture
def quiet():
    """Without what dp_accounting logs where its series does not converge."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.2, 0.9])
@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0, 30.0])
def test_never_above_dp_accounting(rate, noise):
    """But for the digits that it loses: its moments are near 1, and right to about 1e-14."""
    lost = 1e-14 * ORDERS / (ORDERS - 1)
    theirs = peer._compute_rdp_poisson_subsampled_gaussian(rate, noise, ORDERS)
    assert np.all(sampled_gaussian.poisson(rate, noise, ORDERS) <= theirs * (1 + 1e-9) + lost)
    theirs = peer._compute_rdp_sample_wor_gaussian(rate, noise, ORDERS)
    ours = sampled_gaussian.without_replacement(rate, noise, ORDERS)
    assert np.all(ours <= theirs * (1 + 1e-9) + lost)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("steps", [1, 100, 20_000])
def test_compositions_cost_no_more_than_by_dp_accounting(steps):
    import dp_accounting

    for rate, noise in ((0.01, 1.0), (256 / 60_000, 0.8), (0.3, 12.0)):
        theirs = dp_accounting.rdp.RdpAccountant(SAMPLING_ORDERS)
        theirs.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), steps)
        ours = rdp(Repeated(PoissonSampled(rate, Gaussian(noise)), steps))
        assert ours is not None and ours.epsilon(1e-6) <= theirs.get_epsilon(1e-6) * (1 + 1e-9)


def test_all_units_sampled_is_the_gaussian_itself():
    for order in (1.5, 2.0, 64.0):
        for bound in (poisson, without_replacement):
            assert order / 8 <= bound(1, 2.0, order) <= order / 8 * (1 + 1e-11)


def test_a_rate_between_two_doubles_counts_as_the_upper_one():
    third = Fraction(1, 3)
    below, above = float(third), math.nextafter(float(third), 1)
    assert Fraction(below) < third < Fraction(above)
    assert sampled_gaussian._parameters(third, 1.0)[0] == above
    assert sampled_gaussian._parameters(Fraction(1, 4), 1.0)[0] == 0.25


@pytest.mark.parametrize("rate", [1e-300, 1e-15, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("noise", [1e-320, 1e-160, 1e-3, 0.02, 1e4, 1e100, 1e300])
def test_odd_parameters_stay_between_nothing_and_the_gaussian(rate, noise):
    orders = np.array([1.001, 1.1, 2.0, 10.5, 1000.5, 1024.0])
    with np.errstate(over="ignore", divide="ignore"):
        gaussian = orders / 2 / np.float64(noise) / np.float64(noise)
    for bound in (sampled_gaussian.poisson, sampled_gaussian.without_replacement):
        found = bound(rate, noise, orders)
        assert np.all(found > 0) and np.all(found <= gaussian * (1 + 1e-9) + 1e-295)


def test_both_lead_from_the_account_of_an_event():
    poisson_sampled = Repeated(PoissonSampled(0.01, Gaussian(1.0)), 1000)
    inner = Gaussian(1.0, Neighbors.SUBSTITUTE)
    drawn = Repeated(SampledWithoutReplacement(10, 1000, inner), 1000)
    one, other = account(poisson_sampled, 1e-6).bounds, account(drawn, 1e-6).bounds
    assert one["rdp"] is not None and other["rdp"] is not None and one["pld"] is not None and other["pld"] is not None
    assert one["pld"] < one["rdp"] < 1.2 * one["pld"]
    assert other["pld"] < other["rdp"] < 1.2 * other["pld"]
