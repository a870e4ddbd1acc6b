"""Exhaustive reconstruction (Dinur and Nissim 2003): all subsets are counted, and all tables tried.

Theorem. If every count of a subset is off by at most E·n, any table of bits that agrees with all answers within E·n is
wrong in at most 4En places. (Take the places where it says 1 and the truth 0: both answer that subset within E·n of
one value, so there are at most 2En of them; and as many the other way round.)

There are 2ⁿ subsets and 2ⁿ tables: for n up to 18. A table is dropped at the first answer that it does not agree with;
most go after a few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Drawing, Finding, Lab, sparse
from dalenius.audit.targets.questions import Question, Secret, all_but, these
from dalenius.audit.targets.scene import Bits
from dalenius.audit.targets.target import Answer, Noise, TargetRefusal

PEOPLE, MOST = 12, 18
Answers = NDArray[np.float64]


def run(lab: Lab) -> Finding:
    """Counts the subsets of the first people, and looks for a table that agrees."""
    size = min(PEOPLE, lab.scene.size, MOST)
    subsets = lab.chance.permutation(np.arange(1, 2**size))
    tables = np.arange(2**size)
    residuals = np.zeros(2**size)
    worst, ended = 0.0, ""
    left_after: list[float] = []
    for number, subset in enumerate(subsets):
        chosen = np.zeros(lab.scene.size, dtype=bool)
        chosen[:size] = (subset >> np.arange(size)) & 1
        try:
            answer = _counted(lab, chosen)
        except TargetRefusal as refusal:
            ended = refusal.reason
            if refusal.final:
                break
            continue
        off = _bound(answer.noise, answer.scale, size)
        worst = max(worst, off)
        missed = np.bitwise_count(tables & subset) - answer.value
        residuals[tables] += missed**2
        left = tables[np.abs(missed) <= off]
        tables = left if left.size else tables
        left_after.append(float(tables.size))
        if number % 64 == 0:
            lab.progress(number / len(subsets))
    secret = lab.scene.secret[:size]
    best = tables[np.argmin(residuals[tables])]  # of those that agree, the nearest
    guess = (int(best) >> np.arange(size)) & 1
    wrong = int((guess.astype(bool) != secret).sum())
    right = (size - wrong) / size
    broke = right >= 0.9 and tables.size < 2**size
    learned = (
        f"{size - wrong} of {size} secrets ({right:.0%}); {tables.size:,} of {2**size:,} tables agree with the answers."
    )
    curve = sparse(lab.target.name, left_after)
    drawing = Drawing("Tables that agree with all answers", "counts", "tables", (curve,), log_x=True, log_y=True)
    return lab.found(
        ATTACK.name,
        broke=broke,
        learned=learned,
        ended=ended,
        drawing=drawing if left_after else None,
        wrong=wrong,
        tables=int(tables.size),
        error=worst,
    )


def _counted(lab: Lab, chosen: Bits) -> Answer:
    """A subset's count; where too few people are in it for the target's taste, everybody's less all others'."""
    try:
        return lab.target.ask(Question((these(chosen), Secret())))
    except TargetRefusal as refusal:
        if refusal.final:
            raise
    everybody, others = (
        lab.target.ask(each) for each in (Question((Secret(),)), Question((all_but(chosen), Secret())))
    )
    return Answer(everybody.value - others.value, others.noise, float(np.hypot(everybody.scale, others.scale)))


def _bound(noise: Noise, scale: float, size: int) -> float:
    """What an answer is off by at most: Laplace's passes it once in e³·2ⁿ answers, Gaussian once in a million."""
    if noise is Noise.NONE:
        return 0.0
    return scale * (np.log(2.0**size) + 3 if noise is Noise.LAPLACE else 5)


def consistent_table(answers: Answers, error: float, size: int) -> int | None:
    """The first table that agrees with all answers within ``error``; ``answers`` has one for each subset, by number.

    >>> truth = 0b1011
    >>> consistent_table(np.bitwise_count(np.arange(16) & truth).astype(float), 0.4, 4) == truth
    True
    """
    tables = np.arange(2**size)
    for subset in np.argsort(-np.bitwise_count(tables)):  # large subsets first: they drop the most
        tables = tables[np.abs(np.bitwise_count(tables & subset) - answers[subset]) <= error]
    return int(tables[0]) if tables.size else None


ATTACK = Attack(
    "exhaustive",
    f"Counts every subset of {PEOPLE} people and tries every table.",
    "Answers to everything, each a little off, give everything away.",
    EVERYTHING,
    run,
)
