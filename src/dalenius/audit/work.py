"""The search for work: questions that take longer, or more memory, because of one person (ATTACKS, H23).

It maximises. Questions over all functions and clauses run on neighbouring tables, in which one person with at most one
row in a hundred is there or not; those that come out worst are changed and crossed, so that the time goes where the
difference grows. Two stages, because most questions show nothing:

small   every question that the planner takes runs once on each of two small tables, without drawing noise. Where they
        differ by more than chance, it runs again, and then on tables without rows: what it took there is taken to
        stay, and the rest to grow with the rows, which predicts the times for large tables.
large   questions whose predicted ratio is above `CERTAIN`, and samples of the others, run on tables so large that
        they should take 50 ms, noise and all. Above 1.3 they run again nine times, alternating, and the least time of
        each side counts. (That ends after three rounds below 1.2, since the first run was a slip, and after two that
        leave no doubt.)

What counts as a violation:

ratio   one side takes more than 1.5 times as long as the other, where that is 50 ms or more
late    a side is not done at its fixed time (`pace.times`), on any table, three times in turn
memory  the peaks differ by more than 5% and 16 MB
engine  the engine fails on either side, or takes a statement of ours for none
traces  the statements that run on the two small tables differ, or one of them fails (`traces`); where keys are found in
        the rows, later statements name them, and only failures count

Seeds draw the questions; which of them have children depends on measured times, so that two runs with one seed part
after a while. A finding is complete by itself: its question, its victim and the size of its tables.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from dalenius.audit.fuzz import check_length
from dalenius.audit.fuzzing.arenas import Arena, Places, arena_tables
from dalenius.audit.fuzzing.checks import FAILURES
from dalenius.audit.fuzzing.heavy import GenePool, HeavyQuestion, Tried
from dalenius.audit.fuzzing.meters import MeteredSide, Spent, peak
from dalenius.audit.fuzzing.traces import trace, trace_difference
from dalenius.errors import DaleniusError, EngineFailedError, InternalError
from dalenius.measuring import pace
from dalenius.measuring.expressions import Call, walk
from dalenius.measuring.plan import Plan
from dalenius.queries.rules import plan_question
from dalenius.releasing import pacing

SIZES = (4_000, 40_000, 400_000)  # rows: small, and those of which the first that is large enough is taken
RATIO, LONG, AGAIN, ROUNDS = 1.5, 0.05, 1.3, 9
PROMISING, CERTAIN = 1.15, 1.25  # predicted ratios: of those between the two a sample goes on, above all of them
MEMORY, SLACK = 0.05, 16 * 2**20
_SAMPLE, _PROMISED, _WEIGHED = 0.01, 0.2, 0.05  # of the others; of those that promise; of all whose memory is seen
_NOTICED, _NOTICED_SHARE = 0.002, 0.08  # a difference on small tables that is worth another look: seconds, and of all
_PATIENCE = 20.0  # seconds for which one question may be run again
_SHRINKING = 20.0  # and for which a smaller one is looked for


@dataclass(frozen=True)
class Finding:
    """A question with what it took; ``first`` is the table with the victim. Times in seconds, memory in bytes."""

    kind: str
    value: float
    limit: float
    sql: str
    victim: str
    rows: int
    first: float
    second: float

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


@dataclass
class WorkReport:
    """What a search did. ``cases`` are questions that ran on both tables; refused ones are counted apart.

    ``traced`` are those whose statements were compared in full.
    """

    seed: int
    speed: float = 1.0
    asked: int = 0
    cases: int = 0
    large: int = 0
    again: int = 0
    weighed: int = 0
    traced: int = 0
    long: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    worst: dict[str, Finding] = field(default_factory=dict)
    violations: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def saw(self, finding: Finding) -> None:
        """Keeps the largest of each kind, and what is past its limit."""
        if finding.kind not in self.worst or finding.value > self.worst[finding.kind].value:
            self.worst[finding.kind] = finding
        if finding.value > finding.limit:
            self.violations.append(finding)

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        counts = ("seed", "asked", "cases", "large", "again", "weighed", "traced", "long")
        found = {name: getattr(self, name) for name in counts}
        return found | {
            "speed": round(self.speed, 3),
            "refused": dict(sorted(self.refused.items())),
            "functions": dict(sorted(self.functions.items())),
            "worst": {name: each.to_dict() for name, each in sorted(self.worst.items())},
            "seconds": round(self.seconds, 3),
            "violations": [each.to_dict() for each in self.violations],
        }


def search_for_work(
    *,
    cases: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    most: int = 1,
    sizes: Sequence[int] = SIZES,
    ratio: float = RATIO,
    quiet: bool = True,
    progress: Callable[[WorkReport], None] | None = None,
) -> WorkReport:
    """Searches until so many questions were measured, or for so long.

    Args:
        cases: How many questions are to run on both tables.
        minutes: How long.
        seed: Draws the same first questions; by default a new one.
        most: Stop after so many violations.
        sizes: Rows of the tables: the small ones, then larger ones.
        ratio: The largest that is no violation.
        quiet: Nobody else uses this machine. If not, only processor time counts, and nothing is late.
        progress: Called after each question.
    """
    check_length(cases, minutes, seed)
    report = WorkReport(secrets.randbits(32) if seed is None else seed, pacing.probe())
    with TemporaryDirectory() as folder:
        judge = Judge(report, Places(Path(folder), report.seed), tuple(sizes), ratio, quiet=quiet)
        pool, began = GenePool(), time.monotonic()
        while len(report.violations) < most:
            if (cases is not None and report.cases >= cases) or (minutes and report.seconds >= minutes * 60):
                break
            chance = Random(f"work {report.seed} {report.asked}")  # noqa: S311
            question, arena = pool.next(chance, report.asked)
            judge.ask(question, arena, pool, chance.random())
            report.seconds = time.monotonic() - began
            if progress is not None:
                progress(report)
    return report


class Judge:
    """Asks questions, and measures what they take."""

    weighs: bool | None = None  # whether memory is looked at; by default where that is promising, and in a sample

    def __init__(
        self, report: WorkReport, places: Places, sizes: tuple[int, ...], ratio: float, *, quiet: bool
    ) -> None:
        self.report, self.places, self.sizes, self.ratio, self.quiet = report, places, sizes, ratio, quiet
        self.asked: set[tuple[str, Arena]] = set()

    def ask(self, question: HeavyQuestion, arena: Arena, pool: GenePool, drawn: float) -> None:
        """One question, through as many stages as it is worth; ``drawn``, in [0, 1), decides about samples."""
        report, sql, before = self.report, question.text(), len(self.report.violations)
        report.asked += 1
        if (sql, arena) in self.asked:
            report.refused["asked before"] += 1
            return
        self.asked.add((sql, arena))
        plan = self.planned(sql, self.sizes[0])
        if plan is None:
            return
        try:
            predicted, rows, time_ = self.small(plan, sql, arena)
            report.cases += 1
            report.functions.update({name for each in _expressions(plan) for name in each})
            pool.offer("ratio", Tried(question, arena, predicted))
            pool.offer("time", Tried(question, arena, time_))
            share = 1.0 if predicted > CERTAIN else _PROMISED if predicted > PROMISING else _SAMPLE
            if drawn < share and len(report.violations) == before:
                again = self.planned(sql, rows)
                if again is not None:
                    seen, memory = self.large(again, sql, arena, rows)
                    pool.offer("ratio", Tried(question, arena, seen))  # what was seen, in the place of what was thought
                    if memory is not None:
                        pool.offer("memory", Tried(question, arena, memory))
        except (EngineFailedError, InternalError):
            report.saw(Finding("engine", 1, 0, sql, arena.name, self.sizes[0], 0, 0))
        if len(report.violations) > before:
            report.violations[-1] = self.shrink(question, arena, report.violations[-1])

    def planned(self, sql: str, rows: int) -> Plan | None:
        """The plan; None where it is refused, which is counted."""
        try:
            return plan_question(sql, arena_tables(rows), None, {})
        except FAILURES:
            raise
        except DaleniusError as error:
            self.report.refused[error.code] += 1
            return None

    def small(self, plan: Plan, sql: str, arena: Arena) -> tuple[float, int, float]:
        """The ratio that is to be expected of large tables, how many rows those need, and the time on small ones."""
        rows = self.sizes[0]
        first, second = self._watched(plan, sql, arena)
        self._fixed(plan, sql, arena, rows, (first, second), looks=True)
        slower, faster = max(first.cpu, second.cpu), min(first.cpu, second.cpu)
        if slower - faster > max(_NOTICED, _NOTICED_SHARE * slower):
            first, second = _least((first, second), _each_once(self.places.pair(arena, rows), plan, looks=True))
            slower, faster = max(first.cpu, second.cpu), min(first.cpu, second.cpu)
        noticed = slower - faster > max(_NOTICED, _NOTICED_SHARE * slower)
        fixed = min(faster, self.places.nothing(arena, rows).spent(plan, looks=True).cpu if noticed else 0.0)
        size = next((each for each in self.sizes if fixed + (slower - fixed) * each / rows >= LONG), self.sizes[-1])
        times = size / rows
        low, high = fixed + (faster - fixed) * times, fixed + (slower - fixed) * times
        return (high / max(low, 1e-9) if noticed and high >= LONG else 1.0), size, slower

    def _watched(self, plan: Plan, sql: str, arena: Arena) -> tuple[Spent, Spent]:
        """What each side takes, with an eye on the statements that run."""
        looks = (partial(side.spent, plan, looks=True) for side in self.places.pair(arena, self.sizes[0]))
        (first, one), (second, other) = map(trace, looks)
        if plan.selection is None:
            self.report.traced += 1
            found = trace_difference(one, other)
        else:
            found = trace_difference(one, one) or trace_difference(other, other)
        if found is not None:
            self.report.saw(Finding("traces", 1, 0, f"{sql} -- {found}", arena.name, self.sizes[0], 0, 0))
        return first, second

    def large(self, plan: Plan, sql: str, arena: Arena, rows: int) -> tuple[float, float | None]:
        """The ratio on large tables, which is 0 for questions that are short there too; and that of memory, if seen."""
        report, sides = self.report, self.places.pair(arena, rows)
        report.large += 1
        spent = _each_once(sides, plan)
        if self._ratio(spent) > AGAIN and self._long(spent):
            report.again += 1
            spent = self._again(sides, plan)
            if self._ratio(spent) > self.ratio:  # once more, a moment later: others may have used the machine
                spent = _least(spent, self._again(sides, plan))
        self._fixed(plan, sql, arena, rows, spent)
        seen = self._ratio(spent) if self._long(spent) else 0.0
        if seen:
            report.long += 1
            one, other = spent[0].wall if self.quiet else spent[0].cpu, spent[1].wall if self.quiet else spent[1].cpu
            report.saw(Finding("ratio", seen, self.ratio, sql, arena.name, rows, one, other))
        weighs = self.weighs
        if weighs is None:
            weighs = seen > AGAIN or Random(sql).random() < _WEIGHED  # noqa: S311
        return seen, self._memory(plan, sql, arena, rows) if weighs else None

    def _memory(self, plan: Plan, sql: str, arena: Arena, rows: int) -> float | None:
        """By how much of what is allowed the peaks of memory differ; looked at again before that is a violation."""
        sides, least = self.places.pair(arena, rows), list[int]()
        for _ in range(3):
            found = [peak(partial(side.run, plan)) for side in sides]
            now = [each for each in found if each is not None]
            if len(now) < len(sides):
                return None
            least = [min(pair) for pair in zip(least or now, now, strict=True)]
            if abs(least[0] - least[1]) <= MEMORY * max(least) + SLACK:
                break
        self.report.weighed += 1
        difference, allowed = abs(least[0] - least[1]), MEMORY * max(least) + SLACK
        self.report.saw(Finding("memory", difference / allowed, 1.0, sql, arena.name, rows, least[0], least[1]))
        return difference / allowed

    def _again(self, sides: tuple[MeteredSide, MeteredSide], plan: Plan) -> tuple[Spent, Spent]:
        least, end = _each_once(sides, plan), time.monotonic() + _PATIENCE
        for at in range(1, ROUNDS):
            slip, plain = at >= 3 and self._ratio(least) < 1.2, at >= 2 and self._ratio(least) > 4 * self.ratio
            if slip or plain or time.monotonic() > end:
                break
            least = _least(least, _each_once(sides, plan, swapped=at % 2 == 1))
        return least

    def _ratio(self, spent: tuple[Spent, Spent]) -> float:
        one, other = spent
        found = max(one.cpu, other.cpu) / max(1e-9, min(one.cpu, other.cpu))
        return max(found, max(one.wall, other.wall) / min(one.wall, other.wall)) if self.quiet else found

    def _long(self, spent: tuple[Spent, Spent]) -> bool:
        return max(each.wall if self.quiet else each.cpu for each in spent) >= LONG

    def _fixed(
        self, plan: Plan, sql: str, arena: Arena, rows: int, spent: tuple[Spent, Spent], *, looks: bool = False
    ) -> None:
        """How much of its fixed time a question takes; what seems late runs again, since others use the machine too."""
        if self.quiet:
            answer = pace.times(plan, self.report.speed).answer
            for _ in range(2):
                if max(each.wall for each in spent) > answer:
                    spent = _least(spent, _each_once(self.places.pair(arena, rows), plan, looks=looks))
            one, other = spent[0].wall, spent[1].wall
            self.report.saw(Finding("late", max(one, other) / answer, 1.0, sql, arena.name, rows, one, other))

    def shrink(self, question: HeavyQuestion, arena: Arena, found: Finding) -> Finding:
        """The same violation by a smaller question, if one shows within some seconds."""
        end, waiting = time.monotonic() + _SHRINKING, list(_smaller(question))
        while waiting and time.monotonic() < end:
            candidate = waiting.pop(0)
            probe = Judge(WorkReport(0, self.report.speed), self.places, self.sizes, self.ratio, quiet=self.quiet)
            probe.weighs = found.kind == "memory"
            plan = probe.planned(candidate.text(), found.rows)
            try:
                if plan is not None:
                    probe.large(plan, candidate.text(), arena, found.rows)
            except (EngineFailedError, InternalError):
                probe.report.saw(Finding("engine", 1, 0, candidate.text(), arena.name, found.rows, 0, 0))
            same = [each for each in probe.report.violations if each.kind == found.kind]
            if same:
                found, waiting = same[0], list(_smaller(candidate))
        return found


def _smaller(question: HeavyQuestion) -> Iterator[HeavyQuestion]:
    """The question with less of something."""
    for name in ("where", "keys", "aggregates"):
        parts = getattr(question, name)
        if len(parts) > (1 if name == "aggregates" else 0):
            if len(parts) > 2:
                yield replace(question, **{name: parts[: len(parts) // 2]})
                yield replace(question, **{name: parts[len(parts) // 2 :]})
            yield replace(question, **{name: parts[1:]})
    for change in ({"join": ""}, {"sets": ""}, {"wrap": "subquery"}):
        smaller = replace(question, **change)  # type: ignore[arg-type]
        if smaller != question and question.wrap not in {"plain", "per unit"}:
            yield smaller


def _each_once(
    sides: tuple[MeteredSide, MeteredSide], plan: Plan, *, swapped: bool = False, looks: bool = False
) -> tuple[Spent, Spent]:
    if swapped:
        second = sides[1].spent(plan, looks=looks)
        return sides[0].spent(plan, looks=looks), second
    return sides[0].spent(plan, looks=looks), sides[1].spent(plan, looks=looks)


def _least(one: tuple[Spent, Spent], other: tuple[Spent, Spent]) -> tuple[Spent, Spent]:
    return one[0].least(other[0]), one[1].least(other[1])


def _expressions(plan: Plan) -> Iterator[set[str]]:
    """The functions of each expression of a plan, and of what its relation is made of."""
    parts = [plan.where, *plan.keys, *(each for m in plan.measures for each in (m.value, m.where) if each is not None)]
    for part in parts:
        yield {each.function for each in walk(part) if isinstance(each, Call)}
