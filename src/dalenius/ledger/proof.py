"""Following the history: each entry is proved before anything is made of it, and never believed a second time unread.

An entry is proved by its hash, an HMAC over the entry before it with a key that is not in the file. From proved entries
a `Projection` is kept in memory; each transaction first reads on from where the last one stopped. Who writes the file
between two statements, and puts back what was there, changes nothing that was read before and can forge nothing that
is read after. What is read again later (the entry of a charge, for its receipt) must have the hash it had.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from dalenius.accounting.event_json import from_json, to_json
from dalenius.accounting.orders import SampledLoss
from dalenius.errors import LedgerCorruptError
from dalenius.ledger.budgets import Budget
from dalenius.ledger.chain import Entry, Head, canonical, link, origin
from dalenius.ledger.projection import HASH, BrokenRuleError, ChargedQuestion, Projection
from dalenius.ledger.publications import PublishedRows
from dalenius.ledger.suspensions import Standing, Standings
from dalenius.ledger.tokens import Role, Token

_ON = "SELECT number, kind, time, body, hash FROM entries WHERE number >= ? ORDER BY number"
_LISTED = """SELECT e.number, e.kind, e.time, e.body, e.hash FROM json_each(?) j CROSS JOIN entries e
    ON e.number = j.value"""
_BLOCK = 5_000  # entries that are read again at once

CHECKPOINT = "ledger.checkpoint"
FORMAT = 4  # of a projection: another one is not read
_WORTH = 500  # entries: fewer are read faster than a checkpoint is written
_MAC = 64
_NAMES = ChargedQuestion.__slots__
_VALUES = attrgetter(*_NAMES)


@dataclass(frozen=True, slots=True)
class ProvedView:
    """One view of the file, and what its entries say. The state may be newer than the view, never older."""

    connection: sqlite3.Connection
    state: Projection
    end: int  # the last entry in the view


class Proof:
    """What is known of one history, for all threads of one process."""

    def __init__(self, key: bytes, checkpoint: Checkpoint) -> None:
        self._key = key
        self._checkpoint = checkpoint
        self._state: Projection | None = None
        self._floor = Head(0, origin(key))  # the longest history that was ever proved here: it is never left again
        self._lock = (os.getpid(), threading.RLock())

    @property
    def lock(self) -> threading.RLock:
        """Held while the state is read or moved on; a forked child starts with a lock and a state of its own."""
        process, lock = self._lock
        if process != os.getpid():
            self._lock, self._state = (os.getpid(), lock := threading.RLock()), None
        return lock

    @property
    def known(self) -> int:
        """How many entries were proved so far: all of them were committed, so a view that begins now has them."""
        return self._floor.count

    def follow(self, connection: sqlite3.Connection, anchored: Head, least: int) -> ProvedView:
        """The state as of this view of the file, or a newer one; refuses a history that is not what it was.

        Args:
            connection: In a transaction.
            anchored: The anchor, read before the transaction began.
            least: What was `known` before the transaction began.
        """
        with self.lock:
            state, self._state = self._state, None  # kept only if all goes well; if not, it is read anew
            start = 0 if state is None else state.count
            fresh = state is None
            if state is None:
                state = self._checkpoint.load(connection) or Projection(origin(self._key))
                start = state.count
            end = self._read_on(connection, state)
            if end < max(anchored.count, least):
                raise behind(end, max(anchored.count, least))
            for head in (anchored, self._floor):
                if head.count > 0 and state.hash_of(head.count) != head.hash:
                    raise beside_anchor(head.count)
            self._state, self._floor = state, Head(state.count, state.head)
            if fresh:
                self._checkpoint.save(state, state.count - start)
            return ProvedView(connection, state, end)

    def _read_on(self, connection: sqlite3.Connection, state: Projection) -> int:
        """Proves and adds what is new. Returns where the view ends."""
        rows = connection.execute(_ON, (state.count,))
        if state.count > 0:
            row = rows.fetchone()
            if row is None:  # the view is older than the state, or the file was cut
                found = connection.execute("SELECT number FROM entries ORDER BY number DESC LIMIT 1").fetchone()
                return found[0] if found else 0
            self._again(state, Entry(*row), state.count)
        for row in rows:
            entry = Entry(*row)
            number = state.count + 1
            if entry.number != number:
                raise bad(number, "is missing", "The entries around it follow each other, but it is gone.")
            if entry.hash != self._link(state.head, entry):
                raise bad(number, "was changed", "It does not fit its hash and the entry before it.")
            try:
                state.add(entry)
            except BrokenRuleError as error:
                raise bad(number, "was not allowed", str(error)) from None
        return state.count

    def add(self, entries: Iterable[Entry]) -> None:
        """Entries of our own, once they are on disk. Another thread may have read some of them meanwhile."""
        with self.lock:
            state, self._state = self._state, None
            if state is None:
                return
            with suppress(BrokenRuleError):  # then it is read anew from the file, which says which entry it is
                for entry in entries:
                    if entry.number == state.count + 1:
                        state.add(entry)
                self._state, self._floor = state, Head(state.count, state.head)

    # --- reading again

    def entry(self, view: ProvedView, number: int) -> Entry:
        """One entry, as it was when it was proved."""
        (found,) = self.entries(view, [number])
        return found

    def of_kinds(self, view: ProvedView, kinds: Iterable[str], after: int) -> list[Entry]:
        """All entries of some kinds past a number, in order. None is missing: their numbers are known."""
        with self.lock:
            numbers = [
                each for kind in set(kinds) for each in _between(view.state.kinds.get(kind, []), after, view.end)
            ]
        return self.entries(view, sorted(numbers))

    def entries(self, view: ProvedView, numbers: Sequence[int]) -> list[Entry]:
        """These entries, each of them as it was when it was proved."""
        found: list[Entry] = []
        for start in range(0, len(numbers), _BLOCK):
            block = numbers[start : start + _BLOCK]
            rows = {row[0]: row for row in view.connection.execute(_LISTED, (json.dumps(list(block)),))}
            for number in block:
                if number not in rows:
                    raise bad(number, "is missing", "It was there when it was read before.")
                entry = Entry(*rows[number])
                self._again(view.state, entry, number)
                found.append(entry)
        return found

    def _again(self, state: Projection, entry: Entry, number: int) -> None:
        """An entry that was proved before, read again: the same as then."""
        before = state.hash_of(number - 1) if number > 1 else origin(self._key)
        if entry.number != number:
            raise bad(number, "is missing", "It was there when it was read before.")
        if entry.hash != state.hash_of(number) or entry.hash != self._link(before, entry):
            raise bad(number, "was changed", "It is not what it was when it was read before.")

    def _link(self, previous: bytes, entry: Entry) -> bytes:
        return link(self._key, previous, entry.number, entry.kind, entry.time, entry.body)


class Checkpoint:
    """The file in which a projection is kept, so that a new process need not read all entries.

    A cache and nothing more. It is authenticated with the chain's key, and good only if the entry it stopped at still
    has the hash it had; a missing, forged, foreign or unreadable one means reading from the first entry, and an old one
    means reading more. It is written by the process that had to read many entries, when it has: a server that runs for
    months writes none, and no question waits for one.
    """

    def __init__(self, home: Path, key: bytes) -> None:
        self._file = home / CHECKPOINT
        self._key = key

    def load(self, connection: sqlite3.Connection) -> Projection | None:
        """The projection that was kept, if it is authentic and of this history."""
        try:
            content = self._file.read_bytes()
        except OSError:
            return None
        mac, text = content[:_MAC], content[_MAC:]
        if not hmac.compare_digest(mac, self._mac(text)):
            return None
        data = json.loads(text)
        if data["format"] != FORMAT:
            return None
        state = _restored(data)
        row = connection.execute("SELECT hash FROM entries WHERE number = ?", (state.count,)).fetchone()
        return state if row is not None and row[0] == state.head else None

    def save(self, state: Projection, read: int) -> None:
        """Keeps a projection for whose making so many entries were read. Where that fails, it is done without."""
        if read < _WORTH:
            return
        text = canonical(_kept(state)).encode()
        new = self._file.with_name(f"{CHECKPOINT}.{os.getpid()}.new")
        with suppress(OSError):
            try:
                with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                    out.write(self._mac(text) + text)
                new.replace(self._file)
            finally:
                new.unlink(missing_ok=True)

    def _mac(self, text: bytes) -> bytes:
        return hmac.digest(self._key, b"checkpoint " + text, "sha256").hex().encode()


def _kept(state: Projection) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "hashes": base64.b64encode(bytes(state.hashes)).decode(),
        "kinds": state.kinds,
        "budgets": {name: budget.to_dict() for name, budget in state.budgets.items()},
        "allotments": [[*place, epsilon] for place, epsilon in state.allotments.items()],
        "totals": [[*place, str(loss), str(delta), charges] for place, (loss, delta, charges) in state.totals.items()],
        "sampled": [[*place, numbers] for place, numbers in state.sampled.items()],
        "epochs": state.epochs,
        "questions": [_kept_question(each) for each in state.questions.values()],
        "grants": [[*place, number] for place, number in state.grants.items()],
        "retries": [[*place, *known] for place, known in state.retries.items()],
        "standings": [[*subject, *astuple(standing)] for subject, standing in state.standings.known.items()],
        "overdue": [[*subject, charge, most] for (subject, charge), most in state.standings.overdue.items()],
        "tokens": [[*astuple(token), kept] for token, kept in state.tokens.values()],
        "publications": [astuple(each) for each in state.publications],
    }


def _kept_question(question: ChargedQuestion) -> list[Any]:
    values = list(_VALUES(question))
    values[_NAMES.index("units")] = list(map(str, question.units))
    if question.sampled is not None:
        values[_NAMES.index("sampled")] = [to_json(question.sampled.event), question.sampled.delta]
    return values


def _restored(data: dict[str, Any]) -> Projection:
    hashes = bytearray(base64.b64decode(data["hashes"]))
    state = Projection(
        bytes(hashes[-HASH:]),
        hashes,
        data["kinds"],
        {name: Budget.from_dict(each) for name, each in data["budgets"].items()},
        {(dataset, analyst): epsilon for dataset, analyst, epsilon in data["allotments"]},
        {
            (dataset, period, analyst): (int(loss), int(delta), charges)
            for dataset, period, analyst, loss, delta, charges in data["totals"]
        },
        {(dataset, period, analyst): numbers for dataset, period, analyst, numbers in data["sampled"]},
        data["epochs"],
        grants={(question, analyst): number for question, analyst, number in data["grants"]},
        retries={(analyst, key): (body, question) for analyst, key, body, question in data["retries"]},
        standings=Standings(
            {(kind, name): Standing(*standing) for kind, name, *standing in data["standings"]},
            {((kind, name), charge): most for kind, name, charge, most in data["overdue"]},
        ),
        tokens={name: (Token(name, Role(role), *rest), kept) for name, role, *rest, kept in data["tokens"]},
        publications=[PublishedRows(*each) for each in data["publications"]],
    )
    units, periods, sampled = map(_NAMES.index, ("units", "periods", "sampled"))
    for each in data["questions"]:
        each[units], each[periods] = tuple(map(int, each[units])), tuple(each[periods])
        if each[sampled] is not None:
            event, delta = each[sampled]
            each[sampled] = SampledLoss(from_json(event), delta)
        state.keep(ChargedQuestion(*each))
    return state


def _between(numbers: list[int], after: int, end: int) -> list[int]:
    """Of ascending numbers, those past one and up to another."""
    return numbers[bisect_right(numbers, after) : bisect_right(numbers, end)]


def bad(number: int, what: str, why: str) -> LedgerCorruptError:
    """An entry that is not what it must be."""
    return LedgerCorruptError(
        f"Entry {number} {what}.",
        why=why,
        fix="Restore the newest good copy of ledger and anchor; do not answer questions from this one.",
    )


def behind(count: int, had: int) -> LedgerCorruptError:
    """A history that is shorter than it was."""
    return LedgerCorruptError(
        f"The ledger ends at entry {count}, but had {had}.",
        why="Its tail was cut off, or an old copy was put in its place.",
        fix="Restore the newest copy, together with its anchor. Nothing can be asked until then.",
    )


def beside_anchor(count: int) -> LedgerCorruptError:
    """A history that is another one than was anchored."""
    return LedgerCorruptError(
        f"Entry {count} is not the one that was written.",
        why="Its hash differs from the anchor's.",
        fix="Run 'dalenius ledger verify' to find the first bad entry, and restore a good copy.",
    )
