"""How much of everything, so that nobody keeps others out: requests, open connections, bytes of results.

All of it is kept in memory, by each server process.
"""

from __future__ import annotations

import resource
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from dalenius.errors import RateLimitedError

MOST_CONNECTIONS = 1000
_FILES = 8192  # of which at most half are connections; the rest is for tables, the ledger and the engine
_MOST = 10_000  # so many keys are remembered; those that were quiet the longest are forgotten, full again


@dataclass(slots=True)
class _State:
    left: float
    at: float
    open: int = 0


@dataclass
class RateLimit:
    """A limit of requests for each key (a token's id, or an address).

    Used on the event loop only, so it needs no lock.

    Args:
        rate: A second, on average.
        burst: At once.
        concurrency: Open at once.
    """

    rate: float
    burst: float
    concurrency: int
    _states: OrderedDict[str, _State] = field(default_factory=OrderedDict)

    def admit(self, key: str) -> None:
        """Counts one request, or refuses it. Each that was admitted must be `done` once."""
        state = self._state(key)
        if state.open >= self.concurrency:
            raise too_many(f"{self.concurrency} requests are open.", 1.0)
        if state.left < 1:
            raise too_many(f"At most {self.rate:g} requests a second.", (1 - state.left) / self.rate)
        state.left -= 1
        state.open += 1

    def done(self, key: str) -> None:
        """An admitted request has ended."""
        state = self._states.get(key)
        if state is not None:
            state.open -= 1

    def exhausted(self, key: str) -> bool:
        """Whether nothing more would be admitted now; counts nothing."""
        return self._state(key).left < 1

    def spend(self, key: str) -> None:
        """Counts one without holding anything open."""
        state = self._state(key)
        state.left = max(0.0, state.left - 1)  # no debt: who stops is soon heard again

    def _state(self, key: str) -> _State:
        now = time.monotonic()
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self.burst, now)
            while len(self._states) > _MOST:
                oldest = next(iter(self._states))
                if self._states[oldest].open:
                    self._states.move_to_end(oldest)
                    break
                del self._states[oldest]
        self._states.move_to_end(key)
        state.left = min(self.burst, state.left + (now - state.at) * self.rate)
        state.at = now
        return state


class TooManyError(RateLimitedError):
    """With the time after which it is worth trying again."""

    retry: float


def too_many(why: str, retry: float) -> TooManyError:
    """A refusal, and after how many seconds it is worth trying again."""
    error = TooManyError("Too many requests.", why=why, fix=f"Wait {max(1, round(retry))} s and try again.")
    error.retry = retry
    return error


class Connection(Protocol):
    """What is known of a connection here."""

    def is_idle(self) -> bool:
        """Whether nothing is being answered on it."""

    def close_now(self) -> None:
        """Ends it without another word."""


class Connections:
    """All that are open, by the address they come from; used on the event loop only.

    A connection costs a file and some memory, whoever opens it and whether or not a request ever comes. When there is
    no more room, a connection is closed on which nothing is being answered: the one that has waited longest, of the
    address that has the most of them. Who opens a thousand loses its own; who opens one is heard.

    Args:
        most: How many there may be.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._by_address: dict[str, OrderedDict[Connection, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_address.values()))

    def add(self, address: str, connection: Connection) -> None:
        """Counts a new one; closes an idle one if there are too many now, and that may be the new one itself."""
        self._by_address.setdefault(address, OrderedDict())[connection] = None
        if len(self) > self.most:
            self._make_room()

    def used(self, address: str, connection: Connection) -> None:
        """A request came on it: it is the last to be closed for having said nothing."""
        known = self._by_address.get(address)
        if known is not None and connection in known:
            known.move_to_end(connection)

    def remove(self, address: str, connection: Connection) -> None:
        """It has ended, or became a socket, which has limits of its own."""
        known = self._by_address.get(address)
        if known is not None:
            known.pop(connection, None)
            if not known:
                del self._by_address[address]

    def _make_room(self) -> None:
        for address in sorted(self._by_address, key=lambda each: -len(self._by_address[each])):
            for connection in self._by_address[address]:
                if connection.is_idle():
                    self.remove(address, connection)
                    connection.close_now()
                    return


def connection_room() -> int:
    """For how many connections there is room: half of the files that this process may open, which is raised first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, soft // 2))


class ResultHolder(Protocol):
    """What keeps a result."""

    token: str

    def let_go(self) -> None:
        """Its result is kept no longer."""


class KeptResults:
    """What the finished jobs of one server process said, until it is fetched, as the bytes that will be sent.

    Where they no longer fit, the oldest of the token that keeps most go first. A job whose result was let go says so,
    and that asking again gives it: what was paid for is free.

    Args:
        most: Bytes of all of them.
        each: Bytes of those of one token.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._sizes: dict[str, OrderedDict[ResultHolder, int]] = {}  # by token, oldest first
        self._sums: dict[str, int] = {}
        self._all = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """How many are kept."""
        return self._all

    def add(self, holder: ResultHolder, size: int) -> None:
        """One more; those that have to go for it are let go."""
        with self._lock:
            self._sizes.setdefault(holder.token, OrderedDict())[holder] = size
            self._sums[holder.token] = self._sums.get(holder.token, 0) + size
            self._all += size
            gone = []
            while self._sums.get(holder.token, 0) > self._each:
                gone.append(self._oldest(holder.token))
            while self._all > self._most:
                gone.append(self._oldest(max(self._sums, key=lambda each: self._sums[each])))
        for each in gone:
            each.let_go()

    def remove(self, holder: ResultHolder) -> None:
        """It is no longer wanted."""
        with self._lock:
            if holder in self._sizes.get(holder.token, ()):
                self._take(holder)
        holder.let_go()

    def _oldest(self, token: str) -> ResultHolder:
        holder = next(iter(self._sizes[token]))
        self._take(holder)
        return holder

    def _take(self, holder: ResultHolder) -> None:
        of_token = self._sizes[holder.token]
        size = of_token.pop(holder)
        self._sums[holder.token] -= size
        self._all -= size
        if not of_token:
            del self._sizes[holder.token], self._sums[holder.token]
