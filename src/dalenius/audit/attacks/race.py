"""Race: many questions at the same moment, when there is budget for one.

An account that is looked at, worked with and then written lets all of them pass that looked before the first has
written. A ledger that charges in one step lets one pass. An answer that was paid for earlier is shown again for
nothing, and is no race won: so each question is about people drawn for the occasion.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from dalenius.audit.attacks.attack import Attack, Finding, Lab
from dalenius.audit.targets.questions import Question, Secret, these
from dalenius.audit.targets.target import TargetRefusal

AT_ONCE = 8
AMONG = 200  # people


def run(lab: Lab) -> Finding:
    """Asks different questions at once; each costs nine tenths of what there is."""
    barrier, coins = Barrier(AT_ONCE), np.random.default_rng()  # not the seeded ones: those may have asked before

    def ask(some: np.ndarray) -> bool:
        question = Question((these(some), Secret()))
        barrier.wait(timeout=60)
        try:
            lab.target.ask(question)
        except TargetRefusal:
            return False
        return True

    drawn = coins.random((AT_ONCE, min(AMONG, lab.scene.size))) < 0.5
    with ThreadPoolExecutor(AT_ONCE) as pool:
        passed = sum(pool.map(ask, drawn))
    lab.progress(1.0)
    learned = f"{passed} of {AT_ONCE} questions at once were answered, with budget for one."
    return lab.found(ATTACK.name, broke=passed > 1, learned=learned, answered=passed)


ATTACK = Attack(
    "race",
    f"Asks {AT_ONCE} questions at once where one may be asked.",
    "A budget that is checked first and charged later is no budget.",
    ("noisy", "dalenius"),
    run,
    price=0.9,
)
