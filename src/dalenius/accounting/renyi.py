"""Rényi divergences of single events: d(α) at each order, or None where no formula is known.

Every formula is an exact divergence of the worst pair, capped by the event's ρα. Adding `ROUNDING` covers the digits
lost when the divergence is tiny. Sampled Gaussians have modules of their own, `sampled_gaussian` and, where the noise
is discrete, `sampled_discrete`, with bounds that are rounded up throughout.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dalenius.accounting import costs, events, sampled_discrete, sampled_gaussian
from dalenius.accounting.events import Event
from dalenius.accounting.guarantees import DEFAULT_ORDERS, RDP
from dalenius.accounting.losses import Array, dominating_pair, merge_gaussians
from dalenius.accounting.neighbors import Neighbors

ROUNDING = 1e-15
# An order takes a quadrature or a sum of its own where units are sampled; these serve there.
_WHOLE_ORDERS = (*map(float, range(2, 65)), 80.0, 100.0, 128.0, 160.0, 200.0, 256.0, 512.0, 1024.0)
SAMPLING_ORDERS = tuple(sorted({*(1 + x / 10 for x in range(1, 100)), *_WHOLE_ORDERS}))
_MOST_ATOMS = 2000


def rdp(event: Event) -> RDP | None:
    """The RDP curve of a composition (without its `fixed_delta`), or None if a part has none.

    >>> from dalenius.accounting.events import Gaussian, Repeated
    >>> curve = rdp(Repeated(Gaussian(30), 1000))
    >>> round(curve.epsilon(1e-6), 3)
    5.543
    """
    counts = events.tally(event)
    sampled = sum(_is_sampled(single) for single in counts)
    # for long lists of unequal sampled mechanisms, whole orders must do
    orders = np.array(DEFAULT_ORDERS if not sampled else SAMPLING_ORDERS if sampled <= 3 else _WHOLE_ORDERS)
    with np.errstate(all="ignore"):
        total = _sum(event, orders)
    return None if total is None else RDP(tuple(orders.tolist()), tuple(total.tolist()), event.neighbors)


def divergences(single: Event, orders: Array) -> Array | None:
    """d(α) of one event."""
    match single:
        case events.Laplace():
            return _cap(_laplace(float(1 / single.noise_multiplier), orders), single, orders)
        case events.RandomizedResponse():
            return _cap(_response(float(single.epsilon), single.categories, orders), single, orders)
        case events.NoisyMax() | events.Pure() | events.Approx():
            return _cap(_response(float(single.epsilon), 2, orders), single, orders)
        case events.DiscreteLaplace():
            return _cap(_discrete_laplace(single, orders), single, orders)
        case events.Exponential():
            return _cap(_bounded_range(float(single.epsilon), orders), single, orders)
        case events.PoissonSampled() | events.SampledWithoutReplacement():
            return _sampled_divergence(single, orders)
        case events.SampledGaussian():
            return np.array([_above(sampled_discrete.divergence(single, Fraction(order))) for order in orders.tolist()])
        case events.Parallel():
            parts = [_sum(part, orders) for part in single.events]
            found = [part for part in parts if part is not None]
            return np.max(found, axis=0) if len(found) == len(parts) else None
        case _:
            guarantee = costs.zcdp(single)
            return None if guarantee is None else guarantee.rho * orders


def _sum(event: Event, orders: Array) -> Array | None:
    total = np.zeros_like(orders)
    for single, times in events.tally(event).items():
        part = divergences(single, orders)
        if part is None:
            return None
        total = total + times * part
    return total


def _is_sampled(single: Event) -> bool:
    if isinstance(single, events.Parallel):
        return any(_is_sampled(part) for event in single.events for part, _ in events.flatten(event))
    return isinstance(single, events.PoissonSampled | events.SampledWithoutReplacement | events.SampledGaussian)


def _above(value: Decimal) -> float:
    return math.nextafter(float(value), math.inf)


def _cap(formula: Array, single: Event, orders: Array) -> Array:
    guarantee = costs.zcdp(single)
    rho = np.inf if guarantee is None else guarantee.rho
    slack = ROUNDING * (1 + 1 / (orders - 1))  # near order 1 a formula divides its rounding by α − 1
    capped: Array = np.fmin(formula + slack, rho * orders)
    return capped


def _laplace(epsilon: float, orders: Array) -> Array:
    """ln(α/(2α−1)·e^((α−1)ε) + (α−1)/(2α−1)·e^(−αε)) / (α−1)  [Mironov (2017), Prop. 6]."""
    less = orders - 1
    return epsilon + np.log1p(less * np.expm1(epsilon * (1 - 2 * orders)) / (2 * orders - 1)) / less


def _response(epsilon: float, categories: int, orders: Array) -> Array:
    """ln(b·(e^(αε) + e^(−(α−1)ε) + k−2)) / (α−1), b the probability of one false answer."""
    false = -epsilon - np.log1p((categories - 1) * np.exp(-epsilon))
    inside = np.logaddexp(orders * epsilon, -(orders - 1) * epsilon)
    if categories > 2:
        inside = np.logaddexp(inside, np.log(categories - 2))
    formula: Array = (false + inside) / (orders - 1)
    return formula


def _discrete_laplace(event: events.DiscreteLaplace, orders: Array) -> Array:
    loss = dominating_pair(event)
    if loss is None or loss.atoms.size > _MOST_ATOMS:
        return _response(float(event.sensitivity / event.scale), 2, orders)
    exponent = np.outer(orders - 1, loss.atoms) + np.log(np.maximum(loss.masses, 1e-320))
    formula: Array = np.logaddexp.reduce(exponent, axis=1) / (orders - 1)
    return formula


def _bounded_range(epsilon: float, orders: Array) -> Array:
    """The largest divergence of a loss on {t−ε, t}: the worst t ∈ [0, ε] in closed form, for each order.

    E[e^((α−1)L)] = s^(α−1)(A − Bs)/(1−e^(−ε)) with s = e^t, A = 1−e^(−αε), B = e^(−ε) − e^(−αε),
    which is greatest at s = A(α−1)/(Bα).
    """
    less = orders - 1
    first = -np.expm1(-orders * epsilon)
    second = -np.exp(-epsilon) * np.expm1(-less * epsilon)
    worst = np.clip(np.log(first) + np.log(less) - np.log(second) - np.log(orders), 0.0, epsilon)
    inside = np.log(first - second * np.exp(worst)) - np.log(-np.expm1(-epsilon))
    formula: Array = worst + inside / less
    return formula


def _sampled_divergence(
    single: events.PoissonSampled | events.SampledWithoutReplacement, orders: Array
) -> Array | None:
    """The sampled Gaussian by its own bounds; anything else by amplified pure ε."""
    inner = merge_gaussians(single.event)
    if isinstance(inner, events.Gaussian):
        poisson = isinstance(single, events.PoissonSampled)
        bound = sampled_gaussian.poisson if poisson else sampled_gaussian.without_replacement
        return bound(single.rate, float(inner.noise_multiplier), orders)
    epsilon = costs.pure_epsilon(single)
    return None if epsilon is None else divergences(events.Pure(epsilon, Neighbors.ADD_REMOVE), orders)
