"""Pool inference: which kind of values somebody uses, from reports on many days (Gadotti et al. 2022).

A keyboard reports an emoji a day with ε = 1. Each person uses those of one skin tone, one of five *pools* of two emoji
each. One report says little about the pool. A hundred fresh ones say it, whatever the ε of each is: their log
likelihoods add up. With a memory each emoji is answered about once, and the reports of a life stay within a lifetime ε:
with a uniform prior over k pools no attacker is right with more than e^ε/(e^ε + k − 1).

The attacker here is the best there is (Bayes, with the law of the reports and of the memory), so what it does not learn
cannot be learned from these reports.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import Curve, Drawing, Finding, Rate, line
from dalenius.audit.attacks.published.attack import TableAttack, TableLab

if TYPE_CHECKING:
    from dalenius.local.randomisers.k_ary import KAry

POOLS, EACH = 5, 2
EPSILON = 1.0  # of a single report
DAYS = 180
CONTENT = 0.8  # of the people, from which the attacker is content

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def bound(epsilon: float, pools: int = POOLS) -> float:
    """The largest share that any attacker can guess rightly, if all reports together are ε-private.

    >>> round(bound(1.0), 3), bound(0.0)
    (0.405, 0.2)
    """
    return 1 / (1 + (pools - 1) * math.exp(-epsilon))


def run(lab: TableLab) -> Finding:
    """Watches everybody's reports for half a year, and guesses each one's pool after every day."""
    from dalenius.local.memory import Memory
    from dalenius.local.randomisers.k_ary import KAry

    oracle = KAry(EPSILON, POOLS * EACH)
    kept = {"fresh": EACH, "kept": EACH, "kept-one": 1}[lab.target]
    pools = lab.chance.integers(0, POOLS, lab.people)
    memory = Memory(oracle, lab.people, kept)
    reports = np.empty((lab.people, DAYS), np.int64)
    for day in range(DAYS):
        values = pools * EACH + lab.chance.integers(0, EACH, lab.people)
        today = oracle.encode(values) if lab.target == "fresh" else memory.report(values)
        reports[:, day] = today[:, 0]
        lab.progress((day + 1) / DAYS)
    laws = _laws(oracle)
    watched = from_fresh(laws, reports) if lab.target == "fresh" else from_kept(laws, reports, kept)
    rights = (watched.argmax(axis=2) == pools[:, None]).mean(axis=0)
    rate = Rate(round(float(rights[-1]) * lab.people), lab.people)
    lifetime = DAYS * oracle.actual_epsilon if lab.target == "fresh" else memory.lifetime
    most = bound(lifetime)
    learned = (
        f"The skin tone of {rate}, from {DAYS} daily reports with ε = {EPSILON:g} each; guessing is right for "
        f"{1 / POOLS:.0%}. All reports of a person together have ε = {lifetime:.3g}, "
        + ("which bounds nothing." if most > 0.99 else f"with which no attack is right for more than {most:.0%}.")
    )
    told = {"days": float(DAYS), "daily": oracle.actual_epsilon, "lifetime": lifetime, "bound": most}
    drawing = _drawn(lab.target, rights, most)
    return lab.found(ATTACK.name, rate, broke=rate.share >= CONTENT, learned=learned, drawing=drawing, **told)


def _laws(oracle: KAry) -> Numbers:
    """P(report | value), by pool, value in it, and report."""
    law = [[float(each) for each in oracle.law(value).values()] for value in range(oracle.size)]
    return np.array(law).reshape(POOLS, EACH, oracle.size)


def from_fresh(laws: Numbers, reports: Places) -> Numbers:
    """Log likelihood of each pool after each day: every day's report is drawn from the mixture over its emoji."""
    mixture = np.log(laws.mean(axis=1))
    return np.cumsum(np.moveaxis(mixture[:, reports], 0, -1), axis=1)


def from_kept(laws: Numbers, reports: Places, kept: int) -> Numbers:
    """The same where answers are kept; the attacker knows that they are, and nothing is counted twice.

    With one answer kept, the first report is all there is. With two, let a and b be the reports that are seen. If they
    differ, each day tells which of the two emoji was used, in one of two ways: the likelihood is in proportion to
    P(a|first)P(b|second) + P(a|second)P(b|first). If all T reports are a, then one emoji was used throughout (chance
    2^(1−T)), or both have the answer a.
    """
    people, days = reports.shape
    first = laws[:, :, reports[:, 0]]  # pool, emoji, person
    if kept == 1:
        return np.repeat(np.log(first.mean(axis=1)).T[:, None], days, axis=1)
    differ = reports != reports[:, :1]
    other = np.where(differ.any(axis=1), reports[np.arange(people), differ.argmax(axis=1)], reports[:, 0])
    second = laws[:, :, other]
    two = first[:, 0] * second[:, 1] + first[:, 1] * second[:, 0]
    alone = 2.0 ** (1 - np.arange(1, days + 1))
    one = alone * first.mean(axis=1)[..., None] + (1 - alone) * (first[:, 0] * first[:, 1])[..., None]
    seen = np.logical_or.accumulate(differ, axis=1)
    return np.moveaxis(np.log(np.where(seen, two[..., None], one)), 0, -1)


def _drawn(target: str, rights: Numbers, most: float) -> Drawing:
    curves = [line(target, [float(each) for each in rights])]
    if target != "fresh":
        curves.append(Curve(f"{target}: bound of its lifetime ε", (1.0, DAYS / 2, float(DAYS)), (most,) * 3))
    return Drawing("Pool inference", "days", "share of people whose skin tone is guessed rightly", tuple(curves))


ATTACK = TableAttack(
    "pool-inference",
    "Guesses from daily reports with a small ε which skin tone of emoji somebody uses.",
    "A daily ε without a lifetime ε is no promise: days add up.",
    {
        "fresh": f"an emoji a day by k-ary randomised response, ε = {EPSILON:g} each, drawn anew every day",
        "kept": f"the same with a memory of both emoji: ε = {EACH * EPSILON:g} in a lifetime",
        "kept-one": f"the same with a memory of one: ε = {EPSILON:g} in a lifetime",
    },
    ("kept", "kept-one"),
    run,
)
