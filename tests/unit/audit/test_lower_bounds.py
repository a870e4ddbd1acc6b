"""The parts of a lower bound on ε, each against what is known of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dalenius.accounting import events
from dalenius.audit.lower_bounds.bounding import lower_bound
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.confidence import clopper_pearson, epsilon_bound
from dalenius.audit.lower_bounds.features import features_of, row_codes
from dalenius.audit.lower_bounds.learning import learn_events
from dalenius.audit.lower_bounds.membership import least_epsilon, most_advantage
from dalenius.errors import InputError


@pytest.mark.parametrize(("hits", "trials"), [(0, 50), (1, 50), (17, 50), (49, 50), (50, 50)])
def test_intervals_are_those_of_scipy(hits, trials):
    low, high = clopper_pearson(hits, trials, 0.02)
    found = stats.binomtest(hits, trials).proportion_ci(0.98, method="exact")
    assert (float(low), float(high)) == pytest.approx((found.low, found.high))


def test_a_bound_is_above_the_truth_as_rarely_as_it_says():
    """Randomized response at ε = 1, whose best event is known: of 4,000 audits at 90%, at most a tenth is above."""
    chance = np.random.default_rng(1)
    p = 1 / (1 + math.exp(-1))
    hits, others = chance.binomial(2000, p, 4000), chance.binomial(2000, 1 - p, 4000)
    above = epsilon_bound(hits, others, 2000, delta=0.0, alpha=0.1) > 1.0
    assert above.mean() < 0.1
    half = epsilon_bound(hits, others, 2000, delta=0.0, alpha=1.0) > 1.0
    assert 0.2 < half.mean() < 0.8  # without any confidence it would be wrong about half of the time


def test_a_delta_is_taken_off_before_the_ratio():
    plain, less = (float(epsilon_bound(900, 300, 1000, delta=each, alpha=0.05)) for each in (0.0, 0.3))
    assert plain > less > 0
    assert epsilon_bound(200, 0, 1000, delta=0.3, alpha=0.05) == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_reaches_the_most_advantage(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    assert most_advantage(epsilon) == pytest.approx(truth - (1 - truth))
    assert least_epsilon(truth, 1 - truth) == pytest.approx(epsilon)


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_no_test_on_the_trade_off_curve_has_more_advantage(epsilon, delta):
    alpha = np.linspace(0, 1, 1001)
    ratio = math.exp(epsilon)
    missed = np.maximum(0, np.maximum(1 - delta - ratio * alpha, (1 - delta - alpha) / ratio))
    assert (1 - missed - alpha).max() <= most_advantage(epsilon, delta) + 1e-12
    assert (1 - missed - alpha).max() == pytest.approx(most_advantage(epsilon, delta), abs=2e-3)


def test_the_most_advantage_is_a_share():
    assert most_advantage(900.0) == 1.0 and most_advantage(50.0, 0.9) <= 1.0
    for wrong in (-1.0, math.nan):
        with pytest.raises(InputError):
            most_advantage(wrong)
    with pytest.raises(InputError):
        least_epsilon(1.5, 0.0)


def test_the_claimed_curve_of_gaussian_noise_is_the_normal_one():
    """Dong, Roth & Su: G_μ(α) = Φ(Φ⁻¹(1 − α) − μ). Ours is the largest of few (ε, δ) curves, so it is below."""
    alpha = np.linspace(0.02, 0.98, 49)
    known = stats.norm.cdf(stats.norm.ppf(1 - alpha) - 0.5)
    found = Claim(events.Gaussian(2.0)).trade_off(alpha)
    assert (found <= known + 1e-6).all() and np.abs(found - known).max() < 0.03


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (lambda n: np.zeros(n, dtype=np.int64), lambda n: np.arange(n) % 2, "the value"),
        (lambda n: np.arange(n) % 7 - 3, lambda n: -(np.arange(n) % 4), "the value"),
        (lambda n: np.arange(n) * 2.0, lambda n: np.arange(n) * 2.0 + 0.5, "lowest"),
        (lambda n: np.where(np.arange(n) % 2, np.nan, 1.0), np.ones, "the value"),
        (lambda n: np.where(np.arange(n) % 2, np.inf, 1.0), np.ones, "the value"),
    ],
)
def test_events_are_found_in_values_bits_and_what_is_no_number(first, second, words):
    n = 8_000
    chance = np.random.default_rng(0)
    sides = [chance.permutation(each(n)) for each in (first, second)]
    event = learn_events(sides[0], sides[1], {0.0: 1.0}, alpha=1e-3)[0.0]
    assert words in event.words
    here, there = sides[event.likelier], sides[1 - event.likelier]
    assert float(epsilon_bound(event.hits(here), event.hits(there), n, delta=0.0, alpha=1e-3)) > 3


def test_a_classifier_finds_what_no_single_value_shows():
    """Two normal vectors whose means differ a little in each of 8 entries: only their sum, or a score, tells."""
    chance = np.random.default_rng(3)
    shift = np.resize([0.6, -0.6], 8)

    def draw(side, size):
        return np.rint(100 * (chance.normal(size=(size, 8)) + side * shift)).astype(np.int64)  # floats show more

    found = lower_bound(draw, Claim(events.Pure(1.0)), samples=16_000)
    assert found.broken and found.worst.event.startswith("the score of a logistic classifier")


def test_equal_sides_show_nothing():
    chance = np.random.default_rng(3)
    for width in (1, 3):
        found = lower_bound(
            lambda _, size: chance.integers(0, 9, (size, width)).squeeze(),  # noqa: B023
            Claim(events.Pure(0.01)),
            samples=10_000,
        )
        assert not found.broken and found.main.epsilon == 0.0
    found = lower_bound(lambda _, size: np.zeros(size), Claim(events.Pure(1.0)), samples=1_000)
    assert found.main.epsilon == 0.0 and "none" in found.main.event


def test_events_are_counted_on_samples_that_nobody_learned_from():
    """Values that never come twice: each can be told while learning, and none of that holds on fresh samples."""
    drawn = iter(range(10**9))

    def draw(_side, size):
        return np.array([next(drawn) * 7919 % 100_003 for _ in range(size)])

    assert lower_bound(draw, Claim(events.Pure(0.2)), samples=4_000, confidence=0.999).broken is False


def test_rows_have_the_same_code_where_they_are_the_same():
    rows = np.array([[1, 2], [2, 1], [1, 2], [-1, 2]])
    codes = row_codes(rows)
    assert codes[0] == codes[2] and len(set(codes.tolist())) == 3
    assert {each.name for each in features_of(rows)} >= {"the whole output", "value 1", "value 2"}


@pytest.mark.parametrize(
    "options", [{"samples": 10}, {"samples": 10**9}, {"confidence": 1.0}, {"confidence": math.nan}]
)
def test_what_gives_no_bound_is_refused(options):
    with pytest.raises(InputError):
        lower_bound(lambda _, size: np.zeros(size), Claim(events.Pure(1.0)), **options)
