"""Calibration: the least noise for a target, the most repetitions for a budget.

Everything returned satisfies the target; a search stops within 10⁻⁴ (relative) of the best where it has to try.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dalenius.accounting import conversions, events, parameters
from dalenius.accounting.accountant import account
from dalenius.accounting.events import Event
from dalenius.accounting.losses import atoms_delta
from dalenius.accounting.parameters import Real
from dalenius.accounting.pld import PLD, require_pair
from dalenius.errors import InputError

PRECISION = 1e-4


def laplace_scale(epsilon: Real, sensitivity: Real = 1) -> Real:
    """b = Δ/ε, exact for ints and Fractions; the discrete Laplace has the same.

    >>> laplace_scale(Fraction(1, 10))
    Fraction(10, 1)
    """
    parameters.epsilon(epsilon)
    return parameters.positive(sensitivity, "sensitivity") / epsilon


def classical_gaussian(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """σ = √(2 ln(1.25/δ))·Δ/ε. Proved for ε ≤ 1 only, and refused past it.

    Dwork & Roth (2014), Thm. 3.22.

    >>> round(classical_gaussian(1.0, 1e-6), 3)
    5.299
    """
    if parameters.epsilon(epsilon) > 1:
        raise InputError(
            "The classical Gaussian calibration holds for ε ≤ 1 only.",
            why="Its proof breaks down past it, and so does the promise.",
            fix="Use analytic_gaussian, which is tight for every ε.",
        )
    return math.sqrt(2 * math.log(1.25 / _above_zero(delta))) * float(sensitivity) / epsilon


def analytic_gaussian(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The least σ of continuous Gaussian noise for (ε, δ). Balle & Wang (2018).

    >>> round(analytic_gaussian(1.0, 1e-6), 3)
    4.225
    """
    parameters.epsilon(epsilon)
    delta = _above_zero(delta)
    least = conversions.smallest(lambda m: conversions.gaussian_delta(m, epsilon) <= delta, 1.0, 1e-12)
    return least * float(parameters.positive(sensitivity, "sensitivity"))


def zcdp_variance(rho: Real, squared_sensitivity: int = 1) -> Fraction:
    """σ² = Δ²/2ρ, exactly, for Gaussian and discrete Gaussian noise.

    >>> zcdp_variance(Fraction(1, 8))
    Fraction(4, 1)
    """
    parameters.positive(rho, "rho")
    return Fraction(parameters.count(squared_sensitivity, "squared_sensitivity")) / (2 * Fraction(rho))


def discrete_gaussian_variance(epsilon: float, delta: float, sensitivity: int = 1) -> float:
    """The least σ² of discrete Gaussian noise on one integer for (ε, δ), by its exact δ(ε).

    Canonne, Kamath & Steinke (2020), Thm. 7.

    >>> abs(math.sqrt(discrete_gaussian_variance(1.0, 1e-6)) - analytic_gaussian(1.0, 1e-6)) < 0.01
    True
    """
    parameters.epsilon(epsilon)
    delta = _above_zero(delta)
    parameters.count(sensitivity, "sensitivity")

    def holds(sigma: float) -> bool:
        loss = require_pair(events.DiscreteGaussian(sigma * sigma, sensitivity**2))
        return atoms_delta(loss, epsilon) <= delta * (1 - 1e-9)  # the sum's own rounding

    sigma = conversions.smallest(holds, float(analytic_gaussian(epsilon, delta, sensitivity)), 1e-9)
    return sigma * sigma


def dp_sgd_noise(epsilon: float, delta: float, *, rate: float, steps: int) -> float:
    """The least noise multiplier of DP-SGD with Poisson batches, by loss distributions.

    >>> 1.1 < dp_sgd_noise(1.0, 1e-5, rate=0.01, steps=500) < 1.2
    True
    """
    parameters.count(steps, "steps")

    def training(multiplier: float) -> Event:
        return events.Repeated(events.PoissonSampled(rate, events.Gaussian(multiplier)), steps)

    return least_noise(training, epsilon, delta, by=lambda event: PLD.of(event).epsilon(delta))


def least_noise(
    mechanism: Callable[[float], Event],
    epsilon: float,
    delta: float,
    *,
    by: Callable[[Event], float] | None = None,
) -> float:
    """The least noise x for which ``mechanism(x)`` is (ε, δ)-DP. More noise must not cost more.

    >>> from dalenius.accounting.events import Laplace, Repeated
    >>> 9.9 < least_noise(lambda b: Repeated(Laplace(b), 100), 4.7, 1e-6) < 10.1
    True
    """
    target, delta = parameters.epsilon(epsilon), parameters.delta(delta)
    spent = by or (lambda event: account(event, delta).epsilon)

    def holds(noise: float) -> bool:
        try:
            return spent(mechanism(noise)) <= target
        except InputError:  # more noise than an event can have
            return False

    found = conversions.smallest(holds, 1.0, PRECISION)
    if math.isinf(found):
        raise InputError(
            f"No amount of noise gives ε = {target:g} at δ = {delta:g}.",
            why="The mechanism has a δ of its own that is too large, or does not get safer with noise.",
            fix="Allow a larger δ.",
        )
    return found


def most_repetitions(event: Event, epsilon: float, delta: float) -> int:
    """How often ``event`` may happen within (ε, δ), its parameters fixed beforehand; 0 if not even once.

    >>> from dalenius.accounting.events import Gaussian
    >>> most_repetitions(Gaussian(30), 5.2, 1e-6)
    1003
    """
    target, delta = parameters.epsilon(epsilon), parameters.delta(delta)

    def fits(times: int) -> bool:
        return account(events.Repeated(event, times), delta).epsilon <= target

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, high * 2
        if high > 10**12:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _above_zero(delta: float) -> float:
    checked = parameters.delta(delta)
    if checked == 0:
        raise InputError(
            "Gaussian noise needs a δ above 0.",
            why="Its loss has no bound, only a small probability to be large.",
            fix="Give a δ such as 1e-6, or use Laplace noise.",
        )
    return checked
