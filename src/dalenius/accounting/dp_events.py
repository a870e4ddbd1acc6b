"""dp_accounting's events to ours.

That package is no dependency: whoever holds one of its events has it installed and loaded, so it is imported here only
when such an event comes in.
"""

from __future__ import annotations

import math

from dalenius.accounting import events
from dalenius.accounting.events import Event
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError


def from_dp_event(event: object, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Event:
    """Our event for one of dp_accounting's, under a relation (theirs do not carry one).

    >>> import dp_accounting
    >>> from_dp_event(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(3.0), 5)).times
    5
    """
    if all(each.__module__.partition(".")[0] != "dp_accounting" for each in type(event).__mro__):
        raise _unknown(event)
    import dp_accounting

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
            raise _unknown(event)


def _unknown(event: object) -> InputError:
    return InputError(
        f"{type(event).__name__} cannot be accounted.",
        why="It is not an event, or not one that is differentially private and known here.",
        fix="Use the events of dalenius.accounting.events, or dp_accounting's.",
    )
