"""Membership from means (Homer et al. 2008; Dwork, Smith, Steinke, Ullman and Vadhan 2015).

n people are in the data and have k attributes, each a coin of a known probability; all k means are released. Whoever
has somebody's attributes x, and knows the probabilities p, takes the product of x − p with the means − p: for a person
who is in the data its mean is Σp(1 − p)/n, which is k/4n for fair coins (k/n if they are written as ±1), and for a
stranger 0; its standard deviation is about √(k/n)/4 for either. So it tells the two apart when k is well above n, with
half of what is expected of a member as threshold. Noise of standard deviation σ on each mean adds σ√k/2 to that of the
product, which is small beside k/4n as long as σ = o(√k/n): that is the noise that the attack survives.

Here the people with the secret are the data, and all others are strangers. An attribute is a coin that the attacker
throws for everybody, and its mean is one count: of those with the secret whose coin says yes. Their number n is known,
as it mostly is. In a curator k answers cost what k answers cost.
"""

from __future__ import annotations

import numpy as np

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Curve, Drawing, Finding, Lab, Measured, counted
from dalenius.audit.targets.questions import Question, Secret, these
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import TargetRefusal

PEOPLE = 100
ATTRIBUTES = 4  # for each person
LUCK = 1e-4  # that strangers alone would be ordered so


def run(lab: Lab) -> Finding:
    """Asks the counts, and bets on each person: the secret says who is in the data."""
    from scipy import stats

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
    if members.all() or not members.any():
        return lab.found(ATTACK.name, broke=False, learned="All are members, or none: there is nobody to tell apart.")
    count = float(members.sum())
    scores = scored(np.array(rows, dtype=float), np.array(answers), count)
    victim = bool(scores[VICTIM] > len(answers) / (8 * count))  # half of what is expected of a member
    false, true = roc(scores, members)
    ranked = stats.mannwhitneyu(scores[members], scores[~members], alternative="greater")
    area = float(ranked.statistic) / (count * (size - count))  # which is that under the curve
    advantage = float(np.max(true - false))
    learned = (
        f"AUC {area:.2f} over {size} people (0.5 is guessing), advantage {advantage:.2f} at the best threshold, "
        f"from {counted(len(answers), 'count')}."
    )
    curves = (Curve(lab.target.name, tuple(false), tuple(true)), Curve("guessing", (0.0, 1.0), (0.0, 1.0)))
    drawing = Drawing("Members against strangers", "strangers taken for members", "members found", curves)
    return lab.found(
        ATTACK.name,
        broke=area >= 0.9 and float(ranked.pvalue) < LUCK,
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
    """Shares of strangers and of members whose score is at least t, for all t from high to low.

    People of one score are one step: few answers leave many alike.
    """
    steps = np.unique(scores)[::-1]
    hits = [(scores[members] >= step).mean() for step in steps]
    slips = [(scores[~members] >= step).mean() for step in steps]
    return np.array([0.0, *slips]), np.array([0.0, *hits])


ATTACK = Attack(
    "membership",
    f"Tells {PEOPLE} people who are in the data from those who are not, by many counts about them.",
    "Averages over many attributes show who is in the data.",
    EVERYTHING,
    run,
    by_noise=Measured("auc", "area under the ROC curve", 0.5, PEOPLE),
)
