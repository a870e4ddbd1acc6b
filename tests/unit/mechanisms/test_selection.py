"""Choosing by score: the privacy ratio enumerated over all small neighbours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms import Exponential, NoisyMax, Quantile, TopK


def neighbours(scores, sensitivity, monotonic):
    ups = range(sensitivity + 1) if monotonic else range(-sensitivity, sensitivity + 1)
    return [
        tuple(s + c for s, c in zip(scores, change, strict=True))
        for change in itertools.product(ups, repeat=len(scores))
    ]


def permute_and_flip_law(rate: Fraction, scores) -> list[float]:
    """Over all subsets of heads: one of the heads, uniformly, given that there is one (the best always is)."""
    best = max(scores)
    heads = [math.exp(-rate * (best - score)) for score in scores]
    law = [0.0] * len(scores)
    for coins in itertools.product([False, True], repeat=len(scores)):
        chance = math.prod(p if coin else 1 - p for p, coin in zip(heads, coins, strict=True))
        for i in range(len(scores)):
            if coins[i]:
                law[i] += chance / sum(coins)
    return law


def noisy_max_law(rate: Fraction, scores) -> list[float]:
    """Report noisy max with exponential noise of mean 1/rate, integrated on a fine grid."""
    x, step = np.linspace(0, 40, 400_001, retstep=True)
    law = []
    for i, score in enumerate(scores):
        density = np.exp(-x)
        for j, other in enumerate(scores):
            if j != i:
                density = density * -np.expm1(-np.maximum(x + float(rate) * (score - other), 0.0))
        law.append(float((density.sum() - density[0] / 2) * step))
    return law


def losses(law, other):
    return [math.log(p / q) for p, q in zip(law, other, strict=True)]


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_the_exponential_mechanism_has_a_loss_of_range_epsilon(epsilon, sensitivity, monotonic):
    mechanism = Exponential(epsilon, sensitivity, monotonic=monotonic)
    widest = 0.0
    for scores in itertools.product(range(4), repeat=3):
        law = mechanism.probabilities(scores)
        for other in neighbours(scores, sensitivity, monotonic):
            found = losses(law, mechanism.probabilities(other))
            assert max(map(abs, found)) <= float(epsilon) + 1e-12
            widest = max(widest, max(found) - min(found))
    assert widest == pytest.approx(float(epsilon))


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_noisy_max_is_private_but_its_loss_has_a_wider_range(epsilon, monotonic):
    """Erratum 17: pure ε holds, range ε does not, so it is charged ε²/2."""
    mechanism = NoisyMax(epsilon, monotonic=monotonic)
    worst = widest = 0.0
    for scores in itertools.product(range(4), repeat=3):
        law = permute_and_flip_law(mechanism.rate, scores)
        for other in neighbours(scores, 1, monotonic):
            found = losses(law, permute_and_flip_law(mechanism.rate, other))
            worst = max(worst, *map(abs, found))
            widest = max(widest, max(found) - min(found))
    assert worst <= float(epsilon) + 1e-12
    assert widest > float(epsilon) * 1.05


@pytest.mark.parametrize("scores", [(0, 0, 0), (0, 1, 3), (5, 5, 2), (0, 10, 9)])
def test_permute_and_flip_is_report_noisy_max_with_exponential_noise(scores):
    rate = Fraction(1, 2)
    assert permute_and_flip_law(rate, scores) == pytest.approx(noisy_max_law(rate, scores), abs=1e-6)


def test_noisy_max_never_does_worse_than_the_exponential_mechanism():
    for scores in itertools.product(range(5), repeat=3):
        ours = permute_and_flip_law(NoisyMax(1).rate, scores)
        theirs = Exponential(1).probabilities(scores)
        assert np.dot(ours, scores) >= np.dot(theirs, scores) - 1e-12


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_is_private_as_k_exponential_mechanisms(k):
    epsilon = Fraction(1)
    single = Exponential(epsilon)

    def law(scores):
        found = {}
        for order in itertools.permutations(range(len(scores)), k):
            chance, left = 1.0, list(range(len(scores)))
            for index in order:
                chance *= single.probabilities([scores[i] for i in left])[left.index(index)]
                left.remove(index)
            found[order] = chance
        return found

    for scores in itertools.product(range(3), repeat=3):
        one = law(scores)
        assert math.fsum(one.values()) == pytest.approx(1)
        for other in neighbours(scores, 1, monotonic=False):
            two = law(other)
            assert max(abs(math.log(one[order] / two[order])) for order in one) <= k + 1e-12
            # ρ = k·ε²/8 as a bound on the divergence of order 2, which is at most 2ρ
            divergence = math.log(math.fsum(one[o] ** 2 / two[o] for o in one))
            assert divergence <= 2 * k / 8 + 1e-12
    assert TopK(epsilon, k=k).event.times == k


def score_lists(draw_values, other_values, mechanism):
    return mechanism.scores(draw_values).tolist(), mechanism.scores(other_values).tolist()


@given(st.lists(st.integers(-2, 12), max_size=8), st.integers(-2, 12), st.sampled_from([(1, 2), (1, 4), (9, 10)]))
def test_one_value_more_moves_all_quantile_scores_one_way_by_at_most_the_sensitivity(values, value, share):
    mechanism = Quantile(1, 0, 10, at=Fraction(*share))
    before, after = score_lists(values, [*values, value], mechanism)
    changes = [b - a for b, a in zip(before, after, strict=True)]
    assert min(changes) >= 0
    assert max(changes) <= mechanism.selection.sensitivity
    assert mechanism.selection.monotonic


@given(st.lists(st.integers(0, 10), min_size=1, max_size=8), st.integers(0, 10), st.sampled_from([(1, 2), (1, 4)]))
def test_one_value_exchanged_moves_quantile_scores_by_at_most_the_sensitivity(values, value, share):
    mechanism = Quantile(1, 0, 10, at=Fraction(*share), neighbors=Neighbors.SUBSTITUTE)
    before, after = score_lists(values, [value, *values[1:]], mechanism)
    assert max(abs(b - a) for b, a in zip(before, after, strict=True)) <= mechanism.selection.sensitivity
    assert not mechanism.selection.monotonic


def test_the_best_score_is_at_the_quantile():
    values = list(range(101))
    for at, expected in [(Fraction(1, 2), 50), (Fraction(1, 4), 25), (Fraction(9, 10), 90)]:
        scores = Quantile(1, 0, 100, at=at).scores(values)
        assert abs(int(np.argmax(scores)) - expected) <= 1


def test_bounds_past_int64_are_counted_from_low():
    base = 10**30
    mechanism = Quantile(50, base, base + 10)
    assert mechanism.release([base + 3] * 500 + [0, 10**40]).value == base + 3
