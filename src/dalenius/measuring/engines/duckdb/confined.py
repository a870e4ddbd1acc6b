"""SQL that an analyst shaped, on public files, in a process of its own that can be killed.

DuckDB's memory limit does not count long texts, and some of its functions cannot be interrupted, so one statement could
take all of the machine's memory, or a thread for minutes. Hence a child process for each (`child`): it knows nothing of
the home, has an empty environment, can open the public files only, and has hard limits of memory and time that end it
alone. When its seconds are over, or nobody waits for it any more, it is killed, by its id. So many run at once, and of
one analyst at most half of them (`_turns`); who finds none free in time is told to come back. What comes back is plain
values or the kind of what went wrong; DuckDB's own words stay in the child.

Planning is free work too, and Python lets one thread compute at a time: so few plan at once in a room, and of one
analyst one (`planning`). While a child runs for a plan, others may plan.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time as clock
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from dalenius.errors import EngineFailedError, EngineTimeoutError, RateLimitedError
from dalenius.measuring.engines.duckdb import metering
from dalenius.measuring.engines.duckdb.child import BEGUN, LONGEST
from dalenius.measuring.fairness import NoTurn, Turns

PLACES = 2  # children that run at once
PLANS = 3  # questions and previews that are planned at once: few enough that nobody has two places (`_turns`)
SECONDS = 30.0
MEMORY = 2**28  # bytes of the engine in one child
_START = 20.0  # seconds that a busy machine may take to begin
_GRACE = 1.0  # seconds that a child has to say that it was late, before it is killed
_MOST = LONGEST + 2**20  # bytes that are ever read from one
_LOOK = 0.1  # seconds between two looks at whether anybody still waits
_PIECE = 2**16
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # what a process may need to start at all
_CHILD = "import sys; sys.path[:] = {path!r}; from dalenius.measuring.engines.duckdb.child import main; main()"


class ElsewhereError(Exception):
    """This thread must not wait for a child; what needs one is done in another."""


class Room:
    """Where children run.

    Args:
        places: So many at once.
        seconds: So long each, at most.
        memory: Bytes that the engine in one may use. The process around it has a few hundred megabytes more.
    """

    def __init__(self, places: int = PLACES, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.places, self.seconds, self.memory = places, seconds, memory
        self.closed = False
        self.forked()

    def forked(self) -> None:
        """A forked child inherits turns that nobody there gives back."""
        self.turns, self.plans = Turns(self.places), Turns(PLANS)

    def close(self) -> None:
        """Whatever runs is killed, and nothing more begins."""
        self.closed = True


@dataclass(frozen=True)
class _Asker:
    """For whom the children of a thread work."""

    room: Room
    who: str = ""
    gone: Callable[[], bool] = lambda: False
    elsewhere: bool = False


_SHARED = Room()
_ASKER: ContextVar[_Asker | None] = ContextVar("asker", default=None)
_PLANS: ContextVar[contextlib.ExitStack | None] = ContextVar("plans", default=None)
os.register_at_fork(after_in_child=_SHARED.forked)


@contextmanager
def on_behalf(
    room: Room, who: str, *, gone: Callable[[], bool] = lambda: False, elsewhere: bool = False
) -> Iterator[None]:
    """What this thread runs inside is somebody's.

    Args:
        room: Where its children run.
        who: Whose share of the room they take.
        gone: Whether nobody waits for them any more: then they are killed.
        elsewhere: This thread has no time for children; whatever needs one raises `ElsewhereError` instead.
    """
    before = _ASKER.set(_Asker(room, who, gone, elsewhere))
    try:
        yield
    finally:
        _ASKER.reset(before)


@contextmanager
def planning() -> Iterator[None]:
    """While a question is read and planned, on behalf of somebody: one of so many, and the only one of this analyst."""
    asker = _ASKER.get()
    if asker is None or _PLANS.get() is not None:
        yield
        return
    with contextlib.ExitStack() as place:
        place.enter_context(asker.room.plans.place(asker.who))
        before = _PLANS.set(place)
        try:
            yield
        finally:
            _PLANS.reset(before)


@contextmanager
def _others_plan(asker: _Asker) -> Iterator[None]:
    """While a child runs, the place for planning is free for others."""
    place = _PLANS.get()
    if place is not None:
        place.close()
    yield
    if place is not None:  # else planning ends here
        place.enter_context(asker.room.plans.place(asker.who))


@dataclass(frozen=True)
class Outcome:
    """Columns and rows; or why there are none.

    Attributes:
        columns: Names.
        rows: The first of them.
        cut: Whether there were more.
        refused: What of the statement may not run.
        failed: The kind of DuckDB's error: "BinderException" …
        size: Bytes of the whole, as it was sent.
        errors: Of every cell, how far noise moves it (`given`); None: that was not asked, or took too long.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    cut: bool = False
    refused: str | None = None
    failed: str | None = None
    size: int = 0
    errors: Sequence[Sequence[Sequence[float] | None]] | None = None


