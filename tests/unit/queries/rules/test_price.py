"""The price typed is the price paid: shares sum to one, and the event costs what was asked."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dalenius.accounting import conversions, costs
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.laplace import Laplace
from dalenius.queries.rules.price import price_plan

TOLERANCE = 1e-9  # the ledger's
QUESTIONS = [
    "SELECT COUNT(*) FROM visits",
    "SELECT COUNT(*), SUM(age), SUM(change) FROM visits",
    "SELECT AVG(age) FROM visits",
    "SELECT AVG(amount), STDDEV(age), COUNT(DISTINCT user_id) FROM visits",
    "SELECT region, AVG(amount), VAR_POP(change), COUNT(*), SUM(amount) FROM visits GROUP BY region",
    'SELECT SUM(age), SUM(age + 1), SUM(age + 2), SUM(age + 3), SUM(age + 4), AVG("odd name") FROM visits',
]


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_shares_sum_to_one_exactly(sql, accounting, asker):
    plan = asker(accounting=accounting).plan(sql)
    assert sum(each.share for each in plan.measures) == Fraction(1)
    assert all(each.share > 0 for each in plan.measures)
    for statistic in plan.statistics:  # each aggregate has the same part
        assert sum(each.share for each in statistic.measures) == Fraction(1, len(plan.statistics))


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("epsilon", [1e-4, 0.05, 1.0, 2.9])
def test_under_zcdp_the_event_costs_rho_of_epsilon(sql, neighbors, epsilon, asker):
    plan = asker(neighbors=neighbors).plan(sql)
    found = price_plan(plan, epsilon)
    assert found.rho is not None and found.rho == plan.table.budget.filter().price(epsilon).rho
    assert conversions.zcdp_epsilon(found.rho, plan.table.budget.delta / 2) == pytest.approx(epsilon, rel=1e-6)
    cost = costs.zcdp(found.event)
    assert cost is not None and cost.delta == 0
    assert cost.rho <= found.rho * (1 + TOLERANCE)
    # rounding variances up to 24 bits leaves at most 2⁻²⁴ of the price unused
    assert cost.rho >= found.rho * (1 - 2**-23)
    for measure, mechanism in zip(plan.measures, found.mechanisms, strict=True):
        assert isinstance(mechanism, DiscreteGaussian)
        least = Fraction(measure.sensitivity) / (2 * Fraction(found.rho) * measure.share)
        assert least <= mechanism.variance <= least * (1 + Fraction(1, 2**23))


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("neighbors", ["add-remove", "substitute"])
@pytest.mark.parametrize("epsilon", [1e-4, 0.05, 1.0, 2.9])
def test_under_pure_dp_the_event_costs_epsilon(sql, neighbors, epsilon, asker):
    plan = asker(neighbors=neighbors, accounting="pure").plan(sql)
    found = price_plan(plan, epsilon)
    assert found.rho is None
    cost = costs.pure_epsilon(found.event)
    assert cost == pytest.approx(epsilon, rel=1e-9) and cost <= epsilon * (1 + TOLERANCE)
    for measure, mechanism in zip(plan.measures, found.mechanisms, strict=True):
        assert isinstance(mechanism, Laplace)
        assert mechanism.scale >= Fraction(measure.sensitivity) / (Fraction(epsilon) * measure.share) * (
            1 - Fraction(1, 10**12)
        )


def variance(plan, epsilon):
    """Of the count's noise."""
    found = [
        mechanism
        for measure, mechanism in zip(plan.measures, price_plan(plan, epsilon).mechanisms, strict=True)
        if measure.kind == "rows"
    ]
    assert isinstance(found[0], DiscreteGaussian)
    return found[0].variance


def test_exchanging_a_unit_needs_more_noise_than_removing_one(asker):
    sql = "SELECT COUNT(*) FROM visits"
    one, other = (variance(asker(neighbors=each).plan(sql), 1.0) for each in ("add-remove", "substitute"))
    assert float(other / one) == pytest.approx(2, rel=1e-6)


def test_twice_the_columns_cost_the_same_and_are_noisier(visits):
    one = price_plan(visits.plan("SELECT COUNT(*) FROM visits"), 0.5)
    two = price_plan(visits.plan("SELECT COUNT(*), SUM(age) FROM visits"), 0.5)
    assert one.rho == two.rho
    plans = (visits.plan(f"SELECT {each} FROM visits") for each in ("COUNT(*)", "COUNT(*), SUM(age)"))
    single, shared = (variance(each, 0.5) for each in plans)
    assert float(shared / single) == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize(
    "value", [Fraction(1), Fraction(2, 3), Fraction(10**40 + 1, 7), Fraction(1, 10**30), Fraction(5**50, 3**70)]
)
def test_a_variance_is_rounded_up_and_only_a_little(value):
    found = widened(value)
    assert value <= found <= value * (1 + Fraction(1, 2**23))
    assert found.numerator.bit_length() <= max(26, math.ceil(math.log2(found)) + 2)
