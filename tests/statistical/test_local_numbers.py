"""Means of numbers and shares of bits, from real reports: unbiased, and as exact as their closed forms say.

Estimates of groups are pooled: 20,000 of them in the long form, whose mean square error must be within 5% of the closed
form, and 4,000 in the short one, within 12%. A mean of so many squares is off by more with chance below 1e-6 (five
standard errors, √(2/N) each). 20% more or less noise than is stated would show as 44% or 36%.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from tests.conftest import LONG

from dalenius.local.estimators.means import bit_shares, mean
from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.duchi import Duchi
from dalenius.local.randomisers.hybrid import Hybrid
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.randomisers.piecewise import Piecewise

pytestmark = pytest.mark.statistical

GROUPS, WITHIN = (20_000, 0.05) if LONG else (4000, 0.12)
EACH = 25  # people in a group: a fixed population
VALUES = np.linspace(0, 6000, EACH).round(-1) * np.linspace(0.2, 1, EACH).round(1)


def errors_of(randomiser: MeanRandomiser, values: np.ndarray = VALUES) -> Any:
    """Of each group's mean, in standard errors of the closed form."""
    codes = randomiser.encode(np.tile(values, GROUPS)).astype(np.int64)
    code = sum(codes[:, byte] << 8 * byte for byte in range(codes.shape[1]))
    estimates = np.array([float(randomiser.estimate(each)) for each in range(randomiser.codes)])
    means = randomiser.low + randomiser.step * estimates[code].reshape(GROUPS, EACH).mean(axis=1)
    truth = randomiser.grid[randomiser.checked(values)].mean()
    return (means - truth) / randomiser.variance(values) ** 0.5


@pytest.mark.parametrize("kind", [Duchi, Piecewise, Hybrid])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_means_are_unbiased_and_as_exact_as_stated(kind: type[MeanRandomiser], epsilon: float) -> None:
    errors = errors_of(kind(epsilon, 0, 6000, 10))
    assert abs(np.square(errors).mean() - 1) < WITHIN
    assert abs(errors.mean()) < 5 / GROUPS**0.5


@pytest.mark.parametrize("vector", [BitVector(1.0, 20), BitVector(6.0, 20), BitVector(2.0, 4, 4)], ids=str)
def test_shares_of_bits_are_unbiased_and_as_exact_as_stated(vector: BitVector) -> None:
    """Groups of 200; the bits of one group are hardly dependent."""
    rows = np.arange(200)[:, None] % (2 + np.arange(vector.size)) == 0
    groups = GROUPS // vector.size
    truth = rows.mean(axis=0)
    reports = vector.encode(np.tile(rows, (groups, 1)))
    found = np.stack([bit_shares(vector.fold(part)).shares for part in np.split(reports, groups)])
    errors = (found - truth) / vector.variance(200) ** 0.5
    assert abs(np.square(errors).mean() - 1) < WITHIN
    assert abs(errors.mean()) < 5 / errors.size**0.5


def test_a_piecewise_randomiser_that_stays_near_too_often_is_caught() -> None:
    class TooNear(Piecewise):
        def _codes_of(self, places: np.ndarray) -> np.ndarray:
            nearer = copy(self)
            nearer.__dict__["near"] = Piecewise(self.epsilon * 1.25, self.low, self.high, self.step).near
            return Piecewise._codes_of(nearer, places)

    errors = errors_of(TooNear(1.0, 0, 6000, 10), np.full(EACH, 6000.0))  # half a standard error off, each
    assert abs(errors.mean()) > 5 / GROUPS**0.5


def test_intervals_cover_the_mean() -> None:
    """300 groups of 2,000: 95% intervals miss at least 1 and at most 39 times but for chance 1e-6."""
    hybrid = Hybrid(1.0, 0, 6000, 10)
    values = np.tile(VALUES, 80)
    reports = hybrid.encode(np.tile(values, 300))
    truth = hybrid.grid[hybrid.checked(values)].mean()
    found = [mean(hybrid.fold(part)) for part in np.split(reports, 300)]
    misses = sum(abs(each.value - truth) > each.margin() for each in found)
    assert misses <= 39
