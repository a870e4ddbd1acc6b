"""What is measured for a workload, and how its price is shared. Never touches the data: all of it follows from plans.

Questions over the same table (or relation) whose numbers are sums over cells make one *block*. For each thing that is
added up in it, rows or a value, there is a *part*: a strategy, an integer matrix A over the cells, chosen by the
expected error of the questions that need it (`measuring.strategies`); what is measured is A·x, x being the exact
integers of the cells. Whatever is not linear is *beside*: asked as it would be alone, at a share of the price.

*Clipping.* One unit adds a vector w over the cells, in 2^bits parts of a step (`measuring.measures`). It is brought
within a limit L in L1: the rows of the unit in all cells together, or the total of what it adds to a sum. Then A·w is a
sum of columns of A, weighed by the entries of w, so by the triangle inequality

    ‖A·w‖₂ ≤ Σⱼ |wⱼ|·‖aⱼ‖₂ ≤ L·maxⱼ ‖aⱼ‖₂   and   ‖A·w‖₁ ≤ L·maxⱼ ‖aⱼ‖₁.

Where the cells themselves are measured (A = 1) under zCDP, w is clipped in L2, in which it is shorter: ‖w‖₂ ≤ L. Those
cells are then just the ones that are counted: of their sums, an L2 norm would say less. Where there are too many cells
to count, rows are weighed and counted in tables of a few attributes (`marginals`), within the same L1 limit.

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

import hashlib
import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import QuestionRefusedError
from dalenius.measuring.building import Builder
from dalenius.measuring.cache import WeightedCache
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import TRUE, Column, Expression
from dalenius.measuring.measures import refine
from dalenius.measuring.periods import charged_periods, within_periods
from dalenius.measuring.plan import Limits, Measure, Plan, Statistic, require
from dalenius.queries.rules import Stage
from dalenius.queries.rules.bound import found_norm, tighten_limits
from dalenius.queries.rules.work import limit_work
from dalenius.queries.workloads.attributes import Atoms, Attribute, find_attributes, merge_conditions
from dalenius.queries.workloads.linear import (
    ROWS,
    Summed,
    Sums,
    Term,
    gather_products,
    sums_of,
    terms_of,
    why_not_linear,
)
from dalenius.queries.workloads.marginals import Weighed, can_count, weigh_rows

if TYPE_CHECKING:
    from dalenius.measuring.limits.clip_search import Clip
    from dalenius.measuring.strategies.strategy import Strategy
    from dalenius.measuring.strategies.workload import Workload
    from dalenius.queries.planning import Planned

MOST_CELLS = 10**6
_FEW_CELLS = 2**17  # up to which cells themselves are tried without looking for anything else
_CANDIDATES: WeightedCache[list[tuple[float, Strategy]]] = WeightedCache(256)
_WHOLE = 10**6  # shares are whole parts of that
_WEIGHED = "weighed"  # beside the norms in which cells are counted
KIND = "workload"  # of the statistics that are measured; no family reads them


class _Everything:
    """Holds all."""

    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING = _Everything()


@dataclass(frozen=True)
class Counted:
    """Cells that the engine counts: the combinations of some attributes' classes, in the order of these."""

    attributes: tuple[int, ...]
    plan: Plan


