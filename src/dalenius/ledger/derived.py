"""The tables beside the history: written along with it, compared with it, never believed.

Decisions are made from what the entries say. A row that is in the way of one and says something else was changed by
somebody, and the question is refused rather than answered from a file that is being tampered with.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dalenius.errors import LedgerCorruptError
from dalenius.ledger.budgets import Budget

if TYPE_CHECKING:
    from dalenius.ledger.projection import ChargedQuestion, Projection


def check_budget(connection: sqlite3.Connection, state: Projection, dataset: str) -> None:
    """The rows about a data set: its budget and its epoch."""
    row = connection.execute("SELECT body FROM budgets WHERE dataset = ?", (dataset,)).fetchone()
    _agree("budgets", row and Budget.from_json(row[0]), state.budgets.get(dataset))
    row = connection.execute("SELECT number FROM epochs WHERE dataset = ?", (dataset,)).fetchone()
    _agree("epochs", row and row[0], state.epochs.get(dataset))


def check_allotment(connection: sqlite3.Connection, state: Projection, dataset: str, analyst: str) -> None:
    """The row about an analyst in a data set."""
    row = connection.execute(
        "SELECT epsilon FROM allotments WHERE dataset = ? AND analyst = ?", (dataset, analyst)
    ).fetchone()
    _agree("allotments", row and row[0], state.allotments.get((dataset, analyst)))


def check_total(connection: sqlite3.Connection, state: Projection, place: tuple[str, str, str]) -> None:
    """The row of one running total."""
    row = connection.execute(
        "SELECT loss, delta, charges FROM totals WHERE dataset = ? AND period = ? AND analyst = ?", place
    ).fetchone()
    _agree("running totals", row and (int(row[0]), int(row[1]), row[2]), state.totals.get(place))


def check_retry(connection: sqlite3.Connection, state: Projection, analyst: str, key: str) -> None:
    """The row of a request that its client named."""
    row = connection.execute(
        "SELECT body, question FROM retries WHERE analyst = ? AND key = ?", (analyst, key)
    ).fetchone()
    _agree("requests that may come again", row, state.retries.get((analyst, key)))


def check_grant(connection: sqlite3.Connection, state: Projection, question: int, analyst: str) -> None:
    """The row of a stored answer that another analyst paid for."""
    row = connection.execute(
        "SELECT number FROM grants WHERE question = ? AND analyst = ?", (question, analyst)
    ).fetchone()
    _agree("grants", row and row[0], state.grants.get((question, analyst)))


def holder_of(connection: sqlite3.Connection, question: ChargedQuestion) -> tuple[str, int]:
    """Who holds a question, and how often it changed hands.

    Only this stands in the table alone. Who changes it can make others wait, or have a question taken over from a
    process that lives; but it is answered once, at what was charged, since state and price are those of the history.
    """
    row = connection.execute(
        """SELECT dataset, key, analyst, epsilon, delta, state, answer, holder, fence
           FROM questions WHERE number = ?""",
        (question.number,),
    ).fetchone()
    expected = question_row(question)
    _agree("states of questions", row and tuple(row[: len(expected)]), expected)
    return str(row[-2]), int(row[-1])


def question_row(question: ChargedQuestion) -> tuple[Any, ...]:
    """What the table says about a question, without who holds it."""
    return (
        *(question.dataset, question.key, question.analyst, question.epsilon, question.delta),
        *(question.state, question.answer),
    )


def spend(connection: sqlite3.Connection, state: Projection, spent: Sequence[tuple[str, str, str, int, int]]) -> None:
    """Adds a charge to running totals: data set, period, analyst, loss and δ of each."""
    for dataset, period, analyst, more_loss, more_delta in spent:
        place = dataset, period, analyst
        check_total(connection, state, place)
        loss, delta, charges = state.totals.get(place, (0, 0, 0))
        connection.execute(
            """INSERT INTO totals VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT DO UPDATE SET loss = ?4, delta = ?5, charges = ?6""",
            (*place, str(loss + more_loss), str(delta + more_delta), charges + 1),
        )


def _agree(what: str, stored: object, derived: object) -> None:
    if stored != derived:
        raise beside(what)


def beside(what: str) -> LedgerCorruptError:
    """A table that says something else than the history."""
    return LedgerCorruptError(
        f"The {what} are not what the history adds up to.",
        why="A table beside the history was changed.",
        fix="Restore the newest good copy of ledger and anchor; do not answer questions from this one.",
    )
