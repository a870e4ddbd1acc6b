"""The sixth pass: how the price of the question is shared, and the noise that each share buys.

Every aggregate gets the same part of the price; inside a ratio it is split where it helps most (`measuring.building`).
What previews a price is what charges it: `Priced` holds the mechanisms, their events and their noise for one ε.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.events import Composed, Pure, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.ledger.key_delta import default_delta
from dalenius.measuring.plan import require
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian, widened
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection
from dalenius.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.ledger.key_delta import Left
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules import Stage


def share_price(stage: Stage) -> Stage:
    """The plan with every measure's share of the price."""
    plan = require(stage.plan)
    rest = 1 - (plan.selection.share if plan.selection is not None else 0)
    part = Fraction(rest) / len(plan.statistics)
    statistics = tuple(
        replace(
            each,
            measures=tuple(
                replace(measure, share=measure.share * part, search=measure.search * part) for measure in each.measures
            ),
        )
        for each in plan.statistics
    )
    return stage.with_(plan=replace(plan, statistics=statistics))


@dataclass(frozen=True)
class Priced:
    """A plan at one ε: ``rho`` is what is charged under zCDP, None under pure; ``delta`` is that of key selection.

    ``searches`` are the histograms of those measures that find their own clip, by number; ``after`` is what each
    measure may cost then, whatever its clip will be. ``totals`` is the ρ, as a part of that, of the sums of totals that
    some of them measure first.
    """

    epsilon: float
    rho: float | None
    mechanisms: tuple[DiscreteGaussian | Laplace, ...]
    delta: float = 0.0
    selection: KeySelection | None = None
    searches: Mapping[int, DiscreteGaussian | Laplace] = field(default_factory=dict)
    after: tuple[Zcdp | Pure, ...] = ()
    units: int = 0
    totals: Mapping[int, Fraction] = field(default_factory=dict)

    @property
    def least_weight(self) -> int:
        """The noisy weight from which on a key that had to be found is shown; 0 where keys are public."""
        return 0 if self.selection is None else self.selection.sure(self.units)

    @property
    def least_units(self) -> int:
        """So many units with that key alone weigh as much."""
        return -(-self.least_weight // WEIGHT)

    @property
    def event(self) -> Event:
        """What the whole question does."""
        if self.searches:  # the noise of the measures depends on what is found; its price does not
            first: tuple[Event, ...] = () if self.selection is None else (self.selection.event,)
            return Composed((*first, *(each.event for each in self.searches.values()), *self.after))
        if self.selection is None:
            events: tuple[Event, ...] = tuple(each.event for each in self.mechanisms)
            return events[0] if len(events) == 1 else Composed(events)
        # How many groups will be measured is not known yet, and does not matter: only ρ does.
        after = (Zcdp(each.rho, 0, each.neighbors) for each in self.mechanisms if isinstance(each, DiscreteGaussian))
        return Composed((self.selection.event, *after))


def price_plan(plan: Plan, epsilon: float, delta: float | None = None, left: Left | None = None) -> Priced:
    """The noise that ``epsilon`` buys; ``delta`` is for finding keys, by default what `ledger.key_delta` says.

    ``left`` is what the asker has left for that; without it, all that the budget has.

    Guarantee:
        Under zCDP measure i, of squared sensitivity Δ2², gets discrete Gaussian noise of variance Δ2²/2ρᵢ, which is
        ρᵢ-zCDP; Σρᵢ = ρ(ε), with the part of key selection, which is δ-approximate. Under pure DP a measure gets
        discrete Laplace noise of scale Δ1/εᵢ, with Σεᵢ = ε. Each is for the whole vector over the groups, and they
        compose by addition.
        A measure that finds its own clip is preceded by a histogram of units (`limits.in_question`) at its own part;
        the measure, with the sum of totals that may come before it, is then ρᵢ-zCDP (εᵢ-DP) for every clip that the
        histogram may have led to, so the parts add up as adaptively chosen mechanisms do.
    """
    from dalenius.measuring.limits.in_question import SUMMED, counts_totals

    if plan.selection is None:
        delta = 0.0
    elif delta is None:
        delta = default_delta(plan.table.budget, epsilon, left)
    cost = plan.table.budget.filter().price(epsilon, delta)
    size = max(1, len(plan.cells))  # unknown, where groups are found first
    searches = {at: plan.measures[at].search for at in plan.searched}
    if not isinstance(cost, ZCDP):
        laplace = tuple(
            Laplace(Fraction(epsilon) * each.share, each.sensitivity, size * each.width, plan.neighbors)
            for each in plan.measures
        )
        histograms = {at: _search(plan, at, epsilon=Fraction(epsilon) * each) for at, each in searches.items()}
        pure = tuple(Pure(Fraction(epsilon) * each.share, plan.neighbors) for each in plan.measures)
        return Priced(epsilon, None, laplace, searches=histograms, after=pure)
    gaussian = tuple(
        DiscreteGaussian(
            widened(Fraction(each.sensitivity) / (2 * Fraction(cost.rho) * each.share)),
            each.sensitivity,
            size * each.width,
            plan.neighbors,
        )
        for each in plan.measures
    )
    rho, selection = Fraction(cost.rho), plan.selection
    first = None if selection is None else KeySelection(rho * selection.share, delta, selection.cap, plan.neighbors)
    histograms = {at: _search(plan, at, rho=rho * each) for at, each in searches.items()}
    totals = {at: rho * plan.measures[at].share * SUMMED for at in searches if counts_totals(plan, at)}
    after = tuple(Zcdp(rho * each.share, 0, plan.neighbors) for each in plan.measures)
    units = 0 if selection is None else selection.units
    return Priced(epsilon, cost.rho, gaussian, delta, first, histograms, after, units, totals)


def _search(
    plan: Plan, number: int, *, rho: Fraction | None = None, epsilon: Fraction | None = None
) -> DiscreteGaussian | Laplace:
    """Noise for what a measure finds its own clip from: a histogram of units, or a ladder of distinct values."""
    from dalenius.measuring.limits.clip_search import search_of
    from dalenius.measuring.limits.in_question import counts_totals

    measure = plan.measures[number]
    change, size = search_of(measure).counted(measure, plan.norm, plan.neighbors)
    if counts_totals(plan, number):  # two histograms, in which a unit is once each
        change, size = 2 * change, 2 * size
    # Discrete Gaussian noise of variance Δ2²/2ρ is ρ-zCDP, Laplace noise of scale Δ1/ε ε-DP.
    if rho is None:
        return Laplace(require(epsilon), change, size, plan.neighbors)
    return DiscreteGaussian(widened(change / (2 * rho)), change, size, plan.neighbors)
