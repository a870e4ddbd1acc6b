"""Smooth sensitivity: smoothness and privacy checked on all small data sets."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms import SmoothMedian, SmoothSensitivity
from dalenius.mechanisms.sensitivity import median_sensitivity

HIGH = 4
NUMPY: Any = np  # its integers where an int is asked for
SIZES = [3, 4]


def data_sets(size: int):
    return list(itertools.combinations_with_replacement(range(HIGH + 1), size))


def neighbours(data):
    for place, value in itertools.product(range(len(data)), range(HIGH + 1)):
        yield tuple(sorted((*data[:place], value, *data[place + 1 :])))


def median(data: tuple[int, ...]) -> int:
    return data[(len(data) + 1) // 2 - 1]


def brute_force(data, distance: int) -> int:
    """The largest local sensitivity within so many exchanges, by trying everything."""
    reached = {data}
    for _ in range(distance):
        reached |= {other for one in reached for other in neighbours(one)}
    return max(abs(median(one) - median(other)) for one in reached for other in neighbours(one))


@pytest.mark.parametrize("size", SIZES)
def test_the_formula_for_the_median_is_what_trying_everything_finds(size):
    for data in data_sets(size):
        for distance in range(size + 1):
            assert median_sensitivity(np.array(data), HIGH, distance) == brute_force(data, distance)


@pytest.mark.parametrize("size", [1, *SIZES, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 1, 6])
def test_the_bound_is_above_the_local_sensitivity_and_smooth(size, epsilon):
    mechanism = SmoothMedian(epsilon, 1e-3, 0, HIGH)
    bounds = {data: mechanism.smooth_bound(np.array(data)) for data in data_sets(size)}
    for data, bound in bounds.items():
        assert bound >= median_sensitivity(np.array(data), HIGH, 0)
        for other in neighbours(data):
            assert bound <= (1 + mechanism.mechanism.growth) * bounds[other]


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_the_release_is_private_on_every_pair_of_small_data_sets(size, epsilon, delta):
    """δ(ε) of the two output laws, summed over all outputs that matter, is at most δ."""
    mechanism = SmoothMedian(epsilon, delta, 0, HIGH)
    laws = {}
    for data in data_sets(size):
        scale = float(mechanism.mechanism.noise(mechanism.smooth_bound(np.array(data))).scale)
        y = np.arange(-2000, 2001)
        laws[data] = math.tanh(0.5 / scale) * np.exp(-np.abs(y - median(data)) / scale)
    for data, law in laws.items():
        for other in neighbours(data):
            assert np.maximum(0, law - math.exp(float(epsilon)) * laws[other]).sum() <= delta


def test_the_same_check_catches_noise_scaled_to_the_local_sensitivity():
    """The classic mistake: the scale itself gives away that the data is (3, 3, 3, 3) and not (0, 3, 3, 3)."""
    y = np.arange(-2000, 2001)
    laws = []
    for data in ((0, 3, 3, 3), (3, 3, 3, 3)):
        scale = max(0.01, 2 * median_sensitivity(np.array(data), HIGH, 0))
        laws.append(math.tanh(0.5 / scale) * np.exp(-np.abs(y - median(data)) / scale))
    assert np.maximum(0, laws[1] - math.e * laws[0]).sum() > 0.1


@given(
    st.integers(1, 60),
    st.integers(0, 60),
    st.integers(1, 400),
    st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(20)]),
)
def test_the_search_finds_the_largest_term(furthest, jump, most, epsilon):
    mechanism = SmoothSensitivity(epsilon, 1e-6)
    heights = [min(most, (k * most) // 80 if k < jump else most) for k in range(furthest)]
    heights = [heights[k] if k < furthest else most for k in range(furthest)] + [most]
    weights = mechanism._weights(10**6)
    plain = max(h * weights[min(k, len(weights) - 1)] for k, h in enumerate(heights))
    assert mechanism.smooth_bound(lambda k: heights[k], most=most, furthest=furthest) == Fraction(plain, weights[0])


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1, 50])
def test_no_weight_falls_faster_than_smoothness_allows(epsilon):
    mechanism = SmoothSensitivity(epsilon, 1e-6)
    weights = mechanism._weights(5000)
    assert weights[0] == 2**40
    assert all(now <= (1 + mechanism.growth) * later for now, later in itertools.pairwise(weights))
    assert all(now >= later >= 1 for now, later in itertools.pairwise(weights))


@pytest.mark.parametrize("delta", [0.9, 0.5, 1e-3, 1e-12])
@pytest.mark.parametrize("epsilon", [0.01, 1, 9])
def test_the_growth_is_rounded_down(epsilon, delta):
    growth = SmoothSensitivity(epsilon, delta).growth
    exact = epsilon / (2 * max(1.0, math.log(2 / delta)))
    assert exact * (1 - 1e-6) <= growth <= exact


def test_a_calm_median_gets_less_noise_than_its_global_sensitivity():
    mechanism = SmoothMedian(1, 1e-6, 0, 10**6)
    calm = np.sort(np.arange(10_001) * 10 + 450_000)
    assert mechanism.smooth_bound(calm) < 1000
    assert mechanism.smooth_bound(np.zeros(10_001, dtype=np.int64)) < 1


def test_bounds_from_numpy_do_not_wrap():
    low, high = -(2**61), 2**61 - 1
    plain, given = SmoothMedian(1, 1e-6, low, high), SmoothMedian(1, 1e-6, NUMPY.int64(low), NUMPY.int64(high))
    data = np.array([0, 2**61, 2**62 - 1])
    assert given.smooth_bound(data) == plain.smooth_bound(data) >= 2**61 - 1
    small = SmoothMedian(1, 1e-6, NUMPY.int8(-100), NUMPY.int8(100))
    assert small.smooth_bound(np.array([0, 0, 200])) == SmoothMedian(1, 1e-6, -100, 100).smooth_bound(
        np.array([0, 0, 200])
    )


def test_a_limit_from_numpy_does_not_wrap():
    mechanism = SmoothSensitivity(1, 1e-6)
    for most in (2**20, 2**62):
        plain = mechanism.smooth_bound(lambda k: 10**6, most=most, furthest=9)
        assert (
            mechanism.smooth_bound(lambda k: NUMPY.int64(10**6), most=NUMPY.int64(most), furthest=NUMPY.int8(9))
            == plain
        )


def test_the_local_sensitivity_counts_even_if_later_ones_are_smaller():
    """A_k that falls is against the rules, but S stays at least the local sensitivity."""
    bound = SmoothSensitivity(1, 1e-6).smooth_bound(lambda k: 900 if k == 0 else 0, most=1000, furthest=50)
    assert bound >= 900


def test_the_utility_is_a_tail_of_the_noise_at_the_bound():
    mechanism = SmoothMedian(1, 1e-6, 0, 1000)
    smooth = Fraction(7, 2)
    for beta in (0.5, 0.05, 1e-6):
        error = mechanism.utility(smooth, beta)
        assert 2 * math.exp(mechanism.mechanism.noise(smooth).log_upper_tail(error + 1)) <= beta
        assert error == mechanism.mechanism.utility(smooth, beta)
