"""Audits by samples: what is broken is caught, ours stay within their claims.

An audit of ours fails a sound mechanism with probability at most 1e-6 (`CONFIDENCE`); a broken one is missed with
probability far below that, since its ε̂ is many deviations above its claim.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats
from tests.conftest import LONG

from dalenius.audit.lower_bounds.bounding import lower_bound
from dalenius.audit.mechanisms import BROKEN, OURS, subject
from dalenius.errors import InputError
from dalenius.mechanisms import MECHANISMS
from dalenius.mechanisms.noise import _exact
from dalenius.mechanisms.noise.many_choices import exponential_choices, permute_and_flips

pytestmark = pytest.mark.statistical

CONFIDENCE = 1 - 1e-6
SAMPLES, ENOUGH = (1_000_000, 1_000_000) if LONG else (5_000, 20_000)
CAUGHT = {"sparse-vector-roth-2011": max(ENOUGH, 60_000)}  # at so many samples
SLIGHT = {"sparse-vector-redrawn", "gaussian-10-percent", "laplace-5-percent"}  # these take a million, and seconds


def test_every_mechanism_of_ours_has_an_audit():
    assert set(MECHANISMS) <= set(OURS)
    with pytest.raises(InputError):
        subject("nothing of that name")
    with pytest.raises(InputError):
        subject("laplace", 1e-9)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0] if LONG else [1.0])
def test_ours_stay_within_their_claims(name, epsilon):
    found = subject(name, epsilon)
    began = time.monotonic()
    result = lower_bound(found.draw, found.claim, samples=SAMPLES, confidence=CONFIDENCE)
    assert not result.broken, result
    if LONG:
        assert time.monotonic() - began < 60


@pytest.mark.parametrize("name", [name for name in BROKEN if LONG or name not in SLIGHT])
def test_what_is_broken_is_caught(name):
    found = subject(name)
    result = lower_bound(found.draw, found.claim, samples=CAUGHT.get(name, ENOUGH), confidence=0.999)
    assert result.broken, result


def test_laplace_at_105_percent_is_caught_at_its_own_delta():
    """SPEC: real ε 1.05, claimed 1, 10⁶ samples, 99.9%; the bound itself lies between the two."""
    found = subject("laplace-5-percent")
    result = lower_bound(found.draw, found.claim, samples=1_000_000, confidence=0.999, delta=0.0)
    assert 1.0 < result.main.epsilon <= 1.05


@pytest.mark.parametrize("name", [name for name in OURS if subject(name).single is not None])
def test_runs_at_once_have_the_law_of_release(name):
    """False-alarm rate: 1e-7 for each."""
    found, n = subject(name), 40_000 if LONG else 100
    assert found.single is not None
    for side in (0, 1):
        one = np.array([found.single(side) for _ in range(n)], dtype=np.float64)
        many = np.asarray(found.draw(side, 4 * n), dtype=np.float64)
        first, second = (np.nan_to_num(each.reshape(len(each), -1), nan=-9e9) @ _weights(one) for each in (one, many))
        assert stats.ks_2samp(first, second, method="asymp").pvalue >= 1e-7  # ties make it milder


def _weights(one):
    width = one.reshape(len(one), -1).shape[1]
    return 10.0 ** np.arange(width)[::-1]


@pytest.mark.parametrize("forced", [False, True], ids=["as it runs", "every coin settled exactly"])
def test_many_choices_follow_the_exact_law(forced):
    scores, n = [3, 0, 2, 2, -40], 2_000 if forced else 40_000
    weights = np.exp(0.5 * (np.array(scores) - 3.0))
    flipped = np.zeros(5)
    for order in np.random.default_rng(5).permuted(np.tile(np.arange(5), (20_000, 1)), axis=1):
        left = 1.0
        for at in order:
            flipped[at] += left * weights[at]
            left *= 1 - weights[at]
    for draw, expected in ((exponential_choices, weights), (permute_and_flips, flipped)):
        if forced:
            with _exact._always():
                drawn = draw(scores, 0.5, n)
        else:
            drawn = draw(scores, 0.5, n)
        counts = np.bincount(drawn, minlength=5)
        assert counts[4] <= 2
        chances = expected[:4] / expected[:4].sum()
        assert stats.chisquare(counts[:4], chances * counts[:4].sum()).pvalue >= 1e-7
