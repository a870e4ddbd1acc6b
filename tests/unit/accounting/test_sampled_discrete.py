"""Sampled discrete Gaussian noise: never below the truth on the lattice, in either direction, at any order."""

import math
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as peer
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import LONG
from tests.unit.accounting.lattices import moments

from dalenius.accounting.accountant import account
from dalenius.accounting.event_json import from_json, to_json
from dalenius.accounting.events import Composed, DiscreteGaussian, SampledGaussian
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.orders import tight
from dalenius.accounting.parameters import LARGEST, MOST, SMALLEST
from dalenius.accounting.sampled_discrete import calibrate_sampled, divergence, sampling_rate
from dalenius.errors import InputError

WHOLE = 2**32
rates = st.one_of(st.sampled_from([1, 2, WHOLE // 2, WHOLE - 1, WHOLE]), st.integers(1, WHOLE)).map(
    lambda whole: Fraction(whole, WHOLE)
)
variances = st.fractions(Fraction(1, 100), 10**6)


def binomial_sum(rate, variance, order):
    """d(α) at a whole order, to 100 digits."""
    with mpmath.workdps(100):
        q, s = mpmath.mpf(rate.numerator) / rate.denominator, mpmath.mpf(variance.denominator) / variance.numerator / 2
        total = mpmath.fsum(
            math.comb(order, k) * q**k * (1 - q) ** (order - k) * mpmath.exp(k * (k - 1) * s) for k in range(order + 1)
        )
        return mpmath.log(total) / (order - 1)


def number(value):
    """A decimal or fraction as mpmath has it."""
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


@pytest.mark.parametrize("rate", [1, 3, 42_949_673, WHOLE // 2, WHOLE - 1])
@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(4, 7), Fraction(9), Fraction(10**6), Fraction(10**16)])
def test_whole_orders_are_right_to_forty_digits_and_never_below(rate, variance):
    rate = Fraction(rate, WHOLE)
    for order in (2, 3, 17, 64) if not LONG else (2, 3, 4, 8, 17, 33, 64, 128, 256, 1024):
        found = divergence(SampledGaussian(rate, variance), Fraction(order))
        if order * (order - 1) > 2 * 10**6 * variance:  # so little noise that sampling is no longer counted
            assert Fraction(found) == order / (2 * variance)
            continue
        truth = binomial_sum(rate, variance, order)
        with mpmath.workdps(100):
            assert truth <= number(found) <= truth + mpmath.mpf("1e-50") * (1 + truth)


@pytest.mark.parametrize("rate", [1, 42_949_673, WHOLE // 3, WHOLE - 1])
@pytest.mark.parametrize(
    ("variance", "vector"), [("0.3", (1,)), ("1", (1,)), ("2.5", (3,)), ("40", (7,)), ("1.5", (1, 2)), ("0.4", (1, -1))]
)
def test_both_directions_and_all_orders_are_bounded_on_the_lattice(rate, variance, vector):
    """The law itself is summed up. Whole orders are exact; between them, and for the other direction, it is less."""
    rate, length = Fraction(rate, WHOLE), sum(each * each for each in vector)
    event = SampledGaussian(rate, Fraction(variance), length, dimension=len(vector))
    for order in (
        ("1.1", "2", "2.5", "3") if not LONG or len(vector) > 1 else ("1.01", "1.5", "2", "2.5", "3", "7.3", "8")
    ):
        added, removed = moments(rate, variance, vector, order)
        with mpmath.workdps(30):
            found = number(divergence(event, Fraction(order)))
            truth = mpmath.log(added) / (mpmath.mpf(order) - 1)
            assert removed <= added * (1 + mpmath.mpf("1e-25"))
            assert truth <= found + mpmath.mpf("1e-25")
            if Fraction(order).denominator == 1:
                assert abs(found - truth) < mpmath.mpf("1e-24") * (1 + truth)
            shorter, _ = moments(rate, variance, (*vector[:-1], 0), order)
            assert shorter <= added  # a unit that adds less costs no more


@given(st.floats(0, 1), st.floats(1, 1e6), st.floats(1, 60))
def test_the_inequality_behind_the_other_direction_holds(rate, ratio, order):
    with mpmath.workdps(60):
        q, r, x = mpmath.mpf(rate), mpmath.mpf(ratio), mpmath.mpf(order)
        a, b = 1 - q + q * r, 1 - q + q / r
        left, right = a**x - a ** (1 - x), r * (b ** (1 - x) - b**x)
        assert left >= right - mpmath.mpf("1e-40") * (1 + abs(right))


@given(rates, variances, st.fractions(Fraction(11, 10), 20), st.integers(1, 10**9))
def test_it_grows_with_rate_steps_and_order_and_falls_with_noise(rate, variance, order, steps):
    def cost(rate=rate, variance=variance, squared=1, times=1, order=order):
        return Fraction(divergence(SampledGaussian(rate, variance, squared, times * steps), order))

    found, slack = cost(), 1 - Fraction(1, 10**40)
    rounding = steps * Fraction(1, 10**45)
    assert 0 <= found * slack <= steps * order / (2 * variance)
    assert cost(rate=min(Fraction(1), rate + Fraction(1, WHOLE))) >= found * slack - rounding
    assert cost(order=order + Fraction(1, 3)) >= found * slack - rounding
    assert cost(variance=2 * variance) * slack <= found + rounding
    assert cost(variance=8 * variance, squared=8) == found
    assert abs(cost(times=2) - 2 * found) <= rounding + found * (1 - slack)


def test_whole_orders_are_those_of_dp_accounting():
    rate = sampling_rate(0.01)
    orders = [2, 5, 19, 64]
    theirs = peer._compute_rdp_poisson_subsampled_gaussian(float(rate), 1.3, orders)
    ours = [float(divergence(SampledGaussian(rate, Fraction(1.3) ** 2), Fraction(each))) for each in orders]
    assert np.allclose(theirs, ours, rtol=1e-9)


def test_without_sampling_it_is_rho_at_every_order():
    event = SampledGaussian(Fraction(1), Fraction(7, 2), 3, steps=10)
    for order in (Fraction(101, 100), Fraction(2), Fraction(19, 2), Fraction(10**9)):
        assert Fraction(divergence(event, order)) == pytest.approx(order * 10 * 3 / 7)


@pytest.mark.parametrize("rate", [Fraction(1, WHOLE), Fraction(1, 2), 1 - Fraction(1, WHOLE), Fraction(1)])
@pytest.mark.parametrize("variance", [SMALLEST, Fraction(1, 10**9), 1, 10**30, LARGEST])
@pytest.mark.parametrize("order", [1 + Fraction(1, 2**170), Fraction(3, 2), Fraction(20_001), Fraction(10) ** 290])
def test_extremes_are_bounded_by_what_no_sampling_costs_and_take_no_time(rate, variance, order):
    begun = time.process_time()
    for steps in (1, 10**9, MOST):
        found = Fraction(divergence(SampledGaussian(rate, variance, steps=steps), order))
        assert 0 < found <= order * steps / (2 * Fraction(variance)) * (1 + Fraction(1, 10**50))
    assert time.process_time() - begun < 2


@given(rates, st.integers(1, 10**5), st.floats(1e-6, 30), st.floats(0.2, 20))
def test_calibrated_noise_keeps_the_price_and_a_ten_thousandth_less_does_not(rate, steps, rho, cap):
    orders = [tight(cap, 5e-7).order, tight(max(cap, 1.0), 5e-7).order]

    def most(variance):
        event = SampledGaussian(rate, variance, steps=steps)
        return max(Fraction(divergence(event, order)) / order for order in orders)

    for least in (Fraction(1, 1000), 1):
        found = calibrate_sampled(rate, steps, rho, orders, least=least)
        assert found >= least and most(found) <= Fraction(rho)
        assert found == least or most(found * Fraction(9999, 10_000)) > Fraction(rho)


def test_no_less_noise_than_a_sigma_of_one_is_returned_unasked():
    rate = sampling_rate(0.005)
    assert calibrate_sampled(rate, 2000, 0.2, [Fraction(9)]) == 1
    assert calibrate_sampled(rate, 2000, 0.2, [Fraction(9)], least=Fraction(1, 4)) < Fraction(9, 10)


@pytest.mark.parametrize("orders", [[], [Fraction(1)], [Fraction(3), Fraction(1, 2)]])
def test_orders_that_are_none_are_refused(orders):
    with pytest.raises(InputError, match="orders above 1"):
        calibrate_sampled(Fraction(1, 4), 10, 0.1, orders)


def test_a_price_for_which_no_noise_is_enough_is_refused():
    with pytest.raises(InputError, match="No amount of noise"):
        calibrate_sampled(Fraction(1, 4), MOST, 1e-90, [Fraction(3)])


@given(st.floats(1e-12, 1))
def test_a_rate_is_rounded_down_to_what_can_be_drawn(wanted):
    found = sampling_rate(wanted)
    assert (found * WHOLE).denominator == 1
    assert found <= max(Fraction(wanted), Fraction(1, WHOLE)) and found + Fraction(1, WHOLE) > Fraction(wanted)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": Fraction(0)},
        {"rate": Fraction(-1, 4)},
        {"rate": Fraction(5, 4)},
        {"rate": Fraction(1, 3)},
        {"rate": Fraction(1, 2**33)},
        {"rate": 0.5},
        {"rate": 1},
        {"variance": 0},
        {"variance": math.nan},
        {"variance": -4},
        {"variance": True},
        {"squared_sensitivity": 0},
        {"squared_sensitivity": 1.5},
        {"steps": 0},
        {"steps": -3},
        {"steps": True},
        {"dimension": 0},
        {"delta": -1e-9},
        {"delta": 1},
        {"delta": math.nan},
        {"neighbors": Neighbors.SUBSTITUTE},
    ],
)
def test_an_event_that_is_none_is_refused(wrong):
    with pytest.raises(InputError) as refusal:
        SampledGaussian(**{"rate": Fraction(1, 4), "variance": 9} | wrong)
    if "neighbors" in wrong:
        assert '"output"' in refusal.value.fix


def test_it_goes_through_json_exactly_and_forged_fields_do_not():
    event = SampledGaussian(Fraction(1, WHOLE), Fraction(10, 7), 9, 10_000, 650, 1e-9)
    for each in (event, Composed((event, DiscreteGaussian(4))), SampledGaussian(Fraction(1), 4)):
        assert from_json(to_json(each)) == each
    for name, value in {
        "rate": 0.25,
        "steps": "10/1",
        "variance": "0/5",
        "delta": "1/1",
        "more": 1,
        "kind": "x",
    }.items():
        forged = to_json(event)
        forged["event"][name] = value
        with pytest.raises(InputError):
            from_json(forged)
    with pytest.raises(InputError, match="add-remove"):
        from_json(to_json(event) | {"neighbors": "substitute"})


def test_account_knows_it():
    event = SampledGaussian(sampling_rate(0.01), 2**80, 2**80, steps=1000, dimension=10, delta=1e-7)
    found = account(event, 1e-5)
    assert found.method == "pld" and found.bounds["zcdp"] is None is found.bounds["basic"]
    assert 1.6 < found.epsilon < (found.bounds["rdp"] or 0) < 3
    assert account(event, 1e-7).epsilon == math.inf
    coarse = account(SampledGaussian(sampling_rate(0.01), 4, 4, steps=1000), 1e-5)
    assert coarse.method == "rdp"
