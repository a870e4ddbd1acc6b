"""Bad input is refused with a typed error, and nothing is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dalenius import mechanisms as m
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError
from dalenius.mechanisms import noise
from dalenius.mechanisms.sensitivity import (
    LocalSensitivity,
    local_sensitivity_of_median,
    median_distance,
    sum_sensitivity,
)
from dalenius.mechanisms.vector import clip_l1, clip_l2, sensitivity_l1, squared_sensitivity_l2

pytestmark = pytest.mark.usefixtures("nothing_drawn")

EPSILONS = [-1, 0, -0.0, 0.0, math.nan, math.inf, -math.inf, 1e-320, True, "1", None, 1j, np.bool_(True), [1]]
SENSITIVITIES = [0, -1, 1.0, 1.5, True, "1", None, math.nan, Fraction(1), np.float64(2), LocalSensitivity(3)]
VALUES = [
    1.0,
    1.5,
    math.nan,
    True,
    np.True_,
    "1",
    None,
    np.float64(3),
    [1, 2.5],
    [True, 1],
    np.array([1.0]),
    np.ma.array([1, 2], mask=[False, True]),
    np.ma.array([1, 2]),
    np.ma.array(1, mask=True),
    np.ma.masked,
    np.timedelta64(1),
    np.array([1, 2], dtype="m8"),
    np.array([1, 2], dtype="m8[s]"),
    [np.timedelta64(1), 2],
    np.array(1.5),
    np.array(None),
    {1: 2},
    1j,
]
LINE = ((0, -1, -2), (-1, 0, -1), (-2, -1, 0))
WRONG: Any = {"matrix": ((1, 2), (1, 2.0)), "lists": [[1, 2], [2, 1]], "half": 0.5, "word": "yes", "two": 2}

BY_EPSILON: dict[str, Callable[[Any], Any]] = {
    "laplace": m.Laplace,
    "geometric": m.Geometric,
    "classical": lambda e: m.Gaussian.classical(epsilon=e, delta=1e-6, squared_sensitivity=1),
    "analytic": lambda e: m.Gaussian.analytic(epsilon=e, delta=1e-6, squared_sensitivity=1),
    "of_rho": lambda e: m.Gaussian.of_rho(rho=e, squared_sensitivity=1),
    "discrete-gaussian": m.DiscreteGaussian,
    "exponential": m.Exponential,
    "noisy-max": m.NoisyMax,
    "top-k": lambda e: m.TopK(e, k=2),
    "quantile": lambda e: m.Quantile(e, 0, 10),
    "sparse-vector": m.SparseVector,
    "key-selection": lambda e: m.KeySelection(e, 1e-6),
    "sample-and-aggregate": lambda e: m.SampleAndAggregate(e, 3, 0, 9),
    "propose-test-release": lambda e: m.ProposeTestRelease(e, 1e-6, 2),
    "smooth-sensitivity": lambda e: m.SmoothSensitivity(e, 1e-6),
    "smooth-median": lambda e: m.SmoothMedian(e, 1e-6, 0, 10),
    "randomized-response": m.RandomizedResponse,
    "finite-response": lambda e: m.FiniteResponse(e, LINE),
}

BY_SENSITIVITY = {
    "laplace": lambda s: m.Laplace(1, s),
    "geometric": lambda s: m.Geometric(1, s),
    "classical": lambda s: m.Gaussian.classical(epsilon=1, delta=1e-6, squared_sensitivity=s),
    "analytic": lambda s: m.Gaussian.analytic(epsilon=1, delta=1e-6, squared_sensitivity=s),
    "of_rho": lambda s: m.Gaussian.of_rho(rho=1, squared_sensitivity=s),
    "discrete-gaussian": lambda s: m.DiscreteGaussian(1, s),
    "exponential": lambda s: m.Exponential(1, s),
    "noisy-max": lambda s: m.NoisyMax(1, s),
    "top-k": lambda s: m.TopK(1, s),
    "sparse-vector": lambda s: m.SparseVector(1, s),
    "propose-test-release": lambda s: m.ProposeTestRelease(1, 1e-6, s),
    # other counts are held to the same rule
    "dimension": lambda s: m.Laplace(1, dimension=s),
    "k": lambda s: m.TopK(1, k=s),
    "hits": lambda s: m.SparseVector(1, hits=s),
    "cap": lambda s: m.KeySelection(1, 1e-6, s),
    "blocks": lambda s: m.SampleAndAggregate(1, s, 0, 9),
    "categories": lambda s: m.RandomizedResponse(1, s),
    "clip_l1": lambda s: clip_l1([1, 2], s),
    "clip_l2": lambda s: clip_l2([1, 2], s),
}

BY_VALUE = {
    "laplace": lambda v: m.Laplace(1).release(v),
    "laplace-vector": lambda v: m.Laplace(1, dimension=2).release(v),
    "geometric": lambda v: m.Geometric(1).release(v),
    "discrete-gaussian": lambda v: m.DiscreteGaussian(1).release(v),
    "gaussian-vector": lambda v: m.DiscreteGaussian(1, dimension=2).release(v),
    "exponential": lambda v: m.Exponential(1).release(v),
    "noisy-max": lambda v: m.NoisyMax(1).release(v),
    "top-k": lambda v: m.TopK(1).release(v),
    "quantile": lambda v: m.Quantile(1, 0, 10).release(v),
    "sparse-vector": lambda v: m.SparseVector(1).release(v, 0),
    "key-selection": lambda v: m.KeySelection(1, 1e-6).release(v),
    "sparse-vector-threshold": lambda v: m.SparseVector(1).release([1], v),
    "propose-test-release": lambda v: m.ProposeTestRelease(1, 1e-6, 2).release(v, 3),
    "propose-test-release-distance": lambda v: m.ProposeTestRelease(1, 1e-6, 2).release(3, v),
    "smooth-sensitivity": lambda v: m.SmoothSensitivity(1, 1e-6).release(v, lambda k: k, most=9, furthest=9),
    "smooth-median": lambda v: m.SmoothMedian(1, 1e-6, 0, 10).release(v),
    "randomized-response": lambda v: m.RandomizedResponse(1).release(v),
    "finite-response": lambda v: m.FiniteResponse(1, LINE).release(v),
    "clip_l1": lambda v: clip_l1(v, 3),
    "clip_l2": lambda v: clip_l2(v, 3),
}


@pytest.mark.parametrize("epsilon", EPSILONS, ids=repr)
@pytest.mark.parametrize("name", BY_EPSILON)
def test_a_wrong_epsilon_is_refused(name, epsilon):
    with pytest.raises(InputError) as caught:
        BY_EPSILON[name](epsilon)
    assert "No budget was spent" in str(caught.value)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=repr)
@pytest.mark.parametrize("name", BY_SENSITIVITY)
def test_a_wrong_sensitivity_is_refused(name, sensitivity):
    with pytest.raises(InputError):
        BY_SENSITIVITY[name](sensitivity)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("name", BY_VALUE)
def test_what_is_not_an_exact_integer_is_refused(name, value):
    with pytest.raises(InputError) as caught:
        BY_VALUE[name](value)
    assert "2.5" not in str(caught.value), "an error must not quote the data"


@pytest.mark.parametrize("delta", [-1, 0, 0.0, 1, 2, math.nan, math.inf, True, "0.1", None], ids=repr)
@pytest.mark.parametrize(
    "build",
    [
        lambda d: m.Gaussian.classical(epsilon=1, delta=d, squared_sensitivity=1),
        lambda d: m.Gaussian.analytic(epsilon=1, delta=d, squared_sensitivity=1),
        lambda d: m.ProposeTestRelease(1, d, 1),
        lambda d: m.SmoothSensitivity(1, d),
        lambda d: m.SmoothMedian(1, d, 0, 10),
    ],
)
def test_a_wrong_delta_is_refused(build, delta):
    with pytest.raises(InputError):
        build(delta)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, math.nan, True, "0.9", None], ids=repr)
@pytest.mark.parametrize("mechanism", [m.Laplace(1), m.DiscreteGaussian(1)])
def test_a_wrong_confidence_is_refused(mechanism, confidence):
    for function in (mechanism.noise_error, mechanism.utility):
        with pytest.raises(InputError):
            function(confidence)


@pytest.mark.parametrize("scores", [[], (), np.array([], dtype=np.int64), 7, [[1, 2], [3, 4]], [[1], [2, 3]]], ids=repr)
@pytest.mark.parametrize("mechanism", [m.Exponential(1), m.NoisyMax(1), m.TopK(1)])
def test_candidates_must_be_a_list_with_something_in_it(mechanism, scores):
    with pytest.raises(InputError):
        mechanism.release(scores)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: m.TopK(1, k=4).release([1, 2, 3]),
        lambda: m.Laplace(1, dimension=3).release([1, 2]),
        lambda: m.DiscreteGaussian(1, dimension=3).release([1, 2]),
        lambda: m.Laplace(1, dimension=2).release(5),
        lambda: m.RandomizedResponse(1, 3).release(3),
        lambda: m.RandomizedResponse(1, 3).release([0, -1]),
        lambda: m.RandomizedResponse(1, 1),
        lambda: m.FiniteResponse(1, LINE).release(3),
        lambda: m.FiniteResponse(1, ()),
        lambda: m.FiniteResponse(1, ((1, 2),)),
        lambda: m.FiniteResponse(1, ((1, 2), (1, 2))),
        lambda: m.FiniteResponse(1, WRONG["matrix"]),
        lambda: m.FiniteResponse(1, WRONG["lists"]),
        lambda: m.FiniteResponse(1, ((1, 2), (1, 2, 3))),
        lambda: m.Quantile(1, 5, 5),
        lambda: m.Quantile(1, 0, 10, at=Fraction(1)),
        lambda: m.Quantile(1, 0, 10, at=Fraction(0.9)),
        lambda: m.Quantile(1, 0, 10, at=WRONG["half"]),
        lambda: m.SmoothMedian(1, 1e-6, 5, 5),
        lambda: m.SmoothMedian(1, 1e-6, 0, 10).release([]),
        lambda: m.SmoothSensitivity(1e-30, 1e-6),
        lambda: m.ProposeTestRelease(1, 1e-6, 1).release(5, -1),
        lambda: m.SampleAndAggregate(1, 3, 0, 9).release({1: 1}, sum, lambda unit: 3),
        lambda: m.SampleAndAggregate(1, 3, 0, 9).release({1: 1}, sum, lambda unit: WRONG["half"]),
        lambda: m.Exponential(1, monotonic=True, neighbors=Neighbors.SUBSTITUTE),
        lambda: m.Exponential(1, monotonic=WRONG["word"]),
        lambda: m.SparseVector(1, monotonic=WRONG["two"]),
        lambda: m.SparseVector(1, monotonic=True, neighbors=Neighbors.SUBSTITUTE),
        lambda: m.SparseVector(1, threshold_share=Fraction(1)),
        lambda: m.SparseVector(1, threshold_share=0),
        lambda: m.Gaussian.classical(epsilon=1.01, delta=1e-6, squared_sensitivity=1),
        lambda: m.Laplace(1e-90, 10**30),
        lambda: m.SparseVector(1e-90, 10**30),
        lambda: m.RandomizedResponse(1).estimate([]),
        lambda: m.FiniteResponse(1, LINE).estimate([]),
        lambda: m.Exponential(1).release(np.array([[1, 2]]).view(np.matrix)),
        lambda: clip_l2(np.array([[1, 2]]).view(np.matrix), 3),
    ],
)
def test_contradictions_are_refused(attempt):
    with pytest.raises(InputError):
        attempt()


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: m.Quantile(1, 0, 10**12),
        lambda: m.SampleAndAggregate(1, 10**12, 0, 9),
        lambda: m.SampleAndAggregate(1, 10, 0, 10**12),
        lambda: m.RandomizedResponse(1, 10**12),
        lambda: m.FiniteResponse(1, tuple(tuple(range(i, i + 1100)) for i in range(1000))),
        lambda: m.Exponential(1).release(np.zeros(2**22 + 1, dtype=np.int64)),
        lambda: m.SmoothMedian(1, 1e-6, -(2**63), 2**63),
    ],
)
def test_sizes_over_memory_are_refused(attempt):
    with pytest.raises(InputError):
        attempt()


@pytest.mark.parametrize("scores", [v for v in VALUES if isinstance(v, np.ndarray)], ids=repr)
@pytest.mark.parametrize(
    "choose", [noise.exponential_choice, noise.permute_and_flip, lambda s, rate: noise.exponential_top_k(s, rate, 1)]
)
def test_choices_refuse_arrays_that_are_not_plain_integers(choose, scores):
    with pytest.raises(InputError):
        choose(scores, 1)


@pytest.mark.parametrize("neighbors", ["both", None, 1, ["substitute"], True], ids=repr)
@pytest.mark.parametrize(
    "build",
    [
        lambda r: m.Laplace(1, neighbors=r),
        lambda r: m.DiscreteGaussian(1, neighbors=r),
        lambda r: m.Exponential(1, neighbors=r),
        lambda r: m.NoisyMax(1, neighbors=r),
        lambda r: m.TopK(1, neighbors=r),
        lambda r: m.Quantile(1, 0, 10, neighbors=r),
        lambda r: m.SparseVector(1, neighbors=r),
        lambda r: m.SampleAndAggregate(1, 3, 0, 9, neighbors=r),
        lambda r: m.ProposeTestRelease(1, 1e-6, 2, neighbors=r),
        lambda r: m.SmoothSensitivity(1, 1e-6, neighbors=r),
        lambda r: m.RandomizedResponse(1, neighbors=r),
        lambda r: m.FiniteResponse(1, LINE, neighbors=r),
        lambda r: sum_sensitivity(0, 5, r),
        lambda r: sensitivity_l1(5, r),
        lambda r: squared_sensitivity_l2(5, r),
    ],
)
def test_a_wrong_relation_is_refused(build, neighbors):
    with pytest.raises(InputError):
        build(neighbors)


@pytest.mark.parametrize("wrong", [math.nan, 1.0, -1, None, True, "3", np.float64(2)], ids=repr)
@pytest.mark.parametrize("at", [0, 1, 4])
def test_a_wrong_sensitivity_at_a_distance_is_refused(wrong, at):
    mechanism = m.SmoothSensitivity(1, 1e-6)
    with pytest.raises(InputError):
        mechanism.release(0, lambda k: wrong if k >= at else 0, most=1000, furthest=9)


@pytest.mark.parametrize("wrong", [0, -1, 1.0, None, math.inf, True], ids=repr)
def test_wrong_limits_of_a_smooth_bound_are_refused(wrong):
    mechanism = m.SmoothSensitivity(1, 1e-6)
    for limits in ({"most": wrong, "furthest": 9}, {"most": 9, "furthest": wrong}):
        with pytest.raises(InputError):
            mechanism.smooth_bound(lambda k: 1, **limits)


@pytest.mark.parametrize(
    ("low", "high"),
    [(5, 4), (-(2**63), 2**63 - 1), (0, 2**62), (-(2**62), 2**62), (0.0, 5), (0, None), (0, 10**30)],
    ids=repr,
)
def test_wrong_bounds_of_a_median_are_refused(low, high):
    for attempt in (
        lambda: median_distance([1, 2, 3], low, high, 1),
        lambda: local_sensitivity_of_median([1, 2, 3], low, high),
        lambda: m.SmoothMedian(1, 1e-6, low, high),
    ):
        with pytest.raises(InputError):
            attempt()


@pytest.mark.parametrize("bound", [-1, 1.0, math.nan, None, True], ids=repr)
def test_a_wrong_bound_on_the_median_is_refused(bound):
    with pytest.raises(InputError):
        median_distance([1, 2, 3], 0, 9, bound)
