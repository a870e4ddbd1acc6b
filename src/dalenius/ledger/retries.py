"""Requests that come twice: a client that got no answer sends its request again, and it is charged once.

A client names each of its requests with an idempotency key. The charge (or the grant of a stored answer) keeps the pair
(hash of analyst and key, hash of the request's body), and whoever comes with a known key gets what became of that
charge, whatever the budget is by now, and is never charged a second time. What charged nothing leaves no trace: it may
be tried again.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineFailedError, InputError, SourceChangedError
from dalenius.ledger import holders, questions, tables
from dalenius.ledger.requests import Answered, Claim, Request, Waiting

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.proof import View


class NeverChargedError(EngineFailedError):
    """What was to be taken up again was never paid for, so there is nothing to take up."""


def never_charged() -> NeverChargedError:
    """For who comes back to a request that left no charge: taking it up would be a charge that nobody asked for."""
    return NeverChargedError(
        "This question was not charged before it was interrupted.",
        why="What is taken up again is never charged, and nothing was paid for here.",
        fix="Ask again.",
    )


@dataclass(frozen=True, slots=True)
class Failed:
    """The request was charged when it first came, and ended without a release."""

    epsilon: float
    delta: float

    def error(self) -> EngineFailedError:
        """For who asks again; its charge is that of this time: nothing."""
        return EngineFailedError(
            "This request failed when it was first asked.",
            why=f"It was charged then (ε = {self.epsilon:g}, δ = {self.delta:g}) and is not charged again.",
            fix="To try anew, at the full price, ask with another idempotency key.",
        )


def again(
    ledger: Ledger, view: View, append: questions.Append, request: Request, holder: str
) -> Claim | Answered | Waiting | Failed | None:
    """What became of the same request; None if it is the first of its key. Inside the transaction that charges."""
    if request.retry is None:
        return None
    key, body = request.retry
    tables.check_retry(view.connection, view.state, request.analyst, key)
    found = view.state.retries.get((request.analyst, key))
    if found is None:
        return None
    known, number = found
    if known != body:
        raise InputError(
            "This idempotency key was used for another request.",
            why="A key names one request, so that sending it twice charges once.",
            fix="Send the first request unchanged, or take a new key for this one.",
        )
    question = view.state.questions[number]
    same = (question.dataset, question.key) == (request.dataset, request.stored_key)
    if question.state == "answered":
        paid = questions.paid_before(ledger, view, question, request.analyst)
        if same:
            return paid
        # Its release is in the terms of a plan that is no longer the question's.
        raise SourceChangedError(
            "This request was answered before its data or its policy changed.",
            why="It was charged then, and its answer is about the data as it was.",
            fix="Ask with another idempotency key; that is a new question, and a new charge.",
        )
    other, fence = tables.holder_of(view.connection, question)
    if question.state == "failed":
        return Failed(question.epsilon, question.delta)
    if not holders.is_dead(other):
        return Waiting(number, other)
    if same:
        return questions.taken_over(view.connection, question, holder, fence + 1)
    # What was charged for is no longer there to be looked at.
    questions.end(view.connection, append, number)
    return Failed(question.epsilon, question.delta)


def written(request: Request) -> dict[str, Any]:
    """What the entry that pays for a request says about its key."""
    return {} if request.retry is None else {"retry": list(request.retry)}


def remember(connection: sqlite3.Connection, request: Request, question: int) -> None:
    """From now on a request with this key is that question."""
    if request.retry is not None:
        connection.execute("INSERT INTO retries VALUES (?, ?, ?, ?)", (request.analyst, *request.retry, question))
