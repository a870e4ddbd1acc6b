"""How much processor time an analyst's own work took, however busy the machine was with that of others.

Time on a clock grows with the load that others make; processor time does not. A question's is that of the thread it is
worked on in, and its share of the engine's own threads: DuckDB hands parts of a statement to those, and a single heavy
row may well be worked on there. Threads of an engine serve all statements that run on it at once, so what they took is
divided equally among those, anew whenever one begins or ends. Questions of one analyst that run at the same time count
together: who makes an own question late by more own questions is no victim of others.

A process of its own that works for a question (`confined`) counts as long as it runs, as it goes.

Where the system does not tell what another thread or process took (it does on Linux), time on the clock stands for it:
an answer that is late then counts, whatever made it so.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")
_TASKS = Path("/proc/self/task")
_LOCK = threading.Lock()
_OPENING = threading.Lock()


class _Work:
    """What is done for one question: by the thread in which it began, and for it by others."""

    def __init__(self, whose: str) -> None:
        self.whose, self.by_others = whose, 0.0
        self.children: dict[int, float] = {}
        self._thread = threading.get_native_id()
        self._began = _used(self._thread)

    @property
    def seconds(self) -> float:
        by_children = sum(_used_by(process, began) for process, began in self.children.items())
        return max(0.0, _used(self._thread) - self._began) + self.by_others + by_children


_CURRENT: ContextVar[_Work | None] = ContextVar("work", default=None)
_OPEN: dict[str, list[_Work]] = {}
_ENDED: dict[str, float] = {}  # of works that ended, while another one of the same analyst is open


@contextmanager
def metered(whose: str) -> Iterator[Callable[[], float]]:
    """Gives a function that tells the seconds that ``whose`` work took since, all of it together."""
    work = _Work(whose)
    with _LOCK:
        before = _total(whose)
        _OPEN.setdefault(whose, []).append(work)
    token = _CURRENT.set(work)

    def seconds() -> float:
        with _LOCK:
            return _total(whose) - before

    try:
        yield seconds
    finally:
        _CURRENT.reset(token)
        with _LOCK:
            _OPEN[whose].remove(work)
            _ENDED[whose] = _ENDED.get(whose, 0.0) + work.seconds
            if not _OPEN[whose]:
                del _OPEN[whose], _ENDED[whose]


def _total(whose: str) -> float:
    for each in list(_ENGINES):
        each.settle()
    return _ENDED.get(whose, 0.0) + sum(work.seconds for work in _OPEN.get(whose, ()))


def helping(work: Callable[[S], T]) -> Callable[[S], T]:
    """The same work, for threads that help with the question that is worked on here: their time is its own."""
    current = _CURRENT.get()

    def helped(part: S) -> T:
        began = time.thread_time()
        try:
            return work(part)
        finally:
            if current is not None:
                with _LOCK:
                    current.by_others += time.thread_time() - began

    return helped


@contextmanager
def meter_child(process: int) -> Iterator[None]:
    """While a child process works for the question here.

    To be left before anybody waits for the child: after that, its number may be another's.
    """
    work = _CURRENT.get()
    if work is None:
        yield
        return
    with _LOCK:
        work.children[process] = time.monotonic()
    try:
        yield
    finally:
        with _LOCK:
            work.by_others += _used_by(process, work.children.pop(process))


class Threads:
    """The threads of one engine, and for whom they work at the moment."""

    def __init__(self) -> None:
        self._ids: tuple[int, ...] | None = ()
        self._last = 0.0
        self._works: list[_Work] = []
        with _LOCK:
            _ENGINES.add(self)

    @contextmanager
    def opening(self) -> Iterator[None]:
        """While an engine is opened: threads that come to be are its own."""
        import duckdb  # noqa: F401 (which brings threads of its own, for all of them)

        with _OPENING:  # two engines that are opened at once could not be told apart
            before = _threads()
            yield
            after = _threads()
        with _LOCK:
            self._ids = None if before is None or after is None else tuple(after - before)
            self._last = self._taken()

    @contextmanager
    def working(self) -> Iterator[None]:
        """One statement, for the question that is worked on here."""
        work = _CURRENT.get() or _Work("")
        with _LOCK:
            self.settle()
            self._works.append(work)
        try:
            yield
        finally:
            with _LOCK:
                self.settle()
                self._works.remove(work)

    def settle(self) -> None:
        """Divides what they took since the last time among those they worked for. To be called with the lock."""
        now = self._taken()
        if self._works:
            for work in self._works:
                work.by_others += max(0.0, now - self._last) / len(self._works)
        self._last = now

    def _taken(self) -> float:
        if self._ids is None:
            return time.monotonic()
        return sum(_used(each) for each in self._ids)


_ENGINES: weakref.WeakSet[Threads] = weakref.WeakSet()


def _threads() -> set[int] | None:
    """All threads of this process but Python's own; None where the system does not tell."""
    try:
        found = {int(each) for each in os.listdir(_TASKS)}  # noqa: PTH208 (names are all that is wanted)
    except OSError:
        return None
    return found - {each.native_id for each in threading.enumerate() if each.native_id is not None}


def _used(thread: int) -> float:
    """Seconds of processor time that a thread of this process took; of one that has ended, or is unknown, none."""
    if thread == threading.get_native_id():
        return time.thread_time()
    with suppress(OSError, AttributeError, OverflowError):
        return time.clock_gettime((~thread << 3) | 6)  # Linux: the clock of a thread, by its number
    return 0.0


def _used_by(process: int, began: float) -> float:
    """Seconds of processor time that all threads of a child took, also of one that ended and is not waited for yet."""
    with suppress(OSError, AttributeError, OverflowError):
        return time.clock_gettime((~process << 3) | 2)  # Linux: the clock of a process, by its number
    return time.monotonic() - began


def _forked() -> None:
    global _LOCK, _OPENING
    _LOCK, _OPENING = threading.Lock(), threading.Lock()
    _OPEN.clear()
    _ENDED.clear()


os.register_at_fork(after_in_child=_forked)
