"""What an analyst has paid for before: the answers that are free now, and what may be read in them.

Only the analyst's own are ever found here. What others asked is theirs to know: whether a question is free, and what a
preview can tell, must be the same whatever they did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from dalenius.ledger import derived, questions

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import ChargedQuestion, Projection
    from dalenius.ledger.requests import Request


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """A stored release of the analyst who asks, and the price at which it was made."""

    epsilon: float
    delta: float
    content: bytes


def best_answer(state: Projection, request: Request) -> ChargedQuestion | None:
    """Of the answers this analyst has paid for and that are as accurate as asked, the most accurate."""
    paid = (each for each in suitable(state, request) if _is_own(state, each, request.analyst))
    return max(paid, key=lambda each: each.epsilon, default=None)


def suitable(state: Projection, request: Request) -> list[ChargedQuestion]:
    """The questions of the same meaning that were charged at least what is asked now, oldest first.

    A δ that nobody typed asks for nothing: it follows what is left, and the same question must stay free.
    """
    least = 0.0 if request.delta_chosen else request.delta
    return [
        each
        for each in state.asked_before(request.dataset, request.stored_key)
        if each.epsilon >= request.epsilon and each.delta >= least
    ]


def is_paid(ledger: Ledger, request: Request) -> bool:
    """Whether asking this now would cost its analyst nothing: decided as the charge itself decides it."""
    with ledger.state() as state:
        return best_answer(state, request) is not None


def answers_to(ledger: Ledger, dataset: str, analyst: str, stored_key: str) -> list[PaidAnswer]:
    """Every answer that this analyst has paid for to a question of this meaning, at whatever price, oldest first."""
    with ledger.state() as state:
        found = [each for each in state.asked_before(dataset, stored_key) if _is_own(state, each, analyst)]
    return list(_read(ledger, found))


def recent_answers(ledger: Ledger, dataset: str, analyst: str, most: int) -> list[PaidAnswer]:
    """The latest answers of this analyst in a data set, whatever was asked, newest first."""
    with ledger.state() as state:
        own = (each for each in reversed(state.questions.values()) if each.dataset == dataset)
        found = list(islice((each for each in own if _is_own(state, each, analyst)), most))
    return list(_read(ledger, found))


def _is_own(state: Projection, question: ChargedQuestion, analyst: str) -> bool:
    own = question.analyst == analyst or (question.number, analyst) in state.grants
    return own and question.state == "answered"


def _read(ledger: Ledger, found: list[ChargedQuestion]) -> Iterator[PaidAnswer]:
    with ledger.view() as view:
        for each in found:
            derived.holder_of(view.connection, each)
            content, _ = questions.release_of(ledger, view, each)
            yield PaidAnswer(each.epsilon, each.delta, content)
