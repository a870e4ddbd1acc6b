"""The sparse vector as it runs has the law that the audit in tests/unit sums up: chi-square over all answers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms import SparseVector

pytestmark = pytest.mark.statistical

ALARM = 1e-7  # the false-alarm rate of each test
VALUES = [-2, 1, 0, 3]


def law(threshold_scale: float, value_scale: float, hits: int) -> dict[tuple[bool, ...], float]:
    z = np.arange(-2000, 2001)
    at_threshold = math.tanh(0.5 / threshold_scale) * np.exp(-np.abs(z) / threshold_scale)
    noise = math.tanh(0.5 / value_scale) * np.exp(-np.abs(np.arange(-4000, 4001)) / value_scale)
    tail = np.cumsum(noise[::-1])[::-1]  # P(X ≥ k) at k + 4000
    found = {}
    for answers in itertools.product([False, True], repeat=len(VALUES)):
        last = next((i for i in range(len(answers)) if sum(answers[: i + 1]) == hits), len(answers) - 1)
        chance = at_threshold.copy()
        for value, answer in zip(VALUES[: last + 1], answers, strict=False):
            hit = tail[z - value + 4000]
            chance = chance * (hit if answer else 1 - hit)
        found[answers[: last + 1]] = float(chance.sum())
    return found


def p_value(mechanism: SparseVector, expected: dict[tuple[bool, ...], float], n: int) -> float:
    counts = Counter(mechanism.release(VALUES, threshold=0).value for _ in range(n))
    assert counts.keys() <= expected.keys()
    return float(
        stats.chisquare(
            [counts[k] for k in expected], [n * p / sum(expected.values()) for p in expected.values()]
        ).pvalue
    )


@pytest.mark.parametrize("hits", [1, 2])
@pytest.mark.parametrize("monotonic", [False, True])
def test_answers_have_the_law_of_the_theorem(hits, monotonic, rounds):
    expected = law(2, (2 if monotonic else 4) * hits, hits)
    assert sum(expected.values()) == pytest.approx(1)
    assert p_value(SparseVector(1, hits=hits, monotonic=monotonic), expected, rounds(400_000)) >= ALARM


def test_a_threshold_redrawn_for_each_value_would_be_seen(rounds):
    """The answers of one stream depend on each other through the one threshold: independent ones are rejected."""
    mechanism, n = SparseVector(1, hits=2), rounds(400_000)
    expected = law(2, 8, 2)
    counts: Counter[tuple[bool, ...]] = Counter()
    for _ in range(n):
        answers: tuple[bool, ...] = ()
        for value in VALUES:
            answers = (*answers, mechanism.release([value], threshold=0).value[0])
            if sum(answers) == 2:
                break
        counts[answers] += 1
    found = stats.chisquare([counts[k] for k in expected], [n * p / sum(expected.values()) for p in expected.values()])
    assert found.pvalue < ALARM
