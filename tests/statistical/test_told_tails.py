"""What is told of a limit's losses holds home by home: one that noise makes look harmless makes all its answers wrong.

1,500 people with Pareto(1.2) rows, at most 150 each, 70% of them in a city of their own, counted by norm over six
cities as `protect` does at its usual price, and a limit as it chooses it. Each home has other people and other noise.
A home is *wrong* if fewer than five of its six counts lie in their total intervals. Of 300 homes that were tried 18%
were wrong when only noisy counts of people said how the tail goes on (86% of all counts lay inside), and 6% now (95%).
The bound is what a binomial law of 6% exceeds with chance 1e-6, the rate of false alarms: 40 of 300, where 53 were
wrong before. Short and long form draw the same homes.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from dalenius.measuring.limits.choosing import MEDIAN, choose_limit
from dalenius.measuring.limits.clipping import Spread, loss_of_counts
from dalenius.measuring.limits.histogram import CLASSES, class_top
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

HOMES, CITIES, PEOPLE = 300, 6, 1500
VARIANCE = 750  # of the counts by norm, which `protect` buys with ρ = 0.005 for six quantities
DEVIATION = 5.24  # of a count with a limit of 1 at ε = 1 and δ = 1e-6
WRONG = 0.06  # of the homes, at most
Z = 1.96


def inside(seed: int) -> int:
    """How many counts by city of one home lie in their total intervals."""
    chance = np.random.default_rng(seed)
    rows = np.minimum(1 + chance.pareto(1.2, PEOPLE).astype(int), 150)
    person, home = np.repeat(np.arange(PEOPLE), rows), chance.integers(0, CITIES, PEOPLE)
    city = np.where(chance.random(len(person)) < 0.7, home[person], chance.integers(0, CITIES, len(person)))
    vectors = np.zeros((PEOPLE, CITIES))
    np.add.at(vectors, (person, city), 1)
    squares = (vectors**2).sum(1)
    # √2 is in class 3, as in `histogram.norm_ends`
    classes = np.where(
        squares == 2, 3, np.searchsorted([class_top(at) for at in range(CLASSES)], np.sqrt(squares) - 1e-9)
    )
    noise = chance.normal(0, math.sqrt(VARIANCE), CLASSES).round()
    noisy = [int(each) for each in np.bincount(classes, minlength=CLASSES) + noise]
    law = DiscreteGaussian(Fraction(VARIANCE), dimension=CLASSES)
    limit = choose_limit(noisy, law, lambda each: MEDIAN * DEVIATION * each, CITIES, norms=True).limit
    kept = vectors.T @ np.minimum(1, limit / np.sqrt(squares))
    deviation = DEVIATION * limit
    shown = kept + chance.normal(0, deviation, CITIES)
    spread = Spread(CITIES, True, shown.sum(), rows=True, rounded=False, error=deviation * math.sqrt(CITIES))
    loss = loss_of_counts(noisy, law, limit, spread)
    assert loss is not None
    reach = [loss.reach(each, Z * deviation, each / shown.sum(), 0.95) for each in shown]
    truth = vectors.sum(0)
    return int(((shown - Z * deviation <= truth) & (truth <= shown + np.array(reach))).sum())


def test_few_homes_are_wrong_in_all_their_answers():
    wrong = sum(inside(seed) < CITIES - 1 for seed in range(HOMES))
    assert wrong <= binom.isf(1e-6, HOMES, WRONG), wrong
