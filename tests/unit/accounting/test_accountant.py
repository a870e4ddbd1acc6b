"""`account`: the figures the field agrees on, and never worse than dp_accounting."""

import math
import random

import dp_accounting
import pytest
from dp_accounting import pld as peer
from dp_accounting.pld import privacy_loss_distribution as peer_pld
from tests.conftest import LONG
from tests.unit.accounting.peer_events import to_dp_event

from dalenius.accounting import composition, events
from dalenius.accounting.accountant import account, group_guarantee
from dalenius.accounting.descriptions import from_dp_event
from dalenius.accounting.events import (
    Approx,
    Composed,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    Parallel,
    PoissonSampled,
    Pure,
    RandomizedResponse,
    Repeated,
    Zcdp,
)
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError


@pytest.mark.parametrize(
    ("event", "delta", "low", "high"),
    [
        (Gaussian(1), 1e-6, 4.88645, 4.88665),
        (Repeated(Gaussian(30), 1000), 1e-6, 5.18894, 5.18914),
        (Repeated(Laplace(10), 100), 1e-6, 4.6926, 4.6930),
        (Repeated(Laplace(1000), 100_000), 1e-6, 1.3608, 1.3680),
        (Repeated(PoissonSampled(0.01, Gaussian(1)), 10_000), 1e-5, 6.1774, 6.1880),
        (Repeated(PoissonSampled(256 / 60000, Gaussian(0.8)), 14_062), 1e-5, 4.5396, 4.5500),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, float) else None,
)
def test_known_figures(event, delta, low, high):
    assert low <= account(event, delta).epsilon <= high


def mixed_list(seed: int, size: int = 500) -> list[Event]:
    """Seeded lists of unequal mechanisms: small, as in a day of counts, or with a few large ones among them."""
    chance = random.Random(seed)
    large = 1.0 if seed % 2 else 0.1

    def one() -> Event:
        kind = chance.randrange(4)
        if kind == 0:
            return Laplace(chance.uniform(5, 100) * large)
        if kind == 1:
            return Gaussian(chance.uniform(10, 200) * large)
        if kind == 2:
            return RandomizedResponse(chance.uniform(0.01, 0.2) / large, chance.randint(2, 10))
        return Exponential(chance.uniform(0.01, 0.2) / large)

    return [one() for _ in range(size)]


def best_of_the_peer(parts: list[Event], delta: float) -> float:
    """dp_accounting's PLD (the exponential as pure ε) and its RDP (the exponential at ε²/8), whichever is lower."""
    interval = 1e-4
    plds = []
    for part in parts:
        if isinstance(part, Laplace):
            pld = peer_pld.from_laplace_mechanism(part.noise_multiplier, value_discretization_interval=interval)
        elif isinstance(part, Gaussian):
            pld = peer_pld.from_gaussian_mechanism(part.noise_multiplier, value_discretization_interval=interval)
        elif isinstance(part, RandomizedResponse):
            noise = part.categories / (math.expm1(part.epsilon) + part.categories)
            pld = peer_pld.from_randomized_response(
                noise,
                part.categories,
                value_discretization_interval=interval,
                neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
            )
        else:
            assert isinstance(part, Exponential)
            pure = peer.common.DifferentialPrivacyParameters(part.epsilon, 0)
            pld = peer_pld.from_privacy_parameters(pure, value_discretization_interval=interval)
        plds.append(pld)
    while len(plds) > 1:
        pairs = zip(plds[::2], plds[1::2], strict=False)
        plds = [a.compose(b) for a, b in pairs] + (plds[-1:] if len(plds) % 2 else [])
    accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    for part in parts:
        accountant.compose(to_dp_event(part))
    return float(min(plds[0].get_epsilon_for_delta(delta), accountant.get_epsilon(delta)))


