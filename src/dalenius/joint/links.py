"""One party's link to another within a run: frames arrive once, in order, however often the connection breaks.

Each side numbers its frames and keeps them until the other says that it has them. When a connection is made anew, both
say how many they have received, and what is missing is sent again, the same bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from dalenius.errors import PartyGoneError, PartyRefusedError
from dalenius.joint.frames import BYE, DATA, RECEIPT, Header, MalformedFrameError, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dalenius.errors import DaleniusError

_RECEIPT_AFTER = 1 << 24
"""So many bytes may arrive before the other side is told that it need not keep them."""
_LONGEST = 20
"""However often a party says that it is there, nobody waits longer for a frame than so many times the patience."""
_AHEAD = 1 << 30
"""So many bytes may wait unread; no party is that far ahead of another."""

Frame = tuple[Header, memoryview]


class Link:
    """Frames to and from one party.

    Attributes:
        peer: Its name.
        received: How many frames have come from it.
        finished: Whether it has said that nothing more will come.
        when_lost: Called when the connection breaks.
        siblings: The links to all parties: what one of them refuses ends the wait on the others.
    """

    def __init__(self, run: bytes, me: int, peer: str, number: int, *, patience: float, keep: bool = False) -> None:
        self.peer = peer
        self.received = 0
        self.finished = False
        self._run = run
        self._me = me
        self._number = number
        self._patience = patience
        self._keep = keep
        self._sent = 0
        self._there = 0
        self._kept: deque[tuple[int, bytes, bytes | memoryview]] = deque()
        self._inbox: deque[Frame] = deque()
        self._waiting = 0
        self._heard = time.monotonic()
        self._unacknowledged = 0
        self._wire: Wire | None = None
        self._news = asyncio.Event()
        self._failure: DaleniusError | None = None
        self._trouble: DaleniusError | None = None
        self._left_because = ""
        self._leaving: str | None = None
        self.when_lost: Callable[[], None] = lambda: None
        self.siblings: Sequence[Link] = ()

    @property
    def failed(self) -> DaleniusError | None:
        """What ended this link."""
        return self._failure

    @property
    def attached(self) -> bool:
        """Whether there is a connection now."""
        return self._wire is not None

    def attach(self, wire: Wire, already: int) -> None:
        """Goes on over a new connection, of whose other side so many frames are known to have arrived."""
        if self._wire is not None:
            self._wire.on_lost = lambda _error: None
            self._wire.lose(None)
        if already < (self._kept[0][0] if self._kept else self._sent):
            self.refuse("It asks for frames that are not kept.", fix="Start a new run: this one cannot go on.")
            return
        self._wire = wire
        wire.on_frame = self._arrived
        wire.on_lost = self._lost
        self._there = already
        self._drop_before(already)
        for number, header, payload in self._kept:
            if number >= already:
                wire.write(header, payload)
        if self._leaving is not None:
            self.goodbye(self._leaving)
        self._news.set()

    def post(self, round_: int, step: bytes, payload: bytes | memoryview) -> None:
        """Sends a frame now, or when there is a connection again."""
        header = Header(DATA, self._me, self._run, round_, self._sent, self.received, step, len(payload)).pack()
        self._kept.append((self._sent, header, payload))
        self._sent += 1
        self._unacknowledged = 0
        # a party that begins again after a crash makes the same frames again: those that arrived need not leave twice
        if self._wire is not None and self._sent > self._there:
            self._wire.write(header, payload)

    async def take(self, round_: int, step: bytes, size: int) -> memoryview:
        """The next frame's payload.

        Raises:
            PartyGoneError: None came in time.
            PartyRefusedError: What came belongs to another step, or has another size.
        """
        began = self._heard = time.monotonic()
        while not self._inbox:
            self.raise_failure()
            if self.finished:
                raise self._left()
            now = time.monotonic()
            if now > self._heard + self._patience or now > began + _LONGEST * self._patience:
                raise self._gone()
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), self._patience / 4)
            except TimeoutError:
                for each in self.siblings:
                    each.say_hello()
        header, payload = self._inbox.popleft()
        self._waiting -= len(payload)
        if header.round != round_ or header.step != step:
            raise self.refuse(
                "It is at another step of the computation.",
                fix="See that all parties run the same version on the same question.",
            )
        if len(payload) != size:
            raise self.refuse(
                f"Its frame holds {len(payload)} bytes where {size} belong.",
                fix="See that all parties run the same version on the same question.",
            )
        return payload

    def raise_failure(self) -> None:
        """Raises what ended this link, or else another one of the run, if anything has."""
        failure = self._failure or self._trouble
        if failure is not None:
            raise failure

    def refuse(self, why: str, fix: str) -> PartyRefusedError:
        """Ends the link: nothing from this party is used any more."""
        self._failure = PartyRefusedError(
            f"What the party '{self.peer}' sent was refused.", why=why, fix=fix, party=self.peer
        )
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.on_lost = lambda _error: None
            wire.lose(None)
        self._inbox.clear()
        self._news.set()
        for each in self.siblings:
            each._trouble = each._trouble or self._failure  # noqa: SLF001 - its own kind
            each._news.set()  # noqa: SLF001
        return self._failure

    def say_hello(self) -> None:
        """Says that this party is there and waits, so that who waits for it does not take it for gone."""
        if self._wire is not None:
            self._wire.write(self._note(RECEIPT), b"")

    def goodbye(self, because: str = "") -> None:
        """Says that no more frames will follow, and because of which party, if one is to blame."""
        self._leaving = because
        if self._wire is not None:
            self._wire.write(self._note(BYE, len(because.encode())), because.encode())

    async def gone_too(self, until: float) -> None:
        """Waits until the other side has left as well, but no longer than until then (on the monotonic clock)."""
        while not self.finished and self._failure is None and time.monotonic() < until:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), until - time.monotonic())

    async def close(self, patience: float) -> None:
        """Lets what was written leave, then ends the connection."""
        self.when_lost = lambda: None
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close(patience)

    def _note(self, kind: int, length: int = 0) -> bytes:
        return Header(kind, self._me, self._run, 0, self._sent, self.received, bytes(8), length).pack()

    def _left(self) -> PartyGoneError:
        fix = "Ask there why, then start a new run."
        if self._left_because and self._left_because in {each.peer for each in self.siblings}:
            return PartyGoneError(self._left_because, why=f"'{self.peer}' has left the run because of it.", fix=fix)
        return PartyGoneError(self.peer, why="It has left the run.", fix=fix)

    def _gone(self) -> PartyGoneError:
        reason = "sent nothing" if self._wire is not None else "had no connection"
        return PartyGoneError(
            self.peer,
            why=f"It {reason} for {self._patience:g} s.",
            fix="See that 'dalenius party' runs there and that its address is right, then start a new run.",
        )

    def _arrived(self, header: Header, payload: memoryview) -> None:
        if header.run != self._run or header.sender != self._number:
            self.refuse("Its frame belongs to another run or another sender.", fix="Start a new run.")
            return
        self._heard = time.monotonic()
        if header.kind == BYE:
            self.finished = True
            self._left_because = bytes(payload[:64]).decode(errors="replace")
            self._news.set()
            return
        if header.kind == RECEIPT:
            self._drop_before(header.received)
            return
        if header.kind != DATA or header.number != self.received:
            self.refuse("A frame came twice, or one is missing.", fix="Start a new run.")
            return
        self.received += 1
        self._drop_before(header.received)
        self._inbox.append((header, payload))
        self._waiting += len(payload)
        if self._waiting > _AHEAD:
            self.refuse("It sent far more than belongs to the next steps.", fix="Start a new run.")
            return
        self._unacknowledged += len(payload)
        if self._unacknowledged > _RECEIPT_AFTER and self._wire is not None:
            self._wire.write(self._note(RECEIPT), b"")
            self._unacknowledged = 0
        self._news.set()

    def _drop_before(self, number: int) -> None:
        while not self._keep and self._kept and self._kept[0][0] < number <= self._sent:
            self._kept.popleft()

    def _lost(self, error: Exception | None) -> None:
        self._wire = None
        if isinstance(error, MalformedFrameError) and "middle" not in str(error):
            self.refuse(f"It sent something that is no frame: {error}.", fix="Start a new run.")
            return
        self._news.set()
        if not self.finished:
            self.when_lost()
