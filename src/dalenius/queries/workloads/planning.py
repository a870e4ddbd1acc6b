"""What is measured for a workload, and how its price is shared. Never touches the data: all of it follows from plans.

Questions over the same table (or relation) whose numbers are sums over cells make one *block*. For each thing that is
added up in it, rows or a value, there is a *part*: a strategy, an integer matrix A over the cells, chosen by the
expected error of the questions that need it (`measuring.strategies`); what is measured is A·x, x being the exact
integers of the cells. Whatever is not linear is *beside*: asked as it would be alone, at a share of the price.

*Clipping.* One unit adds a vector w over the cells, in 2^bits parts of a step (`measuring.measures`). It is brought
within a limit L in L1: the rows of the unit in all cells together, or the total of what it adds to a sum. Then A·w is a
sum of columns of A, weighed by the entries of w, so by the triangle inequality

    ‖A·w‖₂ ≤ Σⱼ |wⱼ|·‖aⱼ‖₂ ≤ L·maxⱼ ‖aⱼ‖₂   and   ‖A·w‖₁ ≤ L·maxⱼ ‖aⱼ‖₁.

Where the cells themselves are measured (A = 1) under zCDP, w is clipped in L2, in which it is shorter: ‖w‖₂ ≤ L.

Guarantee:
    A is an integer matrix and w an integer vector, so the bounds are exact: adding or removing a unit changes A·x by at
    most Δ2² = L²·maxⱼ Σᵢ Aᵢⱼ² in squares, or Δ1 = L·maxⱼ Σᵢ |Aᵢⱼ|. Exchanging one for another changes it by at most
    twice that in norm; ‖u − v‖² ≤ ‖u‖² + ‖v‖² where neither A nor what rows add has entries of either sign
    (`mechanisms.vector`). A part with share s of the price gets discrete Gaussian noise of variance Δ2²/2ρs, which is
    ρs-zCDP, or discrete Laplace noise of scale Δ1/εs, which is εs-DP. A question beside, at share s, is as private as
    `outer.joint` says of it. The shares sum to 1, the parts see the same rows, and compose by addition.
    Nothing that is chosen here depends on a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import QuestionRefusedError
from dalenius.measuring.building import Builder
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import TRUE, Column
from dalenius.measuring.measures import refine
from dalenius.measuring.periods import charged_periods, within_periods
from dalenius.measuring.plan import Limits, Measure, Plan, Statistic, require
from dalenius.queries.rules import Stage
from dalenius.queries.rules.bound import found_norm, tighten_limits
from dalenius.queries.rules.work import limit_work
from dalenius.queries.workloads.attributes import Atoms, Attribute, find_attributes
from dalenius.queries.workloads.linear import ROWS, Summed, Sums, Term, sums_of, terms_of, why_not_linear

if TYPE_CHECKING:
    from dalenius.measuring.strategies import Strategy, Workload
    from dalenius.queries.planning import Planned

MOST_CELLS = 2**17
_WHOLE = 10**6  # shares are whole parts of that
KIND = "workload"  # of the statistics that are measured; no family reads them


@dataclass(frozen=True)
class Part:
    """One thing that is added up in a block, and what is measured of it.

    Attributes:
        summed: What is added up.
        strategy: What is measured.
        workload: What its questions need of it.
        measure: What a unit adds is limited as this says, in the plan's norm.
        plan: The number of the block's plan that has it.
        number: Its own among the measures of that plan.
        share: Of the price.
    """

    summed: Summed
    strategy: Strategy
    workload: Workload
    measure: Measure
    plan: int
    number: int
    share: Fraction

    def change(self, norm: str, neighbors: Neighbors) -> int:
        """What one unit can change in what is measured: Δ2² where noise is Gaussian ("l2"), Δ1 where it is Laplace."""
        limit, columns = self.measure.limit, self.strategy.change(norm)
        if norm == "l1":
            return limit * columns * (1 if neighbors is Neighbors.ADD_REMOVE else 2)
        if neighbors is Neighbors.ADD_REMOVE:
            return limit**2 * columns
        signed = self.strategy.signed or self.measure.low < 0 < self.measure.high
        return limit**2 * columns * (4 if signed else 2)


@dataclass(frozen=True)
class Block:
    """Questions over the same rows.

    Attributes:
        planned: One of them, for what it reads.
        questions: Their numbers among the plans of the workload.
        attributes: What they tell rows apart by.
        plans: What the engine counts: cells, in one norm or two.
        parts: What is measured of that.
        terms: Their measures, each with the number of its part and where its rows go.
    """

    planned: Planned
    questions: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    plans: tuple[Plan, ...]
    parts: tuple[Part, ...]
    terms: tuple[tuple[Term, int, Sums], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each attribute has."""
        return tuple(each.size for each in self.attributes)