@pytest.mark.parametrize("seed", [1, 2, 3] if LONG else [3])
def test_mixed_lists_cost_no_more_than_the_peer_finds(seed):
    import time

    parts = mixed_list(seed)
    started = time.process_time()
    ours = account(parts, 1e-6).epsilon
    assert time.process_time() - started < 10
    assert ours <= 1.001 * best_of_the_peer(parts, 1e-6)


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (Repeated(Laplace(2), 30), 1e-5),
        (Composed((Repeated(Laplace(3), 10), Repeated(Gaussian(4), 5))), 1e-7),
        (Repeated(PoissonSampled(0.05, Gaussian(1.2)), 300), 1e-6),
        (Repeated(PoissonSampled(0.02, Laplace(1.0)), 200), 1e-6),
    ],
)
def test_loss_distributions_agree_with_dp_accounting(event, delta):
    accountant = peer.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(to_dp_event(event))
    theirs = accountant.get_epsilon(delta)
    assert account(event, delta).bounds["pld"] == pytest.approx(theirs, rel=2e-4)


def test_every_method_that_applies_is_reported_and_the_best_wins():
    spent = account(Repeated(Laplace(10), 100), 1e-6)
    known = {method: epsilon for method, epsilon in spent.bounds.items() if epsilon is not None}
    assert set(known) == {"basic", "advanced", "optimal", "zcdp", "rdp", "pld"}
    assert spent.epsilon == min(known.values()) == known[spent.method]
    assert spent.bounds["gaussian"] is None


def test_pure_delta_leaves_basic_composition():
    spent = account([Repeated(Pure(0.5), 3), Laplace(2)], 0.0)
    assert spent.epsilon == pytest.approx(2.0)
    assert spent.bounds["zcdp"] is None
    assert account(Gaussian(1), 0.0).epsilon == math.inf


def test_nothing_done_costs_nothing():
    assert account([], 1e-6).epsilon == 0.0


def test_advanced_composition_has_its_second_term_and_does_not_overflow():
    found = composition.advanced({Pure(0.01): 100_000}, 1e-6)
    expected = math.sqrt(2 * 1e5 * math.log(1e6)) * 0.01 + 1e5 * 0.01 * math.expm1(0.01)
    assert found == pytest.approx(expected, rel=1e-12)
    assert composition.advanced({Pure(500): 100_000}, 1e-6) is None


def test_optimal_composition_of_two_is_exact_and_100_000_do_not_overflow():
    epsilon = 0.5
    # two randomized responses: losses ±2ε and 0; δ(x) = p²(1 − e^(x−2ε)) for 0 ≤ x ≤ 2ε
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    delta = p * p * -math.expm1(0.7 - 1.0)
    assert composition.optimal({Pure(epsilon): 2}, delta) == pytest.approx(0.7, rel=1e-9)
    many = composition.optimal({Pure(0.01): 100_000}, 1e-6)
    assert many is not None and 5 < many < 30


def test_optimal_composition_of_unequal_parts_lies_between_equal_ones():
    mixed = composition.optimal({Pure(0.1): 50, Pure(0.2): 50}, 1e-6)
    low, high = composition.optimal({Pure(0.1): 100}, 1e-6), composition.optimal({Pure(0.2): 100}, 1e-6)
    assert low is not None and high is not None and mixed is not None and low < mixed < high


def test_exponential_mechanisms_with_fixed_scores_match_brute_force():
    """The worst common t by dense search, and no worse t₁ ≠ t₂ for two of them."""
    import numpy as np

    size, target = 0.6, 0.35

    def delta_of(ts):
        worst = 0.0
        tops = [-math.expm1(t - size) / -math.expm1(-size) for t in ts]
        for picks in range(2 ** len(ts)):
            loss, mass = 0.0, 1.0
            for place, (t, top) in enumerate(zip(ts, tops, strict=True)):
                low = picks >> place & 1
                loss, mass = loss + t - low * size, mass * ((1 - top) if low else top)
            worst += mass * max(0.0, -math.expm1(target - loss))
        return worst

    grid = np.linspace(0, size, 151)
    unequal = max(delta_of((a, b)) for a in grid for b in grid)
    assert composition.exponential_delta(size, 2, target) >= unequal - 1e-12
    equal = max(delta_of((t, t, t)) for t in np.linspace(0, size, 3001))
    assert composition.exponential_delta(size, 3, target) == pytest.approx(equal, rel=1e-5)


