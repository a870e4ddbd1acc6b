"""Joint statistics: a curator and a party under one roof.

`dalenius.joint` knows how parties add up, `dalenius.queries.jointly` what is added and what it costs. Here one is
handed to the other: a run is planned, met for, charged, and only then looked at; or taken up where it broke off.

What breaks off stays open: its charge, and what was written down of it, wait to be taken up again (`run_files`). A run
of which that is gone is dead, and its charge stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.curator import Curator
from dalenius.errors import (
    BudgetError,
    DaleniusError,
    InputError,
    PartyGoneError,
    PartyRefusedError,
    PolicyError,
    QuestionError,
    SourceUnavailableError,
)
from dalenius.joint.adding import add_up, show_charges
from dalenius.joint.meeting import PATIENCE, Post, new_run_id
from dalenius.joint.run_files import RunFiles
from dalenius.joint.statements import Statement, digest_task
from dalenius.joint.tasks import TASKS, Call
from dalenius.ledger.requests import key_stored
from dalenius.queries.jointly.kind import KIND, NAME, JointRequest, shown
from dalenius.queries.jointly.planning import JointAsk, check_left, plan_joint
from dalenius.queries.jointly.terms import TASK, terms_of
from dalenius.queries.rules.clause import settle_price
from dalenius.releasing.leaving import Asker, charges_of_kind, own_releases, release
from dalenius.tables.policy import JOINT

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from dalenius.joint.config import Party
    from dalenius.joint.run import Run
    from dalenius.joint.run_files import RunRecord
    from dalenius.joint.tasks import Task
    from dalenius.queries.jointly.planning import JointPlan
    from dalenius.queries.release import Release


@dataclass(frozen=True)
class Seat:
    """One party's part in one run: who it is, what was planned, and what it is known by.

    Attributes:
        terms: What all parties agreed on, as one hash.
        mark: The same with this party's data version: by it a question is known again here.
    """

    party: Party
    asker: Asker
    files: RunFiles
    planned: JointPlan
    task: Mapping[str, Any]
    terms: str
    mark: str

    @classmethod
    def of(cls, party: Party, ask: JointAsk) -> Seat:
        """Planned from this party's own policies. Never touches the data, and charges nothing."""
        curator = Curator(party.folder.parent)
        asker = Asker(JOINT, curator.ledger, curator.registry, curator.engines)
        key = hmac.new(curator.ledger.keys.chain, b"joint runs", hashlib.sha256).digest()
        planned = plan_joint(asker, ask)
        task = terms_of(planned)
        terms = digest_task(task, ask.parties, ask.threshold)
        mark = hashlib.sha256(f"{terms} {planned.snapshot.data_version}".encode()).hexdigest()
        return cls(party, asker, RunFiles(party.folder, key), planned, task, terms, mark)

    def key(self, run: bytes) -> str:
        """What identifies a run's release: begun with its question, so that the same one is found again."""
        return f"{self.mark} {run.hex()}"

    def charged(self, run: bytes) -> tuple[int, str] | None:
        """The entry that charged a run, and what became of it; None: it never was.

        Charged for another question, or for data that has changed since, it is "other": one run is one look here, or
        what others bring could be opened beside two draws of this party's noise.
        """
        own = key_stored(NAME, self.key(run), self.planned.snapshot.epoch)
        with self.asker.ledger.state() as state:
            found = [each for each in state.questions.values() if each.key.endswith(f" {run.hex()}")]
        if not found:
            return None
        return found[-1].number, found[-1].state if found[-1].key == own else "other"

    def known(self) -> Release | None:
        """The answer, where just that was asked before, of the same parties and people: it is free."""
        found = charges_of_kind(self.asker, NAME, self.planned.snapshot, self.planned.ask.epsilon, 1, self.mark)
        answers = own_releases(self.asker, found)
        return shown(self.asker, self.planned, answers[0]) if answers else None

    def unfinished(self) -> RunRecord | None:
        """A run of this question that this party began and has no answer of yet."""
        found = self.files.unfinished(self.mark, self.party.card.name)
        return next((each for each in found if (self.charged(each.run) or (0, "claimed"))[1] == "claimed"), None)

    def take(self, run: bytes, beginner: str) -> RunRecord:
        """What is written down of a run; for a new one, that it begins.

        Raises:
            DaleniusError: The run is dead, or there is no budget for it. Nothing is charged.
        """
        self.files.sweep()
        record, charged = self.files.find(run), self.charged(run)
        if charged is not None and (record is None or charged[1] not in {"claimed", "answered"}):
            self.end(run)
            raise _dead()
        if record is not None and record.terms != self.mark:
            raise InputError(
                "This run was begun about something else.",
                why="The question or a policy changed since.",
                fix="Ask again: that is a new run, and a new charge.",
            )
        if charged is None:  # whatever would stop this party later stops it now, when nobody has paid
            check_left(self.asker, self.planned)
            self.planned.snapshot.check_unchanged()
        return record or self.files.begin(run, self.mark, beginner)

    def end(self, run: bytes) -> None:
        """Puts on record that a charged run is dead. Its charge stays."""
        charged = self.charged(run)
        if charged is not None and charged[1] == "other":  # not for this question to end
            return
        if charged is not None and charged[1] == "claimed":
            leaving = KIND.prepare(self.asker, JointRequest(self.planned, self.key(run), Nobody()))
            with suppress(DaleniusError):
                release(leaving, self.asker, patience=0.0)
        self.files.forget(run)


