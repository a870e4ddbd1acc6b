"""Utility bounds hold: they fail no more often than the theorem says.

A bound that fails with probability at most β is rejected when so many failures or more have probability
below 1e-7 under Binomial(n, β): that is the false-alarm rate. Inputs are chosen to be hard for the bound.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dalenius import mechanisms as m

pytestmark = pytest.mark.statistical

ALARM = 1e-7


def accepted(failures: int, n: int, beta: float) -> bool:
    return float(stats.binom.sf(failures - 1, n, beta)) >= ALARM


@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize("dimension", [1, 20])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
def test_laplace_is_useful(epsilon, dimension, beta, rounds):
    mechanism = m.Laplace(epsilon, 2, dimension=dimension)
    n, bound = rounds(100_000), mechanism.utility(beta)
    assert bound >= 2 / epsilon * math.log(dimension / beta)
    many = m.Laplace(epsilon, 2, dimension=n * dimension)  # the same noise, drawn at once
    errors = np.abs(many.release(np.zeros((n, dimension), dtype=np.int64)).value).max(axis=1)
    assert accepted(int((errors > bound).sum()), n, beta)


@pytest.mark.parametrize("beta", [0.3, 0.05])
@pytest.mark.parametrize("dimension", [1, 20])
@pytest.mark.parametrize("variance", [Fraction(1, 3), 40])
def test_the_discrete_gaussian_is_useful(variance, dimension, beta, rounds):
    mechanism = m.DiscreteGaussian(variance, dimension=dimension)
    n, bound = rounds(100_000), mechanism.utility(beta)
    many = m.DiscreteGaussian(variance, dimension=n * dimension)
    errors = np.abs(many.release(np.zeros((n, dimension), dtype=np.int64)).value).max(axis=1)
    assert accepted(int((errors > bound).sum()), n, beta)


@pytest.mark.parametrize(
    "mechanism", [m.Laplace(0.3, 2), m.Geometric(2), m.DiscreteGaussian(70), m.DiscreteGaussian(2**44)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_noise_error_covers_as_often_as_it_says(mechanism, confidence, rounds):
    n = rounds(400_000)
    many = type(mechanism)(*_fields(mechanism), dimension=n)
    noisy = many.release(np.zeros(n, dtype=np.int64))
    misses = int((np.abs(noisy.value) > noisy.noise_error(confidence)).sum())
    assert accepted(misses, n, 1 - confidence)


def _fields(mechanism):
    return (getattr(mechanism, "epsilon", None) or mechanism.variance, getattr(mechanism, "sensitivity", 1))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_geometric_tail_is_exact(k, rounds):
    n = rounds(400_000)
    mechanism = m.Geometric(Fraction(1, 2), dimension=n)
    beyond = int((np.abs(mechanism.release(np.zeros(n, dtype=np.int64)).value) >= k).sum())
    assert stats.binomtest(beyond, n, mechanism.tail(k)).pvalue >= ALARM


@pytest.mark.parametrize("t", [0.5, 2.0])
@pytest.mark.parametrize("build", [m.Exponential, m.NoisyMax])
def test_choices_are_near_the_best(build, t, rounds):
    """One good candidate among many that are just past the bound."""
    mechanism, n = build(1), rounds(40_000)
    bound = mechanism.utility(200, t)
    scores = np.full(200, -math.floor(bound) - 1)
    scores[7] = 0
    failures = sum(mechanism.release(scores).value != 7 for _ in range(n))
    assert accepted(failures, n, math.exp(-t))


def test_the_top_k_are_near_the_best(rounds):
    mechanism, n, t = m.TopK(1, k=3), rounds(20_000), 1.0
    bound = mechanism.utility(100, t)
    scores = np.full(100, -math.floor(bound) - 1)
    scores[[3, 50, 99]] = 0
    failures = sum(set(mechanism.release(scores).value) != {3, 50, 99} for _ in range(n))
    assert accepted(failures, n, math.exp(-t))


@pytest.mark.parametrize("mechanism", [m.Quantile(1, 0, 200), m.Quantile(1, 0, 200, at=Fraction(1, 4))])
def test_a_quantile_has_nearly_the_right_rank(mechanism, rounds):
    n, t = rounds(20_000), 1.0
    values = np.arange(201) * 7 % 201
    scores = mechanism.scores(values)
    bound = scores.max() - mechanism.utility(t)
    failures = sum(scores[mechanism.release(values).value] < bound for _ in range(n))
    assert accepted(failures, n, math.exp(-t))


@pytest.mark.parametrize("hits", [1, 3])
def test_sparse_vector_hits_and_misses_are_where_they_should_be(hits, rounds):
    mechanism, n, beta, length = m.SparseVector(1, hits=hits), rounds(20_000), 0.2, 30
    bound = mechanism.utility(length, beta)
    if hits == 1:
        assert bound <= 8 * (math.log(length) + math.log(2 / beta)) + 2  # Dwork & Roth, Thm. 3.24
    values = [-bound - 1] * (length - hits) + [bound] * hits
    right = (False,) * (length - hits) + (True,) * hits
    failures = sum(mechanism.release(values, threshold=0).value != right for _ in range(n))
    assert accepted(failures, n, beta)


def test_propose_test_release_answers_well_when_far(rounds):
    mechanism, n, beta = m.ProposeTestRelease(1, 1e-6, 4), rounds(40_000), 0.1
    far, bound = mechanism.utility(beta)

    def fails() -> bool:
        value = mechanism.release(0, distance=far).value
        return value is None or abs(value) > bound

    assert accepted(sum(fails() for _ in range(n)), n, 2 * beta)


def test_propose_test_release_passes_wrongly_no_more_than_delta(rounds):
    """At distance 0 and δ = 1/1000; the constant of the notes, ln(2/δ)/2ε, would pass 13 times as often."""
    mechanism, n = m.ProposeTestRelease(1, 1e-3, 4), rounds(1_000_000)
    assert accepted(sum(mechanism.release(0, distance=0).value is not None for _ in range(n)), n, 1e-3)


def test_smooth_sensitivity_errs_no_more_than_its_bound_says(rounds):
    mechanism, n, beta = m.SmoothSensitivity(1, 1e-6), rounds(100_000), 0.1
    bound = mechanism.utility(mechanism.smooth_bound(lambda k: 3 + k, most=50, furthest=60), beta)
    errors = (mechanism.release(0, lambda k: 3 + k, most=50, furthest=60).value for _ in range(n))
    assert accepted(sum(abs(error) > bound for error in errors), n, beta)


@pytest.mark.parametrize("categories", [2, 6])
def test_randomized_response_estimates_within_its_bound(categories, rounds):
    mechanism, n, beta, people = m.RandomizedResponse(1, categories), rounds(2000), 0.1, 2000
    answers = np.arange(people) % categories
    truth = np.bincount(answers) / people
    bound = mechanism.utility(people, beta)
    errors = (np.abs(mechanism.estimate(mechanism.release(answers).value) - truth).max() for _ in range(n))
    assert accepted(sum(error > bound for error in errors), n, beta)


def test_randomized_response_has_the_variance_of_erratum_2(rounds):
    """People drawn at random with share 0.3; the sample variance over n surveys is within 6 of its own deviations."""
    mechanism, n, people = m.RandomizedResponse(1), rounds(40_000), 300
    drawn = (np.random.default_rng(3).random((n, people)) < 0.3).astype(np.int64)
    reports = mechanism.release(drawn).value
    p = 1 / (1 + math.exp(-1))
    estimates = (reports.mean(axis=1) - (1 - p)) / (2 * p - 1)
    expected = mechanism.variance(0.3, people)
    # the normal approximation of a sample variance: relative deviation √(2/n); six of them is about 2e-9
    assert abs(estimates.var() / expected - 1) < 6 * math.sqrt(2 / n)
    assert abs(estimates.mean() - 0.3) < 6 * math.sqrt(expected / n)
