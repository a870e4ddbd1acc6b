"""Error oracle: a question that fails if the victim's secret is so, and works if not. No noise hides a failure.

It is asked twice, aimed at "yes" and at "no". If exactly one of the two fails, the secret is known; and in a system
that gives the price of a failed question back, for nothing.
"""

from __future__ import annotations

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Finding, Lab
from dalenius.audit.targets.questions import Aimed, People, Question, Secret, Trap, half
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import TargetRefusal

# What fails in one database or another: numbers that do not exist, casts that do not fit, overflow.
FAULTS = (
    "1 / (person - person)",
    "1 // (person - person)",
    "amount % (person - person)",
    "SQRT(-1 - person)",
    "LN(person - person)",
    "CAST('x' AS INTEGER)",
    "CAST(word AS INTEGER)",
    "CAST(amount + 300 AS TINYINT)",
    "EXP(1000 + amount)",
    "POWER(10, 400 + person)",
    "amount * 9223372036854775807",
)


def run(lab: Lab) -> Finding:
    """Tries every way to fail."""
    truth = bool(lab.scene.secret[VICTIM])
    for number, fault in enumerate(FAULTS):
        outcomes = []
        for value in (True, False):
            aimed = Aimed((People((VICTIM,)), Secret(value)), Trap.FAIL, fault)
            try:
                lab.target.ask(Question((half(lab.scene),), aimed=aimed))
                outcomes.append("")
            except TargetRefusal as refusal:
                if refusal.final:
                    return lab.found(ATTACK.name, broke=False, learned=_NOTHING, ended=refusal.reason)
                outcomes.append(refusal.reason)
        lab.progress((number + 1) / len(FAULTS))
        if bool(outcomes[0]) != bool(outcomes[1]):
            said = bool(outcomes[0])
            learned = f"The victim's secret is {'yes' if said else 'no'}: {fault} fails for one of the two only."
            return lab.found(ATTACK.name, broke=said == truth, learned=learned, tried=number + 1)
    return lab.found(ATTACK.name, broke=False, learned=_NOTHING, tried=len(FAULTS))


_NOTHING = "No expression fails for one of the two only."
ATTACK = Attack(
    "error-oracle",
    "Aims an expression that fails at the victim, and looks whether the question fails.",
    "An error is an answer without noise.",
    EVERYTHING,
    run,
)