@dataclass(frozen=True)
class WorkloadPlan:
    """A workload as it will run.

    Attributes:
        plans: The different questions, in the order of their keys.
        keys: These.
        weights: How much an error in each counts.
        blocks: What is measured for those that are linear.
        beside: The numbers of all others, each with its share of the price, and why.
    """

    plans: tuple[Planned, ...]
    keys: tuple[str, ...]
    weights: tuple[float, ...]
    blocks: tuple[Block, ...]
    beside: Mapping[int, tuple[Fraction, str]]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of all blocks."""
        return tuple(part for block in self.blocks for part in block.parts)


def plan_workload(plans: Sequence[Planned], keys: Sequence[str], weights: Sequence[float]) -> WorkloadPlan:
    """What is measured for some different questions of one data set.

    Args:
        plans: The questions, each planned as if it were asked alone.
        keys: What identifies each.
        weights: How much an error in each counts.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    aside: dict[int, str] = {}
    for number, each in enumerate(plans):
        why = why_not_linear(each.plan)
        if why is not None:
            aside[number] = why
            continue
        table = each.plan.table
        read = charged_periods(table, each.plan.where)
        groups.setdefault((table.relation.titled(), table.meaning, *read, "", *each.plan.periods), []).append(number)
    drafts = []
    for numbers in groups.values():
        try:
            drafts.append(_draft(plans, numbers, weights))
        except QuestionRefusedError:
            aside |= dict.fromkeys(numbers, "together with the others it has too many cells, or is too much work")
    return _shared(plans, keys, weights, drafts, aside)


def _draft(plans: Sequence[Planned], numbers: Sequence[int], weights: Sequence[float]) -> Block:
    """A block whose parts have no share of the price yet."""
    from dalenius.measuring.strategies import Workload

    own = [plans[number].plan for number in numbers]
    terms = [replace(each, question=numbers[each.question]) for each in terms_of(own)]
    common = frozenset.intersection(*(frozenset(each.atoms.conditions) for each in terms))
    terms = [replace(each, atoms=_without(each.atoms, common)) for each in terms]
    table = own[0].table
    attributes = find_attributes([each.atoms for each in terms], table.policy.columns)
    sizes = tuple(each.size for each in attributes)
    if math.prod(sizes) > MOST_CELLS:
        raise QuestionRefusedError("There are too many cells.", why="They are counted.", fix="Ask for fewer.")
    sums = [sums_of(each.atoms, plans[each.question].plan.cells, attributes) for each in terms]
    summed = sorted(dict.fromkeys(each.summed for each in terms), key=lambda each: each.text)
    where = call("and", *sorted(common, key=repr), within_periods(table, charged_periods(table, own[0].where)))
    frame = _Frame(own[0], where, attributes, terms)
    norm = own[0].norm
    needs = [
        Workload(
            sizes,
            _products(
                [(one, weights[each.question]) for each, one in zip(terms, sums, strict=True) if each.summed == of]
            ),
        )
        for of in summed
    ]
    parts = frame.parts(summed, needs, norm)
    places = {each.summed: at for at, each in enumerate(parts)}
    settled = tuple((each, places[each.summed], one) for each, one in zip(terms, sums, strict=True))
    return Block(plans[numbers[0]], tuple(numbers), attributes, frame.plans, parts, settled)


def _without(atoms: Atoms, common: frozenset[object]) -> Atoms:
    return Atoms(atoms.keys, tuple(each for each in atoms.conditions if each not in common))


def _products(needed: Sequence[tuple[Sums, float]]) -> tuple[object, ...]:
    return tuple(one.product(weight) for one, weight in needed)


