"""Filters and odometers: never overspent, exact to the last unit, and why PLD is not one of them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting.events import Approx, Composed, Pure, Repeated
from dalenius.accounting.filters import PureFilter, ZCDPFilter, ZCDPOdometer
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.pld import PLD
from dalenius.errors import BudgetError, InputError


def test_a_budget_of_three_admits_seven_questions_of_one():
    budget = ZCDPFilter(3.0, 1e-6)
    for _ in range(7):
        budget.charge(budget.price(1.0))
    with pytest.raises(BudgetError) as refusal:
        budget.charge(budget.price(1.0))
    assert refusal.value.fits is not None
    assert 0.5 < refusal.value.fits.epsilon < 1.0


def test_typing_exactly_what_is_left_passes_and_one_per_cent_more_does_not():
    budget = ZCDPFilter(3.0, 1e-6)
    budget.charge(budget.price(1.3))
    left = budget.remaining_epsilon
    assert not budget.admits(budget.price(1.01 * left))
    budget.charge(budget.price(left))
    assert budget.remaining_epsilon < 1e-4 * left


def test_an_untouched_budget_has_all_of_itself_left():
    for epsilon in (3.0, 1.0, 0.8, 0.05):
        budget = ZCDPFilter(epsilon, 1e-6)
        assert budget.remaining_epsilon == epsilon
        assert budget.admits(budget.price(epsilon))


def test_two_thousand_small_questions_fit_where_basic_composition_admits_sixty():
    budget = ZCDPFilter(3.0, 1e-6)
    for _ in range(2000):
        budget.charge(budget.price(0.05))
    pure = PureFilter(3.0)
    admitted = 0
    while pure.admits(PureDP(0.05)):
        pure.charge(PureDP(0.05))
        admitted += 1
    assert admitted in (59, 60)  # 0.05 is a little more than 1/20 in binary


@given(st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=60))
def test_the_sum_never_passes_the_cap_however_it_is_cut(prices):
    budget, spent = PureFilter(1.0), Fraction(0)
    for price in prices:
        if budget.admits(PureDP(price)):
            budget.charge(PureDP(price))
            spent += Fraction(price)
        else:
            assert spent + Fraction(price) > 1 - Fraction(1, 2**100)
    assert spent <= 1
    assert Fraction(budget.spent.epsilon) >= spent
    assert Fraction(budget.remaining) <= 1 - spent


def test_delta_is_capped_beside_rho():
    budget = ZCDPFilter(3.0, 1e-6)
    budget.charge(ZCDP(0.001, 4e-7))
    with pytest.raises(BudgetError) as refusal:
        budget.charge(ZCDP(0.001, 2e-7))
    assert refusal.value.fits is None
    budget.charge(ZCDP(0.001, 1e-7))
    assert budget.remaining.delta == pytest.approx(0, abs=1e-20)


def test_a_refused_charge_changes_nothing():
    budget = ZCDPFilter(1.0, 1e-6)
    before = budget.spent
    with pytest.raises(BudgetError):
        budget.charge(budget.price(2.0))
    assert budget.spent == before


def test_charges_under_another_relation_are_refused():
    with pytest.raises(InputError, match="relations"):
        PureFilter(1.0).charge(PureDP(0.1, Neighbors.SUBSTITUTE))
    with pytest.raises(InputError, match="relations"):
        ZCDPFilter(1.0, 1e-6).charge(ZCDP(0.001, 0.0, Neighbors.SUBSTITUTE))


@pytest.mark.parametrize("bad", [-1, 0, -0.0, math.nan, math.inf, 1e-320, True, "1"])
def test_bad_epsilons_never_become_a_budget(bad):
    for broken in (lambda: PureFilter(bad), lambda: ZCDPFilter(bad, 1e-6), lambda: ZCDPFilter(1.0, 1e-6).price(bad)):
        with pytest.raises(InputError):
            broken()


@pytest.mark.parametrize("bad", [-1, math.nan, 1, 2, "1e-6", True])
def test_bad_deltas_never_become_a_budget(bad):
    with pytest.raises(InputError):
        ZCDPFilter(1.0, bad)


def test_the_odometer_reports_more_than_one_fixed_moment_would():
    gone = ZCDPOdometer(1e-6)
    assert gone.spent.epsilon == 0
    last = 0.0
    for _ in range(50):
        gone.add(ZCDP(0.01))
        now = gone.spent.epsilon
        assert now >= last
        last = now
    assert last > ZCDP(0.5).epsilon(1e-6)
    assert last < 2 * ZCDP(0.5).epsilon(1e-6)


def test_a_filter_by_loss_distributions_is_overspent_by_adaptive_prices():
    """The counterexample of docs/explanation/filters.md, by exact enumeration.

    Three randomized responses; then, if all three losses were +a, a further one that only then can pass ε; otherwise
    a mechanism that fails with probability δ. Each of the two lists costs δ at ε by its loss distribution, so a PLD
    filter lets both happen; the interaction as a whole costs 1.8 δ.
    """
    target, allowed, step, times = 1.0, 1e-2, 0.1, 3
    up = math.exp(step) / (1 + math.exp(step))
    # after +3a: a loss of b passes ε only from there; mass so that P(+++)·δ_b(ε − 3a) = δ exactly
    rest = target - times * step
    needed = allowed / up**times
    # (e^b − e^rest)/(1 + e^b) = needed
    large = math.log((math.exp(rest) + needed) / (1 - needed))
    assert large < target - step  # from any other outcome it cannot pass ε

    walk = Repeated(Pure(step), times)
    path_up = PLD.of(Composed((walk, Pure(large)))).delta(target)
    path_else = PLD.of(Composed((walk, Approx(1e-9, allowed)))).delta(target)
    assert path_up == pytest.approx(allowed, rel=1e-2)
    assert path_else == pytest.approx(allowed, rel=1e-2)

    together = up**times * needed + (1 - up**times) * allowed
    assert together > 1.8 * allowed

    # The approximate-zCDP filter refuses what the PLD filter let through.
    budget = ZCDPFilter(target, allowed)
    for _ in range(times):
        budget.charge(PureDP(step).to_zcdp())
    with pytest.raises(BudgetError):
        budget.charge(ZCDP(1e-12, allowed))
