"""Choices have their exact probabilities, by chi-square.

P-values below `ALARM` are rejected: the false-alarm rate is below 1e-6 per test. A rate 20% too small must be rejected.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import _exact

pytestmark = pytest.mark.statistical

Law = dict[Any, float]

ALARM = 1e-7
RATE = Fraction(3, 10)
SCORES = [0, 3, -2, 5, 5, 1]


def exponential(scores, rate) -> Law:
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    return {i: weight / sum(weights) for i, weight in enumerate(weights)}


def peeled_twice(scores, rate) -> Law:
    first = exponential(scores, rate)
    return {(i, j): first[i] * first[j] / (1 - first[i]) for i, j in itertools.permutations(first, 2)}


def flipped(scores, rate) -> Law:
    """By going through all outcomes of all coins."""
    coins = [math.exp(rate * (score - max(scores))) for score in scores]
    result: Law = dict.fromkeys(range(len(scores)), 0.0)
    for outcome in itertools.product([0, 1], repeat=len(coins)):
        probability = math.prod(c if heads else 1 - c for c, heads in zip(coins, outcome, strict=True))
        for i, heads in enumerate(outcome):
            if heads:
                result[i] += probability / sum(outcome)
    return result


def p_value(draw, law: Law, draws: int) -> float:
    counts = Counter(draw() for _ in range(draws))
    assert set(counts) <= set(law)
    expected = np.array([law[key] * draws for key in law])
    found = np.array([counts[key] for key in law])
    few = expected < 50
    largest = expected.argmax()
    expected[largest] += expected[few].sum()
    found[largest] += found[few].sum()
    expected, found = expected[~few], found[~few]
    return float(stats.chi2.sf(((found - expected) ** 2 / expected).sum(), len(expected) - 1))


CHOICES: dict[str, tuple[Any, Law]] = {
    "exponential": (lambda rate: noise.exponential_choice(SCORES, rate), exponential(SCORES, RATE)),
    "top-2": (lambda rate: tuple(noise.exponential_top_k(SCORES, rate, 2)), peeled_twice(SCORES, RATE)),
    "permute-and-flip": (lambda rate: noise.permute_and_flip(SCORES, rate), flipped(SCORES, RATE)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_have_their_probabilities(name, rounds):
    choose, law = CHOICES[name]
    draws = rounds(60_000)
    assert p_value(lambda: choose(RATE), law, draws) > ALARM
    assert p_value(lambda: choose(RATE * Fraction(4, 5)), law, 4 * draws) < ALARM


@pytest.mark.parametrize("name", CHOICES)
def test_choices_by_rational_arithmetic_alone_have_the_same_probabilities(name, rounds):
    choose, law = CHOICES[name]
    with _exact._always():
        assert p_value(lambda: choose(RATE), law, rounds(10_000)) > ALARM


@pytest.mark.parametrize("rate", [0, Fraction(1, 1000), 2, 0.7])
def test_equal_and_unequal_scores_over_several_buckets(rate, rounds):
    scores = [0, 0, 1, 1, 2, -40, -1000, -(2**62)]
    law = exponential(scores, float(rate))
    assert p_value(lambda: noise.exponential_choice(scores, rate), law, rounds(60_000)) > ALARM


def test_one_shot_gumbel_noise_has_the_law_of_peeling(rounds):
    draws = rounds(400_000)
    noisy = np.array(SCORES) * float(RATE) + np.random.default_rng(1).gumbel(size=(draws, len(SCORES)))
    pairs = iter(map(tuple, np.argsort(-noisy, axis=1)[:, :2].tolist()))
    assert p_value(lambda: next(pairs), peeled_twice(SCORES, RATE), draws) > ALARM


def test_report_noisy_max_with_exponential_noise_has_the_law_of_permute_and_flip(rounds):
    draws = rounds(400_000)
    noisy = np.array(SCORES) * float(RATE) + np.random.default_rng(1).exponential(size=(draws, len(SCORES)))
    best = iter(noisy.argmax(axis=1).tolist())
    assert p_value(lambda: next(best), flipped(SCORES, RATE), draws) > ALARM
