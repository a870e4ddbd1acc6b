"""Sensitivity helpers, and that what is local cannot be used as if it were global."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms import DiscreteGaussian, Exponential, Laplace, SparseVector
from dalenius.mechanisms import sensitivity as module
from dalenius.mechanisms.sensitivity import (
    LocalSensitivity,
    local_sensitivity,
    local_sensitivity_of_median,
    median_distance,
    sum_sensitivity,
)

INT8: Any = np.int8
RELATION: Any = "add-remove"


@pytest.mark.parametrize("low", [-3, 0, 2])
@pytest.mark.parametrize("high", [2, 4])
def test_the_sensitivity_of_a_sum_is_reached_and_not_passed(low, high):
    values = range(low, high + 1)
    assert sum_sensitivity(low, high) == max(abs(v) for v in values)
    exchange = max(abs(a - b) for a in values for b in values)
    assert sum_sensitivity(low, high, Neighbors.SUBSTITUTE) == exchange


@pytest.mark.parametrize("build", [Laplace, Exponential, SparseVector, DiscreteGaussian])
def test_no_mechanism_takes_a_local_sensitivity(build):
    with pytest.raises(InputError):
        build(1, LocalSensitivity(2))


def test_the_module_cannot_add_noise():
    assert not [name for name in vars(module) if "noise" in name or "release" in name]


def test_local_sensitivity_tries_all_neighbours():
    def neighbours(data):
        return [(*data[:i], v, *data[i + 1 :]) for i in range(len(data)) for v in range(11)]

    assert local_sensitivity(sum, (1, 5), neighbours).value == 9
    assert local_sensitivity(max, (10, 10), neighbours).value == 0


def test_the_distance_of_a_median_is_one_lipschitz_and_not_too_large():
    data_sets = list(itertools.combinations_with_replacement(range(5), 3))
    for data, bound in itertools.product(data_sets, (1, 2, 3)):
        here = median_distance(data, 0, 4, bound)
        others = {tuple(sorted((*data[:i], v, *data[i + 1 :]))) for i in range(3) for v in range(5)}
        assert all(abs(median_distance(other, 0, 4, bound) - here) <= 1 for other in others)


def test_a_bound_that_never_fails_is_far():
    assert median_distance([1, 2, 3], 0, 4, 4) == 4


def test_bounds_from_numpy_do_not_wrap():
    assert sum_sensitivity(INT8(-128), INT8(127)) == 128
    assert sum_sensitivity(INT8(-128), INT8(127), Neighbors.SUBSTITUTE) == 255
    assert sum_sensitivity(-3, 2, RELATION) == 3
    assert local_sensitivity_of_median([100, 100], INT8(-128), INT8(127)).value == 228
    assert median_distance([-128, 127], INT8(-128), INT8(127), 200) == 0


@pytest.mark.parametrize("low", [-(2**63), 2**63 - 2**61, -(2**61), 10**30])
def test_the_median_is_exact_at_the_edges_of_int64(low):
    high = low + 2**62 - 1
    assert local_sensitivity_of_median([low, low, high], low, high).value == 2**62 - 1
    assert median_distance([low] * 5, low, high, 2**62 - 2) == 2
    assert median_distance([low] * 40 + [high] * 40, low, high, 10) == 0
