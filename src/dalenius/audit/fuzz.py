"""The neighbour fuzzer: made-up data sets, a neighbour of each, and questions.

A data set is one table with all that a policy can say, or (``joins``) two to four tables that share their units, and
public ones; neighbours differ in all rows of one unit, wherever its paths lead. Each plan runs on both without any
noise, and the integers are compared. What counts as a violation:

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
expected    a simple plan gives other integers than its definition; or a plan without limits other ones than plain
            DuckDB does for the question's own text (`fuzzing.expected`)
engine      the engine fails, which on some other table it would not have done
planner     the planner fails in another way than by refusing

Questions that the planner refuses are counted, by their reason. Some data sets have keys that are not unique. Nothing
can be promised about those: `protect` must refuse them, which counts as refused. Chance here is seeded: it is no noise.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dalenius.audit.fuzzing.checks import Broken, Sides
from dalenius.audit.fuzzing.columns import Row
from dalenius.audit.fuzzing.data_sets import NeighbouringData, TableRows, draw_joined_rows, draw_table_rows
from dalenius.audit.fuzzing.engines import check_protectable
from dalenius.audit.fuzzing.joined_questions import write_joined_question
from dalenius.audit.fuzzing.questions import FuzzedQuestion, write_question
from dalenius.audit.fuzzing.schemas import draw_table, draw_tables
from dalenius.errors import DaleniusError, InputError
from dalenius.measuring.plan import Limits, Plan

if TYPE_CHECKING:
    pass

QUESTIONS, JOINED_QUESTIONS = 8, 10  # about each data set of one table, and of several
_PARQUET, _CSV, _JOINED_PARQUET = 0.05, 0.02, 0.04  # of the data sets go through real files
INDEXED = 0.07  # of the single tables lie in Parquet files with a contribution index
REPEATED = 0.04  # of several tables have keys that are not unique
_SEARCH, _JOINED_SEARCH = 0.3, 0.2  # of the questions find their own limits
_TRIES = 200  # looks at smaller cases that show the same violation
TextRows = list[list[str | None]]


@dataclass(frozen=True)
class Violation:
    """A case that breaks the promise, as small as it could be made. Rows and columns are by table.

    Attributes:
        kind: What is broken; see this module.
        case: Its number in the run with this ``seed``.
        sql: The question.
        policies: The policies, as TOML.
        columns: Names and types of the columns; of public tables as well.
        first: The rows of one data set, as texts; a date or datetime is its days or microseconds since 1970.
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
    first: dict[str, TextRows]
    second: dict[str, TextRows]
    publics: dict[str, TextRows]
    claimed: str
    seen: str
    measure: str

    def to_dict(self) -> dict[str, Any]:
        """For `--json`; a single table is not named."""
        found = asdict(self)
        if len(self.policies) > 1:
            return found
        del found["publics"]
        for name in ("columns", "first", "second"):
            (found[name],) = found[name].values()
        (found["policies"],) = self.policies
        return {"policy" if name == "policies" else name: each for name, each in found.items()}


@dataclass
class FuzzReport:
    """What a run did."""

    seed: int
    cases: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def compared(self) -> int:
        """The cases that ran on both sides."""
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
    joins: bool = False,
    most: int = 1,
    start: int = 0,
    indexed: float | None = None,
    sides: type[Sides] = Sides,
    progress: Callable[[FuzzReport], None] | None = None,
) -> FuzzReport:
    """Runs so many cases, or for so long.

    Args:
        cases: How many questions.
        minutes: How long.
        seed: The same seed gives the same cases; by default a new one.
        joins: About data sets of several tables.
        most: Stop after so many violations.
        start: The number of the first data set; cases are counted from there.
        indexed: The share of single tables that get a contribution index; by default few, since those take longest.
        sides: What is compared: integers, or whole transcripts (`transcripts.sides`).
        progress: Called after each data set.
    """
    check_length(cases, minutes, seed)
    report = FuzzReport(secrets.randbits(32) if seed is None else seed)
    began, number = time.monotonic(), start
    with TemporaryDirectory() as folder:
        while len(report.violations) < most and _goes_on(report, cases, minutes):
            # A source of its own for each data set: any one of them can be drawn again alone.
            random = Random(f"{'joined ' if joins else ''}{report.seed} {number}")  # noqa: S311
            made = _draw_data(random, joins=joins, indexed=INDEXED if indexed is None else indexed)
            count = JOINED_QUESTIONS if joins else QUESTIONS
            count = count if cases is None else min(count, cases - report.cases)
            _fuzz_data(random, report, made, count, Path(folder) / str(number), sides)
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


def _goes_on(report: FuzzReport, cases: int | None, minutes: float | None) -> bool:
    if cases is not None:
        return report.cases < cases
    return minutes is not None and report.seconds < minutes * 60


# --- one data set


def _draw_data(random: Random, *, joins: bool, indexed: float) -> NeighbouringData:
    chance = random.random()
    if joins:
        form = "parquet" if chance < _JOINED_PARQUET else "memory"
        return draw_joined_rows(random, draw_tables(random, form, unique=chance < 1 - REPEATED))
    with_index = chance > 1 - indexed
    form = "parquet" if chance < _PARQUET or with_index else "csv" if chance < _PARQUET + _CSV else "memory"
    return draw_table_rows(random, draw_table(random, form, indexed=with_index))


