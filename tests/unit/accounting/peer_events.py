"""Our events as dp_accounting's, so that tests can ask it about the same thing."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting

from dalenius.accounting import conversions, costs, events
from dalenius.accounting.events import Event
from dalenius.errors import InputError


def to_dp_event(event: Event) -> Any:
    """dp_accounting's event for ours. Where it has none, a `ZCDpEvent` with our ρ: sound, but less precise."""
    match event:
        case events.Gaussian():
            return dp_accounting.GaussianDpEvent(float(event.noise_multiplier))
        case events.Laplace():
            return dp_accounting.LaplaceDpEvent(float(event.noise_multiplier))
        case events.DiscreteLaplace(dimension=1):
            return dp_accounting.dp_event.DiscreteLaplaceDpEvent(float(1 / event.scale), event.sensitivity)
        case events.RandomizedResponse():
            noise = event.categories / (math.expm1(float(event.epsilon)) + event.categories)
            return dp_accounting.RandomizedResponseDpEvent(noise, event.categories)
        case events.Pure():
            return to_dp_event(events.RandomizedResponse(event.epsilon, 2, event.neighbors))
        case events.Exponential():
            return dp_accounting.dp_event.ZCDpEvent(conversions.bounded_range_rho(float(event.epsilon)))
        case events.Repeated():
            return dp_accounting.SelfComposedDpEvent(to_dp_event(event.event), event.times)
        case events.Composed():
            return dp_accounting.ComposedDpEvent([to_dp_event(part) for part in event.events])
        case events.PoissonSampled():
            return dp_accounting.PoissonSampledDpEvent(float(event.rate), to_dp_event(event.event))
        case events.SampledWithoutReplacement():
            inner = to_dp_event(event.event)
            return dp_accounting.SampledWithoutReplacementDpEvent(event.population, event.sample, inner)
        case _:
            guarantee = costs.zcdp(event)
            if guarantee is None or guarantee.delta > 0:
                raise InputError(
                    f"dp_accounting has no event for {type(event).__name__}.",
                    why="It knows no failure probabilities and no parallel composition.",
                    fix="Use account(), which does.",
                )
            return dp_accounting.dp_event.ZCDpEvent(guarantee.rho)
