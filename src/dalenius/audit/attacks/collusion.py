"""Collusion: two analysts, each within their own allotment, put their answers together.

A budget for each analyst alone bounds nothing: people with two accounts, or two people who talk, learn twice as much.
The total must be bounded.
"""

from __future__ import annotations

from dalenius.audit.attacks.attack import Attack, Finding, Lab
from dalenius.audit.targets.questions import Question, Secret
from dalenius.audit.targets.target import TargetRefusal


def run(lab: Lab) -> Finding:
    """Each spends all that they may."""
    spent, ended = 0, ""
    answered = []
    for target in (lab.target, lab.target.other()):
        count = 0
        for number in range(lab.rounds):
            try:
                target.ask(Question((Secret(),)).reworded(lab.scene.size - 1 - spent - number))
            except TargetRefusal as refusal:
                ended = refusal.reason
                break
            count += 1
            lab.progress((spent + count) / (2 * lab.rounds))
        spent += count
        answered.append(count)
    broke = answered[1] > max(1, answered[0] // 2)
    learned = f"The first analyst got {answered[0]} answers out of the budget, the second {answered[1]} more."
    return lab.found(ATTACK.name, broke=broke, learned=learned, ended=ended, first=answered[0], second=answered[1])


ATTACK = Attack(
    "collusion",
    "Two analysts spend their budgets on one victim.",
    "Only a total for all analysts together bounds what leaves.",
    ("noisy", "dalenius"),
    run,
    price=0.1,
)
