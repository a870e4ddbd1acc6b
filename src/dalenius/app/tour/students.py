"""The second half of the tour: a real budget, spent on the students table through a real ledger.

Each question is charged before the table is looked at, answered with exact discrete Gaussian noise of the ρ that was
charged, and stored before it is shown. The true values are shown beside them because these students are made up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dalenius.app.tour.home import lay_anew
from dalenius.errors import BudgetError
from dalenius.ledger.budgets import Budget
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.requests import Claim, Request
from dalenius.ledger.verification import Verified, verify
from dalenius.mechanisms import Gaussian
from dalenius.samples.students import EDITORS, MOST_SCHOLARSHIP, Student, students

DATASET, ANALYST = "students", "ana"
BUDGET, ALLOTMENT = Budget(1.0, 1e-6, unit="student_id"), 0.8


@dataclass(frozen=True)
class Question:
    """A question of the tour: its words, its exact answer, and how far one student can move that."""

    words: str
    exact: Callable[[list[Student]], list[int]]
    squared_sensitivity: int
    epsilon: float
    cells: tuple[str, ...] = ("",)

    def mechanism(self, epsilon: float) -> Gaussian:
        """The noise that ``epsilon`` pays for."""
        rho = BUDGET.filter().price(epsilon).rho
        return Gaussian.of_rho(
            rho=Fraction(rho), squared_sensitivity=self.squared_sensitivity, dimension=len(self.cells)
        )


QUESTIONS = (
    Question("how many students are there", lambda rows: [len(rows)], 1, 0.1),
    Question("how many of them use vim", lambda rows: [sum(row.editor == "vim" for row in rows)], 1, 0.2),
    Question(
        "their scholarships, in all (euros)",
        lambda rows: [sum(min(max(row.scholarship, 0), MOST_SCHOLARSHIP) for row in rows)],
        MOST_SCHOLARSHIP**2,
        0.4,
    ),
    Question(
        "how many use each editor",
        lambda rows: [sum(row.editor == editor for row in rows) for editor in EDITORS],
        1,  # a student is in one cell
        0.3,
        EDITORS,
    ),
)


@dataclass(frozen=True)
class Shown:
    """One answer of the tour."""

    question: Question
    true: list[int]
    private: list[int]
    noise_error: int
    free: bool


@dataclass(frozen=True)
class Visit:
    """What happened: the answers, a repeat, a refusal, and the history that remembers them."""

    home: Path
    answers: list[Shown]
    repeat: Shown
    refusal: BudgetError
    refused: float
    history: Verified
    remaining: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "answers": [_written(each) for each in self.answers],
            "repeat": _written(self.repeat),
            "refusal": self.refusal.to_dict()["error"],
            "verified": {"entries": self.history.entries, "head": self.history.head},
            "remaining": self.remaining,
        }


def visit(folder: Path) -> Visit:
    """Lays the demo home, protects the students and asks."""
    home = lay_anew(folder)
    ledger = Ledger.create(home)
    ledger.set_budget(DATASET, BUDGET, reason="demo")
    ledger.set_allotment(DATASET, ANALYST, ALLOTMENT)
    rows = students()
    answers = [_asked(ledger, question, rows) for question in QUESTIONS]
    repeat = _asked(ledger, QUESTIONS[1], rows)
    refused = 2 * ledger.balance(DATASET, ANALYST).remaining_epsilon
    again = Question("one question too many", QUESTIONS[0].exact, 1, refused)
    try:
        _asked(ledger, again, rows)
    except BudgetError as error:
        refusal = error
    remaining = {
        "analyst": ledger.balance(DATASET, ANALYST).remaining_epsilon,
        "dataset": ledger.balance(DATASET).remaining_epsilon,
    }
    return Visit(home, answers, repeat, refusal, refused, verify(ledger), remaining)


def _asked(ledger: Ledger, question: Question, rows: list[Student]) -> Shown:
    def work(claim: Claim) -> bytes:
        mechanism = question.mechanism(claim.epsilon)  # of what was charged, which may be more than was asked for
        noisy = mechanism.release(question.exact(rows))
        private = [int(value) for value in noisy.value]
        return json.dumps({"private": private, "noise_error": mechanism.noise_error()}).encode()

    event = question.mechanism(question.epsilon).event
    request = Request(DATASET, ANALYST, question.words, question.epsilon, event, question=question.words)
    answered = ledger.ask(request, work)
    release = json.loads(answered.content)
    return Shown(question, question.exact(rows), release["private"], release["noise_error"], answered.free)


def _written(shown: Shown) -> dict[str, Any]:
    return {
        "question": shown.question.words,
        "epsilon": shown.question.epsilon,
        "true": shown.true,
        "private": shown.private,
        "noise_error": shown.noise_error,
        "free": shown.free,
    }
