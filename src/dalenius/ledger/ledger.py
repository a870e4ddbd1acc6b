"""The ledger: one file, one chain, one place where it is decided whether a charge may happen.

Charge, then look: the charge is on disk before the engine starts, and the release before any byte of it leaves.
Nothing is ever refunded. How a question goes through is in `charging`; this module opens the file, appends to the
history, and keeps the owner's records.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dalenius.accounting import parameters
from dalenius.accounting.orders import SampledLoss
from dalenius.errors import InputError, LedgerCorruptError, LedgerUnavailableError, UnknownReceiptError
from dalenius.ledger import charging, database, derived, publications, questions, receipts, sharing
from dalenius.ledger.actions import AUTHORED, OWNER_KINDS, TABLE_KINDS, author, check_named, check_plain
from dalenius.ledger.budgets import Balance, Budget
from dalenius.ledger.chain import ANCHOR, Anchor, Entry, Head, canonical, link, origin
from dalenius.ledger.database import NAME, Database
from dalenius.ledger.home import LedgerKeys
from dalenius.ledger.projection import Projection
from dalenius.ledger.proof import Checkpoint, Proof, ProvedView, behind, beside_anchor
from dalenius.ledger.publications import PublishedRows
from dalenius.ledger.receipts import Receipt
from dalenius.ledger.requests import WHOLE, Answered, Claim, Request, Waiting

_RECEIPT = re.compile("R([0-9]{1,18})-([0-9a-f]{12})")
_BLOCK = 10_000  # entries in one view


class Ledger:
    """The durable record of all budgets, charges, releases and owner actions of one home.

    >>> import tempfile; home = Path(tempfile.mkdtemp()) / "home"
    >>> ledger = Ledger.create(home)
    >>> ledger.set_budget("students", Budget(epsilon=3.0, delta=1e-6))
    >>> ledger.set_allotment("students", "ana", 1.0)
    >>> round(ledger.balance("students", "ana").remaining_epsilon, 6)
    1.0
    """

    def __init__(self, home: Path, keys: LedgerKeys) -> None:
        self.home = home
        self.keys = keys
        self.anchor = Anchor(home, keys.chain)
        self.database = Database(home / NAME)
        self.proof = Proof(keys.chain, Checkpoint(home, keys.chain))
        self._queue = (os.getpid(), threading.Lock())

    @classmethod
    def create(cls, home: Path) -> Ledger:
        """A new ledger in ``home`` (made if missing). An existing one is never touched."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        if _is_there(home / NAME):
            raise InputError("There is a ledger here already.", why="A ledger is never replaced.", fix="Use it.")
        ledger = cls(home, LedgerKeys.create(home))
        start = Head(0, origin(ledger.keys.chain))
        if not ledger.anchor.exists:
            ledger.anchor.create(start)
        elif ledger.anchor.read().count > 0:
            raise _removed()
        tail = start

        def fill(connection: sqlite3.Connection) -> None:
            nonlocal tail
            entry = ledger.write(connection, start, "ledger", canonical({"format": 1}))
            tail = Head(entry.number, entry.hash)

        ledger.database.create(fill)
        ledger.anchor.advance(tail)
        return ledger

    @classmethod
    def open(cls, home: Path) -> Ledger:
        """The ledger in ``home``, if its key fits and nothing was cut off since it was last written."""
        there = _is_there(home / NAME)
        if not there and _is_there(home / ANCHOR) and Anchor(home, LedgerKeys.load(home).chain).read().count > 0:
            raise _removed()
        if not there:
            raise LedgerUnavailableError(
                "There is no ledger here.",
                why=f"{NAME} is missing from the home.",
                fix="Start one with 'dalenius protect', or name another home with --home.",
            )
        ledger = cls(home, LedgerKeys.load(home))
        # The anchor follows each commit, so a view taken after it was read is never behind an honest one.
        anchored = ledger.anchor.read()
        with ledger.database.reading() as connection:
            first = _entry(connection.execute("SELECT * FROM entries WHERE number = 1").fetchone())
            if first is None or first.hash != ledger.link(origin(ledger.keys.chain), first):
                raise LedgerCorruptError(
                    "The chain key does not belong to this ledger, or its first entry was changed.",
                    why="The first entry is not authentic under keys/chain.key.",
                    fix="Restore ledger and keys from the same backup.",
                )
            ledger._check_tail(connection, anchored)
        return ledger

    # --- the history

    def append(self, kind: str, data: Mapping[str, Any]) -> Entry:
        """Adds one entry, in a durable transaction of its own."""
        with self.turn() as (_, append):
            return append(kind, data)

    @contextmanager
    def turn(self) -> Iterator[tuple[ProvedView, questions.Append]]:
        """A durable transaction that can append entries; the anchor follows once it is on disk.

        It has what the history says: all of it, proved up to its last entry, and it stays so meanwhile.
        """
        turn = self._turn
        if not turn.acquire(timeout=database.BUSY_SECONDS):
            raise LedgerUnavailableError(
                "The ledger cannot be used.", why="Others wait for it too.", fix="Try again in a while."
            )
        try:
            with self.database.writing() as connection:
                view = self.proof.follow(connection, self.anchor.read(), self.proof.known)
                tail = Head(view.state.count, view.state.head)
                written = []

                def append(kind: str, data: Mapping[str, Any]) -> Entry:
                    nonlocal tail
                    signed = {"by": author(), **data} if kind in AUTHORED else data
                    entry = self.write(connection, tail, kind, canonical(signed))
                    tail = Head(entry.number, entry.hash)
                    written.append(entry)
                    return entry

                yield view, append
            self.proof.add(written)
            self.anchor.advance(tail)
        finally:
            turn.release()

    @contextmanager
    def view(self) -> Iterator[ProvedView]:
        """One consistent view of the file and what its entries say, proved; never older than what was seen before."""
        # The anchor follows each commit, so a view taken after it was read is never behind an honest one.
        anchored, known = self.anchor.read(), self.proof.known
        with self.database.reading() as connection:
            yield self.proof.follow(connection, anchored, known)

    @contextmanager
    def state(self) -> Iterator[Projection]:
        """What the entries say now; held still for as long as it is looked at."""
        with self.view() as view, self.proof.lock:
            yield view.state

    def write(self, connection: sqlite3.Connection, tail: Head, kind: str, body: str) -> Entry:
        """The entry after ``tail``, in the file."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        number = tail.count + 1
        hashed = link(self.keys.chain, tail.hash, number, kind, time, body)
        connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (number, kind, time, body, hashed))
        return Entry(number, kind, time, body, hashed)

    @property
    def _turn(self) -> threading.Lock:
        """Threads queue here rather than in SQLite's busy loop; a forked child starts a queue of its own."""
        process, lock = self._queue
        if process != os.getpid():
            self._queue = (os.getpid(), lock := threading.Lock())
        return lock

    def _check_tail(self, connection: sqlite3.Connection, anchored: Head) -> None:
        """Refuses a file that is behind the anchor, or beside it; quickly, before anything of it is used."""
        row = connection.execute("SELECT number FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        tail = row[0] if row else 0
        if anchored.count > tail:
            raise behind(tail, anchored.count)
        found = connection.execute("SELECT hash FROM entries WHERE number = ?", (anchored.count,)).fetchone()
        if (found[0] if found else origin(self.keys.chain)) != anchored.hash:
            raise beside_anchor(anchored.count)

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """All entries past a number, in order, each proved authentic before it is handed out."""
        while True:
            with self.view() as view:
                found = self.proof.entries(view, range(after + 1, min(view.end, after + _BLOCK) + 1))
            yield from found
            if not found:
                return
            after = found[-1].number

    def unproved(self) -> Iterator[Entry]:
        """All entries as they lie in the file, unproved: for telling what can still be read of a broken history."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT number, kind, time, body, hash FROM entries ORDER BY number").fetchall()
        return (Entry(*row) for row in rows)

    @property
    def head(self) -> Head:
        """The head of the history, all of which was proved."""
        with self.state() as state:
            return Head(state.count, state.head)

    def link(self, previous: bytes, entry: Entry) -> bytes:
        """What an entry's hash must be."""
        return link(self.keys.chain, previous, entry.number, entry.kind, entry.time, entry.body)

    # --- the owner's records

    def record(self, kind: str, data: Mapping[str, Any]) -> Entry:
        """An owner action: a policy, a publication, a refresh, a token, a note."""
        if kind not in OWNER_KINDS:
            raise InputError(
                f"{kind!r} is not an owner action.", why=f"Known: {', '.join(sorted(OWNER_KINDS))}.", fix="Use one."
            )
        check_plain(data)
        return self.append(kind, data)

    def record_all(
        self,
        records: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        since: int,
        overtaken: Callable[[Sequence[Entry]], bool],
    ) -> list[Entry] | None:
        """Owner actions about tables that belong together: all of them, or none; None if others came first.

        Args:
            records: Kind and content of each, of `TABLE_KINDS`. An "epoch" says that the people of a data set are new
                ones: what was spent on those before no longer counts, from the next entry on.
            since: The last entry that was seen when they were thought out.
            overtaken: Whether entries of these kinds that were written after ``since`` change the case; asked inside
                the transaction, so that no two processes build on the same state.
        """
        for kind, data in records:
            if kind not in TABLE_KINDS:
                raise InputError(
                    f"{kind!r} is not about a table.", why=f"Known: {', '.join(TABLE_KINDS)}.", fix="Use one."
                )
            check_plain(data)
        with self.turn() as (view, append):
            if overtaken(self.proof.of_kinds(view, TABLE_KINDS, since)):
                return None
            done = []
            for kind, data in records:
                if kind == "epoch":
                    charging.begin_epoch(view, data["dataset"], data["epoch"], data["reason"])
                done.append(append(kind, data))
            return done

    def set_budget(self, dataset: str, budget: Budget, reason: str = "") -> None:
        """Gives a data set its budget, or changes its size; accounting, relation and unit are for ever."""
        check_named(dataset, "data set")
        with self.turn() as (view, append):
            before = view.state.budgets.get(dataset)
            derived.check_budget(view.connection, view.state, dataset)
            if before is not None:
                before.check_change(budget)
            append("budget", {"dataset": dataset, "budget": budget.to_dict(), "reason": reason})
            view.connection.execute(
                "INSERT OR REPLACE INTO budgets VALUES (?, ?)", (dataset, canonical(budget.to_dict()))
            )

    def set_allotment(self, dataset: str, analyst: str, epsilon: float) -> None:
        """What one analyst may spend of a data set's budget."""
        epsilon = parameters.epsilon(epsilon)
        check_named(analyst, "analyst")
        with self.turn() as (view, append):
            view.state.budget_of(dataset)
            derived.check_allotment(view.connection, view.state, dataset, analyst)
            append("allotment", {"dataset": dataset, "analyst": analyst, "epsilon": epsilon})
            view.connection.execute("INSERT OR REPLACE INTO allotments VALUES (?, ?, ?)", (dataset, analyst, epsilon))

    def end_allotment(self, dataset: str, analyst: str) -> None:
        """Takes an analyst's allotment back. What was spent stays spent, also for an allotment given later."""
        with self.turn() as (view, append):
            derived.check_allotment(view.connection, view.state, dataset, analyst)
            if (dataset, analyst) in view.state.allotments:
                append("allotment", {"dataset": dataset, "analyst": analyst, "epsilon": 0})
                view.connection.execute("DELETE FROM allotments WHERE dataset = ? AND analyst = ?", (dataset, analyst))

    def records(self, kinds: Sequence[str], after: int = 0) -> Iterator[Entry]:
        """Owner actions of some kinds, in order: all there are, each proved authentic before it is handed out."""
        with self.view() as view:
            found = self.proof.of_kinds(view, kinds, after)
        yield from found

    def receipt(self, id: str, analyst: str | None = None) -> Receipt:  # noqa: A002
        """The receipt of an answer or a grant again, by its id; with ``analyst``, only if it is that analyst's.

        Another analyst's receipt is refused exactly as one that was never given.
        """
        match = _RECEIPT.fullmatch(id)
        number = int(match[1]) if match else 0
        with self.view() as view:
            if match and 0 < number <= view.end and view.state.hash_of(number).hex().startswith(match[2]):
                entry = self.proof.entry(view, number)
                if entry.kind in {"answer", "grant"} or publications.read_entry(entry) is not None:
                    charged = entry.data.get("charge")
                    charge = {} if charged is None else self.proof.entry(view, charged).data
                    found = receipts.content(entry, charge)
                    if analyst in {None, found.analyst}:
                        return receipts.write(self.keys, found)
        raise UnknownReceiptError(
            "There is no such receipt.",
            why="None with this id was given, or not to you.",
            fix="Copy the id as it stands in the receipt.",
        )

    def published(self, dataset: str) -> tuple[PublishedRows, ...]:
        """What was published, without a guarantee, of the people that a data set is about now; oldest first."""
        return publications.published(self, dataset)

    def epoch(self, dataset: str) -> int:
        """How often the people of a data set were declared to be new ones."""
        with self.state() as state:
            return state.epochs.get(dataset, 0)

    def budget(self, dataset: str) -> Budget:
        """The budget of a data set."""
        with self.state() as state:
            return state.budget_of(dataset)

    def datasets(self) -> list[str]:
        """All data sets that have a budget."""
        with self.state() as state:
            return sorted(state.budgets)

    def allotments(self, dataset: str) -> dict[str, float]:
        """What each analyst was allotted."""
        with self.state() as state:
            return {who: epsilon for (where, who), epsilon in sorted(state.allotments.items()) if where == dataset}

    def periods(self, dataset: str) -> list[str]:
        """The periods that have been charged."""
        with self.state() as state:
            return sorted({period for where, period, _ in state.totals if where == dataset}) or [WHOLE]

    def periods_between(self, dataset: str, after: int, before: int | None = None) -> frozenset[str]:
        """The periods that were charged past one entry and before another; None: until now."""
        with self.state() as state:
            asked = (each for each in state.questions.values() if each.dataset == dataset and each.number > after)
            return frozenset(
                label for each in asked if before is None or each.number < before for label in each.periods
            )

    def balance(self, dataset: str, analyst: str = "", period: str = WHOLE) -> Balance:
        """What a data set, or one analyst in it, has spent and has left."""
        with self.state() as state:
            return state.balance(dataset, analyst, period)

    def spent(self, dataset: str, period: str, analyst: str) -> tuple[tuple[int, int], tuple[SampledLoss, ...]]:
        """What is spent of one running total, as a filter takes it: loss and δ in whole units, and sampled noise."""
        with self.state() as state:
            return state.spent(dataset, period, analyst)

    # --- the way of a question

    def charge(self, request: Request) -> Claim | Answered | Waiting:
        """One try: a stored answer, a new charge claimed by this process, or somebody else is at it."""
        return charging.charge(self, request)

    def answer(self, claim: Claim, content: bytes) -> Answered:
        """Stores the release of a claimed question; durable when this returns, and only then may it leave."""
        return charging.answer(self, claim, content)

    def fail(self, claim: Claim) -> None:
        """Ends a claimed question without a release. The charge stays."""
        charging.fail(self, claim)

    def content(self, receipt: Receipt) -> tuple[dict[str, Any], bytes]:
        """What was charged and what was stored for a receipt of this ledger (`receipt`)."""
        with self.view() as view:
            number = self.proof.entry(view, receipt.entry).data["charge"]
            stored, _ = questions.release_of(self, view, view.state.questions[number])
            return questions.charge_of(self, view, number), stored

    def entry(self, number: int) -> Entry:
        """One entry, proved authentic."""
        with self.view() as view:
            return self.proof.entry(view, number)

    def shared(self, claim: Claim) -> bytes:
        """The stored answer of another analyst from which a claimed question is to be made (`Claim.shares`)."""
        return sharing.content(self, claim)

    def ask(
        self,
        request: Request,
        work: Callable[[Claim], bytes],
        *,
        patience: float = 300.0,
        waited: Callable[[], None] = lambda: None,
        goes_on: bool = False,
    ) -> Answered:
        """Charges, looks, stores and returns; a concurrent identical question waits for the one answer.

        Args:
            request: What is asked.
            work: Looks, once it is charged.
            patience: Seconds that it waits for whoever answers the same question.
            waited: Called each time that such a wait has ended.
            goes_on: What is stopped by hand is taken up when the same is asked again, as after a crash.
        """
        return charging.ask(self, request, work, patience=patience, waited=waited, goes_on=goes_on)


def _removed() -> LedgerCorruptError:
    return LedgerCorruptError(
        "The ledger was removed.",
        why=f"The anchor remembers it, but {NAME} is gone.",
        fix="Restore it from your backup. Nothing can be asked until then.",
    )


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:
        raise LedgerUnavailableError(
            "The home cannot be read.",
            why="This user has no access to it.",
            fix="Run as the user who owns the home, or name another one with --home.",
        ) from None


def _entry(row: tuple[Any, ...] | None) -> Entry | None:
    return Entry(*row) if row else None
