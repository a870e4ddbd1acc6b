"""Far from everyday parameters a bound may be loose or missing, never below the truth, and never a crash."""

import math
from fractions import Fraction

import pytest
from tests.corners import corners

from dalenius.accounting import conversions, losses
from dalenius.accounting.accountant import account
from dalenius.accounting.event_json import from_json
from dalenius.accounting.events import (
    Approx,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
)
from dalenius.accounting.filters import ZCDPFilter, ZCDPOdometer
from dalenius.accounting.guarantees import ZCDP, ApproxDP, PureDP
from dalenius.accounting.pld import PLD, Composition
from dalenius.errors import InputError


def least(top: float, times: int, mass: float, delta: float) -> float:
    """What at least must be paid when the greatest loss, ``top`` each, has probability ``mass`` each."""
    share = delta / mass**times
    return times * top + math.log1p(-share) if share < 1 else 0.0


@pytest.mark.parametrize(
    ("epsilon", "times", "delta"),
    corners([0.01, 1.0, 30.0, 80.0, 300.0, 1000.0], [1, 3, 10, 30], [1e-12, 1e-6, 1e-2]),
)
def test_large_pure_losses_are_never_undercharged(epsilon, times, delta):
    truth = least(epsilon, times, 1 / (1 + math.exp(-epsilon)), delta)
    for event in (Pure(epsilon), RandomizedResponse(epsilon), DiscreteLaplace(Fraction(1) / Fraction(epsilon), 1)):
        assert account(Repeated(event, times), delta).epsilon >= truth * (1 - 1e-9)
    laplace = account(Repeated(Laplace(1 / epsilon), times), delta).epsilon
    assert laplace >= least(epsilon, times, 0.5, delta) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("shift", "times", "delta"),
    corners([1e-9, 1e-3, 0.1, 1.0, 50.0, 1000.0], [1, 1000, 10**9], [1e-100, 1e-6, 0.5]),
)
def test_composed_gaussians_are_never_below_the_closed_form(shift, times, delta):
    exact = conversions.gaussian_epsilon(1 / (shift * math.sqrt(times)), delta)
    assert Composition([(losses.gaussian(shift), times)]).epsilon(delta) >= exact * (1 - 1e-9)


@pytest.mark.parametrize(
    "event",
    [
        Repeated(Exponential(250), 3),
        Composed((Laplace(1), Gaussian(1e5))),
        Composed((Pure(50), Gaussian(1e4))),
        Composed((Pure(1e6), Gaussian(1e3))),
        PoissonSampled(0.5, Gaussian(1e4)),
        PoissonSampled(0.1, DiscreteGaussian(1, 3600)),
        PoissonSampled(0.1, Laplace(0.001)),
        Exponential(1000),
        Gaussian(1e-15),
        Gaussian(1e15),
        Gaussian(1e-100),
        Gaussian(1e100),
        Laplace(1e-15),
        Laplace(1e-100),
        Pure(1e15),
        Pure(1e100),
        Repeated(Pure(0.1), 10**90),
        DiscreteGaussian(1e-6),
        Repeated(DiscreteGaussian(0.0025), 10),
        Repeated(Laplace(10**9), 10**9),
        PoissonSampled(1e-15, Laplace(1.0)),
    ],
    ids=str,
)
def test_odd_parameters_give_a_bound_without_a_crash(event: Event):
    spent = account(event, 1e-6)
    assert spent.epsilon >= 0 and math.isfinite(spent.epsilon)


def test_sampling_greatly_shifted_noise_keeps_all_of_both_measures():
    for shift in (3, 30, 60):
        loss = losses.dominating_pair(PoissonSampled(0.1, DiscreteGaussian(1, shift * shift)))
        assert loss is not None
        assert loss.masses.sum() == pytest.approx(1) and loss.q_masses.sum() == pytest.approx(1)
        # with probability q the unit is in, and then it shows
        assert account(PoissonSampled(0.1, DiscreteGaussian(1, shift * shift)), 1e-6).epsilon >= (shift == 60) * 1000


def test_short_lists_are_as_tight_as_long_ones():
    """Where δ is near the mass of the greatest loss; figures by dp_accounting's PLD on a step of 1e-5."""
    assert account([Repeated(Pure(0.3), 8), Repeated(Laplace(20), 3)], 1e-3).epsilon <= 1.001 * 2.32096
    assert account(Repeated(Pure(1), 5), 0.01).bounds["pld"] == pytest.approx(4.950926, rel=1e-5)


def test_mass_at_infinity_survives_nested_sampling():
    nested = PoissonSampled(0.5, PoissonSampled(0.5, Approx(1, 0.1)))
    assert account(nested, 1e-3).epsilon == math.inf


def test_randomized_response_is_not_amplified_by_poisson_sampling():
    for inner in (RandomizedResponse(1.0), Repeated(RandomizedResponse(1.0), 3)):
        with pytest.raises(InputError, match="not amplified"):
            PoissonSampled(0.01, inner)


@pytest.mark.parametrize("delta", [1e-320, 1e-301])
def test_deltas_that_doubles_cannot_hold_are_refused(delta):
    for broken in (
        lambda: account(Gaussian(1), delta),
        lambda: ZCDPFilter(1.0, delta),
        lambda: ZCDP(0.1).epsilon(delta),
    ):
        with pytest.raises(InputError):
            broken()
    assert account(Gaussian(1), 1e-300).epsilon > 30


def test_negative_epsilons_are_refused_or_right():
    with pytest.raises(InputError):
        PLD.of(Gaussian(1)).delta(-1)
    assert PureDP(1.0).delta(-2.0) == pytest.approx(1 - math.exp(-2))


def test_tiny_shifts_keep_their_digits():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        for multiplier, epsilon in [(1e4, 1e-4), (1e6, 3e-6), (1e12, 2.9e-11), (1e14, 2e-14), (2e3, 0.0)]:
            shift = mpmath.mpf(1) / mpmath.mpf(multiplier)
            exact = mpmath.ncdf(shift / 2 - epsilon / shift) - mpmath.exp(epsilon) * mpmath.ncdf(
                -shift / 2 - epsilon / shift
            )
            found = conversions.gaussian_delta(multiplier, epsilon)
            assert float(exact) * (1 - 1e-9) <= found <= float(exact) * (1 + 1e-5)


def test_small_edges_of_guarantees_and_filters():
    assert ApproxDP(1e-20, 1e-6).group(10).delta == pytest.approx(1e-5)
    with pytest.raises(InputError):
        ApproxDP(1.0, 2.0)
    with pytest.raises(InputError):
        ZCDPOdometer(0.0)
    assert ZCDPFilter(1e-12, 1e-6).remaining_epsilon == 1e-12
    for broken in ({"kind": ["x"]}, {"kind": "pure", "epsilon": "1/" + "9" * 5000}):
        with pytest.raises(InputError):
            from_json({"version": 1, "neighbors": "add-remove", "event": broken})
