"""Conversions between guarantees: the right constants, on the safe side, and inverse to one another."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting import conversions
from dalenius.accounting.guarantees import RDP, ZCDP, ApproxDP, PureDP, parallel
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

epsilons = st.floats(1e-3, 20)
deltas = st.floats(1e-12, 1e-2)
rhos = st.floats(1e-6, 10)


def test_rho_of_one_is_what_the_interfaces_say():
    assert conversions.zcdp_rho(1.0, 1e-6) == pytest.approx(0.0244, abs=5e-5)
    assert math.sqrt(1 / (2 * conversions.zcdp_rho(1.0, 1e-6))) == pytest.approx(4.53, abs=5e-3)
    assert conversions.zcdp_rho(3.0, 1e-6) == pytest.approx(0.185, abs=5e-4)


@given(epsilons, deltas)
def test_rho_is_the_largest_that_fits(epsilon, delta):
    rho = conversions.zcdp_rho(epsilon, delta)
    assert conversions.zcdp_epsilon(rho, delta) <= epsilon
    assert conversions.zcdp_epsilon(rho * (1 + 1e-9), delta) > epsilon * (1 - 1e-12)


@given(rhos, deltas)
def test_the_tight_conversion_beats_the_textbook_one_and_inverts(rho, delta):
    epsilon = conversions.zcdp_epsilon(rho, delta)
    assert epsilon <= conversions.zcdp_epsilon_standard(rho, delta)
    if epsilon > 0:
        assert conversions.zcdp_delta(rho, epsilon) <= delta * (1 + 1e-6)


@given(rhos, deltas)
def test_zcdp_never_promises_more_than_the_gaussian_that_has_this_rho(rho, delta):
    # Gaussian noise with ρ = 1/2m² is ρ-zCDP, so a valid conversion cannot go below its exact ε.
    assert conversions.zcdp_epsilon(rho, delta) >= conversions.gaussian_epsilon(1 / math.sqrt(2 * rho), delta) - 1e-9


@pytest.mark.parametrize(("multiplier", "epsilon", "delta"), [(1.0, 1.0, 0.12693673750664397), (2.0, 0.5, 0.05245)])
def test_gaussian_delta_against_known_values(multiplier, epsilon, delta):
    assert conversions.gaussian_delta(multiplier, epsilon) == pytest.approx(delta, rel=2e-3)


def test_gaussian_delta_keeps_its_digits_far_out():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for multiplier, epsilon in [(1.0, 5.0), (1.0, 30.0), (0.2, 100.0), (50.0, 0.5), (1000.0, 0.01)]:
            shift = mpmath.mpf(1) / multiplier
            exact = mpmath.ncdf(shift / 2 - epsilon / shift) - mpmath.exp(epsilon) * mpmath.ncdf(
                -shift / 2 - epsilon / shift
            )
            assert conversions.gaussian_delta(multiplier, epsilon) == pytest.approx(float(exact), rel=1e-9)


def test_rdp_of_a_zcdp_curve_gives_the_same_epsilon():
    assert ZCDP(0.1).to_rdp().epsilon(1e-6) == pytest.approx(ZCDP(0.1).epsilon(1e-6), rel=1e-3)
    assert ZCDP(0.1).to_rdp().epsilon(1e-6) >= ZCDP(0.1).epsilon(1e-6)


def test_pure_dp_converts_down():
    assert PureDP(0.5).to_zcdp() == ZCDP(0.125)
    assert PureDP(8.0).to_zcdp() == ZCDP(8.0)  # ε²/2 would be 32
    assert PureDP(1.0).to_approx().epsilon == 1.0
    slightly = PureDP(1.0).to_approx(0.1)
    assert slightly.epsilon < 1 and PureDP(1.0).delta(slightly.epsilon) == pytest.approx(0.1)


def test_group_privacy_of_each_kind():
    assert PureDP(0.5).group(3) == PureDP(1.5)
    assert ZCDP(0.02).group(3).rho == pytest.approx(0.18)
    grouped = ApproxDP(1.0, 1e-6).group(2)
    assert grouped.epsilon == 2.0 and grouped.delta == pytest.approx(1e-6 * (1 + math.e))
    curve = RDP.of(lambda order: 0.01 * order).group(4)
    assert curve.epsilon(1e-6) >= ZCDP(0.01).group(4).epsilon(1e-6)  # Mironov's rule is looser than k²ρ
    with pytest.raises(InputError):
        ZCDP(0.1, 1e-7).group(2)
    with pytest.raises(InputError):
        RDP((1.5, 2.0), (0.1, 0.2)).group(8)


def test_different_relations_never_add():
    substitute = Neighbors.SUBSTITUTE
    pairs: list[tuple[Any, Any]] = [
        (PureDP(1.0), PureDP(1.0, substitute)),
        (ApproxDP(1.0, 1e-6), ApproxDP(1.0, 1e-6, substitute)),
        (ZCDP(0.1), ZCDP(0.1, 0.0, substitute)),
        (ZCDP(0.1).to_rdp(), ZCDP(0.1, 0.0, substitute).to_rdp()),
    ]
    for left, right in pairs:
        with pytest.raises(InputError, match="relations"):
            left + right


def test_parallel_takes_the_largest_and_refuses_substitution():
    assert parallel([ApproxDP(1.0, 1e-9), ApproxDP(0.5, 1e-6)]) == ApproxDP(1.0, 1e-6)
    assert (PureDP(1.0) | PureDP(2.0)) == PureDP(2.0)
    with pytest.raises(InputError, match="substitution"):
        PureDP(1.0, Neighbors.SUBSTITUTE) | PureDP(2.0, Neighbors.SUBSTITUTE)


def test_sums_are_never_rounded_down():
    from fractions import Fraction

    total, exact = ZCDP(0.0), Fraction(0)
    for step in range(1, 200):
        total, exact = total + ZCDP(0.1 / step), exact + Fraction(0.1 / step)
    assert Fraction(total.rho) >= exact
    assert total.rho == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, True, "1", None])
def test_a_guarantee_refuses_what_is_not_a_loss(bad):
    for kind in (PureDP, ZCDP, lambda value: ApproxDP(1.0, value)):
        with pytest.raises(InputError):
            kind(bad)
