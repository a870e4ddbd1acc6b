"""One charged question in the file: its entries, its release, who holds it, and how it ends."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import LedgerCorruptError
from dalenius.ledger import receipts, tables
from dalenius.ledger.chain import Entry, digest
from dalenius.ledger.requests import Answered, Claim

if TYPE_CHECKING:
    from dalenius.ledger.keys import Keys
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import Question
    from dalenius.ledger.proof import View
    from dalenius.ledger.receipts import Receipt

Append = Callable[[str, Mapping[str, Any]], Entry]

LEASE_SECONDS = 600.0


def charge_of(ledger: Ledger, view: View, number: int) -> dict[str, Any]:
    """What the charge of a question says."""
    return ledger.proof.entry(view, number).data


def release_of(ledger: Ledger, view: View, question: Question) -> tuple[bytes, Entry]:
    """The release of an answered question and the entry that records it; refuses one that was changed."""
    row = view.connection.execute("SELECT content FROM releases WHERE question = ?", (question.number,)).fetchone()
    if question.answer is None or row is None or digest(bytes(row[0])) != question.release:
        raise LedgerCorruptError(
            "The stored answer was changed.",
            why="It is not the one that was recorded.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    return bytes(row[0]), ledger.proof.entry(view, question.answer)


def paid_before(ledger: Ledger, view: View, question: Question, analyst: str) -> Answered:
    """The release of an answered question, for nothing, to the analyst who has paid for it.

    A grant is how earlier releases of dalenius let a second analyst pay for a stored answer; none is written any more.
    """
    granted = view.state.grants.get((question.number, analyst))
    tables.check_grant(view.connection, view.state, question.number, analyst)
    if granted is None and question.analyst != analyst:
        raise LedgerCorruptError(
            "This answer belongs to somebody else.",
            why="By the history, this analyst has not paid for it.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    tables.holder_of(view.connection, question)
    content, answered = release_of(ledger, view, question)
    paying = answered if granted is None else ledger.proof.entry(view, granted)
    charge = charge_of(ledger, view, question.number)
    return Answered(content, receipt_of(ledger.keys, paying, charge), free=True)


def receipt_of(keys: Keys, entry: Entry, charge: Mapping[str, Any]) -> Receipt:
    """The receipt of an answer to a charge, or of its grant to another analyst; the same whenever it is written."""
    return receipts.write(keys, receipt_content(entry, charge))


def receipt_content(entry: Entry, charge: Mapping[str, Any]) -> Receipt:
    """What a receipt says, without its signature. Both must have been proved: what is signed is believed."""
    data = entry.data
    own = {"analyst": data["analyst"], "question": data["question"]} if entry.kind == "grant" else {}
    return receipts.content(entry, {**charge, **own}, data["release"])


def taken_over(connection: sqlite3.Connection, question: Question, holder: str, fence: int) -> Claim:
    """The claim of a dead holder, with the price at which the question was charged: the history's, not the table's."""
    connection.execute(
        "UPDATE questions SET holder = ?, lease = ?, fence = ? WHERE number = ?",
        (holder, time.time() + LEASE_SECONDS, fence, question.number),
    )
    return Claim(question.number, holder, fence, question.epsilon, question.delta, question.shares)


def end(connection: sqlite3.Connection, append: Append, number: int) -> None:
    """No release will come; what the question cost stays spent."""
    append("failure", {"charge": number})
    connection.execute("UPDATE questions SET state = 'failed' WHERE number = ?", (number,))
