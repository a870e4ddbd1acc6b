"""What one event costs in each currency: pure ε, (ε, δ), ρ. None where the event has no such guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from dalenius.accounting import conversions, events
from dalenius.accounting.events import Event, Single
from dalenius.accounting.guarantees import ZCDP, PureDP


def pure_epsilon(event: Event) -> float | None:
    """The ε of ε-DP.

    >>> pure_epsilon(events.Laplace(10)), pure_epsilon(events.Gaussian(1))
    (0.1, None)
    """
    match event:
        case events.Laplace():
            return float(1 / event.noise_multiplier)
        case events.DiscreteLaplace():
            return float(event.sensitivity / event.scale)
        case events.Exponential() | events.NoisyMax() | events.RandomizedResponse() | events.Pure():
            return float(event.epsilon)
        case events.Approx(delta=0):
            return float(event.epsilon)
        case events.PoissonSampled() | events.SampledWithoutReplacement():
            inner = pure_epsilon(event.event)
            return None if inner is None else conversions.amplified_epsilon(inner, float(event.rate))
        case events.Parallel():
            return _worst(pure_epsilon(part) for part in event.events)
        case events.Repeated() | events.Composed():
            return _total((pure_epsilon(single), times) for single, times in events.flatten(event))
        case _:
            return None


def fixed_delta(event: Event) -> float:
    """The δ an event brings along whatever it is accounted by: that of approximate events."""
    match event:
        case events.Approx() | events.Zcdp() | events.SampledGaussian():
            return float(event.delta)
        case events.PoissonSampled() | events.SampledWithoutReplacement():
            return float(event.rate) * fixed_delta(event.event)
        case events.Parallel():
            return max(fixed_delta(part) for part in event.events)
        case events.Repeated() | events.Composed():
            return sum(times * fixed_delta(single) for single, times in events.flatten(event))
        case _:
            return 0.0


def approximate_epsilon(single: Single, delta: float) -> float | None:
    """The ε of one event at δ, `fixed_delta` not counted in δ; exact for Gaussian noise."""
    match single:
        case events.Gaussian():
            return conversions.gaussian_epsilon(float(single.noise_multiplier), delta)
        case events.Approx():
            return float(single.epsilon)
        case events.DiscreteGaussian() | events.Zcdp():
            guarantee = zcdp(single)
            return None if guarantee is None else conversions.zcdp_epsilon(guarantee.rho, delta)
        case events.PoissonSampled() | events.SampledWithoutReplacement():
            rate = float(single.rate)
            parts = list(events.flatten(single.event))
            share = min(delta / rate, 0.5) / sum(times for _, times in parts)
            inner = _total((approximate_epsilon(part, share), times) for part, times in parts)
            return None if inner is None else conversions.amplified_epsilon(inner, rate)
        case events.Parallel():
            return _worst(_composed_epsilon(part, delta) for part in single.events)
        case _:
            epsilon = pure_epsilon(single)
            return None if epsilon is None else PureDP(epsilon).to_approx(delta).epsilon


def zcdp(event: Event) -> ZCDP | None:
    """The (δ-approximate) ρ-zCDP of an event, its δ being `fixed_delta`.

    >>> zcdp(events.Exponential(0.4)).rho, zcdp(events.NoisyMax(0.4)).rho
    (0.020000000000000004, 0.08000000000000002)
    """
    rho = _rho(event)
    return None if rho is None or not math.isfinite(rho) else ZCDP(rho, fixed_delta(event), event.neighbors)


def _rho(event: Event) -> float | None:
    match event:
        case events.Gaussian():
            return float(1 / (2 * event.noise_multiplier * event.noise_multiplier))
        case events.DiscreteGaussian():
            return float(event.squared_sensitivity / (2 * event.variance))
        case events.Exponential():
            return conversions.bounded_range_rho(float(event.epsilon))
        case events.Zcdp():
            return float(event.rho)
        case events.Approx():
            return conversions.pure_rho(float(event.epsilon))
        case events.Parallel():
            return _worst(_rho(part) for part in event.events)
        case events.Repeated() | events.Composed():
            return _total((_rho(single), times) for single, times in events.flatten(event))
        case _:  # sampling does not amplify ρ, but it amplifies ε
            epsilon = pure_epsilon(event)
            return None if epsilon is None else conversions.pure_rho(epsilon)


def _composed_epsilon(event: Event, delta: float) -> float | None:
    parts = list(events.flatten(event))
    share = delta / max(1, sum(times for _, times in parts))
    return _total((approximate_epsilon(part, share), times) for part, times in parts)


def _worst(values: Iterable[float | None]) -> float | None:
    return _combine(values, max)


def _total(values: Iterable[tuple[float | None, int]]) -> float | None:
    return _combine((None if value is None else value * times for value, times in values), math.fsum)


def _combine(values: Iterable[float | None], join: Callable[[list[float]], float]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return join(known) if len(known) == len(found) and known else (None if found else 0.0)
