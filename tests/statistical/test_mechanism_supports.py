"""Attacks H1 and H2 on single mechanisms: no output, and no pattern of low-order bits, occurs on one side only.

Two neighbours, also at magnitudes where doubles have gaps of 2 and more. False-alarm rate of each test: below 1e-7.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms import DiscreteGaussian, Laplace

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
