"""The one order at which a cap holds sampled noise, and what events cost there.

A cap ρ(ε, δ) is the most that one order α promises: if D_α of everything together is at most αρ, everything together is
(ε, δ)-DP [CKS20, Prop. 12], and the order that allows the largest ρ is the *tight* one, α*. Adding up d(α*)/α* is
therefore as good as adding up ρ: an event with a ρ costs that ρ at every order, so caps and sums are what they always
were; sampled noise, which has no ρ, costs its own d(α*)/α*.

Guarantee:
    A filter that lets Σd(α)/α reach ρ and Σδ reach δ′, at one fixed order α, keeps the whole interaction
    (αρ + c(α), δ + δ′)-DP, whatever was chosen after seeing earlier answers: Feldman & Zrnic (2021), Thm. 3.1, with the
    δ of approximate parts as in docs/decisions/0032-charging-sampled-noise.md.

Every number here is the same on every machine: decimals, not logarithms of the processor.

References:
    [CKS20] Canonne, Kamath & Steinke, The Discrete Gaussian for Differential Privacy (2020).
    Feldman & Zrnic, Individual Privacy Accounting via a Rényi Filter (2021).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from dalenius.accounting import conversions, costs, events
from dalenius.accounting.events import Event, SampledGaussian
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.sampled_discrete import divergence
from dalenius.accounting.units import whole_units
from dalenius.errors import InputError

_NEAR = Context(60, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX)
_BITS = 24  # of α* − 1: so near the best order that what it promises is less by a part in 10¹⁵ at most
_LARGEST = 10**300
_LADDER = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
_LEAST, _MOST = -400, 4000  # exponents of α* − 1


class Tight(NamedTuple):
    """The order of a cap, and the ρ that it allows at that order, rounded down."""

    order: Fraction
    rho: Fraction


@lru_cache(maxsize=1024)
def tight(epsilon: float, delta: float) -> Tight:
    """The order that allows the largest ρ at (ε, δ): a whole number of steps of 2⁻²⁴ of α − 1, or finer.

    αρ + c(α) = ε allows ρ = (ε − c(α))/α, which grows with α until (L − ln α)(2α − 1)/(α−1)² + ln(1 − 1/α), L = ln 1/δ,
    has fallen to ε.

    >>> found = tight(3.0, 5e-7)
    >>> float(found.order), round(float(found.rho), 6)
    (9.356428146362305, 0.17575)
    """
    with localcontext(_NEAR):
        target, log_inverse = Decimal(epsilon), -Decimal(delta).ln()
        low, high = _LEAST << (_BITS - 1), _MOST << (_BITS - 1)
        while high - low > 1:
            middle = (low + high) // 2
            if _is_beyond(_less_one(middle), target, log_inverse):
                high = middle
            else:
                low = middle
        less = _less_one(high)
        return Tight(less + 1, _allowed(less, target, log_inverse))


@lru_cache(maxsize=2**14)
def loss(event: Event, order: Fraction) -> Fraction | None:
    """What an event costs at an order, in units of ρ, rounded up: its ρ, or d(α)/α; None where neither is known.

    >>> event = events.Composed((events.Zcdp(0.25), SampledGaussian(Fraction(1), 4, steps=2)))
    >>> float(loss(event, Fraction(8)))
    0.5
    """
    total = Fraction(0)
    for single, times in events.tally(event).items():
        if isinstance(single, SampledGaussian):
            total += times * Fraction(divergence(single, order)) / order
        elif (guarantee := costs.zcdp(single)) is not None:
            total += times * Fraction(guarantee.rho)
        else:
            return None
    return total


@dataclass(frozen=True, slots=True)
class SampledLoss:
    """The cost of an event with sampled noise, which is another one at each filter, and the δ it may use."""

    event: Event
    delta: float = 0.0

    @property
    def neighbors(self) -> Neighbors:
        """The relation of the event."""
        return self.event.neighbors

    def units(self, order: Fraction) -> int:
        """Its loss at an order, in whole units."""
        found = loss(self.event, order)
        if found is None:
            raise InputError(
                "A part of this event has no Rényi divergence here.",
                why="Beside sampled noise stands something of which only (ε, δ) is known.",
                fix="Charge that part as a release of its own.",
            )
        return whole_units(found)


@lru_cache(maxsize=256)
def epsilon_of(rho: Fraction, sampled: tuple[Event, ...], delta: float, first: Fraction) -> float:
    """The ε at δ of so much ρ together with events of sampled noise.

    Each order gives a sound one. The best of whole orders is found, first on a ladder and then between its rungs; then
    those that are tight for what was found, and the ``first``, which may lie between whole ones.
    """
    counts = Counter(sampled)

    def at(order: Fraction) -> float:
        found = [(loss(event, order), times) for event, times in counts.items()]
        total = rho + sum(times * each for each, times in found if each is not None)
        if any(each is None for each, _ in found) or order * total > _LARGEST:
            return math.inf
        # doubles from here on: more than they may have taken away is added
        return conversions.rdp_epsilon_at(float(order), float(order * total), delta) * (1 + 1e-12)

    rungs = [at(Fraction(order)) for order in _LADDER]
    place = rungs.index(min(rungs))
    low, high = _LADDER[max(place - 1, 0)], _LADDER[min(place + 1, len(_LADDER) - 1)]
    while high - low > 1:
        middle = (low + high) // 2
        if at(Fraction(middle)) <= at(Fraction(middle + 1)):
            high = middle
        else:
            low = middle
    best = min(rungs[place], at(Fraction(high)), at(first))
    for _ in range(4):
        if 0 < best < math.inf:
            best = min(best, at(tight(best, delta).order))
    return best


def is_sampled(event: Event) -> bool:
    """Whether what it costs is a matter of the order: it has sampled noise."""
    return any(isinstance(single, SampledGaussian) for single, _ in events.flatten(event))


def _is_beyond(less: Fraction, target: Decimal, log_inverse: Decimal) -> bool:
    """Whether this order is past the best one."""
    below = _decimal(less)
    log_order = (below + 1).ln()
    return (log_inverse - log_order) * (2 * below + 1) / below / below + below.ln() - log_order < target


def _less_one(place: int) -> Fraction:
    """α − 1 at a place of the grid: 2²³ places to each factor of two."""
    power, part = divmod(place, 1 << (_BITS - 1))
    return Fraction((1 << (_BITS - 1)) + part) * Fraction(2) ** (power - _BITS + 1)


def _allowed(less: Fraction, epsilon: Decimal, log_inverse: Decimal) -> Fraction:
    """(ε − c(α))/α with c(α) = (L − ln α)/(α−1) + ln(1 − 1/α), less a part in 10⁴⁰ for what rounding may have added."""
    below = _decimal(less)
    order = below + 1
    log_order = order.ln()
    cost = (log_inverse - log_order) / below + below.ln() - log_order
    spare = (epsilon + abs(cost) + log_order) * Decimal("1e-40")
    return max(Fraction(0), Fraction((epsilon - cost - spare) / order))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
