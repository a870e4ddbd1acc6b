"""dp_accounting's events to ours and back. Loads dp_accounting, which takes more than a CPU second."""

from __future__ import annotations

import math
from typing import Any

import dp_accounting

from dalenius.accounting import conversions, costs, events
from dalenius.accounting.events import Event
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError


def from_dp_event(event: object, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Event:
    """Our event for one of dp_accounting's, under a relation (theirs do not carry one).

    >>> import dp_accounting
    >>> from_dp_event(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(3.0), 5)).times
    5
    """
    match event:
        case dp_accounting.NoOpDpEvent():
            return events.Composed(())
        case dp_accounting.GaussianDpEvent():
            return events.Gaussian(event.noise_multiplier, neighbors)
        case dp_accounting.LaplaceDpEvent():
            return events.Laplace(event.noise_multiplier, neighbors)
        case dp_accounting.dp_event.DiscreteLaplaceDpEvent():
            return events.DiscreteLaplace(1 / event.noise_parameter, event.sensitivity, neighbors=neighbors)
        case dp_accounting.RandomizedResponseDpEvent():
            epsilon = math.log1p(event.num_buckets * (1 - event.noise_parameter) / event.noise_parameter)
            return events.RandomizedResponse(epsilon, event.num_buckets, neighbors)
        case dp_accounting.dp_event.ZCDpEvent(xi=0):
            return events.Zcdp(event.rho, neighbors=neighbors)
        case dp_accounting.SelfComposedDpEvent():
            return events.Repeated(from_dp_event(event.event, neighbors), event.count)
        case dp_accounting.ComposedDpEvent():
            return events.Composed(tuple(from_dp_event(part, neighbors) for part in event.events))
        case dp_accounting.PoissonSampledDpEvent():
            return events.PoissonSampled(event.sampling_probability, from_dp_event(event.event, neighbors))
        case dp_accounting.SampledWithoutReplacementDpEvent():
            inner = from_dp_event(event.event, Neighbors.SUBSTITUTE)
            return events.SampledWithoutReplacement(event.sample_size, event.source_dataset_size, inner)
        case _:
            raise InputError(
                f"{type(event).__name__} cannot be accounted.",
                why="It is not an event, or not one that is differentially private and known here.",
                fix="Use the events of dalenius.accounting.events, or dp_accounting's.",
            )


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