class Nobody:
    """The parties of a run that cannot be taken up."""

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:  # noqa: ARG002
        """There is nobody to add up with."""
        raise _dead()


class Together:
    """The parties of a run, for a look that waits in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: Run, seat: Seat, record: RunRecord) -> None:
        self.looked = False
        self._loop, self._run, self._seat, self._record = loop, run, seat, record

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Shows the charge, waits for all others', writes down what this party brings, and opens the sum."""
        self.looked = True
        seat, record = self._seat, self._record
        entry = seat.asker.ledger.entry(charge).hash.hex()
        own = Statement(record.run, seat.party.card.name, seat.terms, entry, seat.planned.ask.epsilon)
        self._wait(show_charges(self._run, seat.party, own))
        if record.inputs is None:
            record = seat.files.bring(record, tuple(inputs()))
            self._record = record
        found: Sequence[int] = self._wait(add_up(self._run, record.inputs or ()))
        return found

    def again(self, charge: int) -> None:
        """Says once more what was said, for others that have not heard all of it; this party has its answer."""
        self.add_up(charge, _nothing_new)

    def _wait(self, steps: Coroutine[Any, Any, Any]) -> Any:
        if not self._loop.is_running():
            steps.close()
            raise _broken_off()
        try:
            return asyncio.run_coroutine_threadsafe(steps, self._loop).result()
        except PartyGoneError as error:
            error.resumable = True
            error.fix = "See that it runs and can be reached, then ask the same again: this run goes on, at no charge."
            raise
        except CancelledError:
            raise _broken_off() from None


async def take_part(post: Post, call: Call, seat: Seat) -> Release:
    """One party's part in a run: it meets the others, charges, looks and opens."""
    with seat.files.hold(call.run):
        return await _take_part(post, call, seat)


async def _take_part(post: Post, call: Call, seat: Seat) -> Release:
    record = await asyncio.to_thread(seat.take, call.run, call.beginner)
    loop = asyncio.get_running_loop()
    run = None
    try:
        run = await post.meet(
            call.run, call.names, call.threshold, seat.task, beginner=call.beginner, seed=record.seed, keep=True
        )
        together = Together(loop, run, seat, record)
        return await asyncio.to_thread(_leave, seat, call.run, together)
    finally:
        if run is not None:
            await run.close()
        post.forget(call.run)
        if record.inputs is None and await asyncio.to_thread(seat.charged, call.run) is None:
            seat.files.forget(call.run)  # nothing of it left, and nothing was paid


