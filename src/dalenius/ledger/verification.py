"""Checking the whole history: nothing changed, removed, reordered, cut off or put back.

Everything derived is derived again from the entries and compared: totals, budgets, allotments, stored releases. The
first bad entry is named. What cannot be seen from here (ledger and anchor put back together, and no newer receipt or
head to compare with) is in docs/sharp-edges.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dalenius.errors import InputError, LedgerCorruptError
from dalenius.ledger import receipts
from dalenius.ledger.chain import Entry, canonical, digest, origin
from dalenius.ledger.keys import public_key
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.receipts import Receipt


@dataclass(frozen=True, slots=True)
class Verified:
    """A history that holds."""

    entries: int
    head: str
    charges: int
    releases: int
    receipts: int


@dataclass
class _Derived:
    """What the derived tables must hold, built up entry by entry."""

    totals: dict[tuple[str, str, str], tuple[int, int, int]] = field(default_factory=dict)
    budgets: dict[str, str] = field(default_factory=dict)
    allotments: dict[tuple[str, str], float] = field(default_factory=dict)
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    states: dict[int, tuple[str, int | None]] = field(default_factory=dict)
    releases: dict[int, str] = field(default_factory=dict)
    grants: dict[tuple[int, str], int] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        data = entry.data
        match entry.kind:
            case "budget":
                self.budgets[data["dataset"]] = canonical(data["budget"])
            case "allotment":
                self.allotments[data["dataset"], data["analyst"]] = data["epsilon"]
            case "charge":
                self.charges[entry.number] = data
                self.states[entry.number] = ("claimed", None)
                self._spend(data, ("", data["analyst"]))
            case "grant":
                self._spend(self.charges[data["charge"]], (data["analyst"],))
                self.grants[data["charge"], data["analyst"]] = entry.number
            case "answer":
                self.states[data["charge"]] = ("answered", entry.number)
                self.releases[data["charge"]] = data["release"]
            case "failure":
                self.states[data["charge"]] = ("failed", None)

    def _spend(self, charge: dict[str, Any], totals: tuple[str, ...]) -> None:
        loss, delta = (int(each) for each in charge["units"])
        for period in charge["periods"]:
            for analyst in totals:
                place = charge["dataset"], period, analyst
                before = self.totals.get(place, (0, 0, 0))
                self.totals[place] = before[0] + loss, before[1] + delta, before[2] + 1


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
    derived, previous, number = _Derived(), origin(ledger.keys.chain), 0
    wanted = expect.lower() if expect else None
    pending = {receipt.entry: receipt for receipt in _genuine(ledger, given)}
    checked = len(pending)
    anchor = ledger.anchor.read()
    anchored = anchor.count == 0
    for entry in ledger.entries():
        number += 1
        if entry.number != number:
            raise _bad(number, "is missing", "The entries around it follow each other, but it is gone.")
        if entry.hash != ledger.link(previous, entry):
            raise _bad(number, "was changed", "Its content does not fit its hash and the entry before it.")
        try:
            derived.add(entry)
        except (KeyError, TypeError, ValueError):
            raise _bad(number, "makes no sense", "It refers to what is not there.") from None
        previous = entry.hash
        hexadecimal = previous.hex()
        if hexadecimal == wanted:
            wanted = None
        if number in pending and pending.pop(number).chain != hexadecimal:
            raise _bad(number, "is not the one a receipt was given for", "The receipt names another hash.")
        if number == anchor.count:
            if previous != anchor.hash:
                raise _bad(number, "is not the one that was anchored", "Its hash differs from the anchor's.")
            anchored = True
        if number % 5000 == 0:
            progress(number)
    progress(number)
    if not anchored:
        raise _bad(number + 1, "is missing", f"The history ends at {number}, but had {anchor.count} entries.")
    if pending:
        raise _bad(min(pending), "is missing", "A receipt was given for it.")
    if wanted is not None:
        raise LedgerCorruptError(
            "The expected head is not part of this history.",
            why="The history was replaced by another one, or by an older copy.",
            fix="Restore the newest copy of ledger and anchor.",
        )
    _compare(ledger, derived)
    answered = sum(state == "answered" for state, _ in derived.states.values())
    return Verified(number, previous.hex(), len(derived.charges), answered, checked)


def _genuine(ledger: Ledger, given: Iterable[Receipt]) -> list[Receipt]:
    found = list(given)
    if found:
        key = public_key(ledger.keys.public_file)
        for receipt in found:
            receipts.check(receipt, key)
    return found


def _compare(ledger: Ledger, derived: _Derived) -> None:
    """The tables that answer questions quickly must say what the entries say."""
    with ledger.database.reading() as connection:
        totals = {
            (dataset, period, analyst): (int(loss), int(delta), charges)
            for dataset, period, analyst, loss, delta, charges in connection.execute("SELECT * FROM totals")
        }
        budgets = dict(connection.execute("SELECT dataset, body FROM budgets"))
        allotments = {(row[0], row[1]): row[2] for row in connection.execute("SELECT * FROM allotments")}
        grants = {(row[0], row[1]): row[2] for row in connection.execute("SELECT * FROM grants")}
        for what, stored, expected in (
            ("running totals", totals, derived.totals),
            ("budgets", budgets, derived.budgets),
            ("allotments", allotments, derived.allotments),
            ("grants", grants, derived.grants),
        ):
            if stored != expected:
                raise _beside(what)
        left = set(derived.charges)
        for number, dataset, key, analyst, epsilon, delta, state, reply in connection.execute(
            "SELECT number, dataset, key, analyst, epsilon, delta, state, answer FROM questions"
        ):
            charge = derived.charges.get(number)
            if charge is None or (state, reply) != derived.states[number]:
                raise _beside("states of questions")
            known = (charge["dataset"], charge["key"], charge["analyst"], charge["epsilon"], charge["delta"])
            if (dataset, key, analyst, epsilon, delta) != known:
                raise _bad(number, "is not what the table of questions says", "One of the two was changed.")
            left.discard(number)
        if left:
            raise _bad(min(left), "is not in the table of questions", "Its row was removed.")
        missing = set(derived.releases)
        for number, content in connection.execute("SELECT question, content FROM releases"):
            if derived.releases.get(number) != digest(content):
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