def _draw_question(random: Random, sides: Sides, *, joins: bool) -> tuple[FuzzedQuestion, Limits]:
    if joins:
        question = write_joined_question(random, sides.schema, sides.publics)
        searches = random.random() < _JOINED_SEARCH
    else:
        question = write_question(random, sides.schema)
        # Drawn from a source of their own, so that the tables and questions of a seed stay what they were.
        searches = Random(f"search {question.text}").random() < _SEARCH  # noqa: S311
    return question, Limits(search=0.1 if searches else 0)


def _fuzz_data(
    random: Random, report: FuzzReport, made: NeighbouringData, count: int, folder: Path, kind: type[Sides]
) -> None:
    if not made.schema.unique:
        try:
            # Both: a neighbour that nobody could protect is no neighbour.
            check_protectable(made.schema, made.first, folder / "accepted first")
            check_protectable(made.schema, made.second, folder / "accepted second")
        except DaleniusError as error:
            report.cases += 1
            report.drawn["repeated keys"] += 1
            report.refused[error.code] += 1
            return
    sides, joins = kind(made, random, folder), len(made.schema.tables) > 1
    if joins:  # rows are shuffled before questions are drawn, and with one table after: seeds keep their cases
        sides.open()
    for _ in range(count):
        question, limits = _draw_question(random, sides, joins=joins)
        report.cases += 1
        try:
            plan = sides.plan(question, limits)
        except DaleniusError as error:
            report.refused[error.code] += 1
            continue
        if isinstance(plan, Plan):
            found = sides.check(question, plan)
            report.drawn.update(_features(sides, question, plan))
        else:
            found = plan
        if found is not None:
            report.violations.append(_violation(report, made, question, limits, found, folder, kind))
            return


def _features(sides: Sides, question: FuzzedQuestion, plan: Plan) -> Sequence[str]:
    """What the report counts."""
    schema, relation = sides.schema, plan.table.relation
    inner = [] if relation.single else list(relation.within())
    joins = [join for each in inner for join in each.joins]
    features = {
        "found": plan.selection is not None,
        "search": bool(plan.searched),
        "sets": bool(plan.sets),
        "indexed": schema.indexed,
        "path": any(each.policy.path for each in relation.tables()),
        "plain": question.plain,
        "followed": sides.followed,
        "reached": sides.reached,
        "joined": any(len(each.joins) > 1 for each in inner),
        "left": any(join.left for join in joins),
        "match": any(each.matches for each in inner),
    }
    named = [name for name, there in features.items() if there]
    sources = [type(join.source).__name__ for join in joins]
    return [schema.first.policy.neighbors.value, plan.norm, schema.form, *named, *sources]


# --- a violation, made small


def _violation(
    report: FuzzReport,
    made: NeighbouringData,
    question: FuzzedQuestion,
    limits: Limits,
    found: Broken,
    folder: Path,
    kind: type[Sides],
) -> Violation:
    def again(candidate: NeighbouringData) -> Broken | None:
        """The same kind of violation on a smaller data set, if it is still there."""
        sides = kind(candidate, Random(0), folder)  # noqa: S311
        try:
            plan = sides.plan(question, limits)
        except DaleniusError:
            return None
        seen = sides.check(question, plan, all_=True) if isinstance(plan, Plan) else plan
        return seen if seen is not None and seen.kind == found.kind else None

    smaller = shrink(made, lambda candidate: again(candidate) is not None)
    schema, shown = smaller.schema, again(smaller) or found
    return Violation(
        kind=shown.kind,
        seed=report.seed,
        case=report.cases - 1,
        sql=question.text,
        policies=[each.policy.text for each in schema.tables.values()],
        columns={name: dict(types) for name, types in (*schema.storages.items(), *schema.publics.items())},
        first=_texts(smaller.first),
        second=_texts(smaller.second),
        publics=_texts(smaller.publics),
        claimed=shown.claimed,
        seen=shown.seen,
        measure=shown.measure,
    )


def _texts(rows: TableRows) -> dict[str, TextRows]:
    """The rows for people. Dates and datetimes are days and microseconds since 1970: some have no other form."""
    return {
        name: [[None if value is None else str(value) for value in row] for row in each] for name, each in rows.items()
    }


def shrink(made: NeighbouringData, still: Callable[[NeighbouringData], bool], tries: int = _TRIES) -> NeighbouringData:
    """With as few rows, and columns of policies, as ``tries`` looks allow, while ``still`` holds."""
    left = tries

    def holds(candidate: NeighbouringData) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and still(candidate)

    for part in ("others", "instead", "loose", "victim", "publics"):
        for table in getattr(made, part):
            made = _fewer_rows(made, part, table, holds)
    for table, each in made.schema.tables.items():
        for column in each.policy.columns:
            smaller = replace(made, schema=made.schema.without(table, column))
            made = smaller if holds(smaller) else made
    return made


def _fewer_rows(
    made: NeighbouringData, part: str, table: str, holds: Callable[[NeighbouringData], bool]
) -> NeighbouringData:
    """Takes out halves, then quarters, and so on down to single rows."""
    rows: tuple[Row, ...] = getattr(made, part)[table]
    size = len(rows)
    while size:
        at = 0
        while at < len(rows):
            fewer = rows[:at] + rows[at + size :]
            smaller = made.with_rows(part, table, fewer)
            if holds(smaller):
                made, rows = smaller, fewer
            else:
                at += size
        size //= 2
    return made
