"""When an answer that touched data leaves: at a time that is fixed before anybody looks.

How long a question took tells about rows that nobody has paid for. So the server commits the release, or the failure,
only at a time that follows from public things: the plan's shape, the size class of its tables, and how fast this
machine is. Before that time nothing about the question changes anywhere: not in the ledger (whose entries have numbers
and times), not for who waits for the same answer, not in a job's state.

A question that is not ready then leaves at the cap, as a refusal: charged, and an alarm to the owner. That it was late
is one bit that is told; `docs/explanation/threat-model.md` says so. Who is late too often by its own work is suspended
(`ledger.suspensions`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius._turns import Turns
from dalenius.errors import DaleniusError, EngineTimeoutError
from dalenius.ledger.suspensions import LATE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from dalenius.queries.plan import Plan, Table

CAP = 60.0  # seconds that a question may take, where the policy does not say
ANSWER = 1.0  # seconds after which answers leave, where the policy does not say
SAFETY = 10  # so many times what the class was measured to take
UNKNOWN = 1_000_000  # rows, of a table whose number of rows was never released
_GRID = 0.05  # seconds
_STOPPING = 1.0  # seconds between the end of the work's time and the cap: an engine does not stop at once

# Seconds for a million rows on the machine of bench/RESULTS.md, by what the plan has to do with them (`shape`).
SHAPES = {"total": 0.01, "grouped": 0.05, "quantiles": 0.05, "found": 0.15, "joined": 0.30, "sets": 0.20}
WORST = 0.06  # of what a row's expressions take at worst, added to what they usually take
WORKING = 5  # so many times what expressions take: that is bounded, so it needs less than `SAFETY`
PLAIN, PLAIN_WORK = 3, 100.0  # measures of a plain question, and ns that its expressions take for a row
FIXED = 0.03  # seconds for everything that does not depend on rows
PROBE = 0.011  # seconds that `probe` took there


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the start of the work: when an answer leaves, and when a refusal does instead."""

    answer: float
    cap: float


def shape(plan: Plan) -> str:
    """What a plan has to do with every row, as one word of `SHAPES`."""
    if plan.table.relation is not None or plan.table.through:
        return "joined"
    if plan.sets:
        return "sets"
    if plan.selection is not None:
        return "found"
    if any(each.kind == "leaves" for each in plan.measures):
        return "quantiles"
    return "grouped" if plan.question.keys or len(plan.cells) > 1 else "total"


def size_class(rows: int) -> int:
    """The next of 1,000, 3,163, 10,000 … rows: a class is half a power of ten.

    >>> size_class(12), size_class(1_001), size_class(2_000_000)
    (1000, 3163, 3162278)
    """
    steps = math.ceil(2 * math.log10(max(rows, 1000)) - 1e-9)
    return math.ceil(10 ** (steps / 2) - 1e-6)


def times(plan: Plan, speed: float = 1.0) -> Times:
    """When an answer to a plan leaves. A function of public things alone.

    The number of rows is the noisy one that `protect` released, so the class is a function of a release that was paid
    for. Where there is none, the policy's word holds: it is the time of a plain question, and grows with what one
    asks beyond that (`times_plain`).

    Args:
        plan: The plan.
        speed: How much slower this machine is than the one that `SHAPES` was measured on.
    """
    tables = _tables(plan)
    declared = [each.policy.time.answer for each in tables if each.policy.time.answer is not None]
    caps = [each.policy.time.cap for each in tables if each.policy.time.cap is not None]
    known = all(each.found is not None and each.found.row_count > 0 for each in tables)
    least = max(declared, default=ANSWER)
    if known or not declared:
        rows = sum(size_class(each.found.row_count if each.found else UNKNOWN) for each in tables)
        measured = SAFETY * (FIXED + shaped(plan) * rows / 1_000_000) + WORKING * worked(plan) * rows / 1_000_000
        least = max(least, speed * measured)
    else:
        least *= times_plain(plan)
    answer = math.ceil(least / _GRID - 1e-9) * _GRID
    return Times(answer, max(answer, min(caps, default=CAP)))


def shaped(plan: Plan) -> float:
    """Seconds that a plan's shape takes for a million rows, whatever its expressions are."""
    return SHAPES[shape(plan)] * max(1, len(plan.measures))


def worked(plan: Plan) -> float:
    """Seconds that a plan's expressions take for a million rows.

    They take their usual time and a share of their worst: the ballast that each row carries is a twentieth of it,
    and one unit's rows add at most half of that (`queries.work`). A table in which most rows are as bad as can be needs
    the policy's word.
    """
    from dalenius.queries import work

    relation = plan.table.relation
    found = work.of(plan) + work.inside(relation) + work.sifted(relation)
    once = found.usual + WORST * found.worst
    again = (_passes(plan) - 1) * (work.common(plan).usual + work.ballast(found))
    return (once + again) / 1000


