"""Counterexamples: four mechanisms that look private, and are not (SPEC Q13). They need no target.

one row         publishes one row of n, drawn by chance: (0, 1/n)-DP by the letter, and somebody's row is out every time
random half     the mean of a random half of the rows: who is left out is chance, but a lone large value shows
                whenever it is in: no ε at all, unless δ is ½ or more
one-sided       says "yes" if the secret is no, and what a coin says if it is yes: a "no" proves that it is yes
two sums        two totals, each over many people, that differ by one: their difference is a salary
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One of them.

    Attributes:
        name: What it is called.
        looks: Why it looks private.
        fails: What it gives away.
        epsilon: The least ε that holds at ``delta``; infinite where none does.
        delta: At which.
        seen: How often a victim was exposed in the trials.
        expected: How often that should be.
        trials: How many there were.
        counted: What was counted, in words.
    """

    name: str
    looks: str
    fails: str
    epsilon: float
    delta: float
    seen: float
    expected: float
    trials: int
    counted: str


def counterexamples(
    chance: np.random.Generator, *, people: int = 100, trials: int = 10_000
) -> tuple[Counterexample, ...]:
    """All of them, each tried out."""
    return (
        _one_row(chance, people, trials),
        _random_half(chance, people, trials),
        _one_sided(chance, trials),
        _two_sums(chance, people, trials),
    )


def _one_row(chance: np.random.Generator, people: int, trials: int) -> Counterexample:
    published = chance.integers(0, people, trials)
    victims = len(np.unique(published)) / people
    return Counterexample(
        "one row",
        f"(0, 1/{people})-DP by the letter: δ is the chance that a given person's row is the one.",
        "Somebody's whole row leaves every time; after some releases almost everybody's has.",
        0.0,
        1 / people,
        victims,
        1 - (1 - 1 / people) ** trials,
        trials,
        "of people had their row published",
    )


def _random_half(chance: np.random.Generator, people: int, trials: int) -> Counterexample:
    # One value of 1,000 among zeros: the mean is above 0 exactly if its owner was drawn.
    values = np.zeros(people)
    values[0] = 1000
    shown = 0
    for _ in range(trials):
        shown += bool(values[chance.permutation(people)[: people // 2]].mean() > 0)
    return Counterexample(
        "random half",
        "Nobody knows who was drawn, and the mean is over many people.",
        "One value that is larger than all others shows whenever its owner is drawn.",
        math.inf,
        0.0,
        shown / trials,
        (people // 2) / people,
        trials,
        "of releases show the one large value",
    )


def _one_sided(chance: np.random.Generator, trials: int) -> Counterexample:
    secret = chance.random(trials) < 0.5
    said_yes = np.where(secret, chance.random(trials) < 0.5, True)
    exposed = ~said_yes & secret
    return Counterexample(
        "one-sided",
        "A coin decides what is said, so that one can deny.",
        'Only one of the two answers can be denied: a "no" is only ever said by people with the secret.',
        math.inf,
        0.0,
        float(exposed.sum() / max(1, secret.sum())),
        0.5,
        trials,
        "of people with the secret are proved to have it by their answer",
    )


def _two_sums(chance: np.random.Generator, people: int, trials: int) -> Counterexample:
    found = 0
    for _ in range(min(trials, 1000)):
        salaries = chance.integers(20_000, 200_000, people)
        found += int(salaries.sum() - salaries[1:].sum() == salaries[0])
    tried = min(trials, 1000)
    return Counterexample(
        "two sums",
        "Each total is over many people.",
        "The totals have all people but one in common.",
        math.inf,
        0.0,
        found / tried,
        1.0,
        tried,
        "of pairs of totals hold one person's exact salary",
    )