def run(
    sql: str,
    views: Mapping[str, str],
    files: Sequence[Path],
    columns: Collection[str],
    *,
    most: int,
    seconds: float,
    given: Sequence[Mapping[str, Any]] = (),
    carry: Mapping[str, Any] | None = None,
) -> Outcome:
    """Runs one SELECT, after `public_checks` has looked at it.

    Args:
        sql: Written by us from the syntax tree of a question.
        views: The tables that it may read: names, and what stands behind them in FROM.
        files: What may be opened.
        columns: The names of all their columns.
        most: So many rows at most.
        seconds: After that it is stopped; the room may allow less.
        given: Tables of released values that it may read besides (`given`).
        carry: How to find how far noise moves its cells; None: that is not asked.

    Raises:
        EngineTimeoutError: It was stopped.
        EngineFailedError: The process ended without an answer, most likely for lack of memory; or nobody waits for it.
        RateLimitedError: Others, or this analyst's own, have all places.
        ElsewhereError: This thread is not for this.
    """
    asker = _ASKER.get() or _Asker(_SHARED)
    if asker.elsewhere:
        raise ElsewhereError
    room = asker.room
    seconds = min(seconds, room.seconds)
    task = {
        "sql": sql,
        "views": dict(views),
        "files": [str(file) for file in files],
        "columns": sorted(columns),
        "most": most,
        "seconds": seconds,
        "memory": room.memory,
        "given": list(given),
        "carry": carry,
    }

    def gone() -> bool:
        return room.closed or asker.gone()

    try:
        with _others_plan(asker), room.turns.place(asker.who, patience=room.seconds, gone=gone):
            content = _answered(task, seconds, gone)
    except NoTurn:
        raise _gone() if gone() else _full(room) from None
    found = None if content is None else _decoded(content)
    if found is None:
        raise EngineFailedError(
            "The engine could not compute the answer.",
            why="Its process ended without one; most likely the question needs more memory than it may have.",
            fix="Ask for less at once.",
        )
    if found.failed == "late":
        raise _late(seconds)
    return found


def _answered(task: Mapping[str, Any], seconds: float, gone: Callable[[], bool]) -> bytes | None:
    """What a new child said, if it came to its end; it has ended when this returns."""
    code = _CHILD.format(path=[each for each in sys.path if each and Path(each).is_absolute()])
    try:
        child = subprocess.Popen(  # noqa: S603 (our own interpreter; the question goes by stdin)
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            bufsize=0,
        )
    except OSError:  # no process, or no handle, is left
        return None
    with child:
        try:
            with metering.meter_child(child.pid):  # the analyst's own work
                content = _heard(child, json.dumps(task).encode(), seconds, gone)
            return content if content is not None and child.wait(_GRACE) == 0 else None
        except (OSError, subprocess.TimeoutExpired):
            return None
        finally:
            child.kill()


def _heard(child: subprocess.Popen[bytes], task: bytes, seconds: float, gone: Callable[[], bool]) -> bytes | None:
    """Gives a child its task, and all that it says until it has no more to say; within limits of bytes and time."""
    assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 (pipes, for the type)
    given, found, begun = memoryview(task), bytearray(), False
    end = clock.monotonic() + _START
    with selectors.DefaultSelector() as selector:
        for pipe, which in ((child.stdin, selectors.EVENT_WRITE), (child.stdout, selectors.EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, which)
        while True:
            ready = selector.select(_LOOK)
            if gone():
                raise _gone()
            if clock.monotonic() > end:
                raise _late(seconds)
            for key, _ in ready:
                if key.fileobj is child.stdin:
                    with contextlib.suppress(BlockingIOError):
                        given = given[os.write(key.fd, given[:_PIECE]) :]
                    if not given:
                        selector.unregister(child.stdin)
                        child.stdin.close()
                    continue
                piece = os.read(key.fd, _PIECE)
                found += piece
                if not piece:
                    return bytes(found[len(BEGUN) :]) if begun else None
                if not begun:
                    begun, end = True, clock.monotonic() + seconds + _GRACE
                if len(found) > _MOST:
                    return None


_READERS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def _value(cell: Any) -> Any:
    if isinstance(cell, dict):
        ((kind, text),) = cell.items()
        return _READERS[kind](text)
    return cell


def _decoded(content: bytes) -> Outcome | None:
    try:
        found = json.loads(content)
        return Outcome(
            tuple(found.get("columns", ())),
            tuple(tuple(_value(cell) for cell in row) for row in found.get("rows", ())),
            bool(found.get("cut")),
            found.get("refused"),
            found.get("failed"),
            int(found.get("size", len(content))),
            found.get("errors"),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _late(seconds: float) -> EngineTimeoutError:
    return EngineTimeoutError(
        "The engine took too long.", why=f"It was stopped after {seconds:g} seconds.", fix="Ask for less at once."
    )


def _gone() -> EngineFailedError:
    return EngineFailedError(
        "The question was stopped.", why="Nobody waits for its answer any more.", fix="Ask again, and wait for it."
    )


def _full(room: Room) -> RateLimitedError:
    return RateLimitedError(
        "Too many questions over public tables at once.",
        why=f"{room.places} may run at a time, and of one analyst at most half of them.",
        fix=f"Wait {room.seconds:g} s and try again.",
    )