def test_fixed_scores_cost_less_than_adaptive_ones_and_only_when_asked():
    event = Repeated(Exponential(0.1), 100)
    assert "fixed-scores" not in account(event, 1e-6).bounds
    fixed = account(event, 1e-6, adaptive=False)
    assert fixed.method == "fixed-scores" and fixed.epsilon < account(event, 1e-6).epsilon


def test_noisy_max_is_charged_more_than_the_exponential_mechanism():
    assert account(Repeated(NoisyMax(0.1), 100), 1e-6).epsilon > account(Repeated(Exponential(0.1), 100), 1e-6).epsilon


def test_parallel_parts_cost_as_much_as_the_worst():
    parts = Parallel((Repeated(Laplace(10), 3), Pure(0.1), Gaussian(20)))
    worst = account(Repeated(Laplace(10), 3), 1e-6).bounds["zcdp"]
    assert account(parts, 1e-6).bounds["zcdp"] == worst
    with pytest.raises(InputError, match="add-remove"):
        Parallel((Pure(0.1, Neighbors.SUBSTITUTE),))


def test_different_relations_never_add_up():
    with pytest.raises(InputError, match="relations"):
        account([Laplace(1), Laplace(1, Neighbors.SUBSTITUTE)], 1e-6)


def test_approximate_parts_bring_their_delta():
    event = Composed((Approx(0.1, 5e-7), Zcdp(0.01, 3e-7)))
    assert account(event, 1e-6).epsilon < 1
    assert account(event, 7e-7).epsilon == math.inf


def test_groups_scale_the_sensitivity():
    event = Composed((Gaussian(10), Laplace(20)))
    spent = account(event, 1e-6)
    assert group_guarantee(event, spent, 2).epsilon == pytest.approx(
        account([Gaussian(5), Laplace(10)], 1e-6).epsilon, rel=1e-9
    )
    sampled = PoissonSampled(0.1, Gaussian(5))
    assert group_guarantee(sampled, account(sampled, 1e-6), 2).delta > 1e-6


def test_events_of_dp_accounting_are_understood():
    theirs = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(30.0), 10),
            dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2.0)),
            dp_accounting.LaplaceDpEvent(10.0),
            dp_accounting.dp_event.ZCDpEvent(0.01),
            dp_accounting.RandomizedResponseDpEvent(0.5, 4),
            dp_accounting.NoOpDpEvent(),
        ]
    )
    ours = from_dp_event(theirs)
    assert account(theirs, 1e-6) == account(ours, 1e-6)
    assert from_dp_event(to_dp_event(ours)) == ours
    with pytest.raises(InputError):
        account(dp_accounting.NonPrivateDpEvent(), 1e-6)


def test_randomized_response_is_an_exchange_of_values():
    assert account(RandomizedResponse(0.5, 4), 0.0).epsilon == 0.5
    # more categories, more uniform noise: the loss is 0 more often
    few = account(Repeated(RandomizedResponse(0.5, 2), 20), 1e-6).epsilon
    many = account(Repeated(RandomizedResponse(0.5, 50), 20), 1e-6).epsilon
    assert many < few


def test_the_relation_of_sampling_is_enforced():
    with pytest.raises(InputError):
        PoissonSampled(0.1, Gaussian(1, Neighbors.SUBSTITUTE))
    with pytest.raises(InputError):
        events.SampledWithoutReplacement(10, 100, Gaussian(1))
