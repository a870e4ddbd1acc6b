"""Intersection: two conditions that many people meet, and only the victim both (Denning's individual tracker).

With A and B such conditions, those who meet A, less those who meet A and not B, are the victim alone. Each round draws
another A and B. That defeats noise seeded by the question: the layer of A is in both answers and falls out of the
difference, and what is left is fresh in each round, because the words are others.
"""

from __future__ import annotations

import numpy as np

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Finding, Lab
from dalenius.audit.attacks.single_out import Pair, by_pairs, told
from dalenius.audit.targets.questions import Question, Secret, all_but, these
from dalenius.audit.targets.scene import VICTIM


def run(lab: Lab) -> Finding:
    """Asks about other sets in each round."""
    return told(lab, ATTACK.name, by_pairs(lab, lambda _: _pair(lab)))


def _pair(lab: Lab) -> Pair:
    coins = lab.chance.random(lab.scene.size)
    inside = coins < 0.6
    beside = (coins >= 0.6) & (coins < 0.7)  # the others who meet B
    inside[VICTIM], beside[VICTIM] = True, True
    return Question((these(inside), Secret())), Question((these(inside), all_but(np.asarray(beside)), Secret()))


ATTACK = Attack(
    "intersection",
    "Takes two groups that have only the victim in common, and other ones in each round.",
    "Noise that depends on the words of a question is averaged away by other words.",
    EVERYTHING,
    run,
)
