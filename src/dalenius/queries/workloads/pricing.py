"""The noise that a price buys for each part of a workload, and what all of it does, for the ledger.

What previews a price is what charges it. The guarantee, with its proof, stands in `planning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.events import Composed
from dalenius.accounting.guarantees import ZCDP
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.laplace import Laplace
from dalenius.queries.rules.price import price_plan, widened

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced
    from dalenius.queries.workloads.planning import WorkloadPlan


@dataclass(frozen=True)
class WorkloadPrice:
    """A workload at one ε.

    Attributes:
        epsilon: What was typed.
        rho: What is charged under zCDP; None under pure.
        mechanisms: Of each part, in their order.
        beside: Of each question that is asked beside, by its number.
    """

    epsilon: float
    rho: float | None
    mechanisms: tuple[DiscreteGaussian | Laplace, ...]
    beside: Mapping[int, Priced]

    @property
    def delta(self) -> float:
        """That of the parts that find keys."""
        return sum(each.delta for each in self.beside.values())

    @property
    def event(self) -> Event:
        """What the whole workload does."""
        return Composed((*(each.event for each in self.mechanisms), *(each.event for each in self.beside.values())))


def price_workload(workload: WorkloadPlan, epsilon: float, delta: float = 0.0) -> WorkloadPrice:
    """The noise that ``epsilon`` buys; ``delta`` is for all questions that find keys together."""
    budget, norm = workload.plans[0].plan.table.budget, workload.plans[0].plan.norm
    cost = budget.filter().price(epsilon, delta)
    mechanisms: list[DiscreteGaussian | Laplace] = []
    for part in workload.parts:
        change = part.change(norm, budget.neighbors)
        if isinstance(cost, ZCDP):
            variance = widened(Fraction(change) / (2 * Fraction(cost.rho) * part.share))
            mechanisms.append(DiscreteGaussian(variance, change, part.strategy.rows, budget.neighbors))
        else:
            mechanisms.append(Laplace(Fraction(epsilon) * part.share, change, part.strategy.rows, budget.neighbors))
    finding = sum(workload.plans[number].plan.selection is not None for number in workload.beside)
    beside = {
        number: price_plan(
            plan := share_plan(workload.plans[number].plan, share),
            epsilon,
            delta / finding if plan.selection is not None else None,
        )
        for number, (share, _) in workload.beside.items()
    }
    return WorkloadPrice(epsilon, cost.rho if isinstance(cost, ZCDP) else None, tuple(mechanisms), beside)


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
