"""Noise in empty classes practically never becomes a limit.

20,000 units of skewed sizes, none above 60 rows. A limit above 1,000 needs noise that passes the strict threshold in
one of 129 classes (5e-7 for each search), or the mild one twice in a row (4e-8). Two of 1,000 searches would be a
false alarm: below 2e-7. The rule that was there before (four deviations) gave 18% of such limits under Laplace noise
and 0.4% under Gaussian noise, which the test rejects with probability above 0.9.
"""

from __future__ import annotations

import math
import random

import pytest

from dalenius.measuring.limits.choosing import choose_limit
from dalenius.measuring.limits.histogram import CLASSES
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace


@pytest.mark.parametrize("law", [DiscreteGaussian(variance=600, dimension=CLASSES), Laplace(1 / 60, 1, CLASSES)])
def test_noise_far_out_does_not_become_a_limit(law: DiscreteGaussian | Laplace):
    chance = random.Random(5)
    counts = [0] * CLASSES
    for _ in range(20_000):
        counts[1 + math.ceil(2 * math.log2(min(60, 1 + int(chance.paretovariate(1.8)))))] += 1
    drawn = (law.release(counts).value.tolist() for _ in range(1000))
    limits = [choose_limit(each, law, lambda limit: 3.0 * limit).limit for each in drawn]
    assert sum(limit > 1000 for limit in limits) < 2
    assert sorted(limits)[100] >= 20  # and the real tail is still there
