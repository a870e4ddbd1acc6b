"""The ledger: one file, one chain, one place where it is decided whether a charge may happen.

Charge, then look: the charge is on disk before the engine starts, and the release before any byte of it leaves.
Nothing is ever refunded. How a question goes through is in `charging`; this module opens the file, appends to the
history, and keeps the owner's records.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dalenius.accounting import parameters
from dalenius.errors import InputError, LedgerCorruptError, LedgerUnavailableError, UnknownReceiptError
from dalenius.ledger import anchor, charging, database, questions
from dalenius.ledger.anchor import Anchor, Head
from dalenius.ledger.authors import author
from dalenius.ledger.budgets import Balance, Budget, Filter
from dalenius.ledger.chain import Entry, canonical, link, origin
from dalenius.ledger.database import NAME, Database
from dalenius.ledger.keys import Keys
from dalenius.ledger.receipts import Receipt
from dalenius.ledger.requests import WHOLE, Answered, Claim, Request, Waiting

# Kinds that anyone may `record`; the others are written by their own methods, which keep totals in step.
OWNER_KINDS = frozenset({"policy", "limits", "publication", "refresh", "closed", "token", "note"})
# Kinds that say who did it ("by"); entries of before that do not are as good.
AUTHORED = OWNER_KINDS | {"budget", "allotment", "epoch", "suspension"}
# Entries, each with the hash of the one before it.
_OF_KINDS = """SELECT e.*, p.hash FROM entries e LEFT JOIN entries p ON p.number = e.number - 1
    WHERE e.number > ? AND e.kind IN (SELECT value FROM json_each(?)) ORDER BY e.number"""
_NUMBERED = """SELECT e.*, p.hash FROM entries e LEFT JOIN entries p ON p.number = e.number - 1 WHERE e.number = ?"""
_RECEIPT = re.compile("R([0-9]{1,18})-([0-9a-f]{12})")
# What decides which rows a question about a table reads, and whether it may.
TABLE_KINDS = ("policy", "refresh", "closed", "epoch")


class Ledger:
    """The durable record of all budgets, charges, releases and owner actions of one home.

    >>> import tempfile; home = Path(tempfile.mkdtemp()) / "home"
    >>> ledger = Ledger.create(home)
    >>> ledger.set_budget("students", Budget(epsilon=3.0, delta=1e-6))
    >>> ledger.set_allotment("students", "ana", 1.0)
    >>> round(ledger.balance("students", "ana").remaining_epsilon, 6)
    1.0
    """

    def __init__(self, home: Path, keys: Keys) -> None:
        self.home = home
        self.keys = keys
        self.anchor = Anchor(home, keys.chain)
        self.database = Database(home / NAME)
        self._queue = (os.getpid(), threading.Lock())

    @classmethod
    def create(cls, home: Path) -> Ledger:
        """A new ledger in ``home`` (made if missing). An existing one is never touched."""
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        if _is_there(home / NAME):
            raise InputError("There is a ledger here already.", why="A ledger is never replaced.", fix="Use it.")
        ledger = cls(home, Keys.create(home))
        start = Head(0, origin(ledger.keys.chain))
        if not ledger.anchor.exists:
            ledger.anchor.create(start)
        elif ledger.anchor.read().count > 0:
            raise _removed()
        tail = start

        def fill(connection: sqlite3.Connection) -> None:
            nonlocal tail
            entry = ledger.written(connection, start, "ledger", canonical({"format": 1}))
            tail = Head(entry.number, entry.hash)

        ledger.database.create(fill)
        ledger.anchor.advance(tail)
        return ledger

    @classmethod
    def open(cls, home: Path) -> Ledger:
        """The ledger in ``home``, if its key fits and nothing was cut off since it was last written."""
        there = _is_there(home / NAME)
        if not there and _is_there(home / anchor.NAME) and Anchor(home, Keys.load(home).chain).read().count > 0:
            raise _removed()
        if not there:
            raise LedgerUnavailableError(
                "There is no ledger here.",
                why=f"{NAME} is missing from the home.",
                fix="Start one with 'dalenius protect', or name another home with --home.",
            )
        ledger = cls(home, Keys.load(home))
        with ledger.database.reading() as connection:
            first = _entry(connection.execute("SELECT * FROM entries WHERE number = 1").fetchone())
            if first is None or first.hash != ledger.link(origin(ledger.keys.chain), first):
                raise LedgerCorruptError(
                    "The chain key does not belong to this ledger, or its first entry was changed.",
                    why="The first entry is not authentic under keys/chain.key.",
                    fix="Restore ledger and keys from the same backup.",
                )
        ledger.head  # noqa: B018 (refuses a file that is behind its anchor)
        return ledger

    # --- the history

    def append(
        self, kind: str, data: Mapping[str, Any], effect: Callable[[sqlite3.Connection, Entry], None] | None = None
    ) -> Entry:
        """Adds one entry, with its effect on the derived tables, in one durable transaction."""
        with self.transaction() as (connection, append):
            entry = append(kind, data)
            if effect is not None:
                effect(connection, entry)
        return entry

    @contextmanager
    def transaction(self) -> Iterator[tuple[sqlite3.Connection, Callable[[str, Mapping[str, Any]], Entry]]]:
        """A durable transaction that can append entries; the anchor follows once it is on disk."""
        turn = self._turn
        if not turn.acquire(timeout=database.BUSY_SECONDS):
            raise LedgerUnavailableError(
                "The ledger cannot be used.", why="Others wait for it too.", fix="Try again in a while."
            )
        try:
            with self.database.writing() as connection:
                tail = self._checked_tail(connection, self.anchor.read())

                def append(kind: str, data: Mapping[str, Any]) -> Entry:
                    nonlocal tail
                    signed = {"by": author(), **data} if kind in AUTHORED else data
                    entry = self.written(connection, tail, kind, canonical(signed))
                    tail = Head(entry.number, entry.hash)
                    return entry

                yield connection, append
            self.anchor.advance(tail)
        finally:
            turn.release()

    def written(self, connection: sqlite3.Connection, tail: Head, kind: str, body: str) -> Entry:
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

    def _checked_tail(self, connection: sqlite3.Connection, anchored: Head) -> Head:
        """The head of the file; refuses a file that is behind the anchor, or beside it."""
        row = connection.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        tail = Head(*row) if row else Head(0, origin(self.keys.chain))
        if anchored.count > tail.count:
            raise LedgerCorruptError(
                f"The ledger ends at entry {tail.count}, but had {anchored.count}.",
                why="Its tail was cut off, or an old copy was put in its place.",
                fix="Restore the newest copy, together with its anchor. Nothing can be asked until then.",
            )
        if anchored.count == tail.count:
            at_anchor = tail.hash
        else:
            found = connection.execute("SELECT hash FROM entries WHERE number = ?", (anchored.count,)).fetchone()
            at_anchor = found[0] if found else origin(self.keys.chain)
        if at_anchor != anchored.hash:
            raise LedgerCorruptError(
                f"Entry {anchored.count} is not the one that was written.",
                why="Its hash differs from the anchor's.",
                fix="Run 'dalenius ledger verify' to find the first bad entry, and restore a good copy.",
            )
        return tail

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """All entries past a number, in order, as they stand in the file."""
        while True:
            with self.database.reading() as connection:
                rows = connection.execute(
                    "SELECT * FROM entries WHERE number > ? ORDER BY number LIMIT 10000", (after,)
                ).fetchall()
            for row in rows:
                yield Entry(*row)
            if not rows:
                return
            after = rows[-1][0]

    @property
    def head(self) -> Head:
        """The head of the history."""
        # The anchor follows each commit, so a view taken after it was read is never behind an honest one.
        anchored = self.anchor.read()
        with self.database.reading() as connection:
            return self._checked_tail(connection, anchored)

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
        _check_plain(data)
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
            _check_plain(data)
        with self.transaction() as (connection, append):
            if overtaken(self.proved(connection, TABLE_KINDS, since)):
                return None
            done = []
            for kind, data in records:
                if kind == "epoch":
                    charging.begin_epoch(connection, data["dataset"], data["epoch"], data["reason"])
                done.append(append(kind, data))
            return done

    def set_budget(self, dataset: str, budget: Budget, reason: str = "") -> None:
        """Gives a data set its budget, or changes its size; accounting, relation and unit are for ever."""
        check_name(dataset, "data set")

        def effect(connection: sqlite3.Connection, _: Entry) -> None:
            row = connection.execute("SELECT body FROM budgets WHERE dataset = ?", (dataset,)).fetchone()
            if row is not None:
                Budget.from_json(row[0]).check_change(budget)
            connection.execute("INSERT OR REPLACE INTO budgets VALUES (?, ?)", (dataset, canonical(budget.to_dict())))

        self.append("budget", {"dataset": dataset, "budget": budget.to_dict(), "reason": reason}, effect)

    def set_allotment(self, dataset: str, analyst: str, epsilon: float) -> None:
        """What one analyst may spend of a data set's budget."""
        epsilon = parameters.epsilon(epsilon)
        check_name(analyst, "analyst")
        self.budget(dataset)

        def effect(connection: sqlite3.Connection, _: Entry) -> None:
            connection.execute("INSERT OR REPLACE INTO allotments VALUES (?, ?, ?)", (dataset, analyst, epsilon))

        self.append("allotment", {"dataset": dataset, "analyst": analyst, "epsilon": epsilon}, effect)

    def end_allotment(self, dataset: str, analyst: str) -> None:
        """Takes an analyst's allotment back. What was spent stays spent, also for an allotment given later."""

        def effect(connection: sqlite3.Connection, _: Entry) -> None:
            connection.execute("DELETE FROM allotments WHERE dataset = ? AND analyst = ?", (dataset, analyst))

        if analyst in self.allotments(dataset):
            self.append("allotment", {"dataset": dataset, "analyst": analyst, "epsilon": 0}, effect)

    def records(self, kinds: Sequence[str], after: int = 0) -> Iterator[Entry]:
        """Owner actions of some kinds, in order, each proved authentic before it is handed out."""
        with self.database.reading() as connection:
            found = self.proved(connection, kinds, after)
        yield from found

    def proved(self, connection: sqlite3.Connection, kinds: Sequence[str], after: int = 0) -> list[Entry]:
        """The same, inside a transaction."""
        return self._authentic(connection.execute(_OF_KINDS, (after, json.dumps(list(kinds)))))

    def _authentic(self, rows: Iterable[tuple[Any, ...]]) -> list[Entry]:
        """Entries, each with the hash of the one before it, if they are as they were written."""
        found = []
        for *columns, previous in rows:
            entry = Entry(*columns)
            if entry.hash != self.link(previous or origin(self.keys.chain), entry):
                raise LedgerCorruptError(
                    f"Entry {entry.number} was changed.",
                    why="It does not fit its hash and the entry before it.",
                    fix="Run 'dalenius ledger verify', and restore a good copy of ledger and anchor.",
                )
            found.append(entry)
        return found

    def receipt(self, id: str, analyst: str | None = None) -> Receipt:  # noqa: A002
        """The receipt of an answer or a grant again, by its id; with ``analyst``, only if it is that analyst's.

        Another analyst's receipt is refused exactly as one that was never given.
        """
        match = _RECEIPT.fullmatch(id)
        with self.database.reading() as connection:
            (entry,) = self._numbered(connection, int(match[1]) if match else 0) or (None,)
            if match and entry and entry.kind in {"answer", "grant"} and entry.hash.hex().startswith(match[2]):
                (charge,) = self._numbered(connection, entry.data["charge"])
                found = questions.receipt_of(self.keys, entry, charge.data)
                if analyst in {None, found.analyst}:
                    return found
        raise UnknownReceiptError(
            "There is no such receipt.",
            why="None with this id was given, or not to you.",
            fix="Copy the id as it stands in the receipt.",
        )

    def _numbered(self, connection: sqlite3.Connection, number: int) -> list[Entry]:
        """That entry, or none."""
        return self._authentic(connection.execute(_NUMBERED, (number,)))

    def epoch(self, dataset: str) -> int:
        """How often the people of a data set were declared to be new ones."""
        with self.database.reading() as connection:
            return charging.epoch_of(connection, dataset)

    def budget(self, dataset: str) -> Budget:
        """The budget of a data set."""
        with self.database.reading() as connection:
            return charging.budget_of(connection, dataset)

    def datasets(self) -> list[str]:
        """All data sets that have a budget."""
        with self.database.reading() as connection:
            return [row[0] for row in connection.execute("SELECT dataset FROM budgets ORDER BY dataset")]

    def allotments(self, dataset: str) -> dict[str, float]:
        """What each analyst was allotted."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT analyst, epsilon FROM allotments WHERE dataset = ? ORDER BY analyst", (dataset,)
            ).fetchall()
        return dict(rows)

    def periods(self, dataset: str) -> list[str]:
        """The periods that have been charged."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT DISTINCT period FROM totals WHERE dataset = ? ORDER BY period", (dataset,)
            ).fetchall()
        return [row[0] for row in rows] or [WHOLE]

    def balance(self, dataset: str, analyst: str = "", period: str = WHOLE) -> Balance:
        """What a data set, or one analyst in it, has spent and has left."""
        with self.database.reading() as connection:
            budget = charging.budget_of(connection, dataset)
            cap = charging.allotment_of(connection, dataset, analyst) if analyst else budget.epsilon
            guard: Filter = charging.filter_of(connection, budget, dataset, period, analyst, cap)
            whole: Filter = charging.filter_of(connection, budget, dataset, period, "", budget.epsilon)
            row = connection.execute(
                "SELECT charges FROM totals WHERE dataset = ? AND period = ? AND analyst = ?",
                (dataset, period, analyst),
            ).fetchone()
        left = min(guard.remaining_epsilon, whole.remaining_epsilon)  # an allotment never buys more than there is
        left_delta = min(guard.remaining_delta, whole.remaining_delta)
        return Balance(budget, cap, guard.spent, left, left_delta, row[0] if row else 0, period)

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

    def ask(
        self,
        request: Request,
        work: Callable[[Claim], bytes],
        *,
        patience: float = 300.0,
        waited: Callable[[], None] = lambda: None,
    ) -> Answered:
        """Charges, looks, stores and returns; a concurrent identical question waits for the one answer.

        Args:
            request: What is asked.
            work: Looks, once it is charged.
            patience: Seconds that it waits for whoever answers the same question.
            waited: Called each time that such a wait has ended.
        """
        return charging.ask(self, request, work, patience=patience, waited=waited)


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


def _check_plain(data: Mapping[str, Any]) -> None:
    try:
        canonical(data).encode()
    except (TypeError, ValueError):
        raise InputError(
            "This cannot be recorded.", why="A record is plain JSON data.", fix="Give strings, numbers, lists."
        ) from None


def check_name(value: str, what: str) -> None:
    """Refuses what is no name for a data set or an analyst."""
    if not value or len(value) > 200 or not value.isprintable():
        raise InputError(
            f"This is no name for a {what}.", why="It is empty, too long or unprintable.", fix="Choose another."
        )
