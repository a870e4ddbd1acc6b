"""The order of a cap: it allows what the cap allows, and no other allows more; filters that pay for sampled noise."""

import decimal
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting import conversions
from dalenius.accounting.events import Approx, Composed, SampledGaussian, Zcdp
from dalenius.accounting.filters import PureFilter, ZCDPFilter
from dalenius.accounting.guarantees import ZCDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.orders import SampledLoss, epsilon_of, is_sampled, loss, tight
from dalenius.accounting.sampled_discrete import calibrate_sampled, divergence, sampling_rate
from dalenius.errors import BudgetError, InputError

RATE = sampling_rate(0.01)
TRAINING = SampledGaussian(RATE, 4, steps=1000)


def cost(event, order):
    """In units of ρ, where there is one."""
    found = loss(event, order)
    assert found is not None
    return found


def allowed(order, epsilon, delta):
    """The ρ that one order allows at (ε, δ), to 60 digits, by Canonne, Kamath & Steinke's Proposition 12."""
    a = mpmath.mpf(Fraction(order).numerator) / Fraction(order).denominator
    cost = (mpmath.log(1 / mpmath.mpf(delta)) + (a - 1) * mpmath.log1p(-1 / a) - mpmath.log(a)) / (a - 1)
    return (mpmath.mpf(epsilon) - cost) / a


@given(st.floats(1e-4, 1e4), st.floats(1e-30, 0.3))
def test_the_tight_order_allows_the_whole_cap_and_no_other_order_more(epsilon, delta):
    found = tight(epsilon, delta)
    with mpmath.workdps(60):
        best = allowed(found.order, epsilon, delta)
        assert 0 <= best - mpmath.mpf(found.rho.numerator) / found.rho.denominator <= best * mpmath.mpf("1e-25")
        assert mpmath.mpf(conversions.zcdp_rho(epsilon, delta)) <= best
        for factor in (
            Fraction(1, 2),
            Fraction(999, 1000),
            1 - Fraction(1, 10**6),
            1 + Fraction(1, 10**6),
            Fraction(3, 2),
        ):
            assert allowed(1 + (found.order - 1) * factor, epsilon, delta) <= best * (1 + mpmath.mpf("1e-14"))


@given(st.floats(1e-3, 50), st.floats(1.001, 5), st.floats(1e-12, 0.01))
def test_a_larger_cap_has_a_lower_order_and_allows_more_divergence(epsilon, factor, delta):
    """On which the promise rests when an owner changes a cap: docs/decisions/0032-charging-sampled-noise.md."""
    small, large = tight(epsilon, delta), tight(epsilon * factor, delta)
    assert large.order < small.order
    assert large.order * large.rho > small.order * small.rho


def test_orders_are_the_same_numbers_everywhere_and_whatever_decimals_the_caller_uses():
    def found():
        tight.cache_clear()
        loss.cache_clear()
        return [
            tight(3.0, 5e-7),
            tight(0.1, 5e-7),
            loss(TRAINING, Fraction(19, 2)),
            divergence(TRAINING, Fraction(5, 4)),
        ]

    expected = found()
    assert [each.order for each in expected[:2]] == [Fraction(4905463, 524288), Fraction(11670846, 65536)]
    for rounding in (decimal.ROUND_DOWN, decimal.ROUND_UP):
        with decimal.localcontext(decimal.Context(prec=4, rounding=rounding)):
            assert found() == expected


def test_what_costs_rho_costs_it_at_every_order_and_what_is_not_known_nothing():
    for order in (Fraction(3, 2), Fraction(10), Fraction(10**6)):
        assert loss(Zcdp(0.25), order) == Fraction(1, 4)
        both = loss(Composed((Zcdp(0.25), TRAINING)), order)
        assert both == Fraction(1, 4) + cost(TRAINING, order)
        assert loss(Composed((TRAINING, TRAINING)), order) == 2 * cost(TRAINING, order)
    assert loss(Composed((TRAINING, Approx(0.1, 1e-6))), Fraction(2)) is not None
    assert is_sampled(Composed((Zcdp(0.1), TRAINING))) and not is_sampled(Zcdp(0.1))


@given(st.lists(st.floats(1e-3, 0.3), max_size=5), st.integers(1, 6), st.floats(0.5, 8))
def test_a_filter_adds_up_at_its_order_and_goes_on_at_another(rhos, trainings, larger):
    first = ZCDPFilter(20.0, 1e-6)
    for rho in rhos:
        first.charge(ZCDP(rho))
    for _ in range(trainings):
        first.charge(SampledLoss(TRAINING))
    for cap in (20.0, 20.0 + larger, 19.0):
        again = ZCDPFilter(cap, 1e-6, units=first.units, sampled=first.sampled)
        spent = sum(map(Fraction, rhos)) + trainings * cost(TRAINING, again.order)
        assert Fraction(again.spent.rho) == pytest.approx(spent, abs=1e-15) and Fraction(again.spent.rho) >= spent
        assert again.admits(again.price(again.remaining_epsilon))
    assert again.order > ZCDPFilter(20.0, 1e-6).order


def test_what_fits_into_a_filter_is_admitted_and_not_a_step_more():
    guard = ZCDPFilter(2.0, 1e-6)
    own = tight(2.0, guard.conversion_delta).order
    variance = calibrate_sampled(RATE, 5000, guard.price(2.0).rho, [own])
    whole = SampledGaussian(RATE, variance, steps=5000)
    assert guard.admits(SampledLoss(whole))
    assert not guard.admits(SampledLoss(SampledGaussian(RATE, variance, steps=5001)))
    assert not guard.admits(SampledLoss(whole, 6e-7))  # of δ half is there
    guard.charge(SampledLoss(whole, 5e-7))
    assert guard.remaining_delta == 0
    with pytest.raises(BudgetError):
        guard.charge(SampledLoss(TRAINING))
    with pytest.raises(BudgetError):
        guard.charge(ZCDP(1e-3))
    assert 1.9 < guard.spent_epsilon <= 2.0


def test_the_epsilon_of_what_is_spent_is_that_of_the_best_order():
    for epsilon in (0.2, 1.0, 2.5):
        guard = ZCDPFilter(3.0, 1e-6)
        orders = [guard.order, tight(epsilon, guard.conversion_delta).order]
        variance = calibrate_sampled(RATE, 20_000, guard.price(epsilon).rho, orders)
        guard.charge(SampledLoss(SampledGaussian(RATE, variance, steps=20_000)))
        assert 0.98 * epsilon < guard.spent_epsilon <= epsilon
        guard.charge(guard.price(0.3))
        assert epsilon < guard.spent_epsilon < math.hypot(epsilon, 0.3) + 0.05
    unknown = (Composed((TRAINING, Zcdp(0.1))),)
    assert epsilon_of(Fraction(0), unknown, 5e-7, Fraction(9)) > epsilon_of(Fraction(0), (TRAINING,), 5e-7, Fraction(9))


def test_pure_filters_and_filters_without_a_delta_refuse_in_words():
    for guard in (PureFilter(3.0), ZCDPFilter(3.0, 0)):
        for use in (guard.admits, guard.charge):
            with pytest.raises(InputError) as refusal:
                use(SampledLoss(TRAINING))
            assert '"output"' in refusal.value.fix
    with pytest.raises(InputError):
        _ = PureFilter(3.0).order
    assert PureFilter(3.0).sampled == ()


def test_another_relation_is_refused():
    with pytest.raises(InputError, match="neighbouring relations"):
        ZCDPFilter(3.0, 1e-6, Neighbors.SUBSTITUTE).admits(SampledLoss(TRAINING))
