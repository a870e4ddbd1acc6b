"""Metrics against known values and laws; doctests hold the simple ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.audit.lower_bounds.membership import most_advantage
from dalenius.audit.metrics.classification import Confusion, area_under_curve, roc_curve
from dalenius.audit.metrics.distances import interval_overlap, kullback_leibler, total_variation, wasserstein
from dalenius.audit.metrics.privacy import (
    adversary_success,
    bayes_success,
    entropy,
    expected_error,
    mutual_information,
    relative_entropy,
)
from dalenius.errors import InputError

law = st.lists(st.integers(1, 50), min_size=2, max_size=6)


def test_normal_laws_are_as_far_apart_as_the_formulas_say():
    x = np.linspace(-12, 14, 20_001)
    one, other = stats.norm.pdf(x, 0, 1), stats.norm.pdf(x, 1, 2)
    assert kullback_leibler(one, other) == pytest.approx(math.log(2) + (1 + 1) / 8 - 0.5, abs=1e-6)
    shifted = stats.norm.pdf(x, 1, 1)
    assert total_variation(one, shifted) == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=1e-6)
    assert wasserstein(x, x, one, shifted) == pytest.approx(1.0, abs=1e-4)


@given(law, law)
def test_distances_obey_their_laws(one, other):
    other = (other * 3)[: len(one)]
    tv, kl = total_variation(one, other), kullback_leibler(one, other)
    assert 0 <= tv <= 1 and kl >= 0
    assert tv <= math.sqrt(kl / 2) + 1e-9  # Pinsker
    assert total_variation(one, one) == 0 == kullback_leibler(one, one)


@given(law, law)
def test_information_is_what_uncertainty_falls_by(prior, likelihood):
    """I(X; Y) = H(X) − H(X | Y) = E_y KL(posterior ‖ prior)."""
    joint = np.outer(prior, [1.0, 2.0]) + np.outer((likelihood * 3)[: len(prior)], [3.0, 0.5])
    joint = joint / joint.sum()
    before, columns = joint.sum(axis=1), joint.sum(axis=0)
    left = sum(chance * entropy(joint[:, at]) for at, chance in enumerate(columns))
    taught = sum(chance * relative_entropy(joint[:, at], before) for at, chance in enumerate(columns))
    assert mutual_information(joint) == pytest.approx(entropy(before) - left, abs=1e-9)
    assert mutual_information(joint) == pytest.approx(taught, abs=1e-9)
    assert bayes_success(joint) >= before.max() - 1e-12


def test_randomized_response_leaks_what_is_known():
    truth = math.e / (1 + math.e)
    joint = np.array([[truth, 1 - truth], [1 - truth, truth]]) / 2
    assert mutual_information(joint) == pytest.approx(1 - entropy([truth, 1 - truth]))
    assert bayes_success(joint) == pytest.approx(truth)
    assert 2 * bayes_success(joint) - 1 == pytest.approx(most_advantage(1.0))


def test_the_area_is_that_under_the_curve_and_of_pairs():
    chance = np.random.default_rng(1)
    truth = chance.integers(0, 2, 300)
    scores = np.round(chance.normal(size=300) + truth, 1)  # with ties
    wrong, right = roc_curve(scores, truth)
    assert area_under_curve(scores, truth) == pytest.approx(np.trapezoid(right, wrong))
    pairs = scores[truth == 1][:, None] - scores[truth == 0][None, :]
    assert area_under_curve(scores, truth) == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
    assert (wrong[0], right[0], wrong[-1], right[-1]) == (0, 0, 1, 1)


def test_rates_follow_from_counts():
    found = Confusion(true_positives=40, false_positives=10, true_negatives=45, false_negatives=5)
    assert found.accuracy == 0.85 and found.precision == 0.8
    assert found.recall == pytest.approx(40 / 45) and found.f1 == pytest.approx(80 / 95)
    assert found.advantage == pytest.approx(40 / 45 - 10 / 55)
    assert Confusion.of([0, 0], [0, 0]).precision == 0.0
    assert Confusion.of([1, 0, 1], [1, 1, 0]).accuracy == adversary_success([1, 0, 1], [1, 1, 0])


def test_intervals_overlap_by_what_they_share():
    assert interval_overlap((0, 4), (0, 4)) == 1.0
    assert interval_overlap((0, 4), (1, 2)) == pytest.approx((1 / 4 + 1) / 2)
    assert interval_overlap((0, 1), (1, 2)) == 0.0
    assert expected_error([1, 1, 2], [0, 4, 8], truth=4) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: entropy([]),
        lambda: entropy([math.nan, 1]),
        lambda: entropy([-1, 2]),
        lambda: entropy([0, 0]),
        lambda: entropy(["a"]),
        lambda: kullback_leibler([1, 2], [1, 2, 3]),
        lambda: interval_overlap((2, 1), (0, 1)),
        lambda: area_under_curve([1, 2], [1, 1]),
        lambda: Confusion.of([2], [1]),
        lambda: mutual_information([1, 2]),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    with pytest.raises(InputError):
        call()
