"""Propose–test–release: the constant on integers, and the whole law enumerated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dalenius.mechanisms import Noisy, ProposeTestRelease
from dalenius.mechanisms.sensitivity import local_sensitivity_of_median, median_distance


def pass_probability(epsilon: float, threshold: float, distance: int = 0) -> float:
    """P(distance + X > threshold) for discrete Laplace X of scale 1/ε, by summation."""
    first = math.floor(threshold) + 1 - distance
    mass = math.tanh(epsilon / 2)
    return math.fsum(mass * math.exp(-epsilon * abs(k)) for k in range(first, max(first, 0) + int(50 / epsilon)))


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.05, 0.4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 20), 0.3, 1, 2.5, 8])
def test_the_threshold_is_the_least_that_passes_wrongly_with_probability_at_most_delta(epsilon, delta):
    threshold = ProposeTestRelease(epsilon, delta, bound=1).threshold
    assert pass_probability(float(epsilon), threshold) <= delta
    assert threshold == 0 or pass_probability(float(epsilon), threshold - 1) > delta


def test_the_continuous_constant_is_too_small_on_integers():
    """ln(1/2δ)/ε is right for continuous noise (erratum 6); for discrete noise it can fail almost twice as often."""
    worst = max(
        pass_probability(epsilon, math.log(1 / (2 * delta)) / epsilon) / delta
        for epsilon in (0.5, 1.0, 2.0)
        for delta in (math.exp(-epsilon * (k - 1e-9)) / 2 for k in range(3, 9))
    )
    assert worst > 1.7
    assert worst <= 2 / (1 + math.exp(-2.0)) + 1e-6


def test_the_constant_seen_in_notes_is_far_too_small():
    epsilon, delta = 1.0, 1e-6
    assert pass_probability(epsilon, math.log(2 / delta) / (2 * epsilon)) > 100 * delta


def law(mechanism: ProposeTestRelease, value: int, distance: int, outputs: range) -> dict[object, float]:
    epsilon = float(mechanism.epsilon)
    passes = pass_probability(epsilon, mechanism.threshold, distance)
    scale = float(mechanism.noise.scale)
    found: dict[object, float] = {None: 1 - passes}
    for y in outputs:
        found[y] = passes * math.tanh(0.5 / scale) * math.exp(-abs(y - value) / scale)
    return found


@pytest.mark.parametrize("bound", [1, 4])
def test_the_whole_release_is_private_on_every_pair_of_small_data_sets(bound):
    """Medians of three values in 0…9, all neighbours: δ(2ε) is at most δ, also where the bound does not hold."""
    mechanism = ProposeTestRelease(Fraction(1, 2), 1e-2, bound)
    outputs = range(-120, 130)
    laws: dict[tuple[int, ...], dict[object, float]] = {}
    distances: dict[tuple[int, ...], int] = {}
    data: tuple[int, ...]
    for data in itertools.combinations_with_replacement(range(0, 10, 3), 3):
        distances[data] = median_distance(data, 0, 9, bound)
        laws[data] = law(mechanism, sorted(data)[1], distances[data], outputs)
    worst = 0.0
    for data, here in laws.items():
        for place, value in itertools.product(range(3), range(0, 10, 3)):
            other = tuple(sorted((*data[:place], value, *data[place + 1 :])))
            assert abs(distances[data] - distances[other]) <= 1
            stick = math.fsum(max(0.0, p - math.exp(1.0) * laws[other][y]) for y, p in here.items())
            worst = max(worst, stick)
    assert worst <= 1e-2
    assert worst > 1e-4, "some pair should make use of δ"


def test_a_distance_of_zero_means_that_the_bound_does_not_hold():
    for data in itertools.combinations_with_replacement(range(6), 3):
        assert (median_distance(data, 0, 5, 2) == 0) == (local_sensitivity_of_median(data, 0, 5).value > 2)


def test_it_refuses_near_and_answers_far():
    mechanism = ProposeTestRelease(1, 1e-6, 3)
    near, far = mechanism.release(100, distance=0), mechanism.release(100, distance=10_000)
    assert near.value is None
    assert not hasattr(near, "noise_error")
    assert isinstance(far, Noisy)
    assert far.noise_error() == 9
