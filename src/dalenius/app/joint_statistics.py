"""Joint statistics: a curator and a party under one roof.

`dalenius.joint` knows how parties add up, `dalenius.queries.jointly` what is added and what it costs. Here one is
handed to the other: a run is planned, met for, charged, and only then looked at; or taken up where it broke off.

What breaks off stays open: its charge, and what was written down of it, wait to be taken up again (`run_files`). A run
of which that is gone is dead, and its charge stays.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from dalenius.app.joint_seat import Seat, dead
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
from dalenius.joint.statements import Statement
from dalenius.joint.tasks import TASKS, Call
from dalenius.queries.jointly.kind import KIND, JointRequest
from dalenius.queries.jointly.planning import JointAsk
from dalenius.queries.jointly.terms import TASK
from dalenius.queries.rules.clause import settle_price
from dalenius.releasing.leaving import release

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from dalenius.joint.config import Party
    from dalenius.joint.run import Run
    from dalenius.joint.run_files import RunRecord
    from dalenius.joint.tasks import Task
    from dalenius.queries.release import Release


class Together:
    """The parties of a run, for a look that waits in a thread of its own."""

    def __init__(self, run: Run, seat: Seat, record: RunRecord, patience: float) -> None:
        self.looked = False
        self._loop = asyncio.get_running_loop()
        self._run, self._seat, self._record, self._patience = run, seat, record, patience

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:
        """Shows the charge, waits for all others', writes down what this party brings, and opens the sum."""
        self.looked = True
        seat, record = self._seat, self._record
        entry = seat.asker.ledger.entry(charge).hash.hex()
        own = Statement(record.run, seat.party.card.name, seat.terms, entry, seat.planned.ask.epsilon)
        self._wait(show_charges(self._run, seat.party, own))
        if record.inputs is None:
            saying = asyncio.run_coroutine_threadsafe(self._keep_saying(), self._loop)
            try:
                record = self._record = seat.files.bring(record, tuple(inputs()))
            finally:
                saying.cancel()
        found: Sequence[int] = self._wait(add_up(self._run, record.inputs or ()))
        return found

    def again(self, charge: int) -> None:
        """Says once more what was said, for others that have not heard all of it; this party has its answer."""
        self.add_up(charge, _nothing_new)

    async def _keep_saying(self) -> None:
        """That this party is there, while it counts."""
        while True:
            await asyncio.sleep(self._patience / 4)
            self._run.say_hello()

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
    run, linger = None, 0.0
    try:
        run = await post.meet(
            call.run, call.names, call.threshold, seat.task, beginner=call.beginner, seed=record.seed, keep=True
        )
        together = Together(run, seat, record, post.patience)
        found = await asyncio.to_thread(_leave, seat, call.run, together)
    except PartyRefusedError:
        if run is None and await asyncio.to_thread(seat.charged, call.run) is None:
            seat.files.forget(call.run)  # nothing of it left, and nobody goes on with it
        raise
    else:
        linger = post.patience  # until all others have it, too, if one of them was away
        return found
    finally:
        if run is not None:
            await run.close(linger=linger)
        post.forget(call.run)


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
    raise dead()


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
