"""Loss distributions: right on known cases, never below the truth, as precise for tiny δ as for large."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.accounting import conversions, losses
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
    SampledWithoutReplacement,
)
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.pld import PLD, require_pair

PAIRS: list[Event] = [
    Gaussian(2.0),
    Laplace(1.5),
    DiscreteLaplace(3, 2),
    DiscreteGaussian(4, 4),
    Exponential(0.7),
    RandomizedResponse(1.1, 5),
    Pure(0.4),
    PoissonSampled(0.1, Gaussian(1.0)),
    PoissonSampled(0.3, Laplace(1.0)),
    PoissonSampled(0.3, DiscreteLaplace(2, 3)),
    SampledWithoutReplacement(1, 10, Gaussian(1.0, Neighbors.SUBSTITUTE)),
    SampledWithoutReplacement(1, 10, Laplace(1.0, Neighbors.SUBSTITUTE)),
]


def on_grid(event, interval=1e-3, *, reverse=False):
    loss = require_pair(event)
    return losses.discretize(loss.reversed() if reverse else loss, interval, 1e-18)


@pytest.mark.parametrize("event", PAIRS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("reverse", [False, True])
def test_both_measures_of_a_pair_have_mass_one(event, reverse):
    grid = on_grid(event, reverse=reverse)
    assert grid.probabilities.sum() + grid.infinity == pytest.approx(1, abs=1e-9)
    assert (grid.probabilities * np.exp(-grid.losses)).sum() == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("event", PAIRS, ids=lambda event: type(event).__name__)
def test_symmetric_pairs_are_symmetric(event):
    loss = require_pair(event)
    if loss.symmetric:
        grid = on_grid(event)
        there = sum(p for x, p in zip(grid.losses, grid.probabilities, strict=True) if x > 0.05)
        back = sum(p * math.exp(-x) for x, p in zip(grid.losses, grid.probabilities, strict=True) if x < -0.05)
        assert there == pytest.approx(back, rel=0.02)


def profile(grid, epsilon):
    return grid.infinity + float(np.maximum(-np.expm1(epsilon - grid.losses), 0) @ grid.probabilities)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.35, 0.6, 0.69])
def test_bounded_range_profile_is_the_worst_over_all_two_point_laws(epsilon):
    size, worst = 0.7, 0.0
    for t in np.linspace(0, size, 20001):
        upper = -math.expm1(t - size) / -math.expm1(-size)
        worst = max(worst, upper * max(0.0, -math.expm1(epsilon - t)))
    found = profile(on_grid(Exponential(size), 1e-5), epsilon)
    assert worst - 1e-12 <= found <= worst * 1.0001 + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_gaussian_profile_matches_the_closed_form(epsilon):
    exact = conversions.gaussian_delta(0.8, epsilon)
    assert exact <= PLD.of(Gaussian(0.8)).delta(epsilon) <= exact * 1.0005


def test_discrete_gaussian_matches_theorem_7_of_canonne_kamath_steinke():
    variance, shift = 9.0, 2
    support = np.arange(-200, 201)
    weights = np.exp(-(support**2) / (2 * variance))
    weights /= weights.sum()
    for epsilon in (0.2, 0.7, 1.5):
        cut = epsilon * variance / shift
        exact = weights[support > cut - shift / 2].sum() - math.exp(epsilon) * weights[support > cut + shift / 2].sum()
        assert exact <= PLD.of(DiscreteGaussian(9, 4)).delta(epsilon) <= exact * 1.001


def test_discrete_laplace_matches_direct_enumeration():
    scale, shift = 3.0, 2
    support = np.arange(-400, 401)
    mass = math.tanh(0.5 / scale)
    p, q = mass * np.exp(-np.abs(support - shift) / scale), mass * np.exp(-np.abs(support) / scale)
    for epsilon in (0.0, 0.2, 0.5):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert PLD.of(DiscreteLaplace(3, 2)).delta(epsilon) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
def test_poisson_sampling_matches_numeric_integration(rate, epsilon):
    from scipy import stats

    x = np.linspace(-15, 15, 2_000_001)
    noise, shifted = stats.norm.pdf(x), stats.norm.pdf(x - 1)
    mixed = (1 - rate) * noise + rate * shifted
    step = x[1] - x[0]
    removed = np.maximum(mixed - math.exp(epsilon) * noise, 0).sum() * step
    added = np.maximum(noise - math.exp(epsilon) * mixed, 0).sum() * step
    found = PLD.of(PoissonSampled(rate, Gaussian(1.0))).delta(epsilon)
    assert found == pytest.approx(max(removed, added), rel=1e-3, abs=1e-10)


def test_without_replacement_matches_its_theorem():
    rate, inner = 0.1, 0.9
    outer = math.log1p(rate * math.expm1(inner))
    expected = rate * conversions.gaussian_delta(1.0, inner)
    event = SampledWithoutReplacement(1, 10, Gaussian(1.0, Neighbors.SUBSTITUTE))
    assert PLD.of(event).delta(outer) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("parts", [(0.3, 0.5), (0.2, 0.2, 0.9), (0.1, 0.4, 0.4, 0.7)])
def test_composition_is_never_below_exact_enumeration(parts):
    event = Composed(tuple(Pure(epsilon) for epsilon in parts))
    for target in (0.05, 0.3, 0.8):
        exact = 0.0
        for signs in itertools.product((1, -1), repeat=len(parts)):
            total = sum(sign * epsilon for sign, epsilon in zip(signs, parts, strict=True))
            mass = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, parts, strict=True))
            exact += mass * max(0.0, -math.expm1(target - total))
        found = PLD.of(event).delta(target)
        assert exact * (1 - 1e-12) <= found <= exact * 1.001 + 1e-9


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-30, 1e-100])
def test_tiny_deltas_are_as_precise_as_large_ones(delta):
    # Many Gaussians hidden in a mixture that has one tiny other part, against the closed form of the Gaussians.
    event = Composed((Repeated(Gaussian(10.0), 50), Laplace(1e4)))
    gaussian = conversions.gaussian_epsilon(10 / math.sqrt(50), delta)
    assert gaussian <= PLD.of(event).epsilon(delta) <= gaussian * 1.0003 + 2e-4


def test_epsilon_and_delta_are_inverse():
    pld = PLD.of(Composed((Repeated(Laplace(5), 20), Gaussian(3))))
    epsilon = pld.epsilon(1e-5)
    assert pld.delta(epsilon) == pytest.approx(1e-5, rel=1e-3)


def test_bounded_losses_never_exceed_their_sum():
    assert PLD.of(Repeated(Pure(0.5), 3)).epsilon(0.0) == 1.5
    assert PLD.of(Repeated(Pure(0.5), 3)).epsilon(1e-300) <= 1.5
    assert PLD.of(Gaussian(1)).epsilon(0.0) == math.inf
    assert PLD.of(Approx(1.0, 1e-5)).epsilon(1e-6) == math.inf
    assert PLD.of(Composed(())).epsilon(1e-6) == 0.0


def test_huge_losses_do_not_overflow():
    for event in (Repeated(Laplace(0.01), 50), Repeated(Gaussian(0.01), 3), Composed((Gaussian(0.02), Pure(300)))):
        assert math.isfinite(PLD.of(event).epsilon(1e-9))


def test_group_bound_holds_for_the_gaussian():
    # Two units move a Gaussian by 2Δ; the generic rule must not promise more than that truth.
    for epsilon in (3.0, 6.0):
        assert PLD.of(Gaussian(2.0)).group(2, epsilon) >= conversions.gaussian_delta(1.0, epsilon)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([e for e in PAIRS if e.neighbors is Neighbors.ADD_REMOVE]), min_size=1, max_size=4),
    st.integers(1, 40),
)
def test_more_events_never_cost_less(parts, times):
    event = Repeated(Composed(tuple(parts)), times)
    more = Composed((event, parts[0]))
    assert PLD.of(event).epsilon(1e-6) <= PLD.of(more).epsilon(1e-6) * (1 + 1e-6)
