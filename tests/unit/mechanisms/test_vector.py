"""Clipping one unit's vector: always within the norm, never by rounding to nearest."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting.neighbors import Neighbors
from dalenius.mechanisms.vector import clip_l1, clip_l2, sensitivity_l1, squared_sensitivity_l2

VECTORS = st.lists(st.integers(-(10**30), 10**30) | st.integers(-50, 50), max_size=12)
BOUNDS = st.integers(1, 10**9)


@given(VECTORS, BOUNDS)
def test_a_clipped_vector_is_within_the_norm_and_points_the_same_way(values, bound):
    one, two = clip_l1(values, bound).tolist(), clip_l2(values, bound).tolist()
    assert sum(abs(v) for v in one) <= bound
    assert sum(v * v for v in two) <= bound * bound
    for clipped in (one, two):
        assert all(abs(c) <= abs(v) and c * v >= 0 for c, v in zip(clipped, values, strict=True))


@given(VECTORS, BOUNDS)
def test_a_vector_within_the_norm_stays_as_it_is(values, bound):
    if sum(abs(v) for v in values) <= bound:
        assert clip_l1(values, bound).tolist() == values
    if sum(v * v for v in values) <= bound * bound:
        assert clip_l2(values, bound).tolist() == values


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=12), st.integers(1, 1000))
def test_little_is_lost_to_truncation(values, bound):
    norm = math.sqrt(sum(v * v for v in values))
    if norm <= bound:
        return
    for before, after in zip(values, clip_l2(values, bound).tolist(), strict=True):
        assert abs(before * bound / norm - after) < 2


def test_rounding_to_nearest_would_leave_the_ball():
    values, bound = [1, 1, 1, 1], 1
    nearest = [math.floor(v * bound / 2 + 0.5) for v in values]
    assert sum(v * v for v in nearest) > bound * bound
    assert clip_l2(values, bound).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_the_sensitivities_are_reached_and_not_passed(bound):
    ball = [v for v in itertools.product(range(-bound, bound + 1), repeat=2) if v[0] ** 2 + v[1] ** 2 <= bound**2]
    positive = [v for v in ball if min(v) >= 0]

    def squared(vectors):
        return max((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 for a in vectors for b in vectors)

    assert squared_sensitivity_l2(bound) == max(a * a + b * b for a, b in ball)
    assert squared_sensitivity_l2(bound, Neighbors.SUBSTITUTE) == squared(ball)
    assert squared_sensitivity_l2(bound, Neighbors.SUBSTITUTE, non_negative=True) == squared(positive)
    assert sensitivity_l1(bound, Neighbors.SUBSTITUTE) == 2 * bound


def test_int64_stays_int64():
    assert clip_l2(np.array([2**62, -(2**62)]), 10).dtype == np.int64
    assert clip_l2([2**70, 1], 10).tolist() == [9, 0]
