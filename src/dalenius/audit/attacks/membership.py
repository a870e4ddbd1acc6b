"""Membership from means (Homer et al. 2008; Dwork, Smith, Steinke, Ullman and Vadhan 2015).

n people have k attributes, each a coin of a known probability; all k means are released. Whoever has somebody's
attributes x, and knows the probabilities p, takes the product of x − p with the means − p: for a person who is in the
data its mean is Σp(1 − p)/n, about k/4n for fair coins, and for a stranger 0; its standard deviation is about √(k/n)/4
for either. So it tells the two apart when k is well above n, with threshold half of what is expected inside; noise of
standard deviation σ on each mean adds σ√k/2, and the attack holds as long as σ = o(√k/n).

Each attribute is a question of its own here: a count of those in a random half of the people, which makes half of them
members and half strangers. In a curator k answers cost what k answers cost.
"""

from __future__ import annotations

import numpy as np

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Curve, Drawing, Finding, Lab
from dalenius.audit.targets.questions import Question, Secret, these
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import TargetRefusal

PEOPLE = 100
ATTRIBUTES = 4  # for each person


def run(lab: Lab) -> Finding:
    """Asks the counts, and bets on each person: the secret says who is in the data that is summed up."""
    size = min(PEOPLE, lab.scene.size)
    wanted = ATTRIBUTES * size
    rows, answers, ended = [], [], ""
    for number in range(wanted):
        has = np.zeros(lab.scene.size, dtype=bool)
        has[:size] = lab.chance.random(size) < 0.5
        try:
            answers.append(lab.target.ask(Question((these(has), Secret()))).value)
        except TargetRefusal as refusal:
            ended = refusal.reason
            if refusal.final:
                break
            continue
        rows.append(has[:size])
        lab.progress((number + 1) / wanted)
    if not answers:
        return lab.found(ATTACK.name, broke=False, learned="It has no answer.", ended=ended)
    members = lab.scene.secret[:size]
    scores = scored(np.array(rows, dtype=float), np.array(answers), float(members.sum()))
    victim = bool(scores[VICTIM] > np.median(scores))
    false, true = roc(scores, members)
    area = float(np.trapezoid(true, false))
    advantage = float(np.max(true - false))
    learned = (
        f"AUC {area:.2f} over {size} people (0.5 is guessing), advantage {advantage:.2f}, from {len(answers):,} counts."
    )
    curves = (Curve(lab.target.name, tuple(false), tuple(true)), Curve("guessing", (0.0, 1.0), (0.0, 1.0)))
    drawing = Drawing("Members against strangers", "strangers taken for members", "members found", curves)
    return lab.found(
        ATTACK.name,
        broke=area >= 0.9,
        learned=learned,
        ended=ended,
        drawing=drawing,
        auc=area,
        advantage=advantage,
        victim=victim,
    )


def scored(attributes: np.ndarray, answers: np.ndarray, count: float) -> np.ndarray:
    """The product of everybody's attributes with the means, less what is expected of a stranger."""
    return np.asarray((attributes - 0.5).T @ (answers / max(count, 1) - 0.5))


def roc(scores: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of strangers and of members whose score is at least t, for all t from high to low."""
    order = np.argsort(-scores)
    hits = np.concatenate([[0], np.cumsum(members[order])]) / max(1, members.sum())
    slips = np.concatenate([[0], np.cumsum(~members[order])]) / max(1, (~members).sum())
    return slips, hits


ATTACK = Attack(
    "membership",
    f"Tells {PEOPLE} people who are in the data from those who are not, by many counts about them.",
    "Averages over many attributes show who is in the data.",
    EVERYTHING,
    run,
)
