"""Attacks H1 and H2 on single mechanisms: no output, and no pattern of low-order bits, occurs on one side only.

Two neighbours, also at magnitudes where doubles have gaps of 2 and more. False-alarm rate of each test: below 1e-7.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG

from dalenius.mechanisms import DiscreteGaussian, Laplace, ProposeTestRelease, SmoothMedian, SmoothSensitivity

pytestmark = pytest.mark.statistical

ALARM = 1e-7
BASES = [0, 2**53, 2**60 + 1, -(2**62), 10**25]


def released(mechanism, value: int, n: int) -> list[int]:
    return [int(y) for y in type(mechanism)(*_fields(mechanism), dimension=n).release([value] * n).value]


def _fields(mechanism):
    return (getattr(mechanism, "epsilon", None) or mechanism.variance, 1)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("mechanism", [Laplace(0.5), DiscreteGaussian(16)])
def test_every_output_near_the_truth_occurs_on_both_sides(mechanism, base, rounds):
    """Each of the 9 outputs has probability above 0.01 on both sides: none is missing but with probability 1e-40."""
    n = rounds(200_000)
    one, two = set(released(mechanism, base, n)), set(released(mechanism, base + 1, n))
    near = set(range(base - 4, base + 5))
    assert near <= one
    assert near <= two


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("mechanism", [Laplace(0.5), DiscreteGaussian(16)])
def test_low_order_bits_are_those_of_the_noise(mechanism, base, rounds):
    n = rounds(200_000)
    found = np.bincount([(y - base) % 8 for y in released(mechanism, base, n)], minlength=8)
    k = np.arange(-400, 401)
    weights = np.exp(-np.abs(k) * 0.5) if isinstance(mechanism, Laplace) else np.exp(-(k**2) / 32)
    expected = np.bincount(k % 8, weights=weights, minlength=8) / weights.sum() * n
    assert stats.chisquare(found, expected).pvalue >= ALARM
    assert math.isclose(expected.sum(), n)


def answers(value: int, distance: int, n: int) -> set[int | None]:
    mechanism = ProposeTestRelease(Fraction(1, 2), 1e-6, bound=1)
    return {mechanism.release(value, mechanism.threshold + distance).value for _ in range(n)}


@pytest.mark.parametrize("base", BASES)
def test_answers_and_refusals_of_propose_test_release_occur_on_both_sides(base):
    """The test passes with probability above 0.3 on both sides, and each of the 8 outputs then has 0.03 or more:
    with 2500 runs one of the 36 is missing with probability below 1e-8.
    """
    n = 100_000 if LONG else 2_500
    near = {None, *range(base - 3, base + 5)}
    for distance in (0, 1):
        assert near <= answers(base, distance, n)
        assert near <= answers(base + 1, 1 - distance, n)


def smooth_medians(base: int, n: int) -> list[set[int]]:
    """The median moves by one."""
    mechanism = SmoothMedian(2, 1e-3, base - 2, base + 3)
    sides = ([base, base, base + 1], [base, base + 1, base + 1])
    return [{mechanism.release(data).value for _ in range(n)} for data in sides]


def smooth_values(base: int, n: int) -> list[set[int]]:
    mechanism = SmoothSensitivity(1, 1e-3)

    def side(shift: int) -> set[int]:
        def at_distance(k: int) -> int:
            return min(k + shift, 3)

        return {mechanism.release(base + shift, at_distance, most=3, furthest=3).value for _ in range(n)}

    return [side(1), side(2)]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("draw", [smooth_medians, smooth_values])
def test_every_output_of_noise_scaled_to_the_data_occurs_on_both_sides(draw, base):
    """S is at least 2, so noise has scale 2 to 6, and each output a probability above 0.015: none is missing
    of the 18 with 1500 runs but with probability below 1e-8.
    """
    one, two = draw(base, 100_000 if LONG else 1_500)
    near = set(range(base - 3, base + 6))
    assert near <= one
    assert near <= two


def test_the_noise_compared_does_differ_between_the_sides():
    """Else the test above would be about one scale only."""
    mechanism = SmoothSensitivity(1, 1e-3)
    one, two = (mechanism.smooth_bound(lambda k, a=a: min(k + a, 3), most=3, furthest=3) for a in (1, 2))  # type: ignore[misc]
    assert 2 <= one < two <= 3
