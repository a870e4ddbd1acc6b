"""Rare key: groups are counted by a word, and one word is the victim's alone. That it is listed gives the victim away.

Noise on the counts does not help: the list of keys itself comes from the rows. A curator shows a key only if so many
people have it that one more or less changes the chance of its being shown by no more than ε and δ allow.
"""

from __future__ import annotations

from dalenius.audit.attacks.attack import Attack, Finding, Lab
from dalenius.audit.targets.scene import RARE, VICTIM
from dalenius.audit.targets.target import TargetRefusal


def run(lab: Lab) -> Finding:
    """Looks for the word among the keys."""
    try:
        shown = lab.target.count_words()
    except TargetRefusal as refusal:
        return lab.found(ATTACK.name, broke=False, learned="It sees no keys.", ended=refusal.reason)
    lab.progress(1.0)
    listed = RARE in shown
    # Only a listed word tells something for sure; that one is missing may have many reasons.
    broke = listed and bool(lab.scene.secret[VICTIM])
    learned = f"{len(shown)} words are listed, and the victim's own is {'' if listed else 'not '}among them."
    return lab.found(ATTACK.name, broke=broke, learned=learned, keys=len(shown))


ATTACK = Attack(
    "rare-key",
    "Groups by a word that only the victim may have.",
    "A list of keys is a release too.",
    ("plain", "noisy", "sticky", "dalenius"),
    run,
    price=0.9,
)
