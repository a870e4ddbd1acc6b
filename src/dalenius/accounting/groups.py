"""Group privacy of events: the same mechanism, seen by k units that change together.

Scaling the sensitivity inside the event is tighter than stretching the final (ε, δ), whose δ grows with e^(kε).
"""

from __future__ import annotations

from dataclasses import replace

from dalenius.accounting import events
from dalenius.accounting.events import Event


def for_group(event: Event, size: int) -> Event | None:
    """The event as a group of ``size`` units sees it, or None where it has no such form (sampling, known δ).

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
