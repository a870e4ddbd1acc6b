"""Collusion: two analysts, each within their own allotment, put their answers together.

A budget for each analyst alone bounds nothing: people with two accounts, or two people who talk, learn twice as much.
The total must be bounded.
"""

from __future__ import annotations

from dataclasses import replace

from dalenius.audit.attacks.attack import Attack, Finding, Lab
from dalenius.audit.targets.questions import Question, Secret, these
from dalenius.audit.targets.target import TargetRefusal


def run(lab: Lab) -> Finding:
    """Each spends all that they may."""
    both, ended = (lab.target, lab.target.other()), ""
    answered: list[int] = []
    for target in both:
        count = 0
        for _ in range(lab.rounds):
            some = these(lab.chance.random(lab.scene.size) < 0.5)  # no question twice: stored answers are free
            try:
                target.ask(Question((some, Secret())))
            except TargetRefusal as refusal:
                ended = refusal.reason
                break
            count += 1
            lab.progress((sum(answered) + count) / (2 * lab.rounds))
        answered.append(count)
    broke = answered[1] > max(1, answered[0] // 2)
    learned = f"The first analyst got {answered[0]} answers out of the budget, the second {answered[1]} more."
    found = lab.found(ATTACK.name, broke=broke, learned=learned, ended=ended, first=answered[0], second=answered[1])
    return replace(found, asked=sum(each.asked for each in both), price=sum(each.price or 0.0 for each in both))


ATTACK = Attack(
    "collusion",
    "Two analysts spend their budgets on one victim.",
    "Only a total for all analysts together bounds what leaves.",
    ("noisy", "dalenius"),
    run,
    price=0.1,
)
