"""When an answer that touched data leaves: at a time that is fixed before anybody looks.

How long a question took tells about rows that nobody has paid for. So the server commits the release, or the failure,
only at a time that follows from public things: the plan's shape, the size class of its tables, and how fast this
machine is. Before that time nothing about the question changes anywhere: not in the ledger (whose entries have numbers
and times), not for who waits for the same answer, not in a job's state.

A question that is not ready then leaves at the cap, as a refusal: charged, and an alarm to the owner. That it was late
is one bit that is told, from the fixed time on: it is on record from then on, too, so that a process which ends before
the cap leaves its trace; `docs/explanation/threat-model.md` says so. Who is late too often by its own work is suspended
(`ledger.suspensions`).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.errors import DaleniusError, EngineTimeoutError
from dalenius.ledger.suspensions import LATE
from dalenius.measuring.fairness import Turns
from dalenius.measuring.pace import CAP, Times

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType


_STOPPING = 1.0  # seconds between the end of the work's time and the cap: an engine does not stop at once
PROBE = 0.011  # seconds that `probe` took on the machine of bench/RESULTS.md


@dataclass(frozen=True)
class Pace:
    """What a release is paced by; all of it is public.

    Attributes:
        times: When it leaves, given how much slower than the machine of bench/RESULTS.md this one is.
        cap: Seconds that it may take where no time is fixed.
        late: After how many late ones an analyst is suspended.
    """

    times: Callable[[float], Times]
    cap: float = CAP
    late: int = LATE


class Pacer:
    """Lets questions look at the data, so many at once, and their answers leave when it is time.

    A place is held until the answer leaves, not until it is ready: when the next question may start then depends on
    public times too. No analyst holds more than half of the places (`measuring.fairness`), so that nobody else waits.

    Args:
        slots: How many questions look at once; at most `SAFETY`, or they would be late because of one another.
        speed: How much slower this machine is than the one of bench/RESULTS.md.
        fixed: False: answers leave when they are ready, for analysts whom the owner trusts.
    """

    def __init__(self, slots: int, speed: float = 1.0, *, fixed: bool = True) -> None:
        self.slots, self.speed, self.fixed = slots, speed, fixed
        self._places = Turns(slots)
        self._who = ""
        self._started: Callable[[Times | None], None] = lambda _: None

    def telling(self, started: Callable[[Times | None], None], who: str = "") -> Pacer:
        """The same places, for one question.

        Args:
            started: Told when it begins to look, and when it will leave.
            who: Whose share of the places it takes; "": nobody's.
        """
        found = copy(self)
        found._started, found._who = started, who  # noqa: SLF001 (of the same kind)
        return found

    def started(self, fixed: Times | None) -> None:
        """A question begins to look."""
        self._started(fixed)

    def times(self, pace: Pace) -> Times | None:
        """When a release leaves, if that is fixed."""
        return pace.times(self.speed) if self.fixed else None

    @property
    def place(self) -> AbstractContextManager[object]:
        """One of the places."""
        return self._places.place(self._who)


def run_paced(
    pacer: Pacer | None,
    pace: Pace,
    work: Callable[[float], bytes],
    alarm: Callable[[str, bool], None],
    *,
    whose: str = "",
    allowed: Callable[[], None] = lambda: None,
) -> bytes:
    """Does the work, which is given the seconds it may take; returns, or raises, when it is time.

    Args:
        pacer: None: as soon as it is done.
        pace: What it is paced by.
        work: Looks at the data.
        alarm: Told "overdue" at the fixed time if the work is not done, and "late" at the cap; or what a failure's own
            alarm is ("failed", "index failed", "source changed"), at the time at which that shows. With it comes
            whether it was late by the processor time of its own work, counted from when it had its place: the load of
            others makes nobody guilty. Where no time is fixed, who asks is trusted to tell of a plain failure.
        whose: Whose work it is: all that is done for the same one meanwhile counts as its own.
        allowed: Raises if it may no longer look, asked once it has its place.
    """
    from dalenius.measuring.engines.duckdb.metering import metered

    fixed = None if pacer is None else pacer.times(pace)
    with nullcontext() if pacer is None else pacer.place:
        allowed()
        start = time.monotonic()
        if pacer is not None:
            pacer.started(fixed)
        if fixed is None:
            try:
                return work(pace.cap)
            except DaleniusError as failure:
                if failure.alarm not in {"", "failed"}:
                    alarm(failure.alarm, False)
                raise
        content, error = b"", None
        overdue = _Overdue(start + fixed.answer, lambda: alarm("overdue", False))
        with overdue, metered(whose) as seconds:
            try:
                content = work(_working(fixed))
            except BaseException as failure:  # noqa: BLE001 (whatever it is, it leaves no earlier)
                error = failure
            own = seconds() > fixed.answer
        if _wait(start, fixed, overdue.told):
            # One refusal for all that is late: whether it was stopped, failed or came to an answer is not told.
            alarm("late", own)
            raise EngineTimeoutError(
                "The answer was not ready when it had to leave.",
                why="Answers leave at a time that is fixed beforehand, so that none tells how long it took.",
                fix="Ask for less at once, or ask the owner for a later time ([time] answer in the policy).",
            )
        if error is None:
            return content
        if isinstance(error, DaleniusError) and error.alarm:
            alarm(error.alarm, own)
        raise error


def hold_for(pacer: Pacer | None, pace: Pace) -> Callable[[], None]:
    """For who waits for the same question of another: called when that is answered, it waits for the own time.

    The other may be trusted, or ask on the machine itself, and is then answered as soon as the answer is ready. Where
    the own time has passed, the next multiple of it counts.
    """
    fixed, start = None if pacer is None else pacer.times(pace), time.monotonic()

    def hold() -> None:
        if fixed is not None:
            _sleep_until(start + fixed.answer * math.ceil((time.monotonic() - start) / fixed.answer))

    return hold


def _working(fixed: Times) -> float:
    """How long the work may take: less than the cap, so that what is stopped leaves at the cap as well."""
    return fixed.cap - min(_STOPPING, (fixed.cap - fixed.answer) / 2)


class _Overdue:
    """Tells, at a time, that the work within it has not ended."""

    def __init__(self, end: float, tell: Callable[[], None]) -> None:
        self.told = False
        self._tell = tell
        self._timer = threading.Timer(max(0.0, end - time.monotonic()), self._strike)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._timer.join()  # what it has begun to tell comes before all that is told later

    def _strike(self) -> None:
        self.told = True
        with suppress(DaleniusError):  # a ledger that cannot be written refuses the answer as well
            self._tell()


def _wait(start: float, fixed: Times, overdue: bool) -> bool:
    """Until the answer's time, or, if that has passed, until the cap; whether it had passed.

    Work that the engine's limit did not end before the cap (not all of it is done there) leaves at a multiple of it.
    """
    took = time.monotonic() - start
    late = overdue or took > fixed.answer
    _sleep_until(start + (fixed.cap * max(1, math.ceil(took / fixed.cap)) if late else fixed.answer))
    return late


def _sleep_until(end: float) -> None:
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)


def probe() -> float:
    """How much slower than the machine of `SHAPES` this one is just now, on rows that are nobody's; at least 1."""
    from dalenius.measuring.engines.duckdb.opening import probe_seconds

    return min(20.0, max(1.0, probe_seconds() / PROBE))