def _leave(seat: Seat, run: bytes, together: Together) -> Release:
    request = JointRequest(seat.planned, seat.key(run), together)
    leaving = KIND.prepare(seat.asker, request)
    answered = release(leaving, seat.asker)
    if not together.looked:
        charged = seat.charged(run)
        if charged is not None:
            together.again(charged[0])
    return KIND.show(seat.asker, request, leaving, answered)


def statistics(note: Callable[[str], None] = lambda _: None) -> Task:
    """What `dalenius party` does when a partner asks a joint question.

    Args:
        note: Told what went wrong, in full; the caller is told no more than it may know.
    """

    async def task(post: Post, call: Call) -> Mapping[str, Any]:
        question, epsilon = call.task.get("question"), call.task.get("epsilon")
        if not isinstance(question, str) or not isinstance(epsilon, int | float) or isinstance(epsilon, bool):
            raise InputError("The call asks nothing.", why="Question or ε are missing.", fix="Ask who called.")
        try:
            ask = JointAsk(question, float(epsilon), post.party.card.name, call.names, call.threshold)
            seat = await asyncio.to_thread(Seat.of, post.party, ask)
            found = await take_part(post, call, seat)
        except DaleniusError as error:
            note(str(error))
            raise _told(error) from None
        return {"question": question, "epsilon": epsilon, "charged": not found.free}

    return task


def offered(note: Callable[[str], None] = lambda _: None) -> Mapping[str, Task]:
    """All that `dalenius party` takes part in."""
    return {**TASKS, TASK: statistics(note)}


async def ask_jointly(
    party: Party,
    question: str,
    epsilon: float,
    partners: Sequence[str],
    *,
    threshold: int | None = None,
    confidence: float = 0.95,
    fresh: bool = False,
    patience: float = PATIENCE,
) -> Release:
    """Asks a question of this home's table and those of partners, each of which runs `dalenius party`.

    The same question of the same parties is free, and one that broke off is taken up where it was. ``fresh``: neither,
    it is a new run at a new charge; others' data may have changed.

    Raises:
        DaleniusError: It was refused, or broke off; the error says what it cost.
    """
    epsilon = settle_price(question, epsilon, None)[0] or epsilon
    names = (party.card.name, *partners)
    if len(set(names)) < len(names):
        raise InputError("A party is named twice.", why="Each counts once.", fix="Name each partner once.")
    for name in partners:
        party.partner(name)
    most = max(1, (len(names) - 1) // 2) if threshold is None else threshold
    ask = JointAsk(question, epsilon, party.card.name, names, most, confidence)
    seat = await asyncio.to_thread(Seat.of, party, ask)
    known = None if fresh else seat.known()
    if known is not None:
        return known
    begun = None if fresh else seat.unfinished()
    run = new_run_id() if begun is None else begun.run
    call = Call(run, names, most, party.card.name, seat.task)
    async with Post(party, listen=False, patience=patience) as post:
        try:
            return await take_part(post, call, seat)
        except PartyRefusedError as error:
            if begun is not None:
                error.fix += " If that run is dead there, --fresh begins a new one, at a new charge."
            raise


def _nothing_new() -> Sequence[int]:
    raise _dead()


def _dead() -> SourceUnavailableError:
    return SourceUnavailableError(
        "This run cannot be taken up again.",
        why="What was written down of it here is gone, or its time is over. What it cost stays spent.",
        fix="Ask again: that is a new run, and a new charge.",
    )


def _broken_off() -> SourceUnavailableError:
    found = SourceUnavailableError(
        "The run was broken off here.",
        why="This process was stopped.",
        fix="Ask the same again: the run goes on where it was, at no charge.",
    )
    found.resumable = True
    return found


def _told(error: DaleniusError) -> DaleniusError:
    """What partners may know of an error: what policies and questions say, never what files, rows or engines did."""
    if isinstance(error, PartyGoneError | PartyRefusedError):
        return error
    open_ = isinstance(error, PolicyError | QuestionError | InputError | BudgetError)
    return InputError(
        error.message if open_ else "This party could not take part.",
        why="Its owner can see why.",
        fix="Ask there.",
    )
