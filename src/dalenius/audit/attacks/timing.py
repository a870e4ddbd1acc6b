"""Timing: an expression that is slow on the victim's row alone, if the secret is so. The clock is the answer.

Both ways round are asked in turn, and their times compared by ranks (Mann and Whitney). If chance alone would order
them so less than once in ten thousand times, the attacker bets.
"""

from __future__ import annotations

from time import perf_counter

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Drawing, Finding, Lab, line
from dalenius.audit.targets.questions import Aimed, People, Question, Secret, Trap, half
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import TargetRefusal

ROUNDS = 20
CHANCE = 1e-4
# A pattern with many ways to fit, on what every table here has: a server may have no words.
SLOW = "CASE WHEN CAST(person AS VARCHAR) LIKE '%1%0%1%0%!%' THEN 2 ELSE 1 END"


def run(lab: Lab) -> Finding:
    """Times both ways round, in turn."""
    from scipy import stats

    times: dict[bool, list[float]] = {True: [], False: []}
    ended = ""
    for number in range(ROUNDS):
        try:
            for value in (True, False):
                # Other words each time: an answer that is kept comes at once.
                aimed = Aimed((People((VICTIM,)), Secret(value)), Trap.DAWDLE, SLOW)
                question = Question((half(lab.scene),), aimed=aimed).reworded(1 + number)
                start = perf_counter()
                lab.target.ask(question)
                times[value].append(perf_counter() - start)
        except TargetRefusal as refusal:
            ended = refusal.reason
            break
        lab.progress((number + 1) / ROUNDS)
    if min(map(len, times.values())) < 5:
        return lab.found(ATTACK.name, broke=False, learned="It has too few answers.", ended=ended)
    found = stats.mannwhitneyu(times[True], times[False])
    chance = float(found.pvalue)
    said = sum(times[True]) / len(times[True]) > sum(times[False]) / len(times[False])
    broke = chance < CHANCE and said == bool(lab.scene.secret[VICTIM])
    learned = (
        f"The victim's secret is {'yes' if said else 'no'}, by the clock."
        if broke
        else f"The times of both ways round are alike (p = {chance:.2g})."
    )
    curves = tuple(
        line(f"slow if {'yes' if value else 'no'}", [1000 * each for each in sorted(times[value])]) for value in times
    )
    drawing = Drawing("Times, sorted", "answers", "milliseconds", curves)
    return lab.found(ATTACK.name, broke=broke, learned=learned, ended=ended, drawing=drawing, p=chance)


ATTACK = Attack(
    "timing",
    "Aims slow work at the victim, and looks at the clock.",
    "How long an answer takes is part of the answer.",
    EVERYTHING,
    run,
)
