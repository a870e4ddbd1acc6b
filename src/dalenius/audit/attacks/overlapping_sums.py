"""Overlapping sums: two totals that have all people but one in common give that one's salary away.

With noise, the difference is asked for again and again: the mean of m differences has a standard error of the noise's
standard deviation times √(2/m). The attack counts only if the attacker can know that it is near: a guess that is off by
less than a tenth of the largest amount by luck, within an error many times as large, tells nobody anything.
"""

from __future__ import annotations

import math

import numpy as np

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Drawing, Finding, Lab, sparse
from dalenius.audit.attacks.single_number import Repeated
from dalenius.audit.targets.questions import SUM, People, Question
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import Noise, deviation

NEAR = 0.1  # of the largest amount: near enough to be a loss for the victim

ROUNDS = 2000


def run(lab: Lab) -> Finding:
    """Asks the two totals until the budget ends, and averages their differences."""
    half = tuple(range(VICTIM, lab.scene.size // 2))
    with_, without = (Repeated(lab, Question((People(places),), SUM)) for places in (half, half[1:]))
    found: list[float] = []
    variance = 0.0
    for one, two in zip(with_.answers(ROUNDS), without.answers(ROUNDS), strict=False):
        found.append(one.value - two.value)
        variance += deviation(one) ** 2 + deviation(two) ** 2
        if one.noise is Noise.NONE:
            break
    ended = with_.ended or without.ended
    truth = float(lab.scene.amount[VICTIM])
    if not found:
        return lab.found(ATTACK.name, broke=False, learned="It has no answer.", ended=ended)
    guess = sum(found) / len(found)
    off = abs(guess - truth)
    margin = 1.96 * math.sqrt(variance) / len(found)
    broke = off <= NEAR * lab.scene.most and margin <= NEAR * lab.scene.most
    about = f"{guess:,.0f}" if margin == 0 else f"{guess:,.0f} ± {margin:,.0f}"
    learned = f"The victim's amount is {about}; the truth is {truth:,.0f}."
    errors = np.abs(np.cumsum(found) / np.arange(1, len(found) + 1) - truth)
    curves = (
        sparse(lab.target.name, [max(1.0, float(each)) for each in errors]),
        sparse("near enough", [NEAR * lab.scene.most] * len(found)),
    )
    drawing = Drawing("Error of the victim's amount", "pairs of totals", "off by", curves, log_x=True, log_y=True)
    return lab.found(
        ATTACK.name, broke=broke, learned=learned, ended=ended, drawing=drawing, error=off, guess=guess, margin=margin
    )


ATTACK = Attack(
    "overlapping-sums",
    "Takes two totals that have all people but one in common.",
    "Two harmless totals can hold one salary.",
    EVERYTHING,
    run,
)
