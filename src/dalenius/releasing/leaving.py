"""The one way out. Whatever leaves is priced, charged, paced, looked at, stored and only then handed over, here.

Order, and why: the sources are unchanged and the engine can begin, or nothing is charged; the charge is on disk before
anybody looks (`ledger.charging`); who looks gets a place, and may still be stopped from looking (`pacing`); what was
read is what was protected, or it is thrown away; the bytes are on disk before they are returned, at a time that was
fixed beforehand. Failures never refund.

Guarantee:
    That of the charged event, for every kind: `look` runs once per charge, after it, with the ε and δ that were charged
    and not those that are asked for now. Bytes that are made from another analyst's (`coarsen`) are post-processing of
    what was charged to the data set before (`ledger.sharing`).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineError
from dalenius.ledger import questions, suspensions
from dalenius.ledger.actions import CURATOR
from dalenius.ledger.publications import warning
from dalenius.ledger.requests import OWNER, WHOLE, Answered, Claim, Request, key_stored
from dalenius.releasing.keeping import Kept, drop_ended
from dalenius.releasing.pacing import Pace, Pacer, hold_for, run_paced

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.projection import ChargedQuestion
    from dalenius.ledger.questions import PaidAnswer
    from dalenius.ledger.requests import Ceiling
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.engines.sources import Engines
    from dalenius.releasing.snapshot import Snapshot
    from dalenius.tables.registry import Registry


Told = Callable[[int, int], None]  # how many steps are done, of how many


def _silent(done: int, steps: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True)
class Asker:
    """Who asks, with all that an asker's releases go through: one analyst, or the owner.

    Attributes:
        name: Whose allotment pays; `OWNER`: the data set alone.
        ledger: Where it is charged.
        registry: The tables.
        engines: Where they are read.
        pacer: When releases leave (`pacing`); None: as soon as they are ready.
        resumes: Only what was paid for before is taken up, and nothing is charged.
        free: Whether what is free is answered too.
        again: What a request is known by that may be sent again; "": it is not.
        told: Told how far a long look is, in steps: on the machine itself, and by a server those whom the owner trusts.
    """

    name: str
    ledger: Ledger
    registry: Registry
    engines: Engines
    pacer: Pacer | None = None
    resumes: bool = False
    free: bool = True
    again: str = ""
    told: Told | None = None

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner, who pays from the data set and is never suspended."""
        return self.name == OWNER

    @property
    def whose(self) -> str:
        """By what name work is counted as this asker's own (`metering`)."""
        return f"{self.ledger.home}\0{self.name}"

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """Reading, planning and previews, public questions as well: for a server, within this asker's share.

        It counts as the asker's: who makes an own question late by more of them is no victim of others.
        """
        from dalenius.measuring.engines.duckdb.confined import planning
        from dalenius.measuring.engines.duckdb.metering import metered

        with planning(), metered(self.whose):
            yield

    def remaining(self, dataset: str, periods: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """The largest ε and δ that one more release like this may type: in the scarcest of its periods."""
        found = {}
        with self.ledger.state() as state:  # one look, in which both fit each other
            for who, analyst in (("analyst", self.name), ("dataset", "")):
                left = [state.left(dataset, analyst, period) for period in periods]
                found[who] = {"epsilon": min(each[0] for each in left), "delta": min(each[1] for each in left)}
        return found

    def warnings(self, dataset: str) -> tuple[str, ...]:
        """What must be said wherever a price or a guarantee is: that rows were published, and ε no longer bounds it."""
        found = warning(self.ledger.published(dataset))
        return (found,) if found else ()

    def salt(self, dataset: str) -> str:
        """The key of the hash that chooses groups: fixed for a data set, unknown to analysts."""
        return hmac.new(self.ledger.keys.chain, b"groups " + dataset.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Look:
    """The one look that a charge pays for.

    Attributes:
        engine: Where the rows are.
        epsilon: What was charged, which may be more than is asked for now.
        delta: The same.
        salt: The key of the hash that chooses groups.
        seconds: How long it may take.
        sampled: The event that was charged, where it has sampled noise: the noise must be just that.
        kept: Where a long look keeps how far it is; None: nobody takes it up (`Leaving.goes_on`).
        told: Told how far it is. Where answers leave at fixed times nobody is: it would tell how fast rows are.
        charge: The number of the entry that charged it.
    """

    engine: Engine
    epsilon: float
    delta: float
    salt: str
    seconds: float
    sampled: Event | None = None
    kept: Kept | None = None
    told: Told = _silent
    charge: int = 0


@dataclass(frozen=True)
class Leaving:
    """What is about to leave: planned and priced, and nothing of it looked at.

    Attributes:
        kind: The name of its kind.
        snapshot: The tables it reads, as they are.
        key: What identifies it, besides its kind: the same key is the same release, and free for who paid for it.
        epsilon: Its price, taken alone.
        event: What its mechanisms will do; it must cost no more.
        pace: When it leaves.
        look: Makes its bytes.
        delta: The δ of parts that need one.
        asked: What was asked, in words; its hash is on record.
        periods: Of the budget, all that it reads.
        coarsen: Makes its bytes from those of the same release at a higher price: given ε, δ and the bytes.
        shareable: Whether another analyst's may serve so: nothing is chosen from the data, and the owner allows it.
        plan: What its kind needs to show it (`Kind.show`).
        delta_chosen: Nobody typed the δ: what was paid for before is the same release, whatever its δ was.
        ceiling: The most that may be charged where nobody typed the price, as it follows from an accuracy.
        goes_on: Its look keeps how far it is, and is taken up where it was: also if it was stopped by hand.
    """

    kind: str
    snapshot: Snapshot
    key: str
    epsilon: float
    event: Event
    pace: Pace
    look: Callable[[Look], bytes]
    delta: float = 0.0
    asked: str = ""
    periods: tuple[str, ...] = (WHOLE,)
    coarsen: Callable[[float, float, bytes], bytes] | None = None
    shareable: bool = False
    plan: Any = None
    delta_chosen: bool = False
    ceiling: Ceiling | None = None
    goes_on: bool = False


def release(
    leaving: Leaving, asker: Asker, *, retry: tuple[str, str] | None = None, patience: float | None = None
) -> Answered:
    """Lets it leave: charged, looked at and stored, or found where it was stored before.

    Args:
        leaving: What leaves.
        asker: Who pays, and when it may leave.
        retry: What the ledger knows a request by that is sent again.
        patience: Seconds to wait for another process that makes the same.
    """
    ledger, snapshot = asker.ledger, leaving.snapshot
    snapshot.check_unchanged()
    engine = snapshot.engine(asker.engines)
    engine.ready()  # an unreadable file, or an engine that cannot begin, is found before anything is charged
    hold, waits = hold_for(asker.pacer, leaving.pace), list[bool]()
    told = asker.told if asker.told is not None and (asker.pacer is None or not asker.pacer.fixed) else _silent

    def waited() -> None:
        hold()
        waits.append(True)

    def work(claim: Claim) -> bytes:
        def look(seconds: float) -> bytes:
            if claim.shares is not None:  # the data set did not pay for a look
                return _coarsen(leaving, claim, ledger.shared(claim))
            salt = asker.salt(snapshot.dataset)
            kept = Kept(ledger, claim.number, leaving.key) if leaving.goes_on else None
            paid = Look(engine, claim.epsilon, claim.delta, salt, seconds, claim.sampled, kept, told, claim.number)
            return _look(leaving, paid)

        # Who has waited for another's answer until the own time leaves then: noise alone is added, nobody looks.
        pacer = None if claim.shares is not None and waits else asker.pacer
        alarm, allowed = _Alarm(asker, leaving, claim), _allowed(asker, snapshot.dataset)
        return run_paced(pacer, leaving.pace, look, alarm, whose=asker.whose, allowed=allowed)

    more: dict[str, Any] = {} if patience is None else {"patience": patience}
    try:
        return ledger.ask(_request(leaving, asker, retry), work, waited=waited, goes_on=leaving.goes_on, **more)
    finally:
        if leaving.goes_on:
            drop_ended(ledger)


def is_paid(leaving: Leaving, asker: Asker) -> bool:
    """Whether this asker has paid for just that before, so that it would leave for nothing. Others' do not count."""
    return questions.is_paid(asker.ledger, _request(leaving, asker))


def paid_answers(asker: Asker, kind: str, snapshot: Snapshot, key: str) -> list[PaidAnswer]:
    """This asker's own releases of one meaning, at any price, oldest first: they are the asker's to read."""
    return questions.answers_to(asker.ledger, snapshot.dataset, asker.name, key_stored(kind, key, snapshot.epoch))


def charges_of_kind(
    asker: Asker, kind: str, snapshot: Snapshot, epsilon: float, most: int, key: str = ""
) -> list[ChargedQuestion]:
    """This asker's latest own releases of one kind about the same people, at that price or more, the best first.

    ``key``: only those of one meaning.
    """
    begins = key_stored(kind, key, snapshot.epoch)
    return questions.charges_of_kind(asker.ledger, snapshot.dataset, asker.name, begins, epsilon, most)


def recent_answers(asker: Asker, snapshot: Snapshot, most: int, largest: int) -> Iterator[PaidAnswer]:
    """This asker's latest own releases about the same data set, newest first; larger ones are passed over."""
    return questions.recent_answers(asker.ledger, snapshot.dataset, asker.name, most, largest)


def own_charges(asker: Asker, dataset: str, most: int, until: int | None = None) -> list[ChargedQuestion]:
    """What this asker has paid for about a data set, latest first: what it is, and not yet what it says.

    ``until``: only up to the one whose answer is that entry of the ledger.
    """
    return questions.own_charges(asker.ledger, dataset, asker.name, most, until)


def own_contents(asker: Asker, charges: list[ChargedQuestion], largest: int) -> Iterator[bytes | None]:
    """The stored bytes of own releases, one after another; None for what is larger than that."""
    return questions.own_contents(asker.ledger, charges, largest)


def own_releases(asker: Asker, charges: list[ChargedQuestion]) -> list[Answered]:
    """Own releases with their receipts."""
    return questions.own_releases(asker.ledger, charges, asker.name)


def _request(leaving: Leaving, asker: Asker, retry: tuple[str, str] | None = None) -> Request:
    return Request(
        leaving.snapshot.dataset,
        asker.name,
        leaving.key,
        leaving.epsilon,
        leaving.event,
        leaving.delta,
        question=leaving.asked,
        periods=leaving.periods,
        epoch=leaving.snapshot.epoch,
        retry=retry,
        paid_only=asker.resumes,
        shareable=leaving.shareable and leaving.coarsen is not None,
        kind=leaving.kind,
        delta_chosen=leaving.delta_chosen,
        ceiling=leaving.ceiling,
    )


def _coarsen(leaving: Leaving, claim: Claim, content: bytes) -> bytes:
    if leaving.coarsen is None:
        raise RuntimeError("A kind whose releases cannot be shared was charged as one that is.")
    return leaving.coarsen(claim.epsilon, claim.delta, content)


def _look(leaving: Leaving, look: Look) -> bytes:
    """Looks; what was read is what was protected."""
    from dalenius.measuring.engines.engine import within

    before = leaving.snapshot.state()
    try:
        with within(look.seconds):  # all statements together
            content = leaving.look(look)
    except EngineError:
        leaving.snapshot.check_kept(before)  # a file that was exchanged under the look says why
        raise
    leaving.snapshot.check_kept(before)
    return content


@dataclass(frozen=True)
class _Alarm:
    """Tells the owner, on record."""

    asker: Asker
    leaving: Leaving
    claim: Claim

    def __call__(self, what: str, own: bool) -> None:
        ledger, number, dataset = self.asker.ledger, self.claim.number, self.leaving.snapshot.dataset
        analyst, most = self.asker.name, self.leaving.pace.late
        if what == "overdue":
            if not self.asker.is_owner:
                suspensions.record_overdue(ledger, charge=number, analyst=analyst, dataset=dataset, most=most)
        elif what == "late" and not self.asker.is_owner:
            suspensions.record_late(ledger, charge=number, analyst=analyst, dataset=dataset, own=own, most=most)
        else:
            ledger.record("note", {"alarm": what, "charge": number, "dataset": dataset, "by": CURATOR})


def _allowed(asker: Asker, dataset: str) -> Callable[[], None]:
    def check() -> None:
        if not asker.is_owner:
            suspensions.check_now(asker.ledger, asker.name, dataset)

    return check
