"""What one asker may take of the machine: a fair share of its places, and so many seconds of planning.

*Places* are shared so that nobody takes so many that the next who comes finds none. A semaphore gives its places to
whoever comes first, so one who asks often enough holds them all, and everybody else waits until they come free. Here
one holder takes another place only while at least as many stay free as it then holds: one alone gets half of them, two
get a third each, and so on. Whoever holds none takes any that is free. Among those who wait, the one who holds the
fewest is next, then the one who was served the longest ago.

What anybody sees of it is when places come free, and nothing else: the rule looks at who holds how many.

*Planning* is limited in seconds of processor time, so that how busy others are does not matter. It is free and looks at
no row, so nothing here tells about data. Each of its limits (characters, sets, groups, values) is meant to keep it
short; this one holds whatever they miss.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dalenius.errors import QuestionRefusedError

PLANNING_SECONDS = 10.0
_END: ContextVar[float | None] = ContextVar("planned by", default=None)
_LOOK = 0.1  # seconds between two looks at whether anybody still waits


class NoTurn(Exception):  # noqa: N818 (not an error of its own: the caller says what it means)
    """The wait was longer than it may be, or nobody waits any more."""


class Turns:
    """So many places.

    Args:
        places: How many.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._held: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()  # who was served last stands last
        self._lock = threading.Lock()

    @contextmanager
    def place(
        self, who: str, *, patience: float | None = None, gone: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """One of the places.

        Args:
            who: For whom; "": for nobody in particular, who has no share that could be too large.
            patience: Seconds to wait at most.
            gone: Whether nobody waits for it any more; asked now and then.

        Raises:
            NoTurn: There was none in that time.
        """
        turn = threading.Event()
        with self._lock:
            self._waiting.setdefault(who, deque()).append(turn)
            self._serve()
        try:
            came = _came(turn, patience, gone)
        except BaseException:  # interrupted while it waited
            if self._given_up(who, turn):
                self._give_back(who)
            raise
        if not came and not self._given_up(who, turn):
            raise NoTurn
        try:
            yield
        finally:
            self._give_back(who)

    @property
    def free(self) -> int:
        """How many nobody holds."""
        return self._free

    def _may(self, who: str) -> bool:
        held = self._held.get(who, 0)
        return self._free > 0 and (not who or held == 0 or held + 1 <= self._free - 1)

    def _serve(self) -> None:
        """Hands out what may be handed out. The lock is held."""
        while True:
            able = [who for who in self._waiting if self._may(who)]
            if not able:
                return
            who = min(able, key=lambda each: self._held.get(each, 0))  # of several, the first
            queue = self._waiting[who]
            queue.popleft().set()
            self._free -= 1
            self._held[who] = self._held.get(who, 0) + 1
            if queue:
                self._waiting.move_to_end(who)
            else:
                del self._waiting[who]

    def _given_up(self, who: str, turn: threading.Event) -> bool:
        """Takes one out of those who wait; whether its turn came just before."""
        with self._lock:
            if turn.is_set():
                return True
            queue = self._waiting.get(who)
            if queue is not None and turn in queue:
                queue.remove(turn)
                if not queue:
                    del self._waiting[who]
            return False

    def _give_back(self, who: str) -> None:
        with self._lock:
            self._free += 1
            self._held[who] -= 1
            if not self._held[who]:
                del self._held[who]
            self._serve()


def _came(turn: threading.Event, patience: float | None, gone: Callable[[], bool] | None) -> bool:
    if gone is None:
        return turn.wait(patience)
    end = None if patience is None else time.monotonic() + patience
    while not gone():
        left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
        if turn.wait(max(0.0, left)):
            return True
        if end is not None and time.monotonic() >= end:
            return False
    return turn.is_set()


# --- planning


@contextmanager
def patiently(seconds: float | None = None) -> Iterator[None]:
    """What is planned inside, in this thread, is refused after so many seconds of its processor time.

    Inside of another such time, that one holds too.
    """
    end, around = time.thread_time() + (PLANNING_SECONDS if seconds is None else seconds), _END.get()
    before = _END.set(end if around is None else min(around, end))
    try:
        yield
    finally:
        _END.reset(before)


def check_patience() -> None:
    """Called wherever planning may have gone on for long."""
    end = _END.get()
    if end is not None and time.thread_time() > end:
        raise QuestionRefusedError(
            "The question takes too long to plan.",
            why=f"What it says was worked on for {PLANNING_SECONDS:g} seconds, before any row is looked at.",
            fix="Ask for fewer keys, grouping sets or columns at once.",
        )
