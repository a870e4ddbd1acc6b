"""The neighbour fuzzer for data sets: made-up tables that share their units, public tables, and questions that join.

As `audit.fuzz`, for questions about several tables: data sets of two to four tables, whose neighbours differ in all
rows of one unit, wherever its paths lead. Kinds of violations are those of `audit.fuzz`; "expected" here means that a
plan without limits gives other integers than plain DuckDB does for the question's own text (`fuzzing.oracle`).

Some data sets have keys that are not unique. Nothing can be promised about those: `protect` must refuse them, which
counts as refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzz import BROKEN, SALT, SECONDS, Broken, Report, Sides, check_length, goes_on
from dalenius.audit.fuzzing.databases import Neighbours, Rows, neighbours, shuffled_rows
from dalenius.audit.fuzzing.engines import texts
from dalenius.audit.fuzzing.joined_questions import Asked, asked
from dalenius.audit.fuzzing.oracle import Oracle, disagreement
from dalenius.audit.fuzzing.schemas import schema
from dalenius.audit.fuzzing.several import Memory, OnDisk, accepted, publics_of
from dalenius.errors import DaleniusError, EngineFailedError
from dalenius.measuring._exact import exact
from dalenius.measuring.engines.duckdb.connections import Pool
from dalenius.measuring.plan import Limits, Plan
from dalenius.queries.rules import planned

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine

QUESTIONS = 10  # about each data set
_PARQUET = 0.04  # of the data sets go through real files
REPEATED = 0.04  # of them have keys that are not unique
_SEARCH = 0.2  # of the questions find their own limits
_WIDE = 10**6  # groups


@dataclass(frozen=True)
class JoinedViolation:
    """A case that breaks the promise, as small as it could be made.

    Attributes:
        kind: What is broken; see `audit.fuzz`.
        case: Its number in the run with this ``seed``.
        sql: The question.
        policies: The policies, as TOML.
        columns: By table, names and types of its columns; public tables as well.
        first: By table, the rows of one data set, as texts.
        second: Those of the other.
        publics: Those of public tables.
        claimed: The most that the plan allows, or what was expected.
        seen: What was found.
        measure: Where, in the notation of plans; or what failed.
    """

    kind: str
    seed: int
    case: int
    sql: str
    policies: list[str]
    columns: dict[str, dict[str, str]]
    first: dict[str, list[list[str | None]]]
    second: dict[str, list[list[str | None]]]
    publics: dict[str, list[list[str | None]]]
    claimed: str
    seen: str
    measure: str

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)


def fuzz_joined(
    *,
    cases: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    most: int = 1,
    start: int = 0,
    progress: Callable[[Report], None] | None = None,
) -> Report:
    """Runs so many cases, or for so long; arguments as those of `fuzz`."""
    check_length(cases, minutes, seed)
    report = Report(secrets.randbits(32) if seed is None else seed)
    began, number = time.monotonic(), start
    with TemporaryDirectory() as folder:
        while len(report.violations) < most and goes_on(report, cases, minutes):
            # A source of its own for each data set: any one of them can be drawn again alone.
            chance = Random(f"joined {report.seed} {number}")  # noqa: S311
            _data_set(chance, report, cases, Path(folder) / str(number))
            number += 1
            report.seconds = time.monotonic() - began
            if progress is not None:
                progress(report)
    return report


def _data_set(random: Random, report: Report, cases: int | None, folder: Path) -> None:
    chance = random.random()
    form = "parquet" if chance < _PARQUET else "memory"
    made = neighbours(random, schema(random, form, unique=chance < 1 - REPEATED))
    if not made.schema.unique:
        try:
            # Both: a neighbour that nobody could protect is no neighbour.
            accepted(made.schema, made.first, folder / "accepted first")
            accepted(made.schema, made.second, folder / "accepted second")
        except DaleniusError as error:
            report.cases += 1
            report.drawn["repeated keys"] += 1
            report.refused[error.code] += 1
            return
    sides = Several(made, random, folder)
    for _ in range(QUESTIONS if cases is None else min(QUESTIONS, cases - report.cases)):
        question = asked(random, made.schema, sides.publics)
        limits = Limits(search=0.1 if random.random() < _SEARCH else 0)
        report.cases += 1
        found, plan = _planned(sides, question, limits)
        if plan is None and found is None:
            continue
        if isinstance(plan, str):
            report.refused[plan] += 1
            continue
        if plan is not None:
            _counted(report, made, question, plan)
            found = sides.judged(question, plan)
            report.drawn.update(["followed"] if sides.followed else [])
        if found is not None:
            report.violations.append(_violation(report, made, question, limits, found, folder))
            return


def _planned(sides: Several, question: Asked, limits: Limits) -> tuple[Broken | None, Plan | str | None]:
    """The plan, or why it was refused, or what broke."""
    try:
        return None, planned(question.text, sides.made_up.schema.tables, limits, sides.publics)
    except BROKEN as error:
        return Broken("planner", "no failure", type(error).__name__, error.message), None
    except DaleniusError as error:
        return None, error.code
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        return Broken("planner", "no failure", type(error).__name__, str(error)), None


def _counted(report: Report, made: Neighbours, question: Asked, plan: Plan) -> None:
    relation = plan.table.relation
    report.drawn.update((made.schema.first.neighbors.value, plan.norm, made.schema.form))
    report.drawn.update(["found"] if plan.selection is not None else [])
    report.drawn.update(["search"] if plan.searched else [])
    report.drawn.update(["path"] if any(each.policy.path for each in _tables(plan)) else [])
    report.drawn.update(["plain"] if question.plain else [])
    if relation.single:
        return
    inner = list(relation.within())
    joins = [join for each in inner for join in each.joins]
    report.drawn.update(type(join.source).__name__ for join in joins)
    report.drawn.update(["joined"] if any(len(each.joins) > 1 for each in inner) else [])
    report.drawn.update(["left"] if any(join.left for join in joins) else [])
    report.drawn.update(["match"] if any(each.matches for each in inner) else [])


def _tables(plan: Plan) -> Sequence[Any]:
    return list(plan.table.relation.tables())


class Several(Sides):
    """A data set and its neighbour, ready for many plans."""

    followed = False  # whether the last question was compared with plain DuckDB

    def __init__(self, made: Neighbours, random: Random, folder: Path) -> None:
        self.made_up = made
        self.random = random
        self.nobody = made.nobody
        self.substitutes = made.schema.first.neighbors is Neighbors.SUBSTITUTE
        self._held, self.publics = publics_of(made.schema, made.publics, folder)
        engines = Pool()

        def at(name: str, rows: Rows) -> Memory | OnDisk:
            if made.schema.form == "memory":
                return Memory(made.schema, rows, self._held)
            return OnDisk(made.schema, rows, folder / name, engines)

        self._sides = [
            at("first", shuffled_rows(random, made.first)),
            at("second", made.second),
            at("alone", made.victim),
            at("again", shuffled_rows(random, made.first)),
        ]
        self._oracle: Oracle | None = None

    def judged(self, question: Asked, plan: Plan, *, all_: bool = False) -> Broken | None:
        """The first promise that a question breaks here."""
        self.followed = False
        try:
            self.first, self.second, self.alone, self.again = (each.of(plan.table) for each in self._sides)
            return self.checked(plan, all_=all_) or self.compared(question)
        except BROKEN as error:
            return Broken("engine", "no failure", type(error).__name__, error.message)
        except RuntimeError as error:
            return Broken("planner", "no failure", type(error).__name__, str(error))

    def expected(self, plan: Plan) -> list[int] | None:  # noqa: ARG002
        """Nothing: `compared` sees to it, on a plan of its own."""
        return None

    def compared(self, question: Asked) -> Broken | None:
        """Whether a plan without limits gives what DuckDB does, where both mean the same."""
        made = self.made_up
        if not question.plain or not made.schema.unique or any(map(made.schema.opaque, made.schema.tables)):
            return None
        try:
            plan = planned(question.text, made.schema.wide.tables, Limits(groups=_WIDE, search=0), self.publics)
        except DaleniusError:
            return None
        engine: Engine = self._sides[0].of(plan.table)
        if plan.selection is not None:
            from dalenius.audit.fuzzing.found import union, weighed

            plan = replace(plan, cells=union(weighed(plan, engine, SALT, SECONDS)))
        self._oracle = self._oracle or Oracle(made.schema, made.first, self.publics, self._held)
        try:
            says = self._oracle.answer(question, SECONDS)
        except EngineFailedError:  # what DuckDB takes for an error and we do not: a, b JOIN c USING (a column of a)
            return None
        self.followed = True
        found = disagreement(plan, exact(plan, engine, SALT, seconds=SECONDS), says)
        return None if found is None else Broken("expected", *found, plan.canonical())


# --- a violation, made small


def _violation(
    report: Report, made: Neighbours, question: Asked, limits: Limits, found: Broken, folder: Path
) -> JoinedViolation:
    smaller = shrunk(made, lambda candidate: _again(candidate, question, limits, found.kind, folder) is not None)
    found = _again(smaller, question, limits, found.kind, folder) or found
    schema_ = smaller.schema
    return JoinedViolation(
        found.kind,
        report.seed,
        report.cases - 1,
        question.text,
        [each.policy.text for each in schema_.tables.values()],
        {name: dict(types) for name, types in (*schema_.storages.items(), *schema_.publics.items())},
        {name: texts(rows) for name, rows in smaller.first.items()},
        {name: texts(rows) for name, rows in smaller.second.items()},
        {name: texts(rows) for name, rows in smaller.publics.items()},
        found.claimed,
        found.seen,
        found.measure,
    )


def _again(candidate: Neighbours, question: Asked, limits: Limits, kind: str, folder: Path) -> Broken | None:
    """The same kind of violation on fewer rows, if it is still there."""
    sides = Several(candidate, Random(0), folder)  # noqa: S311
    found, plan = _planned(sides, question, limits)
    if isinstance(plan, Plan):
        found = sides.judged(question, plan, all_=True)
    return found if found is not None and found.kind == kind else None


def shrunk(made: Neighbours, still: Callable[[Neighbours], bool], tries: int = 150) -> Neighbours:
    """With as few rows as ``tries`` looks allow, while ``still`` holds."""
    left = tries
    for part in ("others", "instead", "loose", "victim", "publics"):
        for table, rows in getattr(made, part).items():
            kept, size = rows, len(rows)
            while size:
                at = 0
                while at < len(kept) and left > 0:
                    candidate = made.with_rows(part, table, kept[:at] + kept[at + size :])
                    left -= 1
                    if still(candidate):
                        made, kept = candidate, kept[:at] + kept[at + size :]
                    else:
                        at += size
                size //= 2
    return made
