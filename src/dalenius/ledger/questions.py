"""One charged question in the file: its entries, its release, who holds it, and how it ends."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dalenius.errors import LedgerCorruptError
from dalenius.ledger import receipts
from dalenius.ledger.chain import Entry, digest
from dalenius.ledger.requests import Answered, Claim

if TYPE_CHECKING:
    from dalenius.ledger.keys import Keys
    from dalenius.ledger.receipts import Receipt

Append = Callable[[str, Mapping[str, Any]], Entry]

LEASE_SECONDS = 600.0


def entry_of(connection: sqlite3.Connection, number: int) -> Entry:
    """An entry, as it stands in the file."""
    return Entry(*connection.execute("SELECT * FROM entries WHERE number = ?", (number,)).fetchone())


def charge_of(connection: sqlite3.Connection, number: int) -> dict[str, Any]:
    """What the charge of a question says."""
    return entry_of(connection, number).data


def release_of(connection: sqlite3.Connection, number: int) -> tuple[bytes, Entry]:
    """The release of an answered question and the entry that records it; refuses one that was changed."""
    answered = connection.execute("SELECT answer FROM questions WHERE number = ?", (number,)).fetchone()[0]
    entry = entry_of(connection, answered)
    content = bytes(connection.execute("SELECT content FROM releases WHERE question = ?", (number,)).fetchone()[0])
    if digest(content) != entry.data["release"]:
        raise LedgerCorruptError(
            "The stored answer was changed.",
            why="It is not the one that was recorded.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    return content, entry


def paid_before(keys: Keys, connection: sqlite3.Connection, number: int, analyst: str) -> Answered:
    """The release of an answered question, for nothing, to the analyst who has paid for it.

    A grant is how earlier releases of dalenius let a second analyst pay for a stored answer; none is written any more.
    """
    content, answered = release_of(connection, number)
    granted = connection.execute(
        "SELECT number FROM grants WHERE question = ? AND analyst = ?", (number, analyst)
    ).fetchone()
    charge = charge_of(connection, number)
    if granted:
        return Answered(content, receipt_of(keys, entry_of(connection, granted[0]), charge), free=True)
    if charge["analyst"] != analyst:
        raise LedgerCorruptError(
            "This answer belongs to somebody else.",
            why="A table beside the history was changed.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    return Answered(content, receipt_of(keys, answered, charge), free=True)


def receipt_of(keys: Keys, entry: Entry, charge: Mapping[str, Any]) -> Receipt:
    """The receipt of an answer to a charge, or of its grant to another analyst; the same whenever it is written."""
    data = entry.data
    own = {"analyst": data["analyst"], "question": data["question"]} if entry.kind == "grant" else {}
    return receipts.write(keys, entry, {**charge, **own}, data["release"])


def taken_over(connection: sqlite3.Connection, number: int, holder: str, fence: int) -> Claim:
    """The claim of a dead holder, with the price at which the question was charged."""
    connection.execute(
        "UPDATE questions SET holder = ?, lease = ?, fence = ? WHERE number = ?",
        (holder, time.time() + LEASE_SECONDS, fence, number),
    )
    epsilon, delta = connection.execute("SELECT epsilon, delta FROM questions WHERE number = ?", (number,)).fetchone()
    return Claim(number, holder, fence, epsilon, delta, charge_of(connection, number).get("shares"))


def end(connection: sqlite3.Connection, append: Append, number: int) -> None:
    """No release will come; what the question cost stays spent."""
    append("failure", {"charge": number})
    connection.execute("UPDATE questions SET state = 'failed' WHERE number = ?", (number,))
