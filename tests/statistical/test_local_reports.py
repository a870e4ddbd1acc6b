"""Reports follow their exact law, and estimates have the stated variance: Must-show 1 of local privacy.

Each chi-square and each test of a mean has a false-alarm rate of 1e-7. A pooled variance over 25,000 estimates has a
standard error of 0.9%, so that 5% are 5.5 of them: a false-alarm rate of 4e-8. 20% more or less never pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.randomisers import check_estimates, check_reports, named, skewed

from dalenius.local.randomisers.count_mean_sketch import CountMeanSketch
from dalenius.local.randomisers.hadamard import Hadamard
from dalenius.local.randomisers.hadamard_sketch import HadamardSketch
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.local_hashing import LocalHashing
from dalenius.local.randomisers.optimised_unary import OptimisedUnary
from dalenius.local.randomisers.randomiser import FrequencyOracle
from dalenius.local.randomisers.randomized_response import RandomizedResponse
from dalenius.local.randomisers.sketch import Sketch
from dalenius.local.randomisers.subset_selection import SubsetSelection
from dalenius.local.randomisers.symmetric_unary import SymmetricUnary
from dalenius.local.tallies import Tally

pytestmark = pytest.mark.statistical

LISTED: list[FrequencyOracle] = [
    RandomizedResponse(0.7),
    KAry(1.5, 5),
    SymmetricUnary(1.0, 4),
    OptimisedUnary(1.0, 4),
    OptimisedUnary(0.3, 9),
    LocalHashing(1.0, 5, 3),
    Hadamard(1.0, 6, 2),
    SubsetSelection(1.0, 7, 3),
    SubsetSelection(0.2, 9),
    CountMeanSketch(2.0, 5, 3, 4),
    HadamardSketch(1.0, 5, 3, 4),
]


@pytest.mark.parametrize("randomiser", LISTED, ids=named)
def test_reports_follow_the_exact_law(randomiser: FrequencyOracle, rounds: Callable[[int], int]) -> None:
    count = rounds(20_000) if randomiser.public_bytes > 1 else rounds(400_000)  # a law for each key takes its time
    for value in (0, randomiser.size - 1):
        check_reports(randomiser, value, list(range(randomiser.size)), count)


POOLED: dict[str, Callable[[int], FrequencyOracle]] = {
    "k-ary": lambda _: KAry(1.0, 100),
    "symmetric-unary": lambda _: SymmetricUnary(1.0, 100),
    "optimised-unary": lambda _: OptimisedUnary(1.0, 100),
    "optimised-unary, ε = 3": lambda _: OptimisedUnary(3.0, 100),
    "local-hashing": lambda _: LocalHashing(1.0, 100),
    "local-hashing, g = 3": lambda _: LocalHashing(1.0, 100, 3),
    "hadamard": lambda _: Hadamard(1.0, 100),
    "hadamard, ε = 3": lambda _: Hadamard(3.0, 100),
    "subset-selection": lambda _: SubsetSelection(1.0, 100),
    "count-mean-sketch": lambda run: CountMeanSketch(1.0, 100, 64, 16, seed=run),
    "hadamard-sketch": lambda run: HadamardSketch(1.0, 100, 64, 16, seed=run),
    "count-mean-sketch, collisions": lambda run: CountMeanSketch(5.0, 100, 64, 16, seed=run),
}


@pytest.mark.parametrize("oracle", POOLED.values(), ids=POOLED.keys())
def test_estimates_are_unbiased_with_the_stated_variance(oracle: Callable[[int], FrequencyOracle]) -> None:
    fixed = oracle(0)
    check_estimates(oracle if isinstance(fixed, Sketch) else lambda _: fixed, skewed(800, 100), 250, 0.05)


def test_randomized_response_is_unbiased_with_the_stated_variance() -> None:
    """20,000 runs in one: a standard error of 1% of the variance."""
    runs, values = 20_000, np.arange(500) // 400
    one = RandomizedResponse(1.0)
    yes = one.encode(np.tile(values, runs)).reshape(runs, 500).sum(axis=1, dtype=np.int64)
    tallies = [Tally(one, 500, np.array([500 - count, count])) for count in yes.tolist()]
    errors = np.array([one.shares(tally)[1] for tally in tallies]) - 0.2
    z = errors / np.sqrt(one.variance(0.2, 500))
    assert abs(z.mean()) * np.sqrt(runs) < 5.4
    assert abs((z**2).mean() - 1) < 0.054
