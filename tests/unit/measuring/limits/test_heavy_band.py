"""Groups that are scaled up stay within what the total and the noise allow, whatever the noise did."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.measuring.limits.heavy_band import Groups, scale_groups
from dalenius.measuring.limits.rescaled import Total
from dalenius.measuring.limits.rescaling import Taken

TAKEN = Taken(0.0, 0.0, kept=3000.0, chance=0.0, unequal=0.0)  # about all of 3,000 rows are left
TOTAL = Total(3000.0, 150.0)
NOISE = 300.0


def noisy(total: float, groups: int = 1000) -> np.ndarray:
    """Noise around 0 that adds up to a total."""
    found = np.random.default_rng(18).normal(0, NOISE, groups)
    return np.asarray(found + (total - found.sum()) / groups)


@pytest.mark.parametrize("total", [-20_000.0, 0.0, 5.0, 3000.0])
def test_noise_that_leaves_nothing_of_the_sum_does_not_multiply_the_groups(total):
    scaled = scale_groups(Groups(noisy(total), NOISE), TAKEN, TOTAL)
    assert np.abs(scaled.value).max() < 10 * NOISE
    assert np.all(np.abs(scaled.value) < 6 * scaled.noise)  # as far as chance goes, and no further
