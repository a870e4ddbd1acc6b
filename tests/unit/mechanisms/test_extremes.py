"""At the ends of the allowed range a mechanism works or refuses with a typed error; it never breaks in between."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import pytest

from dalenius import mechanisms as m
from dalenius.errors import InputError

EPSILONS = [1e-100, 1e-30, 1e-6, 1e3, 1e30, 1e99, Fraction(1, 3**80), Fraction(10**30 + 1, 10**30)]
DELTAS = [5e-324, 1e-100, 0.5, 1 - 1e-16]
SENSITIVITIES = [1, 10**30, 10**90]
FAR = 10**40
LINE = ((0, -1, -2), (-1, 0, -1), (-2, -1, 0))


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_additive_noise(epsilon, sensitivity):
    for build in (
        lambda: m.Laplace(epsilon, sensitivity),
        lambda: m.Geometric(epsilon, sensitivity),
        lambda: m.DiscreteGaussian(epsilon, sensitivity),
        lambda: m.Gaussian.of_rho(rho=epsilon, squared_sensitivity=sensitivity),
    ):
        with contextlib.suppress(InputError):
            mechanism = build()
            assert isinstance(mechanism.release(FAR).value, int)
            assert mechanism.noise_error() >= 0
            assert mechanism.utility(0.05) >= 0
    geometric = m.Geometric(epsilon)
    assert 0 <= geometric.probability(3) <= 1 <= geometric.alpha
    assert 0 <= geometric.tail(3) <= 1


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_has_a_delta(epsilon, delta):
    for build in (
        lambda: m.Gaussian.analytic(epsilon=epsilon, delta=delta, squared_sensitivity=9).release(FAR),
        lambda: m.Gaussian.analytic(epsilon=epsilon, delta=delta, squared_sensitivity=9, dimension=2).release([1, FAR]),
        lambda: m.Gaussian.classical(epsilon=epsilon, delta=delta, squared_sensitivity=9).release(FAR),
        lambda: m.ProposeTestRelease(epsilon, delta, 7).release(FAR, distance=10**9),
        lambda: m.SmoothSensitivity(epsilon, delta).release(FAR, lambda k: k, most=10**20, furthest=50),
        lambda: m.SmoothMedian(epsilon, delta, -5, 10**15).release([5, 7, FAR]),
    ):
        with contextlib.suppress(InputError):
            assert build().event is not None


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_choices_and_streams(epsilon, sensitivity):
    for build in (m.Exponential, m.NoisyMax, m.TopK, m.SparseVector):
        with contextlib.suppress(InputError):
            mechanism = build(epsilon, sensitivity)
            arguments = ([0, FAR, -FAR, 3], 7) if build is m.SparseVector else ([0, FAR, -FAR, 3],)
            mechanism.release(*arguments)
            assert mechanism.utility(10, 0.5) > 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_reports(epsilon):
    for categories in (2, 7, 2**22):
        mechanism = m.RandomizedResponse(epsilon, categories)
        assert set(mechanism.release([1, 0]).value.tolist()) <= set(range(categories))
        assert mechanism.variance(0.5, 10) > 0
        assert math.isfinite(mechanism.utility(10, 0.1)) or epsilon < 1e-90
    assert m.FiniteResponse(epsilon, LINE).release(1).value in (0, 1, 2)
