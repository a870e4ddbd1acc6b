"""H3: the time of a draw says nothing about its value.

Spearman's rank correlation of independent pairs has standard deviation 1/√(n−1). The thresholds are those of H3; the
counts put them far enough out for a false-alarm rate below 1e-6 per test. 0.05 over 20,000 calls is 7.1 standard
deviations, and 5.1 over the 10,500 of the short form. 0.08 over the 2,000 refills of H3 would be 3.6 only, so 10,000
are timed: there it is 8.0, and 5.8 from the 0.02 that Python's ready-made small integers cause
(docs/explanation/exact-noise.md, "Constant work"); 5.2 from it over the 7,500 of the short form.
Other work on the machine does little harm: what is measured is the processor time of this thread, and what disturbs it
knows no values. But where it keeps all caches busy, ready-made integers are found sooner than others, which correlates
(0.065 was seen once). So in the short form the least of up to three tries counts; a sampler whose work grows is caught
in each. The long form, which has the machine to itself, has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import _draws, bits

CALLS = 20_000 if LONG else 10_500
REFILLS = 10_000 if LONG else 7_500
TRIES = 1 if LONG else 3

SAMPLERS: dict[str, Callable[[], int]] = {
    "laplace-10": lambda: noise.discrete_laplace(10),
    "laplace-1000": lambda: noise.discrete_laplace(1000),
    "laplace-7/5": lambda: noise.discrete_laplace(Fraction(7, 5)),
    "gaussian-10": lambda: noise.discrete_gaussian(10),
    "gaussian-10**7": lambda: noise.discrete_gaussian(10**7),
}


def correlation(sizes: list[int], times: list[int]) -> float:
    return abs(float(stats.spearmanr(np.array(sizes, float), times).statistic))


def least(measured: Callable[[], tuple[list[int], list[int]]], limit: float) -> float:
    """The least correlation of some tries; the first that is below the limit will do."""
    found = 1.0
    for _ in range(TRIES):
        found = min(found, correlation(*measured()))
        if found < limit:
            break
    return found


def timed_calls(draw: Callable[[], int]) -> tuple[list[int], list[int]]:
    sizes, times = [], []
    clock = time.thread_time_ns
    for _ in range(CALLS):
        start = clock()
        value = draw()
        times.append(clock() - start)
        sizes.append(abs(value))
    return sizes, times


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_time_of_a_call_does_not_depend_on_the_value(name):
    assert least(lambda: timed_calls(SAMPLERS[name]), 0.05) < 0.05


# In the short form one of each law, and the narrowest.
@pytest.mark.parametrize("name", SAMPLERS if LONG else ["laplace-10", "laplace-7/5", "gaussian-10"])
def test_the_time_of_a_refill_does_not_depend_on_the_values(name):
    assert least(lambda: timed_refills(SAMPLERS[name]), 0.08) < 0.08


def timed_refills(draw: Callable[[], int]) -> tuple[list[int], list[int]]:
    sizes, times = [], []
    clock = time.thread_time_ns
    draw()
    for _ in range(REFILLS):
        noise.fresh_key()
        start = clock()
        first = draw()
        times.append(clock() - start)
        (stock,) = bits.current().stock.values()
        assert len(stock) == _draws.STOCK - 1
        sizes.append(abs(first) + sum(map(abs, stock)))
    return sizes, times


def test_a_sampler_whose_work_grows_with_its_value_is_caught():
    def leaky() -> int:
        value = noise.discrete_laplace(10)
        for _ in range(abs(value)):
            pass
        return value

    assert least(lambda: timed_calls(leaky), 0.05) > 0.05
