"""Checking the whole history: nothing changed, removed, reordered, cut off or put back.

Every entry is replayed under the rules of its moment, and everything derived is compared: totals, budgets, allotments,
stored releases. The first bad entry is named. What cannot be seen from here (ledger and anchor put back together, and
no newer receipt or head to compare with) is in docs/sharp-edges.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dalenius.errors import InputError, LedgerCorruptError
from dalenius.ledger import receipts
from dalenius.ledger.chain import Entry, canonical, digest, origin
from dalenius.ledger.keys import public_key
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.receipts import Receipt
from dalenius.ledger.replay import BrokenRuleError, Replay


@dataclass(frozen=True, slots=True)
class Verified:
    """A history that holds."""

    entries: int
    head: str
    charges: int
    releases: int
    receipts: int


def verify(
    ledger: Ledger,
    *,
    expect: str | None = None,
    given: Iterable[Receipt] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> Verified:
    """Reads the whole history; raises `LedgerCorruptError` at the first thing that does not hold.

    Args:
        ledger: The ledger, opened.
        expect: A head seen earlier (64 hex digits): it must still be part of the history.
        given: Receipts that must fit the history.
        progress: Told the number of entries read so far, now and then.
    """
    if expect is not None and (len(expect) != 64 or not set(expect.lower()) <= set("0123456789abcdef")):
        raise InputError(
            "This is not a head.", why="A head is 64 hexadecimal digits.", fix="Copy it as it was printed."
        )
    pending: dict[int, list[Receipt]] = {}
    for receipt in _genuine(ledger, given):
        pending.setdefault(receipt.entry, []).append(receipt)
    checked = sum(map(len, pending.values()))
    wanted = expect.lower() if expect else None
    anchor = ledger.anchor.read()  # before the view of the file, which is then never behind it
    with ledger.database.reading() as connection:
        replay, previous, number = Replay(), origin(ledger.keys.chain), 0
        heads = {anchor.count: previous} if anchor.count == 0 else {}
        for row in connection.execute("SELECT * FROM entries ORDER BY number"):
            entry = Entry(*row)
            number += 1
            if entry.number != number:
                raise _bad(number, "is missing", "The entries around it follow each other, but it is gone.")
            if entry.hash != ledger.link(previous, entry):
                raise _bad(number, "was changed", "Its content does not fit its hash and the entry before it.")
            try:
                replay.add(entry)
            except BrokenRuleError as error:
                raise _bad(number, "was not allowed", str(error)) from None
            previous = entry.hash
            if previous.hex() == wanted:
                wanted = None
            for receipt in pending.pop(number, ()):
                if receipt.chain != previous.hex():
                    raise _bad(number, "is not the one a receipt was given for", "The receipt names another hash.")
            if number == anchor.count:
                heads[number] = previous
            if number % 5000 == 0:
                progress(number)
        progress(number)
        if anchor.count not in heads:
            raise _bad(number + 1, "is missing", f"The history ends at {number}, but had {anchor.count} entries.")
        if heads[anchor.count] != anchor.hash:
            raise _bad(anchor.count, "is not the one that was anchored", "Its hash differs from the anchor's.")
        if pending:
            raise _bad(min(pending), "is missing", "A receipt was given for it.")
        if wanted is not None:
            raise LedgerCorruptError(
                "The expected head is not part of this history.",
                why="The history was replaced by another one, or by an older copy.",
                fix="Restore the newest copy of ledger and anchor.",
            )
        _compare(connection, replay)
        if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise _beside("pages of the file")
    answered = sum(state == "answered" for state, _ in replay.states.values())
    return Verified(number, previous.hex(), len(replay.charges), answered, checked)


def _genuine(ledger: Ledger, given: Iterable[Receipt]) -> list[Receipt]:
    found = list(given)
    if found:
        key = public_key(ledger.keys.public_file)
        for receipt in found:
            receipts.check(receipt, key)
    return found


def _compare(connection: sqlite3.Connection, replay: Replay) -> None:
    """The tables that answer questions quickly must say what the entries say."""
    totals = {
        (dataset, period, analyst): (int(loss), int(delta), charges)
        for dataset, period, analyst, loss, delta, charges in connection.execute("SELECT * FROM totals")
    }
    budgets = dict(connection.execute("SELECT dataset, body FROM budgets"))
    allotments = {(row[0], row[1]): row[2] for row in connection.execute("SELECT * FROM allotments")}
    grants = {(row[0], row[1]): row[2] for row in connection.execute("SELECT * FROM grants")}
    epochs = dict(connection.execute("SELECT dataset, number FROM epochs"))
    retries = {(row[0], row[1]): (row[2], row[3]) for row in connection.execute("SELECT * FROM retries")}
    expected = {name: canonical(budget.to_dict()) for name, budget in replay.budgets.items()}
    for what, stored, derived in (
        ("running totals", totals, replay.totals),
        ("budgets", budgets, expected),
        ("allotments", allotments, replay.allotments),
        ("grants", grants, replay.grants),
        ("epochs", epochs, replay.epochs),
        ("requests that may come again", retries, replay.retries),
    ):
        if stored != derived:
            raise _beside(what)
    left = set(replay.charges)
    for number, dataset, key, analyst, epsilon, delta, state, reply in connection.execute(
        "SELECT number, dataset, key, analyst, epsilon, delta, state, answer FROM questions"
    ):
        charge = replay.charges.get(number)
        if charge is None or (state, reply) != replay.states[number]:
            raise _beside("states of questions")
        known = (charge["dataset"], charge["key"], charge["analyst"], charge["epsilon"], charge["delta"])
        if (dataset, key, analyst, epsilon, delta) != known:
            raise _bad(number, "is not what the table of questions says", "One of the two was changed.")
        left.discard(number)
    if left:
        raise _bad(min(left), "is not in the table of questions", "Its row was removed.")
    missing = set(replay.releases)
    for number, content in connection.execute("SELECT question, content FROM releases"):
        if replay.releases.get(number) != digest(content):
            raise _bad(number, "has another release than was recorded", "The stored answer was changed.")
        missing.discard(number)
    if missing:
        raise _bad(min(missing), "has lost its release", "The stored answer was removed.")


def _bad(number: int, what: str, why: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"Entry {number} {what}.",
        why=why,
        fix="Restore the newest good copy of ledger and anchor; do not answer questions from this one.",
    )


def _beside(what: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"The {what} are not what the history adds up to.",
        why="A table beside the history was changed.",
        fix="Restore the newest good copy of ledger and anchor; do not answer questions from this one.",
    )