class _Frame:
    """The cells of a block, in which any of its measures can be counted."""

    def __init__(self, first: Plan, where: object, attributes: Sequence[Attribute], terms: Sequence[Term]) -> None:
        self.first, self.where, self.attributes, self.terms = first, where, attributes, terms
        self.plans: tuple[Plan, ...] = ()

    def parts(self, summed: Sequence[Summed], needs: Sequence[Workload], norm: str) -> tuple[Part, ...]:
        """The parts: what belongs to one average is limited together, so that it stays about the same rows."""
        from dalenius.measuring.strategies import Cells, choose

        together = self._together()
        narrow = self._measures(summed, "l1")
        wide = self._measures(summed, norm)
        found, by_cells = [], []
        for need, own, other in zip(needs, narrow, wide, strict=True):
            best = choose(need, norm, cells_limit=MOST_CELLS)
            cells = Cells(need.sizes)
            costs = [own.clip**2 * best.expected(need, norm), other.clip**2 * cells.expected(need, norm)]
            found.append(best)
            by_cells.append(norm == "l2" and costs[1] <= costs[0] * (1 + 1e-9))
        if any(one and not other for one, other in _pairs(summed, by_cells, together)):
            by_cells = [each and of not in together for each, of in zip(by_cells, summed, strict=True)]
        plans, places = [], {}
        for of_cells in (False, True):
            own_norm = norm if of_cells else "l1"
            measures = wide if of_cells else narrow
            chosen = [at for at, each in enumerate(by_cells) if each is of_cells]
            if chosen:
                plan = self._plan([(summed[at], measures[at]) for at in chosen], together, own_norm)
                for at in chosen:
                    number = next(
                        place for place, each in enumerate(plan.measures) if _same(each, summed[at])
                    )
                    places[at] = len(plans), number
                plans.append(plan)
        self.plans = tuple(plans)
        return tuple(
            Part(
                of,
                Cells(need.sizes) if by_cells[at] else found[at],
                need,
                plans[places[at][0]].measures[places[at][1]],
                *places[at],
                Fraction(0),
            )
            for at, (of, need) in enumerate(zip(summed, needs, strict=True))
        )

    def _together(self) -> frozenset[Summed]:
        """What averages are made of, rows with it: their quotient must stay about the same rows."""
        pairs: dict[tuple[int, int], list[Summed]] = {}
        for each in self.terms:
            pairs.setdefault((each.question, each.statistic), []).append(each.summed)
        return frozenset(one for each in pairs.values() if len(each) > 1 for one in each)

    def _measures(self, summed: Sequence[Summed], norm: str) -> list[Measure]:
        table = self.first.table
        size = math.prod(each.size for each in self.attributes)
        keys = {key for each in self.terms for key in each.atoms.keys if isinstance(key, Column)}
        limits = replace(tighten_limits(table, Limits()), groups=None)
        found = found_norm(table, sorted(keys, key=repr))
        builder = Builder(table.policy, limits, [size], norm, table.budget.neighbors, [found], table.unit)
        return [
            builder.rows(TRUE, None)
            if each.value is None
            else builder.sum(each.value, TRUE, each.step, each.centre, None)
            for each in summed
        ]

    def _plan(self, own: Sequence[tuple[Summed, Measure]], together: frozenset[Summed], norm: str) -> Plan:
        joined = tuple(measure for of, measure in own if of in together)
        alone = [Statistic(KIND, (measure,)) for of, measure in own if of not in together]
        statistics = (*([Statistic(KIND, joined)] if joined else []), *alone)
        plan = replace(
            self.first,
            where=self.where,
            keys=tuple(key for each in self.attributes for key in each.keys),
            cells=tuple(sum(cell, ()) for cell in product(*(each.classes for each in self.attributes))),
            groups=None,
            statistics=statistics,
            answers={},
            norm=norm,
            notes=(),
        )
        return require(limit_work(Stage("", {}, plan=refine(plan))).plan)


def _same(measure: Measure, of: Summed) -> bool:
    if of == ROWS:
        return measure.kind == "rows"
    return measure.kind == "sum" and (measure.value, measure.step, measure.centre) == (of.value, of.step, of.centre)


def _pairs(
    summed: Sequence[Summed], chosen: Sequence[bool], together: frozenset[Summed]
) -> list[tuple[bool, bool]]:
    own = [each for each, of in zip(chosen, summed, strict=True) if of in together]
    return list(product(own, own))


# --- shares of the price


def _shared(
    plans: Sequence[Planned],
    keys: Sequence[str],
    weights: Sequence[float],
    drafts: Sequence[Block],
    aside: Mapping[int, str],
) -> WorkloadPlan:
    """Each question beside has the share that its weight is of all weights; the rest is for the parts.

    An error of a part counts in what one unit may add to it at most, so that rows and money compare. With ρᵢ for part i
    the total of squared errors is Σ Eᵢ/ρᵢ, which is least for ρᵢ ∝ √Eᵢ; with εᵢ it is Σ Eᵢ/εᵢ², least for εᵢ ∝ Eᵢ^⅓.
    """
    total = sum(weights)
    claims = [(weights[number] / total, number) for number in sorted(aside)]
    left = 1 - sum(each for each, _ in claims)
    errors = [
        (part.strategy.expected(part.workload, _noise_norm(block)), _noise_norm(block))
        for block in drafts
        for part in block.parts
    ]
    roots = [math.sqrt(error) if norm == "l2" else error ** (1 / 3) for error, norm in errors]
    raw = [left * each / sum(roots) for each in roots]
    shares = exact_shares([*(each for each, _ in claims), *raw])
    beside = {number: (share, aside[number]) for (_, number), share in zip(claims, shares, strict=False)}
    rest = iter(shares[len(claims) :])
    blocks = tuple(replace(block, parts=tuple(replace(each, share=next(rest)) for each in block.parts)) for block in drafts)
    return WorkloadPlan(tuple(plans), tuple(keys), tuple(weights), blocks, beside)


def _noise_norm(block: Block) -> str:
    return block.planned.plan.norm


def exact_shares(parts: Sequence[float]) -> list[Fraction]:
    """Fractions in proportion to some parts, which sum to 1 exactly.

    >>> [str(each) for each in exact_shares([1, 2, 3])]
    ['83333/500000', '333333/1000000', '500001/1000000']
    """
    whole = [max(1, math.floor(_WHOLE * each / sum(parts))) for each in parts]
    whole[whole.index(max(whole))] += _WHOLE - sum(whole)
    return [Fraction(each, _WHOLE) for each in whole]
