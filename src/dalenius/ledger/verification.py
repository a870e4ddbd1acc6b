"""Checking the whole history: nothing changed, removed, reordered, cut off or put back.

Every entry is replayed under the rules of its moment, and everything derived is compared: totals, budgets, allotments,
stored releases. The first bad entry is named. What cannot be seen from here (ledger and anchor put back together, and
no newer receipt or head to compare with) is in docs/sharp-edges.md.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from dalenius.accounting.event_json import from_json
from dalenius.accounting.guarantees import ZCDP, PureDP
from dalenius.accounting.orders import SampledLoss, is_sampled
from dalenius.accounting.units import whole_units
from dalenius.errors import InputError, LedgerCorruptError
from dalenius.ledger import derived, publications, receipts, sharing
from dalenius.ledger.budgets import TOLERANCE, Accounting, Budget, covers, losses, made_within
from dalenius.ledger.chain import Entry, canonical, digest, origin
from dalenius.ledger.home import public_key
from dalenius.ledger.ledger import Ledger
from dalenius.ledger.projection import BrokenRuleError, ChargedQuestion, Projection, require
from dalenius.ledger.proof import ProvedView, bad
from dalenius.ledger.receipts import Receipt
from dalenius.ledger.requests import WHOLE


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
        replay, previous, number = Replay(origin(ledger.keys.chain)), origin(ledger.keys.chain), 0
        heads = {anchor.count: previous} if anchor.count == 0 else {}
        for row in connection.execute("SELECT * FROM entries ORDER BY number"):
            entry = Entry(*row)
            number += 1
            if entry.number != number:
                raise bad(number, "is missing", "The entries around it follow each other, but it is gone.")
            if entry.hash != ledger.link(previous, entry):
                raise bad(number, "was changed", "Its content does not fit its hash and the entry before it.")
            try:
                replay.add(entry)
            except BrokenRuleError as error:
                raise bad(number, "was not allowed", str(error)) from None
            previous = entry.hash
            if previous.hex() == wanted:
                wanted = None
            for receipt in pending.pop(number, ()):
                _check_receipt(ledger, connection, replay, receipt, entry)
            if number == anchor.count:
                heads[number] = previous
            if number % 5000 == 0:
                progress(number)
        progress(number)
        if anchor.count not in heads:
            raise bad(number + 1, "is missing", f"The history ends at {number}, but had {anchor.count} entries.")
        if heads[anchor.count] != anchor.hash:
            raise bad(anchor.count, "is not the one that was anchored", "Its hash differs from the anchor's.")
        if pending:
            raise bad(min(pending), "is missing", "A receipt was given for it.")
        if wanted is not None:
            raise LedgerCorruptError(
                "The expected head is not part of this history.",
                why="The history was replaced by another one, or by an older copy.",
                fix="Restore the newest copy of ledger and anchor.",
            )
        _compare(connection, replay)
        if connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise derived.beside("pages of the file")
    answered = sum(each.state == "answered" for each in replay.questions.values())
    return Verified(number, previous.hex(), len(replay.questions), answered, checked)


def _genuine(ledger: Ledger, given: Iterable[Receipt]) -> list[Receipt]:
    found = list(given)
    if found:
        key = public_key(ledger.keys.public_file)
        for receipt in found:
            receipts.check(receipt, key)
    return found


def _check_receipt(
    ledger: Ledger, connection: sqlite3.Connection, replay: Replay, receipt: Receipt, entry: Entry
) -> None:
    """Every member of a genuine receipt against the entry it names and the charge that this entry answers.

    A signature alone does not do: if somebody made us sign what is not in the history, this is where it shows.
    """
    if receipt.chain != entry.hash.hex():
        raise bad(entry.number, "is not the one a receipt was given for", "The receipt names another hash.")
    number = entry.data.get("charge") if entry.kind in {"answer", "grant"} else None
    charge: dict[str, Any] = {}
    if number in replay.questions:
        charge = ledger.proof.entry(ProvedView(connection, replay, entry.number), number).data
    elif publications.read_entry(entry) is None:
        raise bad(entry.number, "is not the one a receipt was given for", "Nothing was released there.")
    expected, given = (asdict(each) for each in (receipts.content(entry, charge), receipt))
    wrong = [name for name in expected if name != "signature" and expected[name] != given[name]]
    if wrong:
        raise bad(
            entry.number,
            "is not what a receipt says",
            f"The receipt names another {', '.join(wrong)}.",
        )


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
    for what, stored, added_up in (
        ("running totals", totals, replay.totals),
        ("budgets", budgets, expected),
        ("allotments", allotments, replay.allotments),
        ("grants", grants, replay.grants),
        ("epochs", epochs, replay.epochs),
        ("requests that may come again", retries, replay.retries),
    ):
        if stored != added_up:
            raise derived.beside(what)
    _compare_questions(connection, replay)
    _compare_releases(connection, replay)


def _compare_questions(connection: sqlite3.Connection, replay: Replay) -> None:
    left = set(replay.questions)
    for number, *row in connection.execute(
        "SELECT number, dataset, key, analyst, epsilon, delta, state, answer FROM questions"
    ):
        question = replay.questions.get(number)
        if question is None or tuple(row[-2:]) != (question.state, question.answer):
            raise derived.beside("states of questions")
        if tuple(row) != derived.question_row(question):
            raise bad(number, "is not what the table of questions says", "One of the two was changed.")
        left.discard(number)
    if left:
        raise bad(min(left), "is not in the table of questions", "Its row was removed.")


def _compare_releases(connection: sqlite3.Connection, replay: Replay) -> None:
    """Each release is the one that was recorded, and was made at no more than its charge."""
    missing = {number for number, question in replay.questions.items() if question.state == "answered"}
    for number, content in connection.execute("SELECT question, content FROM releases"):
        question = replay.questions.get(number)
        if number not in missing or question is None or question.release != digest(content):
            raise bad(number, "has another release than was recorded", "The stored answer was changed.")
        if not made_within(content, {"epsilon": question.epsilon, "delta": question.delta, "rho": question.rho}):
            raise bad(number, "has a release of another price", "Its noise was made for more than was charged.")
        missing.discard(number)
    if missing:
        raise bad(min(missing), "has lost its release", "The stored answer was removed.")


# --- the rules


@dataclass
class Replay(Projection):
    """The state after so many entries, each of which was allowed when it was written.

    A total that somebody lowers, lets the ledger spend, and puts back leaves no trace in the tables; here it shows,
    because the charges themselves add up to more than the budget of that moment.
    """

    def _follow(self, entry: Entry) -> None:
        data = entry.data  # every body is read, also of what decides nothing here
        self._apply(entry, data)
        if entry.kind == "suspension":
            require(data["action"] in {"suspend", "resume"}, "It neither suspends nor resumes.")
            require(bool(data.get("analyst")) != bool(data.get("dataset")), "It names nobody, or two at once.")
            require(bool(data["reason"]) and bool(data["by"]), "It does not say why, or by whom.")

    def _check_charge(self, question: ChargedQuestion, data: dict[str, Any]) -> None:
        """What was taken is the price of what was typed and covers the event, and the periods fit the budget."""
        budget = self.budgets[question.dataset]
        require((budget.period is None) == (question.periods == (WHOLE,)), "Its periods do not fit the budget.")
        price = budget.filter().price(question.epsilon, question.delta)
        due = price.rho if isinstance(price, ZCDP) else price.epsilon
        taken = _taken(question, budget)
        require(due <= taken * TOLERANCE, "It was charged less than its ε costs.")
        units = (whole_units(taken), whole_units(question.delta))
        require(question.units == units, "It was added up as something else than it cost.")
        event, paid = from_json(data["event"]), replace(price, rho=taken) if isinstance(price, ZCDP) else price
        require(is_sampled(event) == (question.sampled is not None), "It does not say what its sampled noise costs.")
        caps = self._caps(question, data) if is_sampled(event) else {}
        orders = budget.sampling_orders(question.epsilon, *caps.values()) if caps else ()
        require(covers(paid, event, orders), "Its event costs more than was charged.")
        if question.sampled is not None:
            filters = {who: budget.filter(cap) for who, cap in caps.items()}
            require(data["losses"] == losses(question.sampled, filters), "Its sampled noise costs something else.")

    def _caps(self, question: ChargedQuestion, data: dict[str, Any]) -> dict[str, float]:
        """The caps, at that moment, of all totals that pay for a question."""
        return {who: self._cap(question.dataset, who) for who in sharing.payers(data)}

    def _cap(self, dataset: str, analyst: str) -> float:
        return self.allotments[dataset, analyst] if analyst else self.budgets[dataset].epsilon

    def _check_room(self, question: ChargedQuestion, period: str, analyst: str) -> None:
        budget = self.budgets[question.dataset]
        price: PureDP | ZCDP | SampledLoss
        if question.sampled is not None:
            price = question.sampled
        elif budget.accounting is Accounting.ZCDP:
            price = ZCDP(_taken(question, budget), question.delta, budget.neighbors)
        else:
            price = PureDP(question.epsilon, budget.neighbors)
        cap = self._cap(question.dataset, analyst) * TOLERANCE
        guard = budget.filter(cap, *self.spent(question.dataset, period, analyst))
        require(guard.admits(price), "It did not fit into what was left.")


def _taken(question: ChargedQuestion, budget: Budget) -> float:
    if budget.accounting is not Accounting.ZCDP:
        return question.epsilon
    require(question.rho is not None, "It has no price.")
    return question.rho  # type: ignore[return-value]