def times_plain(plan: Plan) -> float:
    """How much more a plan takes than a plain question of its shape, such as a count and an average; at least 1."""
    return max(1.0, (shaped(plan) + worked(plan)) / (PLAIN * SHAPES[shape(plan)] + PLAIN_WORK / 1000))


def _passes(plan: Plan) -> int:
    """How often a plan's rows are gone through: for each kind of statement, and for keys and limits to be found."""
    quantiles = sum(1 for each in plan.measures if each.kind == "leaves")
    distinct = sum(1 for each in plan.measures if each.kind == "distinct")
    rest = any(each.kind not in {"leaves", "distinct"} for each in plan.measures)
    return max(1, quantiles + distinct + rest) + (2 if plan.selection is not None else 0) + bool(plan.searched)


def latest(plan: Plan) -> int:
    """After how many late answers an analyst is suspended: by the strictest of the tables that are read."""
    return min((each.policy.time.late for each in _tables(plan) if each.policy.time.late is not None), default=LATE)


def _tables(plan: Plan) -> list[Table]:
    if plan.table.relation is not None:
        return list(plan.table.relation.tables())
    return [plan.table, *plan.table.through.values()]


class Pacer:
    """Lets questions look at the data, so many at once, and their answers leave when it is time.

    A place is held until the answer leaves, not until it is ready: when the next question may start then depends on
    public times too. No analyst holds more than half of the places (`_turns`), so that nobody else waits for them.

    Args:
        slots: How many questions look at once; at most `SAFETY`, or they would be late because of one another.
        speed: As for `times`.
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

    def times(self, plan: Plan) -> Times | None:
        """When an answer leaves, if that is fixed."""
        return times(plan, self.speed) if self.fixed else None

    @property
    def place(self) -> AbstractContextManager[object]:
        """One of the places."""
        return self._places.place(self._who)


def paced(
    pacer: Pacer | None,
    plan: Plan,
    work: Callable[[float], bytes],
    alarm: Callable[[str, bool], None],
    cap: float,
    *,
    whose: str = "",
    allowed: Callable[[], None] = lambda: None,
) -> bytes:
    """Does the work, which is given the seconds it may take; returns, or raises, when it is time.

    Args:
        pacer: None: as soon as it is done.
        plan: What is worked on.
        work: Looks at the data.
        alarm: Told "late", or what a failure's own alarm is ("failed", "index failed", "source changed"), at the time
            at which that shows; and whether it was late by the processor time of its own work, counted from when it had
            its place: the load of others makes nobody guilty. Where no time is fixed, who asks is trusted to tell of a
            plain failure.
        cap: Seconds, where no time is fixed.
        whose: Whose work it is: all that is done for the same one meanwhile counts as its own.
        allowed: Raises if it may no longer look, asked once it has its place.
    """
    from dalenius.queries.engines.metering import metered

    fixed = None if pacer is None else pacer.times(plan)
    with nullcontext() if pacer is None else pacer.place:
        allowed()
        start = time.monotonic()
        if pacer is not None:
            pacer.started(fixed)
        if fixed is None:
            try:
                return work(cap)
            except DaleniusError as failure:
                if failure.alarm not in {"", "failed"}:
                    alarm(failure.alarm, False)
                raise
        content, error = b"", None
        with metered(whose) as seconds:
            try:
                content = work(_working(fixed))
            except BaseException as failure:  # noqa: BLE001 (whatever it is, it leaves no earlier)
                error = failure
            own = seconds() > fixed.answer
        if _wait(start, fixed):
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


def held(pacer: Pacer | None, plan: Plan) -> Callable[[], None]:
    """For who waits for the same question of another: called when that is answered, it waits for the own time.

    The other may be trusted, or ask on the machine itself, and is then answered as soon as the answer is ready. Where
    the own time has passed, the next multiple of it counts.
    """
    fixed, start = None if pacer is None else pacer.times(plan), time.monotonic()

    def hold() -> None:
        if fixed is not None:
            _sleep_until(start + fixed.answer * math.ceil((time.monotonic() - start) / fixed.answer))

    return hold


def _working(fixed: Times) -> float:
    """How long the work may take: less than the cap, so that what is stopped leaves at the cap as well."""
    return fixed.cap - min(_STOPPING, (fixed.cap - fixed.answer) / 2)


def _wait(start: float, fixed: Times) -> bool:
    """Until the answer's time, or, if that has passed, until the cap; whether it had passed.

    Work that the engine's limit did not end before the cap (not all of it is done there) leaves at a multiple of it.
    """
    took = time.monotonic() - start
    late = took > fixed.answer
    _sleep_until(start + (fixed.cap * max(1, math.ceil(took / fixed.cap)) if late else fixed.answer))
    return late


def _sleep_until(end: float) -> None:
    while (left := end - time.monotonic()) > 0:
        time.sleep(left)


def probe() -> float:
    """How much slower than the machine of `SHAPES` this one is just now, on rows that are nobody's; at least 1."""
    from dalenius.queries.engines.probe import seconds

    return min(20.0, max(1.0, seconds() / PROBE))
