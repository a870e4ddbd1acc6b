"""Workloads of made-up questions on neighbouring data sets: what the neighbour fuzzer compares besides.

The linear questions about one data set are put together, a few at a time. What counts as a violation:

difference  what is measured by a strategy differs by more than is claimed for one unit (Σd² or Σ|d|), at the limits of
            the table, or at lower ones, which a workload may find for itself
search      units by the length of their vector over the cells, from which it would, differ by more than one unit
expected    without limits, a question's numbers, added up from the cells, are not those that it has alone
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.audit.fuzzing.checks import FAILURES, SECONDS, Broken, Sides, vector_length
from dalenius.audit.fuzzing.engines import SALT
from dalenius.errors import DaleniusError
from dalenius.measuring._exact import exact, exact_lengths
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.plan import Limits
from dalenius.queries.planning import Planned
from dalenius.queries.rules import plan_question
from dalenius.queries.workloads.limits import lower_block
from dalenius.queries.workloads.linear import why_not_linear
from dalenius.queries.workloads.marginals import Weighed
from dalenius.queries.workloads.measuring import counted_integers, measured_of
from dalenius.queries.workloads.planning import EVERYTHING, plan_workload
from dalenius.tables.policy import Contribution

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from dalenius.audit.fuzzing.data_sets import NeighbouringData
    from dalenius.audit.fuzzing.questions import FuzzedQuestion
    from dalenius.measuring.engines.engine import Engine
    from dalenius.measuring.plan import Plan, Table
    from dalenius.queries.workloads.blocks import Block, WorkloadPlan
    from dalenius.queries.workloads.linear import Sums

_TOGETHER = 4  # questions
_WIDE = 1000  # rows, more than any unit has


class WorkloadSides(Sides):
    """A data set and its neighbour, of which several questions are asked at once.

    Attributes:
        asked: The linear questions about it so far.
    """

    def __init__(self, made: NeighbouringData, random: Random, folder: Path) -> None:
        super().__init__(made, random, folder)
        self.asked: list[tuple[str, Plan]] = []

    def check(self, question: FuzzedQuestion, plan: Plan, *, all_: bool = False) -> Broken | None:  # noqa: ARG002
        """The first promise that a question breaks, asked with those before it."""
        self.followed = self.reached = False
        if why_not_linear(plan) is not None:
            return None
        self.asked.append((question.text, replace(plan, notes=())))
        latest = self.asked[-_TOGETHER:]
        try:
            self._use_engines(plan)
            return self._check_differences([each for _, each in latest]) or self._check_sums(
                [text for text, _ in latest]
            )
        except FAILURES as error:
            return Broken.failed("engine", error)
        except DaleniusError as error:
            return Broken.failed("planner", error)

    def _check_differences(self, plans: Sequence[Plan]) -> Broken | None:
        by_cells = EVERYTHING if len(self.asked) % 2 else None
        for block in _workload(plans, by_cells).blocks:
            self._use_engines(block.planned.plan)
            found = self._check_lengths(block) or self._check_block(block) or self._check_block(_tightened(block))
            if found is not None:
                return found
        return None

    def _check_lengths(self, block: Block) -> Broken | None:
        """A unit is in one class, whatever cells its vector goes over."""
        for each in block.counted:
            if isinstance(each, Weighed):
                continue
            plan = searching(each.plan)
            first, second, same = self._look(lambda engine, own=plan: exact_lengths(own, engine, SALT, seconds=SECONDS))  # type: ignore[misc]
            if not same:
                return Broken("index", "the same counts of units", "others", plan.canonical())
            most = 0 if self.made.nobody else 2 if self.made.substitutes else 1
            for one, other, measure in zip(first, second, plan.measures, strict=True):
                seen = sum(abs(here - there) for here, there in zip(one, other, strict=True))
                if seen > most:
                    return Broken("search", str(most), str(seen), measure.written())
        return None

    def _check_block(self, block: Block) -> Broken | None:
        first, second, same = self._look(lambda engine: _counted(block, engine))
        if not same:
            return Broken("index", "the same integers", "others", block.counted[0].plan.canonical())
        norm, neighbors = block.planned.plan.norm, block.planned.plan.neighbors
        for part in block.parts:
            sides = [measured_of(part, block, side).tolist() for side in (first, second)]
            seen = vector_length([one - other for one, other in zip(*sides, strict=True)], norm)
            most = 0 if self.made.nobody else part.change(norm, neighbors)
            if seen > most:
                return Broken("difference", str(most), str(seen), f"{part.strategy.name}: {part.measure.written()}")
        return None

    def _check_sums(self, texts: Sequence[str]) -> Broken | None:
        """Without limits nobody is clipped, so that sums over cells are what a question counts alone, to the digit."""
        tables, plans = {name: _without_limits(each) for name, each in self.schema.wide.tables.items()}, []
        for text in texts:
            try:
                plans.append(replace(plan_question(text, tables, Limits(search=0), self.publics), groups=None))
            except DaleniusError:
                return None
        linear = [each for each in plans if why_not_linear(each) is None]
        if not linear:  # other limits may make them so
            return None
        workload = _workload(linear)
        for block in workload.blocks:
            engine = self._opened[0].of(block.planned.plan.table)
            counted = _counted(block, engine)
            alone = {at: exact(workload.plans[at].plan, engine, SALT, seconds=SECONDS) for at in block.questions}
            places = dict.fromkeys(block.questions, 0)
            for term, at, sums in block.terms:
                part, plan = block.parts[at], workload.plans[term.question].plan
                own = block.counted[part.counted]
                if isinstance(own, Weighed):
                    return None
                cells = np.array(counted[part.counted][part.number], dtype=object)
                answers = _added_up(cells.reshape([block.sizes[each] for each in own.attributes]), own.attributes, sums)
                number = places[term.question]
                places[term.question] += 1
                measure = plan.measures[number]
                if measure.kind == "sum" and measure.centre != part.summed.centre:
                    continue
                expected = [each << part.measure.bits for each in alone[term.question][number]]
                if [each << measure.bits for each in answers] != expected:
                    return Broken("expected", str(expected), str(answers), measure.written())
        return None


def searching(plan: Plan) -> Plan:
    """The plan as if each of its limits were searched."""
    statistics = (
        replace(each, measures=tuple(replace(one, search=Fraction(1, 2)) for one in each.measures))
        for each in plan.statistics
    )
    return replace(plan, statistics=tuple(statistics))


def _tightened(block: Block) -> Block:
    """The block at limits that it might find: any from 1 up to its own. The same each time."""
    clips = {}
    for place, part in enumerate(block.parts):
        random = Random(f"{place} {part.measure.written()}")  # noqa: S311
        clips[place] = Clip(part.number, max(1, int(part.measure.clip ** random.random())), None, 0)
    return lower_block(block, clips)


def _without_limits(table: Table) -> Table:
    """With limits that no unit reaches, also in L1 over all cells."""
    return replace(table, policy=replace(table.policy, contribution=Contribution(_WIDE)))


def _added_up(cells: Any, attributes: Sequence[int], sums: Sums) -> list[int]:
    """A question's numbers from exact integers of cells, without any strategy."""
    if sums.empty:
        return [0] * len(sums.places)
    found = np.asarray(cells, dtype=object)
    for axis, attribute in enumerate(attributes):
        parts = np.array(sums.parts.get(attribute, (0,) * found.shape[axis]))
        front, kept = np.moveaxis(found, axis, 0), np.flatnonzero(parts >= 0)
        added = np.zeros((sums.sizes.get(attribute, 1), *front.shape[1:]), dtype=object)
        np.add.at(added, parts[kept], front[kept])
        found = np.moveaxis(added, 0, axis)
    listed: list[int] = sums.picked(found.ravel()).tolist()
    return listed


def _workload(plans: Sequence[Plan], by_cells: Container[str] | None = None) -> WorkloadPlan:
    unique = {each.key(0): each for each in plans}
    keys = sorted(unique)
    planned = [Planned(unique[key], None, 1.0) for key in keys]  # type: ignore[arg-type]
    return plan_workload(planned, keys, [1.0] * len(keys), by_cells=by_cells)


def _counted(block: Block, engine: Engine) -> list[Any]:
    return counted_integers(block, engine, SALT, SECONDS)
