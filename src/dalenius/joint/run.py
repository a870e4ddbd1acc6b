"""One joint computation: every party executes the same steps, and a step is a round of messages.

*Assumes.* Links that nobody else can read or write (mutual TLS), and at most `threshold` parties that pool what they
see. Parties follow the protocol (semi-honest); see the explanation page on computing together for what is noticed when
one does not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from dalenius.errors import InputError, PartyGoneError, PartyRefusedError
from dalenius.joint.binary import Binary
from dalenius.joint.frames import LIMIT, step_digest
from dalenius.joint.shamir import Scheme
from dalenius.joint.streams import SEED, Stream, derive, fresh_seed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dalenius.joint.links import Link
    from dalenius.joint.shamir import Field

    Array = NDArray[np.uint64]
    Observer = Callable[[str, int, Field, Array], None]
    Outgoing = Callable[[int, int, str, bytes], None]

_MOST_SETS = 5000


class Run:
    """What one party holds of a computation: its links, and the keys that it shares with others.

    Parties are numbered from 1, in an order that all agree on.

    Attributes:
        names: The parties' names, in their order.
        me: This party's number.
        parties: How many there are.
        threshold: So many together learn nothing.
        bits: The field that bits are shared in.
        own: What this party draws for itself alone.
        observer: Called with (step, party, field, array) for all that this party comes to see; for tests of views.
    """

    def __init__(
        self,
        names: Sequence[str],
        me: int,
        threshold: int,
        links: Mapping[int, Link],
        *,
        seed: bytes | None = None,
        outgoing: Outgoing | None = None,
    ) -> None:
        """Prepares a run; `start` must follow.

        Args:
            names: The parties' names, in their order.
            me: This party's number.
            threshold: So many together learn nothing.
            links: To each other party, by its number.
            seed: What this party's randomness comes from; a fresh one by default. A run that is taken up again after
                a crash needs the seed and the inputs that it had: then it sends the same bytes. Never use one seed
                for two runs, or for other inputs.
            outgoing: Called with (party, round, step, bytes) before a frame leaves; it may write it down first.
        """
        self.names = tuple(names)
        self.me = me
        self.parties = len(names)
        self.threshold = threshold
        self.bits = Binary.holding(self.parties)
        self.observer: Observer | None = None
        self._links = links
        self._seed = seed or fresh_seed()
        self.own = Stream(derive(self._seed, "own"))
        self._outgoing = outgoing
        self._round = 0
        self._turn = 0
        self._blamed = ""
        self._to: dict[int, Stream] = {}
        self._from: dict[int, Stream] = {}
        self._sets: dict[tuple[int, ...], bytes] = {}
        self._schemes: dict[Field, Scheme] = {}
        if not 1 <= threshold < self.parties:
            raise InputError(
                f"A threshold of {threshold} does not fit {self.parties} parties.",
                why="At least one may collude, and not all.",
                fix="Take one below half of them.",
            )

    @property
    def others(self) -> tuple[int, ...]:
        """The numbers of the other parties."""
        return tuple(each for each in range(1, self.parties + 1) if each != self.me)

    @property
    def rounds(self) -> int:
        """How many rounds there have been."""
        return self._round

    def scheme(self, field: Field) -> Scheme:
        """How numbers of this field are shared here."""
        if field not in self._schemes:
            self._schemes[field] = Scheme(field, self.parties, self.threshold)
        return self._schemes[field]

    async def start(self) -> None:
        """The first round: keys for what is dealt between two parties, and for what a set of parties draws together."""
        mine = {party: derive(self._seed, "deal", party) for party in self.others}
        sets = self._all_sets()
        led = {each: derive(self._seed, "set", *each) for each in sets if each[0] == self.me}
        sent = {
            party: mine[party] + b"".join(key for each, key in led.items() if party in each) for party in self.others
        }
        sizes = {
            party: SEED * (1 + sum(each[0] == party and self.me in each for each in sets)) for party in self.others
        }
        got = await self.exchange("keys", sent, sizes)
        self._to = {party: Stream(key) for party, key in mine.items()}
        self._from = {party: Stream(bytes(data[:SEED])) for party, data in got.items()}
        self._sets = led
        for party, data in got.items():
            theirs = [each for each in sets if each[0] == party and self.me in each]
            for at, each in enumerate(theirs, 1):
                self._sets[each] = bytes(data[SEED * at : SEED * (at + 1)])

    async def exchange(
        self, step: str, sent: Mapping[int, bytes | memoryview], sizes: Mapping[int, int]
    ) -> dict[int, memoryview]:
        """One round: sends to some parties, and waits for so many bytes from some.

        Raises:
            InputError: A message is longer than a frame may be.
            PartyGoneError: A party did not answer in time.
            PartyRefusedError: What came does not belong here.
        """
        for size in (*map(len, sent.values()), *sizes.values()):
            if size > LIMIT:
                raise InputError(
                    f"A message of {size} bytes is too long.",
                    why=f"A frame may hold {LIMIT}.",
                    fix="Work in smaller batches.",
                )
        self._round += 1
        digest = step_digest(step)
        for party, payload in sent.items():
            if self._outgoing is not None:
                self._outgoing(party, self._round, step, bytes(payload))
            self._links[party].post(self._round, digest, payload)
        found: dict[int, memoryview] = {}
        for party, size in sizes.items():
            try:
                found[party] = await self._links[party].take(self._round, digest, size)
            except (PartyGoneError, PartyRefusedError) as error:
                self._blamed = error.party
                raise
        await asyncio.sleep(0)
        return found

    async def exchange_arrays(
        self, step: str, field: Field, shape: tuple[int, ...], sent: Mapping[int, Array], senders: Sequence[int]
    ) -> dict[int, Array]:
        """One round of arrays of one shape, from these senders; what is no array of the field is refused."""
        packed = {party: field.pack(array) for party, array in sent.items()}
        size = field.size(shape)
        got = await self.exchange(f"{step} {field.name} {shape}", packed, dict.fromkeys(senders, size))
        found = {}
        for party, data in got.items():
            try:
                found[party] = field.unpack(data, shape)
            except ValueError as error:
                raise self.refuse(party, f"It sent numbers that cannot be: {error}.", "Start a new run.") from None
            self.observe(step, party, field, found[party])
        return found

    def observe(self, step: str, party: int, field: Field, values: Array) -> None:
        """Tells the observer, if there is one, that this party came to see something."""
        if self.observer is not None:
            self.observer(step, party, field, values)

    def refuse(self, party: int, why: str, fix: str) -> Exception:
        """The error that ends the link to a party."""
        return self._links[party].refuse(why, fix)

    # --- keys

    def _all_sets(self) -> list[tuple[int, ...]]:
        """All sets of n − t parties: each misses out one possible coalition."""
        found = list(combinations(range(1, self.parties + 1), self.parties - self.threshold))
        return found if len(found) <= _MOST_SETS else []

    def stream_to(self, party: int) -> Stream:
        """What this party and another draw when this one deals."""
        return self._to[party]

    def stream_from(self, dealer: int) -> Stream:
        """What this party and another draw when the other one deals."""
        return self._from[dealer]

    def next_turn(self) -> int:
        """A number that names what all parties draw together next."""
        self._turn += 1
        return self._turn

    def set_key(self, members: tuple[int, ...]) -> bytes:
        """The key that just these parties have."""
        return self._sets[members]

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of n − t parties that this one is in."""
        return tuple(self._sets)

    def say_hello(self) -> None:
        """Says that this party is there, for one that works long on what it sends next."""
        for link in self._links.values():
            link.say_hello()

    async def close(self, patience: float = 5.0, *, linger: float = 0.0) -> None:
        """Leaves the run: what was sent still arrives.

        Args:
            patience: Seconds that this may take.
            linger: Seconds to stay until all others have left, too: so long a party that lost its connection, or began
                again after a crash, can still be sent what it missed.
        """
        links = self._links.values()
        for link in links:
            link.goodbye(self._blamed)
        until = time.monotonic() + linger
        await asyncio.gather(*(link.gone_too(until) for link in links))
        await asyncio.gather(*(link.close(patience) for link in links))
