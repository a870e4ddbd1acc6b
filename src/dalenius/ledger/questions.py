"""One charged question in the file: its entries, its release, who holds it, how it ends, and who comes back to it.

Who comes back finds the own answers alone: what an analyst has paid for before is free now, and may be read. What
others asked is theirs to know: whether a question is free, and what a preview can tell, must be the same whatever they
did.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineFailedError, InputError, LedgerCorruptError, SourceChangedError
from dalenius.ledger import derived, receipts
from dalenius.ledger.chain import Entry, digest
from dalenius.ledger.requests import Answered, Claim, Request, Waiting

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import ChargedQuestion, Projection
    from dalenius.ledger.proof import ProvedView

Append = Callable[[str, Mapping[str, Any]], Entry]

LEASE_SECONDS = 600.0
_MOST_PRICES = 16  # answers to one question that are read to see what is known of it
_PROC = Path("/proc")
# The claims of this process that are being worked on. A claim whose work broke off is as good as dead.
_ACTIVE: set[str] = set()


def charge_of(ledger: Ledger, view: ProvedView, number: int) -> dict[str, Any]:
    """What the charge of a question says."""
    return ledger.proof.entry(view, number).data


def release_of(ledger: Ledger, view: ProvedView, question: ChargedQuestion) -> tuple[bytes, Entry]:
    """The release of an answered question and the entry that records it; refuses one that was changed."""
    row = view.connection.execute("SELECT content FROM releases WHERE question = ?", (question.number,)).fetchone()
    if question.answer is None or row is None or digest(bytes(row[0])) != question.release:
        raise LedgerCorruptError(
            "The stored answer was changed.",
            why="It is not the one that was recorded.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    return bytes(row[0]), ledger.proof.entry(view, question.answer)


def paid_before(ledger: Ledger, view: ProvedView, question: ChargedQuestion, analyst: str) -> Answered:
    """The release of an answered question, for nothing, to the analyst who has paid for it.

    A grant is how earlier releases of dalenius let a second analyst pay for a stored answer; none is written any more.
    """
    granted = view.state.grants.get((question.number, analyst))
    derived.check_grant(view.connection, view.state, question.number, analyst)
    if granted is None and question.analyst != analyst:
        raise LedgerCorruptError(
            "This answer belongs to somebody else.",
            why="By the history, this analyst has not paid for it.",
            fix="Run 'dalenius ledger verify' and restore a good copy.",
        )
    derived.holder_of(view.connection, question)
    content, answered = release_of(ledger, view, question)
    paying = answered if granted is None else ledger.proof.entry(view, granted)
    charge = charge_of(ledger, view, question.number)
    return Answered(content, receipts.write(ledger.keys, receipts.content(paying, charge)), free=True)


def take_over(connection: sqlite3.Connection, question: ChargedQuestion, holder: str, fence: int) -> Claim:
    """The claim of a dead holder, with the price at which the question was charged: the history's, not the table's."""
    connection.execute(
        "UPDATE questions SET holder = ?, lease = ?, fence = ? WHERE number = ?",
        (holder, time.time() + LEASE_SECONDS, fence, question.number),
    )
    sampled = None if question.sampled is None else question.sampled.event
    return Claim(question.number, holder, fence, question.epsilon, question.delta, question.shares, sampled)


def end(connection: sqlite3.Connection, append: Append, number: int) -> None:
    """No release will come; what the question cost stays spent."""
    append("failure", {"charge": number})
    connection.execute("UPDATE questions SET state = 'failed' WHERE number = ?", (number,))


# --- who holds a claim, and whether that process is provably dead
#
# A claim is taken over only then. Even a wrong verdict could not let two answers out: the commit that stores a release
# checks the claim's fencing token, and a release leaves only after it is stored.


def new_holder() -> str:
    """A holder for one claim: machine and boot, process id and its start, and a nonce of its own."""
    nonce = secrets.token_hex(8)
    _ACTIVE.add(nonce)
    return f"{_boot()} {os.getpid()} {_own_start(os.getpid())} {nonce}"


def let_go(holder: str) -> None:
    """The work on this claim has ended, one way or the other."""
    _ACTIVE.discard(holder.rpartition(" ")[2])


def is_dead(holder: str) -> bool:
    """Whether the holder has certainly ended: its machine was restarted, or its process is gone or another one."""
    words = holder.split()
    if len(words) != 4:
        return True  # not a holder we ever wrote
    machine, _, boot = words[0].partition("/")
    here, _, now = _boot().partition("/")
    if machine != here:
        return False  # another machine: nothing can be proved from here
    if boot != now:
        return True
    if words[1] == str(os.getpid()):
        return words[3] not in _ACTIVE
    started = _start(int(words[1])) if words[1].isdigit() else None
    if started is None:
        return not _exists(int(words[1]))
    return words[2] not in {"-", started}


@lru_cache(maxsize=1)
def _boot() -> str:
    return (
        f"{_read(Path('/etc/machine-id')) or os.uname().nodename}/{_read(_PROC / 'sys/kernel/random/boot_id') or '-'}"
    )


@lru_cache(maxsize=1)
def _own_start(process: int) -> str:
    return _start(process) or "-"


def _start(process: int) -> str | None:
    """When a process started, in clock ticks since boot; None where /proc does not tell, or for a zombie."""
    stat = _read(_PROC / str(process) / "stat")
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in {"Z", "X"} else None


def _exists(process: int) -> bool:
    if (_PROC / "self").exists():
        return _start(process) is not None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None


# --- requests that come twice
#
# A client that got no answer sends its request again, and it is charged once. It names each of its requests with an
# idempotency key. The charge (or the grant of a stored answer) keeps the pair (hash of analyst and key, hash of the
# request's body), and whoever comes with a known key gets what became of that charge, whatever the budget is by now,
# and is never charged a second time. What charged nothing leaves no trace: it may be tried again.


class NeverChargedError(EngineFailedError):
    """What was to be taken up again was never paid for, so there is nothing to take up."""


def never_charged() -> NeverChargedError:
    """For who comes back to a request that left no charge: taking it up would be a charge that nobody asked for."""
    return NeverChargedError(
        "This question was not charged before it was interrupted.",
        why="What is taken up again is never charged, and nothing was paid for here.",
        fix="Ask again.",
    )


@dataclass(frozen=True, slots=True)
class Failed:
    """The request was charged when it first came, and ended without a release."""

    epsilon: float
    delta: float

    def error(self) -> EngineFailedError:
        """For who asks again; its charge is that of this time: nothing."""
        return EngineFailedError(
            "This request failed when it was first asked.",
            why=f"It was charged then (ε = {self.epsilon:g}, δ = {self.delta:g}) and is not charged again.",
            fix="To try anew, at the full price, ask with another idempotency key.",
        )


def come_again(
    ledger: Ledger, view: ProvedView, append: Append, request: Request, holder: str
) -> Claim | Answered | Waiting | Failed | None:
    """What became of the same request; None if it is the first of its key. Inside the transaction that charges."""
    if request.retry is None:
        return None
    key, body = request.retry
    derived.check_retry(view.connection, view.state, request.analyst, key)
    found = view.state.retries.get((request.analyst, key))
    if found is None:
        return None
    known, number = found
    if known != body:
        raise InputError(
            "This idempotency key was used for another request.",
            why="A key names one request, so that sending it twice charges once.",
            fix="Send the first request unchanged, or take a new key for this one.",
        )
    question = view.state.questions[number]
    same = (question.dataset, question.key) == (request.dataset, request.stored_key)
    if question.state == "answered":
        paid = paid_before(ledger, view, question, request.analyst)
        if same:
            return paid
        # Its release is in the terms of a plan that is no longer the question's.
        raise SourceChangedError(
            "This request was answered before its data or its policy changed.",
            why="It was charged then, and its answer is about the data as it was.",
            fix="Ask with another idempotency key; that is a new question, and a new charge.",
        )
    other, fence = derived.holder_of(view.connection, question)
    if question.state == "failed":
        return Failed(question.epsilon, question.delta)
    if not is_dead(other):
        return Waiting(number, other)
    if same:
        return take_over(view.connection, question, holder, fence + 1)
    # What was charged for is no longer there to be looked at.
    end(view.connection, append, number)
    return Failed(question.epsilon, question.delta)


def retry_member(request: Request) -> dict[str, Any]:
    """What the entry that pays for a request says about its key."""
    return {} if request.retry is None else {"retry": list(request.retry)}


def remember(connection: sqlite3.Connection, request: Request, question: int) -> None:
    """From now on a request with this key is that question."""
    if request.retry is not None:
        connection.execute("INSERT INTO retries VALUES (?, ?, ?, ?)", (request.analyst, *request.retry, question))


def is_sent_again(ledger: Ledger, analyst: str, key: str) -> bool:
    """Whether a request of this key was charged before: then it is that charge, and nothing else."""
    with ledger.state() as state:
        return (analyst, key) in state.retries


# --- what an analyst has paid for before


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """A stored release of the analyst who asks, and the price at which it was made."""

    epsilon: float
    delta: float
    content: bytes


def best_answer(state: Projection, request: Request) -> ChargedQuestion | None:
    """Of the answers this analyst has paid for and that are as accurate as asked, the most accurate."""
    paid = (each for each in suitable(state, request) if _is_own(state, each, request.analyst))
    return max(paid, key=lambda each: each.epsilon, default=None)


def suitable(state: Projection, request: Request) -> list[ChargedQuestion]:
    """The questions of the same meaning that were charged at least what is asked now, oldest first.

    A δ that nobody typed asks for nothing: it follows what is left, and the same question must stay free.
    """
    least = 0.0 if request.delta_chosen else request.delta
    return [
        each
        for each in state.asked_before(request.dataset, request.stored_key)
        if each.epsilon >= request.epsilon and each.delta >= least
    ]


def is_paid(ledger: Ledger, request: Request) -> bool:
    """Whether asking this now would cost its analyst nothing: decided as the charge itself decides it."""
    with ledger.state() as state:
        return best_answer(state, request) is not None


def answers_to(ledger: Ledger, dataset: str, analyst: str, stored_key: str) -> list[PaidAnswer]:
    """The answers that this analyst has paid for to a question of this meaning, at whatever price, oldest first.

    Where there are many, the most accurate ones: they are all read for each preview.
    """
    with ledger.state() as state:
        own = [each for each in state.asked_before(dataset, stored_key) if _is_own(state, each, analyst)]
        least = sorted((each.epsilon for each in own), reverse=True)[:_MOST_PRICES][-1:]
        found = [each for each in own if each.epsilon >= least[0]][-_MOST_PRICES:] if least else []
    return list(_contents(ledger, found))


def recent_answers(ledger: Ledger, dataset: str, analyst: str, most: int, largest: int) -> Iterator[PaidAnswer]:
    """The latest answers of this analyst in a data set, whatever was asked, newest first, read one after another.

    Those of more bytes than ``largest`` are passed over.
    """
    with ledger.state() as state:
        own = (each for each in reversed(state.questions.values()) if each.dataset == dataset)
        found = list(islice((each for each in own if _is_own(state, each, analyst)), most))
    for charge, content in zip(found, own_contents(ledger, found, largest), strict=True):
        if content is not None:
            yield PaidAnswer(charge.epsilon, charge.delta, content)


def charges_of_kind(
    ledger: Ledger, dataset: str, analyst: str, begins: str, epsilon: float, most: int
) -> list[ChargedQuestion]:
    """What this analyst has paid at least that for, of stored keys that begin so, the most accurate first."""
    with ledger.state() as state:
        own = (each for each in reversed(state.questions.values()) if each.dataset == dataset)
        paid = (each for each in own if each.key.startswith(begins) and each.epsilon >= epsilon)
        found = list(islice((each for each in paid if _is_own(state, each, analyst)), most))
    return sorted(found, key=lambda each: each.epsilon, reverse=True)


def own_charges(
    ledger: Ledger, dataset: str, analyst: str, most: int, until: int | None = None
) -> list[ChargedQuestion]:
    """The latest questions in a data set that this analyst has paid for and had answered, newest first.

    ``until``: those that were answered up to that entry, by their answers. Whoever comes back finds the same ones
    again, whatever was answered since.
    """
    with ledger.state() as state:
        own = [each for each in state.questions.values() if each.dataset == dataset and _is_own(state, each, analyst)]
    if until is not None:
        own = [each for each in own if each.analyst == analyst and each.answer is not None and each.answer <= until]
        own.sort(key=lambda each: each.answer or 0)
    return own[: -most - 1 : -1]


def own_contents(ledger: Ledger, charges: list[ChargedQuestion], largest: int) -> Iterator[bytes | None]:
    """The bytes of these answers, each as it was recorded, one after another; None: they are more than ``largest``."""
    if not charges:
        return
    with ledger.view() as view:
        for each in charges:
            (size,) = view.connection.execute(
                "SELECT MAX(length(content)) FROM releases WHERE question = ?", (each.number,)
            ).fetchone()
            if size is not None and size > largest:
                yield None
                continue
            derived.holder_of(view.connection, each)
            yield release_of(ledger, view, each)[0]


def own_releases(ledger: Ledger, charges: list[ChargedQuestion], analyst: str) -> list[Answered]:
    """The same with their receipts."""
    with ledger.view() as view:
        return [paid_before(ledger, view, each, analyst) for each in charges]


def _is_own(state: Projection, question: ChargedQuestion, analyst: str) -> bool:
    own = question.analyst == analyst or (question.number, analyst) in state.grants
    return own and question.state == "answered"


def _contents(ledger: Ledger, found: list[ChargedQuestion]) -> Iterator[PaidAnswer]:
    if not found:  # as for most new questions: no second look
        return
    with ledger.view() as view:
        for each in found:
            derived.holder_of(view.connection, each)
            content, _ = release_of(ledger, view, each)
            yield PaidAnswer(each.epsilon, each.delta, content)
