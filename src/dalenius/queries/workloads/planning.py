"""What is measured for a workload instead of its questions. Never touches the data: all of it follows from plans.

Linear questions over the same rows are laid out in the cells of one block (`cells`); all others are asked beside. The
price is shared among the parts of blocks and the questions beside (`sharing`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import Expression
from dalenius.measuring.periods import charged_periods, within_periods
from dalenius.queries.workloads.attributes import Atoms, Attribute, find_attributes, merge_conditions
from dalenius.queries.workloads.blocks import Block
from dalenius.queries.workloads.cells import Cells, too_many_cells
from dalenius.queries.workloads.linear import (
    Sums,
    Term,
    gather_products,
    sums_of,
    terms_of,
    why_not_linear,
)
from dalenius.queries.workloads.sharing import share_price

if TYPE_CHECKING:
    from dalenius.queries.planning import Planned
    from dalenius.queries.workloads.blocks import WorkloadPlan


class _Everything:
    """Holds all."""

    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING = _Everything()


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
    return share_price(plans, keys, weights, drafts, aside)


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
    counted, parts = Cells(plans[numbers[0]].plan, found.where, attributes, terms).parts(needs, by_cells)
    places = {each.summed: at for at, each in enumerate(parts)}
    settled = tuple((each, places[each.summed], one) for each, one in zip(terms, sums, strict=True))
    return Block(plans[numbers[0]], tuple(numbers), attributes, counted, parts, settled)


def conditions_of_all(terms: Sequence[Term]) -> frozenset[Expression]:
    """Those that every measure has: rows that do not meet them count nowhere."""
    return frozenset.intersection(*(frozenset(each.atoms.conditions) for each in terms))


def _without(atoms: Atoms, common: frozenset[Expression]) -> Atoms:
    return Atoms(atoms.keys, tuple(each for each in atoms.conditions if each not in common))
