"""The neighbour fuzzer: made-up policies, tables, a neighbour of each, and questions.

A plan claims how much one unit can change its exact integers; its noise is made for that claim. Here the plan runs on
both tables without any noise, and the integers are compared. What counts as a violation:

difference  they differ by more than the plan claims (Σd² or Σ|d|, in the plan's norm)
nobody      rows that have no unit change something
unit        a table with one unit alone holds more than its clip
order       the rows in another order give other integers
lone        keys that one unit alone has weigh more than their number allows, where keys have to be found
keys        such a key is nothing that an answer can show
search      where the question finds its own limits: units counted by the length of their vectors differ by more than
            one unit (two, where one replaces another), or a table with one unit holds more than one
statements  other statements run on one table than on the other, or one of them fails (`fuzzing.traces`)
index       with a contribution index, or one that is out of date, there are other integers than without
expected    a simple plan gives other integers than its definition (`fuzzing.expected`)
engine      the engine fails, which on some other table it would not have done
planner     the planner fails in another way than by refusing

Questions that the planner refuses are counted, by their reason. Chance here is seeded: it is no noise.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzzing import found as keys
from dalenius.audit.fuzzing import traces
from dalenius.audit.fuzzing.engines import engine, indexed, texts
from dalenius.audit.fuzzing.expected import expected
from dalenius.audit.fuzzing.policies import shape
from dalenius.audit.fuzzing.questions import question
from dalenius.audit.fuzzing.shrinking import shrunk
from dalenius.audit.fuzzing.tables import Pair, Row, pair, shuffled
from dalenius.errors import (
    DaleniusError,
    EngineFailedError,
    EngineTimeoutError,
    InputError,
    InternalError,
    SourceUnavailableError,
)
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.limits.in_question import lower_clips
from dalenius.measuring.limits.ladder import sensitivity
from dalenius.measuring.plan import Limits, Measure, Plan
from dalenius.measuring.trees import largest
from dalenius.queries.rules import plan_question

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine

SALT = "not a secret: the tables are made up"
QUESTIONS = 8  # about each pair of tables
_PARQUET, _CSV = 0.05, 0.02  # of the pairs go through real files
_INDEXED = 0.07  # and so many through Parquet files with a contribution index
_ALONE = 0.4  # of the cases: a look at the victim alone
_ORDER = 0.15  # and at the rows in another order
_SEARCH = 0.3  # of the questions find their own limits
SECONDS = 20.0
T = TypeVar("T")
BROKEN = (EngineFailedError, EngineTimeoutError, InternalError, SourceUnavailableError)


@dataclass(frozen=True)
class Violation:
    """A case that breaks the promise, as small as it could be made.

    Attributes:
        kind: What is broken; see this module.
        case: Its number in the run with this ``seed``.
        sql: The question.
        policy: The policy, as TOML.
        columns: Names and types of the file's columns.
        first: The rows of one table, as texts; a date or datetime is its days or microseconds since 1970.
        second: Those of the other.
        claimed: The most that the plan allows.
        seen: What was found.
        measure: Where, in the notation of plans; or what failed.
    """

    kind: str
    seed: int
    case: int
    sql: str
    policy: str
    columns: dict[str, str]
    first: list[list[str | None]]
    second: list[list[str | None]]
    claimed: str
    seen: str
    measure: str

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


@dataclass
class Report:
    """What a run did."""

    seed: int
    cases: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    violations: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def compared(self) -> int:
        """The cases that ran on both tables."""
        return self.cases - sum(self.refused.values())

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "seed": self.seed,
            "cases": self.cases,
            "compared": self.compared,
            "refused": dict(sorted(self.refused.items())),
            "drawn": dict(sorted(self.drawn.items())),
            "seconds": round(self.seconds, 3),
            "violations": [each.to_dict() for each in self.violations],
        }


def fuzz(
    *,
    cases: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    most: int = 1,
    start: int = 0,
    indexed: float | None = None,
    progress: Callable[[Report], None] | None = None,
) -> Report:
    """Runs so many cases, or for so long.

    Args:
        cases: How many questions.
        minutes: How long.
        seed: The same seed gives the same cases; by default a new one.
        most: Stop after so many violations.
        start: The number of the first pair of tables; cases are counted from there.
        indexed: The share of the pairs that get a contribution index; by default few, since those take longest.
        progress: Called after each pair of tables.
    """
    check_length(cases, minutes, seed)
    report = Report(secrets.randbits(32) if seed is None else seed)
    began, number = time.monotonic(), start
    with TemporaryDirectory() as folder:
        while len(report.violations) < most and goes_on(report, cases, minutes):
            # A source of its own for each pair: any one of them can be drawn again alone.
            chance = Random(f"{report.seed} {number}")  # noqa: S311
            _pair_of_tables(chance, report, cases, Path(folder), _INDEXED if indexed is None else indexed)
            number += 1
            report.seconds = time.monotonic() - began
            if progress is not None:
                progress(report)
    return report


def check_length(cases: int | None, minutes: float | None, seed: int | None) -> None:
    """Refuses a run without a sensible length."""
    if (cases is None) == (minutes is None):
        raise InputError(
            "The fuzzer needs a length.",
            why="It would go on for ever, or has two lengths.",
            fix="Give either a number of cases or minutes.",
        )
    if (cases is not None and cases < 1) or (minutes is not None and not 0 < minutes <= 100_000):
        raise InputError(
            "This is no length of a run.", why="It must be above 0, and finite.", fix="Give more cases, or minutes."
        )
    if seed is not None and seed < 0:
        raise InputError("A seed is not negative.", why="It numbers the runs.", fix="Give 0 or more.")


def goes_on(report: Report, cases: int | None, minutes: float | None) -> bool:
    """Whether a run is not at its end."""
    if cases is not None:
        return report.cases < cases
    return minutes is not None and report.seconds < minutes * 60


def _pair_of_tables(random: Random, report: Report, cases: int | None, folder: Path, share: float) -> None:
    chance = random.random()
    indexed_ = chance > 1 - share
    form = "parquet" if chance < _PARQUET or indexed_ else "csv" if chance < _PARQUET + _CSV else "memory"
    made = pair(random, replace(shape(random, form), indexed=indexed_))
    policy = made.shape.policy
    sides: Sides | None = None
    for _ in range(QUESTIONS if cases is None else min(QUESTIONS, cases - report.cases)):
        sql = question(random, made.shape)
        # Drawn from a source of their own, so that the tables and questions of a seed stay what they were.
        limits = Limits(search=0.1 if Random(f"search {sql}").random() < _SEARCH else 0)  # noqa: S311
        report.cases += 1
        found: Broken | None
        try:
            plan = plan_question(sql, {policy.name: made.shape.table}, limits)
        except BROKEN as error:
            found = Broken("planner", "no failure", type(error).__name__, error.message)
        except DaleniusError as error:
            report.refused[error.code] += 1
            continue
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            found = Broken("planner", "no failure", type(error).__name__, str(error))
        else:
            report.drawn.update((policy.neighbors.value, plan.norm, made.shape.form))
            report.drawn.update(["found"] if plan.selection is not None else [])
            report.drawn.update(["search"] if plan.searched else [])
            report.drawn.update(["sets"] if plan.sets else [])
            report.drawn.update(["indexed"] if indexed_ else [])
            try:
                sides = sides or Sides(made, random, folder)
                found = sides.checked(plan)
            except BROKEN as error:
                found = Broken("engine", "no failure", type(error).__name__, error.message)
        if found is not None:
            report.violations.append(_violation(report, made, (sql, limits), found, folder))
            return


@dataclass(frozen=True)
class Broken:
    """What a check found."""

    kind: str
    claimed: str
    seen: str
    measure: str


class Sides:
    """A pair of tables, each in its engine, ready for many plans."""

    compares = True  # an index with the general way; without that, neighbours alone must tell
    first: Engine
    second: Engine
    alone: Engine
    again: Engine
    plain: tuple[Engine, ...] = ()
    own: Engine  # the second with an index of its own, where the first has one
    nobody = False
    indexed = False

    def __init__(self, made: Pair, random: Random, folder: Path) -> None:
        self.made = made
        self.random = random
        self.nobody, self.indexed = made.nobody, made.shape.indexed
        self.substitutes = made.shape.policy.neighbors is Neighbors.SUBSTITUTE

        def at(name: str, rows: Sequence[Row]) -> Engine:
            return engine(made.shape, rows, folder / name)

        self.first = at("first", shuffled(random, made.first))
        self.second = at("second", made.second)
        self.alone = at("alone", made.victim)
        self.again = at("again", shuffled(random, made.first))
        self.plain = (self.first, self.second)
        if made.shape.indexed:
            # Which of the two has its own index, and which that of its neighbour, is as good either way: both differ.
            self.first = indexed(made.shape, self.first, folder / "index")
            self.second = indexed(made.shape, self.second, folder / "index", stale=self.first)
            self.own = indexed(made.shape, self.plain[1], folder / "own")

    def checked(self, plan: Plan, *, all_: bool = False) -> Broken | None:
        """The first promise that this plan breaks here; ``all_`` leaves no check to chance.

        Where it finds its own limits, the counts that it finds them from are compared, and then the integers at some
        lower clips: whichever the noise may choose, the promise must hold.
        """
        try:
            if plan.selection is not None:
                weighed = self.weighed(plan, all_=all_)
                if isinstance(weighed, Broken):
                    return weighed
                plan = weighed
            found = self._search(plan) if plan.searched else None
            return found or self._measures(tightened(plan), all_=all_)
        except traces.DifferentError as error:
            return Broken("statements", traces.SAME, str(error), plan.canonical())

    def looked(self, look: Callable[[Engine], T]) -> tuple[T, T, list[T]]:
        """What a look finds on both tables, and, where there is an index, on both the general way.

        Raises:
            DifferentError: What runs is not the same on neighbours: both the general way, or each with its own index.
        """
        (first, ran), (second, also) = (traces.traced(partial(look, each)) for each in (self.first, self.second))
        if not self.indexed:
            traces.check([(ran, also)])
            return first, second, []
        # An index that is out of date, as the second's is, is passed over: that is no difference of neighbours.
        _, own = traces.traced(partial(look, self.own))
        (one, general), (other, too) = (traces.traced(partial(look, each)) for each in self.plain)
        # Whether there are rows of nobody is nobody's secret, and an index knows it: only success counts there.
        traces.check([(general, too), *([(ran, ran), (own, own)] if self.nobody else [(ran, own)])])
        return first, second, [one, other]

    def _search(self, plan: Plan) -> Broken | None:
        def look(table: Engine) -> list[list[int]]:
            return exact_lengths(plan, table, SALT, seconds=SECONDS)

        first, second, general = self.looked(look)
        alone = look(self.alone)
        if self.compares and self.indexed and general != [first, second]:
            return Broken("index", "the same counts of units", "others", plan.canonical())
        for at, number in enumerate(plan.searched):
            measure = plan.measures[number]
            one, two = 1, 2 if self.substitutes else 1
            if measure.kind == "distinct":
                one = sensitivity(measure.clip, plan.norm, Neighbors.ADD_REMOVE, measure.sets)
                two = sensitivity(measure.clip, plan.norm, plan.neighbors, measure.sets)
            if self.nobody:
                one = two = 0
            seen = length([a - b for a, b in zip(first[at], second[at], strict=True)], plan.norm)
            if seen > two:
                return Broken("search", str(two), str(seen), measure.written())
            if length(alone[at], plan.norm) > one:
                return Broken("search", str(one), str(length(alone[at], plan.norm)), measure.written())
        return None

    def _measures(self, plan: Plan, *, all_: bool) -> Broken | None:
        first, second, general = self.looked(lambda table: exact(plan, table, SALT, seconds=SECONDS))
        if self.compares and self.indexed and general != [first, second]:
            return Broken("index", "the same integers", "others", plan.canonical())
        # Where a unit is removed, the difference is what it holds.
        looks = self.substitutes and (all_ or self.random.random() < _ALONE)
        alone = exact(plan, self.alone, SALT, seconds=SECONDS) if looks else None
        for number, measure in enumerate(plan.measures):
            difference = [one - other for one, other in zip(first[number], second[number], strict=True)]
            seen = length(difference, plan.norm)
            if self.nobody and seen:
                return Broken("nobody", "0", str(seen), measure.written())
            if seen > measure.sensitivity:
                return Broken("difference", str(measure.sensitivity), str(seen), measure.written())
            most = limit(measure, plan.norm)
            if alone is not None and length(alone[number], plan.norm) > most:
                seen = length(alone[number], plan.norm)
                return Broken("unit", str(most), str(seen), measure.written())
        known = self.expected(plan)
        if known is not None and [[each] for each in known] != first:
            return Broken("expected", str(known), str([each for (each,) in first]), plan.canonical())
        if (all_ or self.random.random() < _ORDER) and exact(plan, self.again, SALT, seconds=SECONDS) != first:
            return Broken("order", "the same integers", "others", plan.canonical())
        return None

    def expected(self, plan: Plan) -> list[int] | None:
        """The integers of the first table by definition, where the plan is simple."""
        return expected(plan, self.made.shape, self.made.first)

    def weighed(self, plan: Plan, *, all_: bool) -> Plan | Broken:
        """The plan with all keys of both tables for its groups, or what is wrong with their weights."""

        def of(table: Engine) -> keys.Weights:
            return keys.weighed(plan, table, SALT, SECONDS)

        where = f"weights of {plan.canonical()}"
        try:
            first, second, general = self.looked(of)
            wrong = keys.broken(plan, first, second, nobody=self.nobody)
            compares = wrong is None and self.compares and self.indexed
            if compares and general != [first, second]:
                wrong = "index", "the same weights", "others"
            if wrong is None and self.substitutes and (all_ or self.random.random() < _ALONE):
                wrong = keys.too_long(of(self.alone))
            if wrong is None and (all_ or self.random.random() < _ORDER) and of(self.again) != first:
                wrong = "order", "the same weights", "others"
        except keys.UnsayableError as error:
            wrong = "keys", "each key once, as an answer can show it", str(error)
        if wrong is not None:
            return Broken(*wrong, where)
        return replace(plan, cells=(*plan.cells, *keys.union(first, second)))


def tightened(plan: Plan) -> Plan:
    """The plan at clips that its search might find: any from 1 up to its own. The same each time."""
    if not plan.searched:
        return plan
    random = Random(plan.canonical())  # noqa: S311
    clips = {at: max(1, int(plan.measures[at].clip ** random.random())) for at in plan.searched}
    return lower_clips(plan, clips)


def length(vector: Sequence[int], norm: str) -> int:
    """Σv² where the norm is L2, Σ|v| where it is L1."""
    return sum(each * each if norm == "l2" else abs(each) for each in vector)


def limit(measure: Measure, norm: str) -> int:
    """The most that one unit's own vector may be long: C², or C; of ones, their number; of trees, all levels.

    Of pairs, that in each grouping set.
    """
    if measure.kind == "leaves":
        return largest(measure, norm)
    return measure.sets * (measure.clip**2 if norm == "l2" and measure.kind != "units" else measure.clip)


# --- a violation, made small


def _violation(report: Report, made: Pair, asked: tuple[str, Limits], found: Broken, folder: Path) -> Violation:
    seed, case = report.seed, report.cases - 1

    def again(candidate: Pair) -> Broken | None:
        return _once(candidate, asked, found.kind, folder)

    smaller = shrunk(made, lambda candidate: again(candidate) is not None)
    found = again(smaller) or found
    shape_ = smaller.shape
    return Violation(
        found.kind,
        seed,
        case,
        asked[0],
        shape_.policy.text,
        dict(shape_.storages),
        texts(smaller.first),
        texts(smaller.second),
        found.claimed,
        found.seen,
        found.measure,
    )


def _once(candidate: Pair, asked: tuple[str, Limits], kind: str, folder: Path) -> Broken | None:
    """The same kind of violation on a smaller pair, if it is still there."""
    try:
        plan = plan_question(asked[0], {candidate.shape.policy.name: candidate.shape.table}, asked[1])
    except DaleniusError:
        return None
    except Exception as error:  # noqa: BLE001
        return Broken("planner", "no failure", type(error).__name__, str(error)) if kind == "planner" else None
    try:
        found = Sides(candidate, Random(0), folder).checked(plan, all_=True)  # noqa: S311
    except BROKEN as error:
        found = Broken("engine", "no failure", type(error).__name__, error.message)
    return found if found is not None and found.kind == kind else None
