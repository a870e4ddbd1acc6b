"""How long a plan may take: a function of public things alone, fixed before anybody looks (`releasing.pacing`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalenius.ledger.suspensions import LATE

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan

CAP = 60.0  # seconds that a question may take, where the policy does not say
ANSWER = 1.0  # seconds after which answers leave, where the policy does not say
SAFETY = 10  # so many times what the class was measured to take
UNKNOWN = 1_000_000  # rows, of a table whose number of rows was never released
_GRID = 0.05  # seconds

# Seconds for a million rows on the machine of bench/RESULTS.md, by what the plan has to do with them (`shape`).
SHAPES = {"total": 0.01, "grouped": 0.05, "quantiles": 0.05, "found": 0.15, "joined": 0.30, "sets": 0.20}
WORST = 0.06  # of what a row's expressions take at worst, added to what they usually take
WORKING = 5  # so many times what expressions take: that is bounded, so it needs less than `SAFETY`
PLAIN, PLAIN_WORK = 3, 100.0  # measures of a plain question, and ns that its expressions take for a row
FIXED = 0.03  # seconds for everything that does not depend on rows


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the start of the work: when an answer leaves, and when a refusal does instead."""

    answer: float
    cap: float


def shape(plan: Plan) -> str:
    """What a plan has to do with every row, as one word of `SHAPES`."""
    if not plan.table.direct:
        return "joined"
    if plan.sets:
        return "sets"
    if plan.selection is not None:
        return "found"
    if any(each.primitive.statement == "leaves" for each in plan.measures):
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
    tables = list(plan.table.relation.tables())
    declared = [each.policy.time.answer for each in tables if each.policy.time.answer is not None]
    caps = [each.policy.time.cap for each in tables if each.policy.time.cap is not None]
    known = all(each.found is not None and each.found.row_count > 0 for each in tables)
    least = max(declared, default=ANSWER)
    if known or not declared:
        rows = sum(size_class(each.found.row_count if each.found else UNKNOWN) for each in tables)
        measured = (
            SAFETY * (FIXED + shape_seconds(plan) * rows / 1_000_000) + WORKING * work_seconds(plan) * rows / 1_000_000
        )
        least = max(least, speed * measured)
    else:
        least *= times_plain(plan)
    answer = math.ceil(least / _GRID - 1e-9) * _GRID
    return Times(answer, max(answer, min(caps, default=CAP)))


def shape_seconds(plan: Plan) -> float:
    """Seconds that a plan's shape takes for a million rows, whatever its expressions are.

    A measure whose groups may be scaled up is measured twice, at two limits.
    """
    from dalenius.measuring.limits.in_question import counts_totals

    twice = sum(counts_totals(plan, number) for number in plan.searched)
    return SHAPES[shape(plan)] * max(1, len(plan.measures) + twice)


def work_seconds(plan: Plan) -> float:
    """Seconds that a plan's expressions take for a million rows.

    They take their usual time and a share of their worst: the ballast that each row carries is a twentieth of it,
    and one unit's rows add at most half of that (`work`). A table in which most rows are as bad as can be needs
    the policy's word.
    """
    from dalenius.measuring import work

    relation = plan.table.relation
    found = work.work_of(plan) * work.times(relation) + work.inner_work(relation) + work.sifting_work(relation)
    found += work.Work(0.0 if relation.single else work.MEETING * work.times(relation))
    once = found.usual + WORST * found.whole
    again = (_passes(plan) - 1) * (work.common(plan).usual + work.ballast(found))
    return (once + again) / 1000


def times_plain(plan: Plan) -> float:
    """How much more a plan takes than a plain question of its shape, such as a count and an average; at least 1."""
    return max(1.0, (shape_seconds(plan) + work_seconds(plan)) / (PLAIN * SHAPES[shape(plan)] + PLAIN_WORK / 1000))


def _passes(plan: Plan) -> int:
    """How often a plan's rows are gone through: for each kind of statement, and for keys and limits to be found."""
    alone = [each.primitive.alone for each in plan.measures]
    return max(1, sum(alone) + (not all(alone))) + (2 if plan.selection is not None else 0) + _searches(plan)


def _searches(plan: Plan) -> int:
    """How often rows are gone through to find limits: for lengths, for totals, and for the sum of each total."""
    from dalenius.measuring.limits.in_question import counts_totals

    totals = sum(counts_totals(plan, number) for number in plan.searched)
    return bool(plan.searched) + bool(totals) + totals


def latest(plan: Plan) -> int:
    """After how many late answers an analyst is suspended: by the strictest of the tables that are read."""
    lates = (each.policy.time.late for each in plan.table.relation.tables())
    return min((each for each in lates if each is not None), default=LATE)


def cap(plan: Plan) -> float:
    """Seconds that a plan may take where no time is fixed."""
    return plan.table.policy.time.cap or CAP
