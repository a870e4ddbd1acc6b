"""Between bounds and price: which limits the question finds itself, because those of the whole table are too wide.

A limit that was found at `protect` fits the whole table. Where a condition leaves few of a unit's rows, or groups
spread them, most of the noise is for units that this question does not have. Then it pays to look first at how much
units add *here*, with a small part of the price (`searching`). All of this is decided from public things alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Call, Column, Expression, Type, columns_of, walk
from dalenius.measuring.plan import Found, Limits, Measure, Plan, Statistic, needed
from dalenius.measuring.statements.sums import LINEAR
from dalenius.queries.rules.stage import Stage

if TYPE_CHECKING:
    from dalenius.measuring.relations import Relation

LADDER = Fraction(1, 4)  # of the price of distinct values: a few rungs with much noise, instead of many with little
SHARE = Fraction(1, 10)  # of a measure's price, where nobody says
_KINDS = frozenset({"rows", "sum", "square", "product"})


def search(stage: Stage) -> Stage:
    """The plan with a part of the price set aside for each limit that is searched.

    A statistic pays for its own search: its measures get the rest of its share, and statistics without a search lose
    nothing by the others'.
    """
    plan, limits = needed(stage.plan), stage.limits
    if limits.search == 0:
        return stage
    filtered = needed(stage.safe).where != TRUE or _filters(plan.table.relation)
    chosen = {number for each, number in plan.answers.items() if each.limit is not None}
    statistics = []
    for number, statistic in enumerate(plan.statistics):
        wanted = [
            each
            for each in statistic.measures
            if _searchable(statistic, each)
            and (limits.search or (number not in chosen and _pays(plan, limits, statistic, each, filtered)))
        ]
        usual = LADDER if statistic.kind == "distinct" else SHARE
        statistics.append(_sharing(statistic, wanted, Fraction(limits.search or usual)) if wanted else statistic)
    # What is said of a limit that stands is said of the one that is found, once it is.
    found = any(each.kind == "distinct" and measure.search for each in statistics for measure in each.measures)
    notes = tuple(each for each in plan.notes if not (found and each.startswith("COUNT(DISTINCT")))
    return stage.with_(plan=replace(plan, statistics=tuple(statistics), notes=notes))


def _sharing(statistic: Statistic, wanted: list[Measure], share: Fraction) -> Statistic:
    measures = (
        replace(each, share=each.share * (1 - share), search=share / len(wanted) if each in wanted else Fraction(0))
        for each in statistic.measures
    )
    return replace(statistic, measures=tuple(measures))


def _searchable(statistic: Statistic, measure: Measure) -> bool:
    """Sums of clipped vectors whose clip can be lowered, and distinct values; the number of units has no such limit."""
    if statistic.kind == "distinct":
        return measure.clip > 1
    return statistic.kind in LINEAR and measure.kind in _KINDS and measure.clip > 1


def _pays(plan: Plan, limits: Limits, statistic: Statistic, measure: Measure, filtered: bool) -> bool:
    """Whether a limit that nobody chose is likely far above what units add to this question.

    That is so where a condition leaves few of a unit's rows; where its vector over the groups is shorter than its
    total, which is what is limited (in L2; in L1 they are the same); and for squares, whose limit is one of rows
    times the largest square that the bounds allow.
    """
    table = plan.table
    declared, found = table.policy.contribution, table.found
    if statistic.kind == "distinct":
        return declared.groups is None and limits.groups is None
    if found is None or declared.rows is not None or limits.rows is not None or limits.totals:
        return False
    summed = frozenset() if measure.value is None else columns_of(measure.value)
    if measure.kind == "sum" and summed & frozenset(declared.totals):
        return False
    # Of a ratio, the count's own condition says that there is a value; the sum's is what was asked.
    ratio = statistic.kind in {"moments", "covariance"}
    where = statistic.measures[-1].where if ratio else measure.where
    if filtered or not _all(where):
        return True
    if measure.kind != "rows":
        return measure.kind in {"square", "product"} or (bool(plan.keys) and plan.norm == "l2")
    known = all(_known([plan.question.keys[at] for at in each], found) for each in _sets(plan))
    return bool(plan.keys) and plan.norm == "l2" and not known


def _sets(plan: Plan) -> tuple[tuple[int, ...], ...]:
    return plan.sets or (tuple(range(len(plan.question.keys))),)


def _known(keys: list[Expression], found: Found) -> bool:
    """Whether it was found how long a unit's rows over these keys are; without keys, that is their number."""
    return not keys or (len(keys) == 1 and isinstance(keys[0], Column) and keys[0].name in found.norms)


def _filters(relation: Relation | None) -> bool:
    """Whether fewer rows of a unit are in a relation than in its tables: conditions other than those that tie them."""
    if relation is None:
        return False
    where = relation.where
    parts = where.arguments if isinstance(where, Call) and where.function == "and" else (where,)
    return bool(relation.matches) or any(
        part != TRUE and not any(isinstance(each, Column) and each.type is Type.UNIT for each in walk(part))
        for part in parts
    )


def _all(where: Expression) -> bool:
    """Whether a condition keeps every row, or every row that has a value."""
    if isinstance(where, Call) and where.function == "and":
        return all(map(_all, where.arguments))
    if isinstance(where, Call) and where.function == "not":
        (inner,) = where.arguments
        return isinstance(inner, Call) and inner.function == "is_null"
    return where == TRUE
