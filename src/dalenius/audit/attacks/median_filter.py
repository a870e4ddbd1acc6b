"""Median filter: of many noisy answers the middle one, which Laplace noise moves less than it moves the mean.

For Laplace noise the median is what maximises the likelihood: after k answers its standard deviation is about b/√k,
where the mean has b·√2/√k. A handful of answers with a wild error, put in to spoil a mean, do not move it.
"""

from __future__ import annotations

import numpy as np

from dalenius.audit.attacks.attack import Attack, Drawing, Finding, Lab, line
from dalenius.audit.attacks.single_number import Repeated
from dalenius.audit.targets.questions import Question, Secret


def run(lab: Lab) -> Finding:
    """Asks one count until the middle answer stands within a half of the truth for good."""
    question = Question((Secret(),))
    asked = Repeated(lab, question)
    answers = [each.value for each in asked.answers(lab.rounds)]
    ended = asked.ended
    if not answers:
        return lab.found(ATTACK.name, broke=False, learned="It has no answer.", ended=ended)
    truth = question.truth(lab.scene)
    medians = [abs(float(np.median(answers[: at + 1])) - truth) for at in range(len(answers))]
    means = [abs(float(np.mean(answers[: at + 1])) - truth) for at in range(len(answers))]
    broke = medians[-1] < 0.5 and not ended
    what = f"The count is {round(float(np.median(answers))):,}"
    learned = f"{what}: exact." if broke else f"{what}, off by {medians[-1]:,.1f}."
    drawing = Drawing("Error of the count", "answers", "people", (line("median", medians), line("mean", means)))
    return lab.found(
        ATTACK.name, broke=broke, learned=learned, ended=ended, drawing=drawing, error=medians[-1], mean_error=means[-1]
    )


ATTACK = Attack(
    "median-filter",
    "Takes the middle of many answers to one count.",
    "Which average is best depends on the noise; none helps against a budget.",
    ("noisy", "sticky", "dalenius"),
    run,
)