@dataclass(frozen=True)
class Part:
    """One thing that is added up in a block, and what is measured of it.

    Attributes:
        summed: What is added up.
        strategy: What is measured.
        workload: What its questions need of it.
        measure: What a unit adds is limited as this says, in the plan's norm.
        counted: The number, in its block, of what the engine counts for it.
        number: Its own among the measures of that.
        share: Of the price.
        search: What goes of the price into finding a lower limit first (`limits`); 0: its limit stands.
        found: A lower limit, once that is known, with the noisy counts that it was chosen from.
        before: The limit that it had, in steps.
    """

    summed: Summed
    strategy: Strategy
    workload: Workload
    measure: Measure
    counted: int
    number: int
    share: Fraction
    search: Fraction = Fraction(0)
    found: Clip | None = None
    before: int = 0

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
        counted: What the engine counts.
        parts: What is measured of that.
        terms: Their measures, each with the number of its part and where its rows go.
    """

    planned: Planned
    questions: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    counted: tuple[Counted | Weighed, ...]
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


def plan_workload(
    plans: Sequence[Planned],
    keys: Sequence[str],
    weights: Sequence[float],
    aside: Mapping[int, str] | None = None,
    *,
    by_cells: Container[str] | None = None,
    laid: LaidOut | None = None,
) -> WorkloadPlan:
    """What is measured for some different questions of one data set, at the limits of the table.

    Args:
        plans: The questions, each planned as if it were asked alone.
        keys: What identifies each.
        weights: How much an error in each counts.
        aside: Questions that are asked beside, by their number, and why.
        by_cells: Of which things that are added up the cells are measured, in L2, by their texts; None: of those for
            which that is better at the limits of the table.
        laid: What is known of some of these questions, and will be known after this.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    aside = dict(aside or {})
    for number, each in enumerate(plans):
        why = aside.get(number) or why_not_linear(each.plan)
        if why is not None:
            aside[number] = why
            continue
        table = each.plan.table
        read = charged_periods(table, each.plan.where)
        groups.setdefault((table.relation.titled(), table.meaning, *read, "", *each.plan.periods), []).append(number)
    drafts = []
    for numbers in groups.values():
        try:
            drafts.append(_draft(plans, numbers, weights, by_cells, {} if laid is None else laid))
        except QuestionRefusedError:
            aside |= dict.fromkeys(numbers, "together with the others it has too many cells, or is too much work")
    return _shared(plans, keys, weights, drafts, aside)


@dataclass(frozen=True)
class _Laid:
    """Some questions over the same rows, laid out in cells: what they add up, and where their rows go."""

    terms: tuple[Term, ...]
    attributes: tuple[Attribute, ...]
    sums: tuple[Sums, ...]
    where: Expression


LaidOut = dict[tuple[int, ...], _Laid | QuestionRefusedError]  # by the numbers of the questions


def _lay_out(plans: Sequence[Planned], numbers: Sequence[int], laid: LaidOut) -> _Laid:
    key = tuple(numbers)
    if key not in laid:
        try:
            laid[key] = _laid_out(plans, numbers)
        except QuestionRefusedError as error:
            laid[key] = error
    found = laid[key]
    if isinstance(found, QuestionRefusedError):
        raise found
    return found


def _laid_out(plans: Sequence[Planned], numbers: Sequence[int]) -> _Laid:
    own = [plans[number].plan for number in numbers]
    terms = [replace(each, question=numbers[each.question]) for each in terms_of(own)]
    common = conditions_of_all(terms)
    merged = merge_conditions([_without(each.atoms, common) for each in terms])
    terms = [replace(each, atoms=atoms) for each, atoms in zip(terms, merged, strict=True)]
    table = own[0].table
    attributes = find_attributes([each.atoms for each in terms], table.policy.columns)
    if not all(each.size for each in attributes):
        raise too_many_cells()  # none at all: no row can count anywhere
    sums = [sums_of(each.atoms, plans[each.question].plan.cells, attributes) for each in terms]
    where = call("and", *common, within_periods(table, charged_periods(table, own[0].where)))
    return _Laid(tuple(terms), attributes, tuple(sums), where)


def _draft(
    plans: Sequence[Planned],
    numbers: Sequence[int],
    weights: Sequence[float],
    by_cells: Container[str] | None,
    laid: LaidOut,
) -> Block:
    """A block whose parts have no share of the price yet."""
    from dalenius.measuring.strategies.workload import Workload

    found = _lay_out(plans, numbers, laid)
    terms, attributes, sums = found.terms, found.attributes, found.sums
    sizes = tuple(each.size for each in attributes)
    summed = sorted(dict.fromkeys(each.summed for each in terms), key=lambda each: each.text)
    needs = {
        of: Workload(
            sizes,
            gather_products(
                [(one, weights[each.question]) for each, one in zip(terms, sums, strict=True) if each.summed == of]
            ),
        )
        for of in summed
    }
    counted, parts = _Frame(plans[numbers[0]].plan, found.where, attributes, terms).parts(needs, by_cells)
    places = {each.summed: at for at, each in enumerate(parts)}
    settled = tuple((each, places[each.summed], one) for each, one in zip(terms, sums, strict=True))
    return Block(plans[numbers[0]], tuple(numbers), attributes, counted, parts, settled)


