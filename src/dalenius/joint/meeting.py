"""Parties meet: who listens, who calls, and what they must agree on before the first number is sent.

Of two parties the one that begins the run calls the other; else the later in the list calls the earlier. A connection
counts once the certificate is the one on the caller's card and both sides have said the same: the run, the parties in
order with their certificates, the threshold, and the task.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from dalenius.errors import AuthDeniedError, DaleniusError, InputError, PartyGoneError, SourceUnavailableError
from dalenius.joint.config import MOST
from dalenius.joint.frames import HELLO, LIMIT, SHORT_LIMIT, Header, Wire
from dalenius.joint.links import Link
from dalenius.joint.run import Run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dalenius.joint.config import Card, Party

    OnCall = Callable[[bytes, Mapping[str, Any], str], Awaitable[None] | None]

VERSION = 1
PATIENCE = 30.0
"""Seconds that a party may be silent, or away, before it counts as gone."""
_GREETING = 10.0
_REASON = 400
_EARLY = 64
"""Runs whose callers may wait at once."""
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)


def new_run_id() -> bytes:
    """A name for a run that no other has."""
    return os.urandom(16)


class Post:
    """Where one party's connections come in and go out. One serves any number of runs.

    >>> # async with Post(party) as post: run = await post.meet(...)
    """

    def __init__(self, party: Party, *, listen: bool = True, patience: float = PATIENCE, limit: int = LIMIT) -> None:
        """Prepares it.

        Args:
            party: Who we are.
            listen: False for one that only calls: it must be the one that begins every run.
            patience: Seconds that others may be silent.
            limit: The longest payload that is taken.
        """
        self.party = party
        self.patience = patience
        self.on_call: OnCall | None = None
        self._listen = listen
        self._limit = limit
        self._server: asyncio.Server | None = None
        self._runs: dict[bytes, _Meeting] = {}
        self._early: dict[bytes, list[tuple[Card, Wire, Mapping[str, Any]]]] = {}
        self._wires: set[Wire] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._context = party.context(listening=False)
        self.refused: DaleniusError | None = None

    async def __aenter__(self) -> Self:
        if self._listen:
            loop = asyncio.get_running_loop()
            card = self.party.card
            try:
                self._server = await loop.create_server(
                    self._answering, card.host, card.port, ssl=self.party.context(listening=True)
                )
            except OSError as error:
                raise SourceUnavailableError(
                    f"Nobody can listen at {card.host}:{card.port}.",
                    why=f"{error.strerror or type(error).__name__}.",
                    fix="End what uses that address, or begin anew with 'dalenius joint init' and another.",
                ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        open_ = [each for each in self._wires if each.transport is not None and not each.closed.done()]
        for wire in open_:
            wire.on_lost = lambda _error: None
            wire.lose(None)
        if open_:
            await asyncio.wait([each.closed for each in open_], timeout=1.0)

    async def meet(
        self,
        run: bytes,
        names: Sequence[str],
        threshold: int,
        task: Mapping[str, Any],
        *,
        beginner: str | None = None,
        seed: bytes | None = None,
        outgoing: Any = None,
        keep: bool = False,
    ) -> Run:
        """Meets the other parties of a run; returns when all are there and the keys are exchanged.

        Args:
            run: The run's id, sixteen bytes.
            names: The parties in order, this one among them.
            threshold: So many together may learn nothing.
            task: What is to be computed, in JSON's terms; all parties must say the same.
            beginner: Who begins it, and so calls everybody; nobody in particular by default.
            seed: As in `Run`.
            outgoing: As in `Run`.
            keep: Keep all that was sent, so that a party that lost everything can be told again.

        Raises:
            InputError: This party is not among them, or one is not known here.
            PartyGoneError: A party could not be reached.
            PartyRefusedError: A party wants to compute something else.
        """
        if self.party.card.name not in names or len(set(names)) < len(names) or len(names) > MOST:
            raise InputError(
                f"A run among {', '.join(names)[:200]} is not one that '{self.party.card.name}' can join.",
                why=f"It must be among the parties, each named once, and no more than {MOST}.",
                fix="Correct the list.",
            )
        meeting = _Meeting(self, run, names, threshold, task, beginner, keep=keep)
        self._runs[run] = meeting
        for early in self._early.pop(run, []):
            meeting.greeted(*early)
        found = Run(names, meeting.me, threshold, meeting.links, seed=seed, outgoing=outgoing)
        try:
            await meeting.complete()
            await found.start()
        except BaseException:
            await found.close(0.2)
            self.forget(run)
            raise
        return found

    def forget(self, run: bytes) -> None:
        """Ends a run here."""
        meeting = self._runs.pop(run, None)
        if meeting is not None:
            meeting.end()

    # --- connections

    def spawn(self, coroutine: Any) -> asyncio.Task[None]:
        """Runs something beside, until this post closes."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def call(self, card: Card) -> Wire:
        """A connection to a party whose certificate is the one on its card.

        Raises:
            OSError: There is none to be had.
            AuthDeniedError: Somebody else answered.
        """
        loop = asyncio.get_running_loop()
        _, wire = await asyncio.wait_for(
            loop.create_connection(self._new_wire, card.host, card.port, ssl=self._context), _GREETING
        )
        if wire.certificate() != card.der:
            wire.lose(None)
            raise AuthDeniedError(
                f"Who answers at {card.host}:{card.port} is not '{card.name}'.",
                why="Its certificate is not the one on the card.",
                fix="Compare fingerprints with the party, and take in its present card with 'dalenius joint add FILE'.",
            )
        return wire

    def _new_wire(self) -> Wire:
        wire = Wire(self._limit)
        self._wires.add(wire)
        wire.closed.add_done_callback(lambda _: self._wires.discard(wire))
        return wire

    def _answering(self) -> Wire:
        wire = self._new_wire()
        wire.on_frame = lambda header, payload: self._called(wire, header, payload)
        asyncio.get_running_loop().call_later(_GREETING, self._hang_up, wire)
        return wire

    def _hang_up(self, wire: Wire) -> None:
        if not wire.greeted:
            wire.lose(None)

    def _called(self, wire: Wire, header: Header, payload: memoryview) -> None:
        """The first frame of somebody who called."""
        wire.greeted = True
        certificate = wire.certificate()
        card = next((each for each in self.party.partners if each.der == certificate), None)
        greeting = read_greeting(payload)
        if card is None or header.kind != HELLO or greeting is None or greeting.get("name") != card.name:
            wire.lose(None)
            return
        meeting = self._runs.get(header.run)
        if meeting is not None:
            meeting.greeted(card, wire, greeting)
            return
        if header.run not in self._early and len(self._early) >= _EARLY:
            wire.lose(None)
            return
        waiting = self._early.setdefault(header.run, [])
        wire.on_frame = lambda _header, _payload: wire.lose(None)  # nobody may send before the answer
        waiting.append((card, wire, greeting))
        asyncio.get_running_loop().call_later(self.patience, self._give_up, header.run)
        if self.on_call is not None and greeting.get("beginner") == card.name:
            outcome = self.on_call(header.run, greeting, card.name)
            if outcome is not None:
                self.spawn(outcome)

    def dismiss(self, run: bytes, error: DaleniusError) -> None:
        """Tells who waits for a run that this party will not take part in it, and hangs up."""
        for _, wire, _ in self._early.pop(run, []):
            wire.write(*refusal(run, self.party.card.name, error))
            self.spawn(wire.close(_GREETING))
        self.forget(run)

    def _give_up(self, run: bytes) -> None:
        for _, wire, _ in self._early.pop(run, []):
            wire.lose(None)


