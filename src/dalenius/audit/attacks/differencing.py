"""Differencing: all people, and all but one. The difference is that one's secret.

Both questions are about almost everybody, so a rule against questions about few people lets them pass. Fresh noise
only makes it a matter of patience; noise that sticks to the question ends it, and so does a budget.
"""

from __future__ import annotations

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Finding, Lab
from dalenius.audit.attacks.single_out import Pair, by_pairs, told
from dalenius.audit.targets.questions import People, Question, Secret
from dalenius.audit.targets.scene import VICTIM

_PAIR: Pair = (Question((Secret(),)), Question((People((VICTIM,), named=False), Secret())))


def run(lab: Lab) -> Finding:
    """Asks the two questions until it is certain."""
    return told(lab, ATTACK.name, by_pairs(lab, lambda _: _PAIR))


ATTACK = Attack(
    "differencing",
    "Counts everybody with the secret, then everybody but the victim.",
    "A rule about the size of a group protects nobody.",
    EVERYTHING,
    run,
)