def conditions_of_all(terms: Sequence[Term]) -> frozenset[Expression]:
    """Those that every measure has: rows that do not meet them count nowhere."""
    return frozenset.intersection(*(frozenset(each.atoms.conditions) for each in terms))


def _without(atoms: Atoms, common: frozenset[Expression]) -> Atoms:
    return Atoms(atoms.keys, tuple(each for each in atoms.conditions if each not in common))


class _Frame:
    """The cells of a block, in which any of its measures can be counted."""

    def __init__(self, first: Plan, where: Expression, attributes: Sequence[Attribute], terms: Sequence[Term]) -> None:
        self.first, self.where, self.attributes, self.terms = first, where, attributes, terms

    def parts(
        self, needs: Mapping[Summed, Workload], by_cells: Container[str] | None
    ) -> tuple[tuple[Counted | Weighed, ...], tuple[Part, ...]]:
        """What the engine counts, and what is measured of it.

        What belongs to one average is limited together, so that it stays about the same rows. Where cells themselves
        are measured under zCDP, they are counted, and limited, in L2; all else is counted in L1.
        """
        from dalenius.measuring.strategies.cells import disjoint_cells

        norm, together = self.first.norm, self._together()
        groups = [
            tuple(each for each in needs if each in together),
            *((each,) for each in needs if each not in together),
        ]
        chosen: dict[Summed, Strategy] = {}
        found: dict[Summed, Strategy]
        grouped: dict[tuple[str, tuple[int, ...]], list[tuple[Summed, ...]]] = {}
        wide = sorted({at for need in needs.values() for at in need.attributes})
        fits = self._cells(wide) <= MOST_CELLS
        for group in filter(None, groups):
            may = norm == "l2" and (by_cells is None or all(each.text in by_cells for each in group))
            if may and by_cells is not None and all(needs[each].cells <= _FEW_CELLS for each in group):
                found = {each: disjoint_cells(needs[each]) for each in group}
            else:
                found = {each: self._chosen(each, needs[each], norm, by_cells=may) for each in group}
            told = {each.tables for each in found.values()}
            if may and len(told) == 1 and all(map(_is_cells, found.values())):
                place = norm, told.pop()[0]
            else:
                found = {each: self._chosen(each, needs[each], norm, by_cells=False) for each in group}
                own = sorted({at for each in group for at in needs[each].attributes})
                place = "l1", tuple(wide if fits else own)
                if group == (ROWS,) and self._cells(place[1]) > MOST_CELLS and can_count(found[ROWS], self._sizes):
                    place = _WEIGHED, place[1]
            chosen |= found
            grouped.setdefault(place, []).append(group)
        counted = tuple(
            self._weighed(told) if norm_ == _WEIGHED else Counted(told, self._plan(own, told, norm_))
            for (norm_, told), own in grouped.items()
        )
        parts = []
        for at, members in enumerate(grouped.values()):
            order = [each for group in members for each in group]
            for number, each in enumerate(order):
                measure = counted[at].plan.measures[number]
                parts.append(Part(each, chosen[each], needs[each], measure, at, number, Fraction(0)))
        return counted, tuple(parts)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(each.size for each in self.attributes)

    def _cells(self, told: Sequence[int]) -> int:
        return math.prod(self._sizes[at] for at in told)

    def _weighed(self, told: Sequence[int]) -> Weighed:
        """Rows in tables of a few attributes each, where there are too many cells."""
        (rows,) = self._measures([ROWS], "l1", told)
        found = weigh_rows(self.first, self._where(told), self.attributes, told, rows, KIND)
        if found is None:
            raise too_many_cells()
        return found

    def _where(self, told: Sequence[int]) -> Expression:
        """Which rows count: those that have a class in all attributes, also in those that are not told apart."""
        others = (each for at, each in enumerate(self.attributes) if at not in told and not each.whole)
        return call("and", self.where, *(call("not", call("is_null", key)) for each in others for key in each.keys))

    def _chosen(self, summed: Summed, need: Workload, norm: str, *, by_cells: bool) -> Strategy:
        table = self.first.table
        (narrow,) = self._measures([summed], "l1", need.attributes)
        # An exchange changes vectors of either sign by twice as much in squares; sums of such values pay it anyway.
        apart = norm == "l2" and table.budget.neighbors is not Neighbors.ADD_REMOVE
        signed = 2.0 if apart and not narrow.low < 0 < narrow.high else 1.0
        if not by_cells:
            return _best(need, norm, 1.0, signed)
        (own,) = self._measures([summed], norm, need.attributes)
        return _best(need, norm, narrow.clip / own.clip, signed)

    def _together(self) -> frozenset[Summed]:
        """What averages are made of, rows with it: their quotient must stay about the same rows."""
        pairs: dict[tuple[int, int], list[Summed]] = {}
        for each in self.terms:
            pairs.setdefault((each.question, each.statistic), []).append(each.summed)
        return frozenset(one for each in pairs.values() if len(each) > 1 for one in each)

    def _measures(self, summed: Sequence[Summed], norm: str, told: Sequence[int]) -> list[Measure]:
        """What is added up over the cells of some attributes, with its limit."""
        table = self.first.table
        own = [self.attributes[at] for at in told]
        keys = [key for each in own for key in each.values if isinstance(key, Column) and key in self._keys]
        limits = replace(tighten_limits(table, Limits()), groups=None)
        size = math.prod(each.size for each in own)
        builder = Builder(
            table.policy, limits, [size], norm, table.budget.neighbors, [found_norm(table, keys)], table.unit
        )
        return [
            builder.rows(TRUE, None)
            if each.value is None
            else builder.sum(each.value, TRUE, each.step, each.centre, None)
            for each in summed
        ]

    @cached_property
    def _keys(self) -> frozenset[Expression]:
        return frozenset(key for each in self.terms for key in each.atoms.keys)

    def _plan(self, groups: Sequence[Sequence[Summed]], told: Sequence[int], norm: str) -> Plan:
        own = [self.attributes[at] for at in told]
        if math.prod(each.size for each in own) > MOST_CELLS:
            raise too_many_cells()
        plan = replace(
            self.first,
            where=self._where(told),
            keys=tuple(key for each in own for key in each.keys),
            cells=tuple(sum(cell, ()) for cell in product(*(each.classes for each in own))),
            groups=None,
            statistics=tuple(Statistic(KIND, tuple(self._measures(group, norm, told))) for group in groups),
            answers={},
            norm=norm,
            notes=(),
        )
        found = require(limit_work(Stage("", {}, plan=refine(plan))).plan)
        # The engine's integers have room for limit² · cells below 2¹²⁶; past that it would silently clip at less.
        if any(each.limit**2 * len(found.cells) >= 2**126 for each in found.measures):
            raise too_many_cells()
        return found


