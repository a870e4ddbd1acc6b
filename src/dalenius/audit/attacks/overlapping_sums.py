"""Overlapping sums: two totals that have all people but one in common give that one's salary away."""

from __future__ import annotations

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Finding, Lab
from dalenius.audit.attacks.single_number import Repeated
from dalenius.audit.targets.questions import SUM, People, Question
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import Noise

NEAR = 0.1  # of the largest amount: near enough to be a loss for the victim

ROUNDS = 2000


def run(lab: Lab) -> Finding:
    """Asks the two totals until the budget ends, and averages their differences."""
    half = tuple(range(VICTIM, lab.scene.size // 2))
    with_, without = (Repeated(lab, Question((People(places),), SUM)) for places in (half, half[1:]))
    found = []
    for one, two in zip(with_.answers(ROUNDS), without.answers(ROUNDS), strict=False):
        found.append(one.value - two.value)
        if one.noise is Noise.NONE:
            break
    ended = with_.ended or without.ended
    truth = float(lab.scene.amount[VICTIM])
    if not found:
        return lab.found(ATTACK.name, broke=False, learned="It has no answer.", ended=ended)
    guess = sum(found) / len(found)
    off = abs(guess - truth)
    broke = off <= NEAR * lab.scene.most
    learned = f"The victim's amount is about {guess:,.0f}; the truth is {truth:,.0f}."
    return lab.found(ATTACK.name, broke=broke, learned=learned, ended=ended, error=off, guess=guess)


ATTACK = Attack(
    "overlapping-sums",
    "Takes two totals that have all people but one in common.",
    "Two harmless totals can hold one salary.",
    EVERYTHING,
    run,
)
