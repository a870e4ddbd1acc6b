"""What must hold on neighbours, checked without noise: one data set and its neighbour, ready for many plans.

A plan claims how much one unit can change its exact integers; its noise is made for that claim. Here the plan runs on
both sides, and the integers are compared. `audit.fuzz` lists what counts as a violation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.accounting.neighbors import Neighbors
from dalenius.audit.fuzzing import traces
from dalenius.audit.fuzzing.data_sets import NeighbouringData, TableRows, shuffle_rows
from dalenius.audit.fuzzing.engines import SALT, DataEngines, open_data, open_publics, with_index
from dalenius.audit.fuzzing.expected import PlainDuckDB, disagreement, expected_integers
from dalenius.errors import (
    DaleniusError,
    EngineFailedError,
    EngineTimeoutError,
    InternalError,
    SourceUnavailableError,
)
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.domains import in_order
from dalenius.measuring.engines.duckdb.backend import DuckDBPool
from dalenius.measuring.expressions import Type
from dalenius.measuring.limits.in_question import can_add_up, cut_plan, lower_clips, totals_plan
from dalenius.measuring.limits.ladder import sensitivity
from dalenius.measuring.plan import Limits, Measure, Plan, require
from dalenius.measuring.trees import largest
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection
from dalenius.queries.rules import plan_question

if TYPE_CHECKING:
    from dalenius.audit.fuzzing.questions import FuzzedQuestion
    from dalenius.measuring.domains import Cell
    from dalenius.measuring.engines.engine import Engine

SECONDS = 20.0
FAILURES = (EngineFailedError, EngineTimeoutError, InternalError, SourceUnavailableError)
_ALONE = 0.4  # of the cases: a look at the victim alone
_ORDER = 0.15  # and at the rows in another order
_AGAIN = 0.5  # of the limits that are found: measured a second time, at a higher one
_BEYOND = 1.25  # limits of totals may be above the limit of a vector: up to this power of it
_WIDE = 10**6  # groups
_SHOWN = {Type.NUMBER: float, Type.BOOLEAN: bool, Type.TEXT: str, Type.DATE: date, Type.DATETIME: datetime}
T = TypeVar("T")
Weights = Mapping["Cell", int]


@dataclass(frozen=True)
class Broken:
    """What a check found."""

    kind: str
    claimed: str
    seen: str
    measure: str

    @classmethod
    def failed(cls, kind: str, error: Exception) -> Broken:
        """Somebody failed who never should."""
        said = error.message if isinstance(error, DaleniusError) else str(error)
        return cls(kind, "no failure", type(error).__name__, said)


class UnsayableError(Exception):
    """A key that no answer could show, or that is there twice."""


class Sides:
    """A data set and its neighbour, each in its engines.

    Attributes:
        publics: The public tables, for the planner.
        followed: Whether the last question was compared with plain DuckDB.
        reached: Whether it showed as much of a unit as it was charged for (`transcripts.sides`).
    """

    compares_index = True  # an index with the general way; without that, neighbours alone must tell
    first: Engine
    second: Engine
    alone: Engine
    again: Engine
    own: Engine  # the second with an index of its own, where the first has one
    general: tuple[Engine, ...] = ()  # both without an index
    followed = False
    reached = False

    def __init__(self, made: NeighbouringData, random: Random, folder: Path) -> None:
        self.made, self.schema, self.random, self._folder = made, made.schema, random, folder
        self._opened: Sequence[DataEngines] = ()
        self._public_tables, self.publics = open_publics(made.schema, made.publics, folder)

    def open(self) -> None:
        """Shuffles the rows and opens the engines, unless that is done."""
        if self._opened:
            return
        engines = DuckDBPool()

        def at(name: str, rows: TableRows) -> DataEngines:
            return open_data(self.schema, rows, self._folder / name, self._public_tables, engines)

        first, again = (shuffle_rows(self.random, self.made.first) for _ in range(2))
        self._opened = (
            at("first", first),
            at("second", self.made.second),
            at("alone", self.made.victim),
            at("again", again),
        )

    def plan(self, question: FuzzedQuestion, limits: Limits) -> Plan | Broken:
        """The plan of a question, or how the planner failed.

        Raises:
            DaleniusError: It is refused.
        """
        try:
            return plan_question(question.text, self.schema.tables, limits, self.publics)
        except FAILURES as error:
            return Broken.failed("planner", error)
        except DaleniusError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            return Broken.failed("planner", error)

    def check(self, question: FuzzedQuestion, plan: Plan, *, all_: bool = False) -> Broken | None:
        """The first promise that a question breaks here; ``all_`` leaves no check to chance."""
        self.followed = self.reached = False
        try:
            self._use_engines(plan)
            return self._check_plan(plan, all_=all_) or self.follow(question)
        except traces.DifferentError as error:
            return Broken("statements", traces.SAME, str(error), plan.canonical())
        except FAILURES as error:
            return Broken.failed("engine", error)
        except RuntimeError as error:
            return Broken.failed("planner", error)

    def _use_engines(self, plan: Plan) -> None:
        """Those that a plan needs."""
        self.open()
        self.first, self.second, self.alone, self.again = (each.of(plan.table) for each in self._opened)
        if self.schema.indexed:
            self.general = (self.first, self.second)
            self.first, self.second, self.own = self._indexed

    @cached_property
    def _indexed(self) -> Sequence[Engine]:
        """Both with the index of the first, and the second with its own."""
        table, folder = self.schema.first, self._folder
        # Which of the two has its own index, and which that of its neighbour, is as good either way: both differ.
        first = with_index(table, self.general[0], folder / "index")
        second = with_index(table, self.general[1], folder / "index", stale=first)
        return first, second, with_index(table, self.general[1], folder / "own")

    def _check_plan(self, plan: Plan, *, all_: bool) -> Broken | None:
        """Where a plan finds its own limits, the counts that it finds them from are compared, too.

        Then its integers are, at some lower clips: whichever the noise may choose, the promise must hold.
        """
        if plan.selection is not None:
            with_cells = self._check_weights(plan, all_=all_)
            if isinstance(with_cells, Broken):
                return with_cells
            plan = with_cells
        found = self._check_search(plan) if plan.searched else None
        if found is None and (totals := totals_plan(plan)) is not None:
            found = self._check_search(totals)
        return found or self._check_measures(_tighten(plan), all_=all_) or self._check_cut_off(plan)

    def _look(self, look: Callable[[Engine], T]) -> tuple[T, T, bool]:
        """What a look finds on both sides, and whether an index, where there is one, gave the same as the general way.

        Raises:
            DifferentError: What runs is not the same on neighbours: both the general way, or each with its own index.
        """
        (first, ran), (second, also) = (traces.trace(partial(look, each)) for each in (self.first, self.second))
        if not self.schema.indexed:
            traces.check_traces([(ran, also)])
            return first, second, True
        # An index that is out of date, as the second's is, is passed over: that is no difference of neighbours.
        _, own = traces.trace(partial(look, self.own))
        (one, general), (other, too) = (traces.trace(partial(look, each)) for each in self.general)
        # Whether there are rows of nobody is nobody's secret, and an index knows it: only success counts there.
        traces.check_traces([(general, too), *([(ran, ran), (own, own)] if self.made.nobody else [(ran, own)])])
        return first, second, not self.compares_index or (first, second) == (one, other)

    def _looks_alone(self, *, all_: bool) -> bool:
        """Where a unit is removed, the difference is what it holds; where one replaces another, it is looked at."""
        return self.made.substitutes and (all_ or self.random.random() < _ALONE)

    def _looks_again(self, *, all_: bool) -> bool:
        return all_ or self.random.random() < _ORDER

    def _check_search(self, plan: Plan) -> Broken | None:
        def look(table: Engine) -> list[list[int]]:
            return exact_lengths(plan, table, SALT, seconds=SECONDS)

        first, second, same = self._look(look)
        alone = look(self.alone)
        if not same:
            return Broken("index", "the same counts of units", "others", plan.canonical())
        for at, number in enumerate(plan.searched):
            measure = plan.measures[number]
            one, two = 1, 2 if self.made.substitutes else 1
            if measure.kind == "distinct":
                one = sensitivity(measure.clip, plan.norm, Neighbors.ADD_REMOVE, measure.sets)
                two = sensitivity(measure.clip, plan.norm, plan.neighbors, measure.sets)
            if self.made.nobody:
                one = two = 0
            for vector, most in ((_subtract(first[at], second[at]), two), (alone[at], one)):
                if (seen := vector_length(vector, plan.norm)) > most:
                    return Broken("search", str(most), str(seen), measure.written())
        return None

    def _check_cut_off(self, plan: Plan) -> Broken | None:
        """Sums of totals that count up to a limit: whichever it is, one unit changes them by no more than that.

        They are measured where groups are many and limits are searched; the promise holds for all plans.
        """
        for number in (at for at in range(len(plan.measures)) if can_add_up(plan, at)):
            random = Random(f"{number} {plan.canonical()}")  # noqa: S311
            limit = max(1, int(plan.measures[number].clip ** (_BEYOND * random.random())))
            cut = cut_plan(plan, number, limit)
            first, second, same = self._look(partial(_add_up, cut))
            most = 0 if self.made.nobody else limit << cut.measures[0].bits
            if abs(first - second) > most:
                return Broken("difference", str(most), str(abs(first - second)), f"sum of {cut.canonical()}")
            if not same:
                return Broken("index", "the same sum", "another", cut.canonical())
        return None

    def _check_measures(self, plan: Plan, *, all_: bool) -> Broken | None:
        first, second, same = self._look(lambda table: exact(plan, table, SALT, seconds=SECONDS))
        if not same:
            return Broken("index", "the same integers", "others", plan.canonical())
        alone = exact(plan, self.alone, SALT, seconds=SECONDS) if self._looks_alone(all_=all_) else None
        for number, measure in enumerate(plan.measures):
            seen = vector_length(_subtract(first[number], second[number]), plan.norm)
            if self.made.nobody and seen:
                return Broken("nobody", "0", str(seen), measure.written())
            if seen > measure.sensitivity:
                return Broken("difference", str(measure.sensitivity), str(seen), measure.written())
            if alone is not None and (seen := vector_length(alone[number], plan.norm)) > _most(measure, plan.norm):
                return Broken("unit", str(_most(measure, plan.norm)), str(seen), measure.written())
        known = self.work_out(plan)
        if known is not None and [[each] for each in known] != first:
            return Broken("expected", str(known), str([each for (each,) in first]), plan.canonical())
        if self._looks_again(all_=all_) and exact(plan, self.again, SALT, seconds=SECONDS) != first:
            return Broken("order", "the same integers", "others", plan.canonical())
        return None

    # --- what integers should be

    def work_out(self, plan: Plan) -> list[int] | None:
        """The integers of the first side by definition, where a plan is simple."""
        return expected_integers(plan, self.schema, self.made.first) if plan.table.direct else None

    def follow(self, question: FuzzedQuestion) -> Broken | None:
        """Whether a plan without limits gives what DuckDB does, where both mean the same."""
        schema = self.schema
        if not question.plain or not schema.unique or any(map(schema.is_ambiguous, schema.tables)):
            return None
        try:
            plan = plan_question(question.text, schema.wide.tables, Limits(groups=_WIDE, search=0), self.publics)
        except DaleniusError:
            return None
        engine = self._opened[0].of(plan.table)
        if plan.selection is not None:
            plan = replace(plan, cells=_all_keys(_weigh(plan, engine)))
        try:
            says = self._plain.answer(question, SECONDS)
        except EngineFailedError:  # what DuckDB takes for an error and we do not: a, b JOIN c USING (a column of a)
            return None
        self.followed = True
        found = disagreement(plan, exact(plan, engine, SALT, seconds=SECONDS), says)
        return None if found is None else Broken("expected", *found, plan.canonical())

    @cached_property
    def _plain(self) -> PlainDuckDB:
        return PlainDuckDB(self.schema, self.made.first, self.publics, self._public_tables)

    # --- groups that have to be found

    def _check_weights(self, plan: Plan, *, all_: bool) -> Plan | Broken:
        """The plan with all keys of both sides for its groups, or what is wrong with their weights.

        What the selection claims (`mechanisms.key_selection`): one unit changes the weights by at most Δ2², and keys
        that only it has, m of them, weigh at most ⌊2²⁰/√m⌋ each, with m no more than the cap.
        """
        look = partial(_weigh, plan)
        try:
            first, second, same = self._look(look)
            wrong = self._compare_weights(plan, first, second)
            if wrong is None and not same:
                wrong = "index", "the same weights", "others"
            if wrong is None and self._looks_alone(all_=all_):
                length = sum(weight * weight for weight in look(self.alone).values())
                wrong = ("unit", str(WEIGHT**2), str(length)) if length > WEIGHT**2 else None
            if wrong is None and self._looks_again(all_=all_) and look(self.again) != first:
                wrong = "order", "the same weights", "others"
        except UnsayableError as error:
            wrong = "keys", "each key once, as an answer can show it", str(error)
        if wrong is not None:
            return Broken(*wrong, f"weights of {plan.canonical()}")
        return replace(plan, cells=(*plan.cells, *_all_keys(first, second)))

    def _compare_weights(self, plan: Plan, first: Weights, second: Weights) -> tuple[str, str, str] | None:
        """What is broken, what was claimed and what was seen; None where the weights are as they should be."""
        moved = sum((first.get(key, 0) - second.get(key, 0)) ** 2 for key in first.keys() | second.keys())
        if self.made.nobody and first != second:
            return "nobody", "0", str(moved)
        claimed = KeySelection(1, 0.5, 1, plan.neighbors).squared_sensitivity
        if moved > claimed:
            return "difference", str(claimed), str(moved)
        for here, there in ((first, second), (second, first)):
            lone = [weight for key, weight in here.items() if key not in there]
            most = WEIGHT if not lone else math.isqrt(WEIGHT**2 // len(lone))
            if len(lone) > require(plan.selection).cap or max(lone, default=0) > most:
                return "lone", f"{most} each", str(max(lone))
        return None


def _add_up(plan: Plan, engine: Engine) -> int:
    """All groups of a plan with one measure."""
    (integers,) = exact(plan, engine, SALT, seconds=SECONDS)
    return sum(integers)


def _weigh(plan: Plan, engine: Engine) -> Weights:
    """The weight of every key that occurs."""
    cells, found = engine.weights(plan, SALT, seconds=SECONDS)
    for cell in cells:
        for key, value in zip(plan.keys, cell, strict=True):
            if type(value) is not _SHOWN[key.type] or (isinstance(value, float) and not math.isfinite(value)):
                raise UnsayableError(f"{key.type.value} as {type(value).__name__}")
    if len(set(cells)) < len(cells):
        raise UnsayableError("one key, twice")
    return dict(zip(cells, found, strict=True))


def _all_keys(*tables: Mapping[Any, int]) -> tuple[Cell, ...]:
    """All keys of some tables, each once, in an order that is theirs."""
    return in_order(frozenset().union(*tables))


def _tighten(plan: Plan) -> Plan:
    """The plan at clips that its search might find: any from 1 up to its own. The same each time.

    Some measures are measured again at a higher clip, as those are that may be scaled up.
    """
    if not plan.searched:
        return plan
    random = Random(plan.canonical())  # noqa: S311
    clips = {at: max(1, int(plan.measures[at].clip ** random.random())) for at in plan.searched}
    single = {plan.start(at) for at, each in enumerate(plan.statistics) if each.kind in {"rows", "sum"}}
    heavy = {at: min(4 * clip, plan.measures[at].clip) for at, clip in clips.items() if random.random() < _AGAIN}
    return lower_clips(plan, clips, {at: clip for at, clip in heavy.items() if at in single})


def _subtract(first: Sequence[int], second: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(first, second, strict=True)]


def vector_length(vector: Sequence[int], norm: str) -> int:
    """Σv² where the norm is L2, Σ|v| where it is L1."""
    return sum(each * each if norm == "l2" else abs(each) for each in vector)


def _most(measure: Measure, norm: str) -> int:
    """The most that one unit's own vector may be long: C², or C; of ones, their number; of trees, all levels.

    Of pairs, that in each grouping set.
    """
    if measure.kind in {"leaves", "histogram"}:
        return largest(measure, norm)
    if measure.primitive.pairs:
        most = measure.clip * measure.largest
        return measure.sets * (most**2 if norm == "l2" else most)
    return measure.sets * (measure.limit**2 if norm == "l2" and measure.kind != "units" else measure.limit)
