"""A small ledger to work on."""

from pathlib import Path

import pytest

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request, questions
from dalenius.ledger.chain import digest


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """The students' ledger: ε = 3, δ = 1e-6; ana and bob may spend 2 each."""
    made = Ledger.create(tmp_path / "home")
    made.set_budget("students", Budget(3.0, 1e-6, unit="student_id"))
    made.set_allotment("students", "ana", 2.0)
    made.set_allotment("students", "bob", 2.0)
    return made


@pytest.fixture
def request_for():
    """`request_for(key, epsilon, analyst)`."""

    def requesting(key="count", epsilon=0.5, analyst="ana", **more):
        return Request("students", analyst, key, epsilon, Zcdp(1e-9, more.get("delta", 0)), question=key, **more)

    return requesting


@pytest.fixture
def grant(request_for):
    """`grant(ledger, key, analyst, retry)`: as earlier releases let a second analyst pay for a stored answer.

    None is written any more; histories that hold some must be read for ever.
    """

    def granting(ledger, key="count", analyst="bob", retry=None):
        with ledger.turn() as (view, append):
            connection = view.connection
            number, answer = connection.execute(
                "SELECT number, answer FROM questions WHERE key = ? AND state = 'answered' ORDER BY number", (key,)
            ).fetchone()
            charge, answered = (ledger.proof.entry(view, each).data for each in (number, answer))
            data = {"charge": number, "release": answered["release"], "analyst": analyst, "question": digest(b"")}
            entry = append("grant", data | ({"retry": list(retry)} if retry else {}))
            connection.execute("INSERT INTO grants VALUES (?, ?, ?)", (number, analyst, entry.number))
            connection.execute(  # the first of this analyst: units of 2^-128 do not fit SQLite's integers
                "INSERT INTO totals VALUES (?, '', ?, ?, ?, 1)", (charge["dataset"], analyst, *charge["units"])
            )
            questions.remember(connection, request_for(key, charge["epsilon"], analyst, retry=retry), number)
        return ledger.ask(request_for(key, charge["epsilon"], analyst), lambda claim: pytest.fail("looked again"))

    return granting
