"""Averaging: the same question again and again; the noise is other each time, the truth is not.

The attacker knows everybody's secret but the victim's, so that an answer is one bit and noise. After k answers with
Laplace noise of ε = 1 the median of what it gives to the truth is 0.73, 0.70, 0.73, 0.85, … and above 0.95 from the
eighth on (`posterior.median_posterior`).
"""

from __future__ import annotations

from dalenius.audit.attacks.attack import EVERYTHING, Attack, Curve, Drawing, Finding, Lab, line
from dalenius.audit.attacks.posterior import median_posterior
from dalenius.audit.attacks.single_number import Repeated
from dalenius.audit.attacks.single_out import Guess, told
from dalenius.audit.targets.questions import Question, Secret
from dalenius.audit.targets.scene import VICTIM
from dalenius.audit.targets.target import Noise


def run(lab: Lab) -> Finding:
    """Asks until it is certain."""
    question, guess = Question((Secret(),)), Guess()
    # Background knowledge, the most that there is: all secrets but one.
    others = float(lab.scene.secret.sum() - lab.scene.secret[VICTIM])
    noise, scale = Noise.NONE, 0.0
    asked = Repeated(lab, question)
    for answer in asked.answers(lab.rounds):
        noise, scale = answer.noise, answer.scale
        guess.learn(answer.value - others, noise, scale)
        if guess.certain:
            break
    guess.ended = asked.ended
    finding = told(lab, ATTACK.name, guess)
    if not guess.history or scale == 0:
        return finding
    expected = median_posterior(len(guess.history), 1 / scale, noise)
    truth = bool(lab.scene.secret[VICTIM])
    curves = (
        line(lab.target.name, [each if truth else 1 - each for each in guess.history]),
        Curve(
            "median, if all noise is fresh", tuple(map(float, range(1, len(expected) + 1))), tuple(map(float, expected))
        ),
    )
    drawing = Drawing("What the attacker gives to the truth", "answers", "probability", curves)
    return lab.found(
        ATTACK.name,
        broke=finding.broke,
        learned=finding.learned,
        ended=finding.ended,
        drawing=drawing,
        posterior=guess.chance,
    )


ATTACK = Attack(
    "averaging",
    "Asks one question again and again, and averages the noise away.",
    "Noise protects only as long as the number of answers is bounded.",
    EVERYTHING,
    run,
)
