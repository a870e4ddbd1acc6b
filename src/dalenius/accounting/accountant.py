"""`account`: the best valid bound on a whole composition, and which method found it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from dalenius.accounting import composition, conversions, costs, events, parameters
from dalenius.accounting.events import Event
from dalenius.accounting.guarantees import ApproxDP
from dalenius.accounting.losses import merge_gaussians
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.orders import is_sampled
from dalenius.accounting.pld import PLD, has_pair
from dalenius.accounting.renyi import rdp
from dalenius.accounting.rounded_noise import pld_epsilon
from dalenius.errors import InputError


@dataclass(frozen=True)
class Account:
    """What a composition costs at δ: the best ε, the method that gave it, and what every method gives."""

    epsilon: float
    delta: float
    method: str
    bounds: dict[str, float | None]
    neighbors: Neighbors

    @property
    def guarantee(self) -> ApproxDP:
        """The best bound as a guarantee."""
        return ApproxDP(self.epsilon, self.delta, self.neighbors)

    def to_dict(self) -> dict[str, Any]:
        """The shape of `dalenius account --json`."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "method": self.method,
            "neighbors": self.neighbors.value,
            "bounds": self.bounds,
        }


def account(event: Event | Iterable[Event], delta: float, *, adaptive: bool = True) -> Account:
    """Adds up events by every method that applies and returns the best bound.

    Args:
        event: One event, or several that happened one after another (dp_accounting's events are taken too).
        delta: The δ at which ε is wanted. At 0 only pure bounds apply.
        adaptive: Whether a question may have been chosen after earlier answers. False also allows bounds that hold
            only for questions fixed beforehand.

    Guarantee:
        (ε, δ)-DP of the composition, if the *parameters* of all events were fixed beforehand. When the price of
        the next event depends on earlier answers, use a filter (`dalenius.accounting.filters`).

    >>> from dalenius.accounting.events import Gaussian, Laplace, Repeated
    >>> spent = account([Repeated(Gaussian(30), 1000), Repeated(Laplace(10), 100)], delta=1e-6)
    >>> spent.method, round(spent.epsilon, 2)
    ('pld', 7.41)
    """
    whole = _as_event(event)
    delta = parameters.delta(delta)
    bounds = {method: epsilon_by(method, whole, delta) for method in METHODS}
    if not adaptive:
        bounds["fixed-scores"] = _finite(_fixed_scores(whole, delta))
    known = {method: epsilon for method, epsilon in bounds.items() if epsilon is not None}
    method = min(known, key=lambda name: known[name]) if known else "none"
    return Account(known.get(method, math.inf), delta, method, bounds, whole.neighbors)


def epsilon_by(method: str, event: Event, delta: float) -> float | None:
    """ε by one method alone: a key of `METHODS`. None where it does not apply, or its numbers leave the doubles."""
    try:
        return _finite(METHODS[method](event, delta))
    except (ArithmeticError, ValueError, MemoryError, InputError):
        return None  # a bound that cannot be computed is no bound; the others stand


def group_guarantee(event: Event, spent: Account, size: int) -> ApproxDP:
    """The guarantee for groups of ``size`` units: at the same δ where the events scale, else by (ε, δ) alone."""
    try:
        scaled = for_group(event, size)
    except InputError:  # scaled out of range
        scaled = None
    epsilon = None if scaled is None or spent.method not in METHODS else epsilon_by(spent.method, scaled, spent.delta)
    if epsilon is None:
        return spent.guarantee.group(size)
    return ApproxDP(epsilon, spent.delta, spent.neighbors)


def for_group(event: Event, size: int) -> Event | None:
    """The event as a group of ``size`` units sees it, or None where it has no such form (sampling, known δ).

    Scaling the sensitivity inside the event is tighter than stretching the final (ε, δ), whose δ grows with e^(kε):
    k units move a sum by k times as much, a score likewise, and a pure ε by kε; ρ grows with k².

    >>> for_group(events.Repeated(events.Laplace(10), 3), 2).event.noise_multiplier
    5.0
    """
    match event:
        case _ if size == 1:
            return event
        case events.Gaussian() | events.Laplace():
            return replace(event, noise_multiplier=event.noise_multiplier / size)
        case events.DiscreteGaussian():
            return replace(event, squared_sensitivity=event.squared_sensitivity * size * size)
        case events.DiscreteLaplace():
            return replace(event, sensitivity=event.sensitivity * size)
        case events.Exponential() | events.NoisyMax() | events.Pure():
            return replace(event, epsilon=event.epsilon * size)
        case events.RandomizedResponse():
            return events.Pure(event.epsilon * size, event.neighbors)
        case events.Zcdp(delta=0):
            return replace(event, rho=event.rho * size * size)
        case events.Repeated():
            inner = for_group(event.event, size)
            return None if inner is None else events.Repeated(inner, event.times)
        case events.Composed():
            parts = tuple(part for each in event.events if (part := for_group(each, size)) is not None)
            return events.Composed(parts) if len(parts) == len(event.events) else None
        case _:
            return None


def _basic(event: Event, delta: float) -> float | None:
    return composition.basic(events.tally(event), delta)


def _advanced(event: Event, delta: float) -> float | None:
    return composition.advanced(events.tally(event), delta) if delta else None


def _optimal(event: Event, delta: float) -> float | None:
    return composition.optimal(events.tally(event), delta)


def _zcdp(event: Event, delta: float) -> float | None:
    total = costs.zcdp(event)
    return total.epsilon(delta) if total is not None and delta > total.delta else None


def _rdp(event: Event, delta: float) -> float | None:
    left = delta - costs.fixed_delta(event)
    curve = rdp(event) if left > 0 else None
    return None if curve is None else curve.epsilon(left)


def _pld(event: Event, delta: float) -> float | None:
    if is_sampled(event):
        return pld_epsilon(event, delta)
    if not all(has_pair(single) for single in events.tally(event)):
        return None
    return PLD.of(event).epsilon(delta)


def _gaussian(event: Event, delta: float) -> float | None:
    """Gaussians alone compose to one Gaussian, whose ε is known exactly."""
    merged = merge_gaussians(event)
    if not isinstance(merged, events.Gaussian) or delta == 0:
        return None
    return conversions.gaussian_epsilon(float(merged.noise_multiplier), delta)


def _fixed_scores(event: Event, delta: float) -> float | None:
    counts = events.tally(event)
    [single] = counts if len(counts) == 1 else [None]
    if not isinstance(single, events.Exponential) or counts[single] > 1000 or delta == 0:
        return None
    return composition.exponential_mechanisms(single, counts[single], delta)


# In the order in which ties are broken: the simplest argument first.
METHODS: dict[str, Callable[[Event, float], float | None]] = {
    "gaussian": _gaussian,
    "basic": _basic,
    "advanced": _advanced,
    "optimal": _optimal,
    "zcdp": _zcdp,
    "rdp": _rdp,
    "pld": _pld,
}


def _as_event(event: object) -> Event:
    if isinstance(event, events.Event):
        return event
    if isinstance(event, Iterable):
        return events.Composed(tuple(_as_event(part) for part in event))
    from dalenius.accounting.descriptions import from_dp_event

    return from_dp_event(event)


def _finite(epsilon: float | None) -> float | None:
    return epsilon if epsilon is not None and math.isfinite(epsilon) else None
