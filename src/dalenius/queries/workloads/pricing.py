"""The noise that a price buys for each part of a workload, and what all of it does, for the ledger.

What previews a price is what charges it. The guarantee, with its proof, stands in `blocks`, that of limits that are
found first in `limits`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.events import Composed, Pure, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.measuring.limits.clip_search import search_of
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.laplace import Laplace
from dalenius.queries.rules.price import price_plan

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.accounting.neighbors import Neighbors
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced
    from dalenius.queries.workloads.blocks import Part, WorkloadPlan


@dataclass(frozen=True)
class Cost:
    """What all of a workload costs, and what each part gets for its share of that.

    Attributes:
        epsilon: What was typed.
        rho: What is charged under zCDP; None under pure.
        neighbors: Which two tables the guarantee compares.
    """

    epsilon: float
    rho: float | None
    neighbors: Neighbors

    @classmethod
    def of(cls, workload: WorkloadPlan, epsilon: float, delta: float = 0.0) -> Cost:
        """At a price; ``delta`` is for finding keys."""
        budget = workload.plans[0].plan.table.budget
        cost = budget.filter().price(epsilon, delta)
        return cls(epsilon, cost.rho if isinstance(cost, ZCDP) else None, budget.neighbors)

    @property
    def norm(self) -> str:
        """In which noise is calibrated."""
        return "l1" if self.rho is None else "l2"

    def mechanism(self, part: Part) -> DiscreteGaussian | Laplace:
        """The noise of what is measured of a part, at its limit."""
        change, size = part.change(self.norm, self.neighbors), part.strategy.rows
        if self.rho is None:
            return Laplace(Fraction(self.epsilon) * part.share, change, size, self.neighbors)
        variance = widened(Fraction(change) / (2 * Fraction(self.rho) * part.share))
        return DiscreteGaussian(variance, change, size, self.neighbors)

    def deviation(self, part: Part) -> float:
        """Of that noise."""
        change, share = part.change(self.norm, self.neighbors), float(part.share)
        if self.rho is None:
            return math.sqrt(2) * change / (self.epsilon * share)
        return math.sqrt(change / (2 * self.rho * share))

    def search(self, part: Part) -> DiscreteGaussian | Laplace:
        """The noise of the counts of units from which a part's limit is found (`limits`, with the guarantee)."""
        change, size = search_of(part.measure).counted(part.measure, self.norm, self.neighbors)
        if self.rho is None:
            return Laplace(Fraction(self.epsilon) * part.search, change, size, self.neighbors)
        return DiscreteGaussian(widened(change / (2 * Fraction(self.rho) * part.search)), change, size, self.neighbors)

    def events(self, part: Part) -> tuple[Event, ...]:
        """What a part does: what is measured, after a search whatever limit that finds."""
        if not part.search:
            return (self.mechanism(part).event,)
        after = (
            Pure(Fraction(self.epsilon) * part.share, self.neighbors)
            if self.rho is None
            else Zcdp(Fraction(self.rho) * part.share, 0, self.neighbors)
        )
        return self.search(part).event, after


@dataclass(frozen=True)
class WorkloadPrice:
    """A workload at one ε.

    Attributes:
        cost: Of all of it.
        events: What its parts do.
        beside: Of each question that is asked beside, by its number.
    """

    cost: Cost
    events: tuple[Event, ...]
    beside: Mapping[int, Priced]

    @property
    def epsilon(self) -> float:
        """What was typed."""
        return self.cost.epsilon

    @property
    def rho(self) -> float | None:
        """What is charged under zCDP; None under pure."""
        return self.cost.rho

    @property
    def delta(self) -> float:
        """That of the parts that find keys."""
        return sum(each.delta for each in self.beside.values())

    @property
    def event(self) -> Event:
        """What the whole workload does."""
        return Composed((*self.events, *(each.event for each in self.beside.values())))


def price_workload(workload: WorkloadPlan, epsilon: float, delta: float = 0.0) -> WorkloadPrice:
    """The noise that ``epsilon`` buys; ``delta`` is for all questions that find keys together."""
    cost = Cost.of(workload, epsilon, delta)
    events = tuple(event for part in workload.parts for event in cost.events(part))
    finding = sum(workload.plans[number].plan.selection is not None for number in workload.beside)
    beside = {
        number: price_plan(
            plan := share_plan(workload.plans[number].plan, share),
            epsilon,
            delta / finding if plan.selection is not None else None,
        )
        for number, (share, _) in workload.beside.items()
    }
    return WorkloadPrice(cost, events, beside)


def share_plan(plan: Plan, share: Fraction) -> Plan:
    """A question that has that share of a price: each of its measures has the same part of what it would have."""
    statistics = tuple(
        replace(
            each,
            measures=tuple(replace(one, share=one.share * share, search=one.search * share) for one in each.measures),
        )
        for each in plan.statistics
    )
    selection = plan.selection and replace(plan.selection, share=plan.selection.share * share)
    return replace(plan, statistics=statistics, selection=selection)
