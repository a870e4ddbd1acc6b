"""Between bounds and price: which limits the question finds itself, because those of the whole table are too wide.

A limit that was found at `protect` fits the whole table. Where a condition leaves few of a unit's rows, or groups
spread them, most of the noise is for units that this question does not have. Then it pays to look first at how much
units add *here*, with a small part of the price (`measuring.limits.in_question`). All of this is decided from public
things alone.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Column, Type, conjuncts, walk
from dalenius.measuring.limits.clip_search import search_of, searchable
from dalenius.measuring.plan import Measure, Statistic, require

if TYPE_CHECKING:
    from dalenius.measuring.relations import Relation
    from dalenius.queries.rules import Stage


def share_searches(stage: Stage) -> Stage:
    """The plan with a part of the price set aside for each limit that is searched.

    A statistic pays for its own search: its measures get the rest of its share, and statistics without a search lose
    nothing by the others'.
    """
    plan, limits = require(stage.plan), stage.limits
    if limits.search == 0:
        return stage
    filtered = require(stage.safe).where != TRUE or _filters(plan.table.relation)
    chosen = {number for each, number in plan.answers.items() if each.limit is not None}
    statistics: list[Statistic] = []
    said: tuple[str, ...] = ()
    for number, statistic in enumerate(plan.statistics):
        wanted = [
            each
            for each in statistic.measures
            if searchable(each)
            and (
                limits.search
                or (number not in chosen and search_of(each).pays(plan, limits, statistic, each, filtered))
            )
        ]
        if wanted:
            share = Fraction(limits.search or search_of(wanted[0]).share)
            statistics.append(_sharing(statistic, wanted, share))
            said += search_of(wanted[0]).said
        else:
            statistics.append(statistic)
    # What is said of a limit that stands is said of the one that is found, once it is.
    notes = tuple(each for each in plan.notes if not each.startswith(said))
    return stage.with_(plan=replace(plan, statistics=tuple(statistics), notes=notes))


def _sharing(statistic: Statistic, wanted: list[Measure], share: Fraction) -> Statistic:
    measures = (
        replace(each, share=each.share * (1 - share), search=share / len(wanted) if each in wanted else Fraction(0))
        for each in statistic.measures
    )
    return replace(statistic, measures=tuple(measures))


def _filters(relation: Relation) -> bool:
    """Whether fewer rows of a unit are in a relation than in its tables: conditions other than those that tie them."""
    return bool(relation.matches) or any(
        part != TRUE and not any(isinstance(each, Column) and each.type is Type.UNIT for each in walk(part))
        for part in conjuncts(relation.where)
    )
