"""Reconstruction from random subset counts (Dinur and Nissim 2003; Dwork, McSherry and Talwar 2007).

2n counts of random subsets, each with noise well below √n, determine almost all of n secret bits; with noise well
above √n they do not. The bits are found by least squares, which one matrix factorisation solves, or by linear
programming (the least sum of absolute residuals, scipy's HiGHS), and rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Curve, Drawing, Finding, Lab, Measured, counted
from dalenius.audit.attacks.posterior import interval
from dalenius.audit.targets.questions import Question, Secret, these
from dalenius.audit.targets.target import TargetRefusal

PEOPLE = 400
Numbers = NDArray[np.float64]


def run(lab: Lab) -> Finding:
    """Asks 2n random subset counts, or as many as are answered, and solves for the bits."""
    size = min(PEOPLE, lab.scene.size)
    rows: list[Any] = []
    answers: list[float] = []
    ended = ""
    for number in range(2 * size):
        chosen = np.zeros(lab.scene.size, dtype=bool)
        chosen[:size] = lab.chance.random(size) < 0.5
        try:
            answers.append(lab.target.ask(Question((these(chosen), Secret()))).value)
        except TargetRefusal as refusal:
            ended = refusal.reason
            if refusal.final:
                break
            continue
        rows.append(chosen[:size])
        lab.progress((number + 1) / (2 * size))
    if not answers:
        return lab.found(ATTACK.name, broke=False, learned="It has no answer.", ended=ended)
    truth = lab.scene.secret[:size]
    shares, points = [], sorted({max(1, len(answers) * part // 8) for part in range(1, 9)})
    for upto in points:
        guess = by_least_squares(np.array(rows[:upto], dtype=float), np.array(answers[:upto]))
        shares.append(float((guess == truth).mean()))
    right = shares[-1]
    low, high = interval(round(right * size), size)
    guessing = _by_guessing(truth)
    learned = f"{right:.1%} of {size:,} secrets from {counted(len(answers), 'count')} (guessing: {guessing:.1%})."
    drawing = Drawing(
        "Secrets recovered", "counts", "share", (Curve(lab.target.name, tuple(map(float, points)), tuple(shares)),)
    )
    return lab.found(
        ATTACK.name,
        broke=right >= 0.9 and low > guessing,  # where most have the same secret, guessing is often right
        learned=learned,
        ended=ended,
        drawing=drawing,
        right=right,
        low=low,
        high=high,
    )


def _by_guessing(truth: NDArray[np.bool_]) -> float:
    share = float(truth.mean())
    return max(share, 1 - share)


def by_least_squares(design: Numbers, answers: Numbers) -> NDArray[np.bool_]:
    """The bits nearest to the answers, each drawn a little to ½ so that few answers can be solved too."""
    right = design.T @ (answers - design.sum(axis=1) / 2)
    left = design.T @ design + np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(left, right) > 0)


def by_linear_programming(design: Numbers, answers: Numbers) -> NDArray[np.bool_]:
    """The bits with the least sum of absolute residuals, each between 0 and 1 before they are rounded."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    count, size = design.shape
    costs = np.concatenate([np.zeros(size), np.ones(2 * count)])
    # design · x + over − under = answers, both residuals at least 0
    equal = hstack([csr_array(design), eye_array(count), -eye_array(count)], format="csr")
    bounds = [(0, 1)] * size + [(0, None)] * (2 * count)
    solved = linprog(costs, A_eq=equal, b_eq=answers, bounds=bounds, method="highs")
    return np.asarray(np.asarray(solved.x)[:size] > 0.5)


ATTACK = Attack(
    "reconstruction",
    f"Counts random subsets of up to {PEOPLE} people and solves for their secrets.",
    "Too many answers that are too good destroy all privacy.",
    EVERYTHING,
    run,
    by_noise=Measured("right", "share of secrets recovered", 0.5, PEOPLE),
)