class _Meeting:
    """The connections of one run."""

    def __init__(
        self,
        post: Post,
        run: bytes,
        names: Sequence[str],
        threshold: int,
        task: Mapping[str, Any],
        beginner: str | None,
        *,
        keep: bool,
    ) -> None:
        self.post = post
        self.run = run
        self.me = list(names).index(post.party.card.name) + 1
        self.beginner = beginner
        self.cards = {at: post.party.partner(name) for at, name in enumerate(names, 1) if at != self.me}
        everyone = [post.party.card if at == self.me else self.cards[at] for at in range(1, len(names) + 1)]
        self.said = {
            "version": VERSION,
            "parties": [[card.name, hashlib.sha256(card.der).hexdigest()] for card in everyone],
            "threshold": threshold,
            "beginner": beginner,
            "task": json.loads(json.dumps(task, allow_nan=False)),
        }
        self.links = {
            at: Link(run, self.me, card.name, at, patience=post.patience, keep=keep) for at, card in self.cards.items()
        }
        for link in self.links.values():
            link.siblings = tuple(self.links.values())
        self._calling: dict[int, asyncio.Task[None]] = {}
        self._ended = False
        self._denied: dict[int, DaleniusError] = {}
        for at, link in self.links.items():
            if self._calls(at):
                link.when_lost = lambda at=at: self._call(at)  # type: ignore[misc]
                self._call(at)

    async def complete(self) -> None:
        """Waits until everybody has been met once."""
        until = time.monotonic() + self.post.patience
        while not all(link.attached or link.received for link in self.links.values()):
            for at, link in self.links.items():
                link.raise_failure()
                if time.monotonic() > until and not link.attached:
                    raise self._denied.get(at) or self._absent(at)
            await asyncio.sleep(0.005)

    def end(self) -> None:
        """No more calls."""
        self._ended = True
        for task in self._calling.values():
            task.cancel()

    def greeted(self, card: Card, wire: Wire, greeting: Mapping[str, Any]) -> None:
        """Somebody called and said what it wants to compute."""
        at = next((at for at, each in self.cards.items() if each == card), None)
        if wire.closed.done():
            return  # it has not waited
        if at is None or self._calls(at):
            wire.lose(None)
            return
        failed = self.links[at].failed
        if failed is not None:
            wire.write(*refusal(self.run, self.post.party.card.name, failed))
            self.post.spawn(wire.close(_GREETING))
            return
        wire.write(*self._greeting(at))
        self._attach(at, wire, greeting)

    def _calls(self, at: int) -> bool:
        """Whether this party calls that one."""
        if self.beginner is not None:
            if self.beginner == self.post.party.card.name:
                return True
            if self.beginner == self.cards[at].name:
                return False
        return self.me > at

    def _greeting(self, at: int) -> tuple[bytes, bytes]:
        said = {**self.said, "name": self.post.party.card.name, "received": self.links[at].received}
        payload = json.dumps(said, sort_keys=True).encode()
        return Header(HELLO, self.me, self.run, 0, 0, 0, bytes(8), len(payload)).pack(), payload

    def _attach(self, at: int, wire: Wire, greeting: Mapping[str, Any]) -> None:
        link = self.links[at]
        if isinstance(greeting.get("refused"), str):
            reason = "".join(each for each in greeting["refused"][:_REASON] if each.isprintable())
            link.refuse(f"It will not take part: {reason}", fix="Settle that with the party, then try again.")
            return
        differs = [key for key, value in self.said.items() if greeting.get(key) != value]
        received = greeting.get("received")
        if differs or not isinstance(received, int) or greeting.get("name") != self.cards[at].name:
            other = " and ".join(_told(self.said, greeting, differs)) or "its greeting is damaged"
            link.refuse(
                f"It wants to compute something else: {other}.",
                fix="Agree on the same parties, threshold and task, then start a new run.",
            )
            # the greeting that went out tells the other side why
            self.post.spawn(wire.close(1.0))
            return
        link.attach(wire, received)

    def _call(self, at: int) -> None:
        if not self._ended and (at not in self._calling or self._calling[at].done()):
            self._calling[at] = self.post.spawn(self._keep_calling(at))

    async def _keep_calling(self, at: int) -> None:
        until = time.monotonic() + self.post.patience
        tries = 0
        while time.monotonic() < until and not self._ended:
            try:
                wire = await self.post.call(self.cards[at])
                await self._introduce(at, wire)
            except AuthDeniedError as error:
                self._denied[at] = error
            except (OSError, TimeoutError, ssl.SSLError):
                pass
            else:
                return
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    async def _introduce(self, at: int, wire: Wire) -> None:
        """Says what is to be computed, and hears the same."""
        heard: asyncio.Future[tuple[Header, memoryview]] = asyncio.get_running_loop().create_future()

        def first(header: Header, payload: memoryview) -> None:
            # what follows in the same breath belongs to the run already: attach at once
            if heard.done():
                wire.lose(None)
                return
            heard.set_result((header, payload))
            greeting = read_greeting(payload)
            if header.kind != HELLO or header.run != self.run or greeting is None:
                wire.lose(None)
                return
            self._attach(at, wire, greeting)

        def lost(_error: Exception | None) -> None:
            if not heard.done():
                heard.set_exception(ConnectionResetError())

        wire.on_frame, wire.on_lost = first, lost
        wire.write(*self._greeting(at))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(heard), self.post.patience)
            return
        wire.lose(None)
        raise ConnectionResetError

    def _absent(self, at: int) -> PartyGoneError:
        card = self.cards[at]
        where = f"at {card.host}:{card.port} " if self._calls(at) else ""
        return PartyGoneError(
            card.name,
            why=f"Nobody {where}answered for this run within {self.post.patience:g} s."
            if where
            else f"It did not call within {self.post.patience:g} s.",
            fix="See that it runs, that its address is right, and that it has taken in your card; then try again.",
        )


def refusal(run: bytes, name: str, error: DaleniusError) -> tuple[bytes, bytes]:
    """The greeting of a party that will not take part, and why."""
    payload = json.dumps({"name": name, "refused": f"{error.message} {error.why}"}).encode()
    return Header(HELLO, 0, run, 0, 0, 0, bytes(8), len(payload)).pack(), payload


def read_greeting(payload: memoryview) -> Mapping[str, Any] | None:
    """What a party says first, or None where it is nothing of the kind."""
    if len(payload) > SHORT_LIMIT:
        return None
    try:
        found = json.loads(bytes(payload))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(mine: Mapping[str, Any], theirs: Mapping[str, Any], differs: Sequence[str]) -> list[str]:
    """Where two plans differ, in words."""
    found = []
    for key in differs:
        if key == "task" and isinstance(theirs.get(key), dict) and isinstance(mine[key], dict):
            keys = sorted({*mine[key], *theirs[key]})
            parts = [each for each in keys if mine[key].get(each) != theirs[key].get(each)]
            found.append(f"another {', '.join(repr(each)[:40] for each in parts)} in its task")
        else:
            found.append(f"another {key}")
    return found