def _best(need: Workload, norm: str, spread: float, signed: float) -> Strategy:
    """The strategy that is chosen; they are looked for once, as who previews will ask."""
    from dalenius.measuring.strategies.choosing import candidates

    products = [[each.weight, each.key] for each in need.products]
    told = json.dumps([norm, MOST_CELLS, need.sizes, products], separators=(",", ":"))
    key = hashlib.sha256(told.encode()).hexdigest()
    found = _CANDIDATES.get(key)
    if found is None:
        found = candidates(need, norm, cells_limit=MOST_CELLS)
        _CANDIDATES.put(key, found, 1)

    def error(each: tuple[float, Strategy]) -> float:
        return each[0] * (1.0 if each[1].disjoint else spread**2) * (signed if each[1].signed else 1.0)

    return min(found, key=error)[1]


def _is_cells(strategy: Strategy) -> bool:
    """Whether each cell of the one table that it reads is measured as it is, and nothing else."""
    from dalenius.measuring.strategies.lines import EachClass
    from dalenius.measuring.strategies.products import Products

    return isinstance(strategy, Products) and all(isinstance(each, EachClass) for each in strategy.lines.values())


def too_many_cells() -> QuestionRefusedError:
    """The reason for which questions are asked beside one another."""
    return QuestionRefusedError(
        "The questions tell too many cells apart.",
        why=f"Together they have more than {MOST_CELLS:,}.",
        fix="Ask fewer different conditions and keys at once.",
    )


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
    blocks = tuple(
        replace(block, parts=tuple(replace(each, share=next(rest)) for each in block.parts)) for block in drafts
    )
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
