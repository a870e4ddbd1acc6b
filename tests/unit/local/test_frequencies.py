"""Intervals and bands cover as often as they say; what has no shares is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.randomisers import named, skewed

from dalenius.errors import InputError
from dalenius.local.estimators.frequencies import estimate, quantile
from dalenius.local.randomisers.hadamard import Hadamard
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.optimised_unary import OptimisedUnary
from dalenius.local.randomisers.randomiser import FrequencyOracle


@pytest.mark.parametrize("oracle", [KAry(2.0, 20), OptimisedUnary(1.0, 20), Hadamard(2.0, 20)], ids=named)
def test_intervals_and_bands_cover_as_often_as_they_say(oracle: FrequencyOracle) -> None:
    """300 runs of 20 values: 6,000 intervals have a standard error of 0.28%, 300 bands one of 1.3% at most."""
    values = skewed(4000, 20)
    truth = np.bincount(values, minlength=20) / 4000
    inside, around, by_themselves = [], [], []
    for _ in range(300):
        found = estimate(oracle.fold(oracle.encode(values)))
        distance = np.abs(found.shares - truth)
        inside.append((distance <= found.margins(0.95)).mean())
        around.append((distance <= found.band(0.95)).all())
        by_themselves.append((distance <= found.margins(0.95)).all())
    assert abs(np.mean(inside) - 0.95) < 0.02
    assert np.mean(around) > 0.95 - 0.07
    assert np.mean(by_themselves) < 0.6  # about a third: margins for one value do not make a band


@pytest.mark.parametrize("oracle", [OptimisedUnary(5.0, 32), Hadamard(8.0, 32), KAry(6.0, 32)], ids=named)
def test_few_reports_of_a_large_epsilon_are_not_believed_too_much(oracle: FrequencyOracle) -> None:
    """A share of 1/50 often leaves no trace in 50 reports; a normal interval around that misses one time in five.

    600 runs: where the chance to be inside is 93% or more, fewer than 87% are with a chance below 1e-7 for each share;
    the normal interval has 81% of a rare share, and its band 86%.
    """
    values = np.concatenate([np.zeros(25, int), np.arange(1, 26)])
    truth = np.bincount(values, minlength=32) / 50
    inside, around = np.zeros(32), 0
    reports = oracle.encode(np.tile(values, 600))
    for at in range(0, len(reports), 50):
        found = estimate(oracle.fold(reports[at : at + 50]))
        distance = np.abs(found.shares - truth)
        inside += distance <= found.margins(0.95)
        around += bool((distance <= found.band(0.95)).all())
    assert inside.min() / 600 > 0.87
    assert around / 600 > 0.93


def test_counts_are_shares_of_the_reports() -> None:
    oracle = KAry(3.0, 4)
    found = estimate(oracle.fold(oracle.encode(skewed(100, 4))))
    assert found.counts.sum() == pytest.approx(100)
    assert (found.band() > found.margins()).all()


def test_nothing_and_levels_that_are_no_chance_are_refused() -> None:
    oracle = KAry(1.0, 3)
    with pytest.raises(InputError):
        estimate(oracle.fold(oracle.encode([])))
    for level in (0.0, 1.0, float("nan"), 95.0):
        with pytest.raises(InputError):
            quantile(level, 1)
