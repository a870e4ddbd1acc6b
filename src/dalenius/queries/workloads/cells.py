"""The cells of a block: which strategy reads them, and what the engine counts for that. Never touches the data.

Questions that tell too many cells apart are asked beside one another. The guarantee, with its proof: `blocks`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
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
from dalenius.measuring.plan import Limits, Measure, Plan, Statistic, require
from dalenius.queries.rules import Stage
from dalenius.queries.rules.bound import found_norm, tighten_limits
from dalenius.queries.rules.work import limit_work
from dalenius.queries.workloads.blocks import Counted, Part
from dalenius.queries.workloads.linear import ROWS, Summed, Term
from dalenius.queries.workloads.marginals import Weighed, can_count, weigh_rows

if TYPE_CHECKING:
    from dalenius.measuring.strategies.strategy import Strategy
    from dalenius.measuring.strategies.workload import Workload
    from dalenius.queries.workloads.attributes import Attribute

MOST_CELLS = 10**6
_FEW_CELLS = 2**17  # up to which cells themselves are tried without looking for anything else
_CANDIDATES: WeightedCache[list[tuple[float, Strategy]]] = WeightedCache(256)
_WEIGHED = "weighed"  # beside the norms in which cells are counted
KIND = "workload"  # of the statistics that are measured; no family reads them


class Cells:
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
