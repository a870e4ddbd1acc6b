"""The small interface that all mechanisms share."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dalenius.mechanisms as package
from dalenius.accounting import events
from dalenius.accounting.neighbors import Neighbors

LINE = ((0, -1, -2), (-1, 0, -1), (-2, -1, 0))

# name → (mechanism, arguments of one release)
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "laplace": (package.Laplace(1), (5,)),
    "geometric": (package.Geometric(1), (5,)),
    "gaussian": (package.Gaussian.of_rho(rho=1, squared_sensitivity=1), (5,)),
    "discrete-gaussian": (package.DiscreteGaussian(4), (5,)),
    "exponential": (package.Exponential(1), ([1, 2, 3],)),
    "noisy-max": (package.NoisyMax(1), ([1, 2, 3],)),
    "top-k": (package.TopK(1, k=2), ([1, 2, 3],)),
    "quantile": (package.Quantile(1, 0, 10), ([1, 2, 3],)),
    "sparse-vector": (package.SparseVector(1), ([1, 2, 3], 2)),
    "key-selection": (package.KeySelection(1, 1e-6), ([1, 2, 3],)),
    "sample-and-aggregate": (package.SampleAndAggregate(1, 3, 0, 9), ({1: 4, 2: 5}, sum, lambda unit: unit % 3)),
    "propose-test-release": (package.ProposeTestRelease(1, 1e-6, 2), (5, 100)),
    "smooth-sensitivity": (package.SmoothSensitivity(1, 1e-6), None),
    "smooth-median": (package.SmoothMedian(1, 1e-6, 0, 10), ([1, 2, 3],)),
    "randomized-response": (package.RandomizedResponse(1), (1,)),
    "finite-response": (package.FiniteResponse(1, LINE), (1,)),
}


def test_every_registered_mechanism_has_an_example_here():
    assert EXAMPLES.keys() == package.MECHANISMS.keys()
    for name, (mechanism, _) in EXAMPLES.items():
        assert type(mechanism) is getattr(package, package.MECHANISMS[name][1])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_event_is_known_before_the_data_and_is_what_the_release_carries(name):
    mechanism, arguments = EXAMPLES[name]
    before = mechanism.event
    if arguments is None:
        released = mechanism.release(5, lambda k: k, most=9, furthest=9)
    else:
        released = mechanism.release(*arguments)
    assert released.event is before


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mechanism_cannot_be_changed_and_equals_its_twin(name):
    mechanism, _ = EXAMPLES[name]
    field = dataclasses.fields(mechanism)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, field, 2)
    assert dataclasses.replace(mechanism) == mechanism
    assert hash(dataclasses.replace(mechanism)) == hash(mechanism)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_docstring_states_guarantee_assumptions_references_and_an_example(name):
    text = getattr(package, package.MECHANISMS[name][1]).__doc__
    for part in ("Guarantee:", "Assumes:", "References:", ">>>"):
        assert part in text


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"smooth-median"}))
def test_the_neighbouring_relation_reaches_the_event(name):
    mechanism, _ = EXAMPLES[name]
    other = dataclasses.replace(mechanism, neighbors=Neighbors.SUBSTITUTE)
    assert other.event.neighbors is Neighbors.SUBSTITUTE


def test_what_is_charged_is_the_theorem():
    half = Fraction(1, 2)
    assert package.Laplace(half, 3).event == events.DiscreteLaplace(Fraction(6), 3)
    assert package.DiscreteGaussian(8, 2, 3).event == events.DiscreteGaussian(Fraction(8), 2, 3)
    assert package.Exponential(half).event == events.Exponential(half)
    assert package.NoisyMax(half).event == events.NoisyMax(half)
    assert package.TopK(half, k=4).event == events.Repeated(events.Exponential(half), 4)
    assert package.KeySelection(half, 1e-6, 8).event == events.Zcdp(half, 1e-6)
    assert package.SparseVector(half, hits=7).event == events.Pure(half)
    assert package.ProposeTestRelease(half, 1e-6, 1).event == events.Approx(Fraction(1), 1e-6)
    assert package.ProposeTestRelease(half, 1e-6, 1).zcdp_event == events.Zcdp(Fraction(1, 4), 1e-6)
    assert package.SmoothSensitivity(half, 1e-6).event == events.Approx(half, 1e-6, Neighbors.SUBSTITUTE)


def test_the_package_loads_nothing_until_a_mechanism_is_used():
    code = "import sys, dalenius.mechanisms; print('numpy' in sys.modules, 'dalenius.accounting' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
    with pytest.raises(AttributeError):
        package.Nonsense  # noqa: B018


@pytest.mark.parametrize("mechanism", [package.Laplace(1, dimension=6), package.DiscreteGaussian(4, dimension=6)])
def test_vectors_keep_their_shape(mechanism):
    noisy = mechanism.release(np.arange(6).reshape(2, 3))
    assert noisy.value.shape == (2, 3)
    assert noisy.value.dtype == np.int64


def test_numbers_past_int64_stay_exact():
    huge = 10**40
    assert abs(package.Laplace(1).release(huge).value - huge) < 1000
    many = package.Laplace(1, dimension=2).release([huge, -huge]).value
    assert many.dtype == object
    assert abs(many[1] + huge) < 1000


def test_the_type_of_a_noisy_vector_depends_on_the_noisy_numbers_alone():
    """A true value at the edge of int64 must not show by the type of the array (or by an overflow)."""
    edge = 2**63 - 1
    wide = package.Laplace(Fraction(1, 10**6), dimension=2)
    seen = set()
    for _ in range(60):
        value = wide.release([edge, 0]).value
        fits = all(-(2**63) <= number < 2**63 for number in value.tolist())
        assert (value.dtype == np.int64) == fits
        assert abs(int(value[0]) - edge) < 10**9
        seen.add(fits)
    assert seen == {True, False}


def test_a_data_dependent_noise_scale_has_no_noise_error_to_show():
    released = package.SmoothMedian(1, 1e-6, 0, 10).release([1, 2, 3])
    assert not hasattr(released, "noise_error")
    assert not hasattr(released, "noise")


def test_what_looks_like_an_array_comes_back_as_a_plain_one():
    class Own(np.ndarray):
        def __add__(self, other):
            return self

    secret = np.arange(4).reshape(2, 2) * 10**6
    for array in (secret.view(np.matrix), secret.view(Own)):
        for mechanism in (package.Laplace(0.001, dimension=4), package.DiscreteGaussian(10**6, dimension=4)):
            value = mechanism.release(array).value
            assert type(value) is np.ndarray
            assert (value != secret).sum() >= 2


@pytest.mark.parametrize("value", [np.array(1), np.array(1, dtype=np.uint8), np.array(1, dtype=object)], ids=repr)
def test_an_array_without_a_dimension_is_one_integer(value):
    for mechanism in (package.Laplace(1), package.DiscreteGaussian(1), package.RandomizedResponse(1)):
        assert type(mechanism.release(value).value) is int


NUMPY: Any = np.int8
BY_NUMPY: dict[str, tuple[Any, Any]] = {
    "quantile": (package.Quantile(1, NUMPY(-100), NUMPY(100)), package.Quantile(1, -100, 100)),
    "smooth-median": (
        package.SmoothMedian(1, 1e-6, NUMPY(-100), NUMPY(100)),
        package.SmoothMedian(1, 1e-6, -100, 100),
    ),
    "sample-and-aggregate": (
        package.SampleAndAggregate(1, 3, NUMPY(-100), NUMPY(100)),
        package.SampleAndAggregate(1, 3, -100, 100),
    ),
    "finite-response": (
        package.FiniteResponse(1, ((NUMPY(-100), NUMPY(100)), (NUMPY(100), NUMPY(-100)))),
        package.FiniteResponse(1, ((-100, 100), (100, -100))),
    ),
}


def integers_in(value):
    return [found for item in value for found in integers_in(item)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", BY_NUMPY)
def test_no_numpy_integer_stays_in_a_field(name):
    given, plain = BY_NUMPY[name]
    assert given == plain
    for field in dataclasses.fields(given):
        assert not any(isinstance(item, np.generic) for item in integers_in(getattr(given, field.name)))


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"smooth-median"}))
def test_a_relation_may_be_given_by_name(name):
    mechanism, _ = EXAMPLES[name]
    other = dataclasses.replace(mechanism, neighbors="substitute")
    assert other == dataclasses.replace(mechanism, neighbors=Neighbors.SUBSTITUTE)
    assert other.event.neighbors is Neighbors.SUBSTITUTE


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_mechanism_has_its_theorem_about_utility(name):
    assert callable(EXAMPLES[name][0].utility)
