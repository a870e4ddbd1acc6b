"""The sixth pass: how the price of the question is shared, and the noise that each share buys.

Every aggregate gets the same part of the price; inside a ratio it is split where it helps most (`splitting`). What
previews a price is what charges it: `Priced` holds the mechanisms, their events and their noise for one ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.accounting.events import Composed, Zcdp
from dalenius.accounting.guarantees import ZCDP
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.mechanisms.key_selection import WEIGHT, KeySelection
from dalenius.mechanisms.laplace import Laplace
from dalenius.queries.plan import needed

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.queries.plan import Plan, Stage

_SELECTS = 1 / 40  # of the budget's δ, for finding the keys of one question
_BITS = 24  # variances are rounded up to so many bits past the leading one


def price(stage: Stage) -> Stage:
    """The plan with every measure's share of the price."""
    plan = needed(stage.plan)
    rest = 1 - (plan.selection.share if plan.selection is not None else 0)
    part = Fraction(rest) / len(plan.statistics)
    statistics = tuple(
        replace(each, measures=tuple(replace(measure, share=measure.share * part) for measure in each.measures))
        for each in plan.statistics
    )
    return stage.with_(plan=replace(plan, statistics=statistics))


@dataclass(frozen=True)
class Priced:
    """A plan at one ε: ``rho`` is what is charged under zCDP, None under pure; ``delta`` is that of key selection."""

    epsilon: float
    rho: float | None
    mechanisms: tuple[DiscreteGaussian | Laplace, ...]
    delta: float = 0.0
    selection: KeySelection | None = None
    units: int = 0

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
        if self.selection is None:
            events: tuple[Event, ...] = tuple(each.event for each in self.mechanisms)
            return events[0] if len(events) == 1 else Composed(events)
        # How many groups will be measured is not known yet, and does not matter: only ρ does.
        after = (Zcdp(each.rho, 0, each.neighbors) for each in self.mechanisms if isinstance(each, DiscreteGaussian))
        return Composed((self.selection.event, *after))


def priced(plan: Plan, epsilon: float, delta: float | None = None) -> Priced:
    """The noise that ``epsilon`` buys; ``delta`` is for finding keys, by default a fortieth of the budget's.

    Guarantee:
        Under zCDP measure i, of squared sensitivity Δ2², gets discrete Gaussian noise of variance Δ2²/2ρᵢ, which is
        ρᵢ-zCDP; Σρᵢ = ρ(ε), with the part of key selection, which is δ-approximate. Under pure DP a measure gets
        discrete Laplace noise of scale Δ1/εᵢ, with Σεᵢ = ε. Each is for the whole vector over the groups, and they
        compose by addition.
    """
    if plan.selection is None:
        delta = 0.0
    elif delta is None:
        delta = plan.table.budget.delta * _SELECTS
    cost = plan.table.budget.filter().price(epsilon, delta)
    size = max(1, len(plan.cells))  # unknown, where groups are found first
    if not isinstance(cost, ZCDP):
        laplace = tuple(
            Laplace(Fraction(epsilon) * each.share, each.sensitivity, size * each.width, plan.neighbors)
            for each in plan.measures
        )
        return Priced(epsilon, None, laplace)
    gaussian = tuple(
        DiscreteGaussian(
            _up(Fraction(each.sensitivity) / (2 * Fraction(cost.rho) * each.share)),
            each.sensitivity,
            size * each.width,
            plan.neighbors,
        )
        for each in plan.measures
    )
    selection = plan.selection
    if selection is None:
        return Priced(epsilon, cost.rho, gaussian)
    first = KeySelection(Fraction(cost.rho) * selection.share, delta, selection.cap, plan.neighbors)
    return Priced(epsilon, cost.rho, gaussian, delta, first, selection.units)


def _up(value: Fraction) -> Fraction:
    """The value, or slightly more, with few digits: exact arithmetic stays fast, and more noise costs no more."""
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - _BITS)
    return math.ceil(value / unit) * unit
